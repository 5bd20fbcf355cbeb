"""Where a node of a Ray cluster keeps half-finished training; Ray itself is not needed."""

from dataclasses import replace
from pathlib import Path

import pytest

from ostraka.engines import ray_tasks
from ostraka.engines.base import Order
from ostraka.errors import StoreError
from ostraka.store.desk import Place

ORDER = Order(3, 2, seed=5, owner="ab12", message=b"weights", memory=None)


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(ray_tasks.tempfile, "gettempdir", lambda: str(tmp_path))
    return tmp_path


def place(order: Order) -> Path:
    return ray_tasks._own_place(Place(Path("of the server"), {"run": "ab12"}), order).path


def test_the_same_order_finds_its_half_finished_training(temporary: Path) -> None:
    found = place(ORDER)
    assert found == place(replace(ORDER))
    assert found.parent.name == "ab12"
    assert found.name.startswith("r00002-p00003-")
    assert found.parents[1].parent == temporary
    assert found.parents[1].stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    "other",
    [
        replace(ORDER, message=b"others"),
        replace(ORDER, memory=b"kept"),
        replace(ORDER, seed=6),
        replace(ORDER, message=b"weight", memory=b"s"),
    ],
)
def test_an_order_that_begins_from_something_else_does_not(other: Order) -> None:
    """A run that is begun anew has the name of the former, but another party may have failed."""
    assert place(other) != place(ORDER)


def test_a_folder_that_somebody_else_laid_there_is_refused(temporary: Path) -> None:
    elsewhere = temporary / "elsewhere"
    elsewhere.mkdir()
    (temporary / f"ostraka-ray-{ray_tasks.os.getuid()}").symlink_to(elsewhere)
    with pytest.raises(StoreError, match="belongs to somebody else"):
        place(ORDER)
    assert list(elsewhere.iterdir()) == []
