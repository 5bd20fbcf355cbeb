"""Own data: a cache of its own for every test, and no test that waits for ever."""

import signal
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import pytest

LIMIT = 20.0
"""Seconds that a test may take."""


@pytest.fixture(autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
    monkeypatch.delenv("OSTRAKA_CACHE", raising=False)


@pytest.fixture(autouse=True)
def _in_time() -> Iterator[None]:
    def over(number: int, frame: FrameType | None) -> None:
        raise TimeoutError(f"it took longer than {LIMIT} s")

    before = signal.signal(signal.SIGALRM, over)
    signal.setitimer(signal.ITIMER_REAL, LIMIT)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where a test puts its data."""
    place = tmp_path / "own"
    place.mkdir()
    return place
