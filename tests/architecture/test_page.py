"""docs/architecture.md: its layers are those of the code, and its walk is what really happens."""

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from inspect import unwrap
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest

from ostraka.cli.main import main
from ostraka.errors import ConfigError
from tests.architecture.draw import (
    BEGIN,
    END,
    PAGE,
    diagram,
    drawn,
    height,
    reachable,
    reduced,
    renewed,
)
from tests.architecture.layers import LAYERS
from tests.architecture.modules import Source, layer_imports, sources

WALK = "## The walk of `ostraka run fedov`"
NAMED = re.compile(r"`((?:[a-z_]+\.)+[A-Za-z_.]+)`")


def walk() -> list[str]:
    """The numbered lines of the walk."""
    _, _, rest = PAGE.read_text(encoding="utf-8").partition(WALK)
    return re.findall(r"^\d+\. .*$", rest.partition("\n## ")[0], re.M)


def named() -> list[str]:
    """The functions that the walk names, in its order."""
    return [name for line in walk() for name in NAMED.findall(line)]


def found(name: str) -> Any:
    """What a dotted name behind `ostraka.` stands for; an AttributeError says what is missing."""
    parts = name.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            item: Any = import_module(".".join(["ostraka", *parts[:cut]]))
        except ModuleNotFoundError:
            continue
        for part in parts[cut:]:
            item = getattr(item, part)
        return item
    raise ModuleNotFoundError(f"there is no module of that name: {name}")


def code_of(name: str) -> CodeType:
    item = unwrap(getattr(found(name), "__func__", found(name)))
    return item.__code__  # type: ignore[no-any-return]


@contextmanager
def followed(wanted: dict[CodeType, str], order: list[str]) -> Iterator[None]:
    """Note the first call of every function in `wanted`, in the order of the calls."""

    def note(frame: FrameType, event: str, argument: object) -> None:
        name = wanted.get(frame.f_code)
        if event == "call" and name is not None and name not in order:
            order.append(name)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        yield
    finally:
        sys.setprofile(before)


def test_the_layers_of_the_page_are_those_of_the_code() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert renewed(page, drawn(layer_imports(sources()))) == page, (
        "docs/architecture.md is not up to date: make architecture"
    )


def test_the_walk_has_fifteen_lines_of_functions_that_exist() -> None:
    assert len(walk()) == 15
    assert len(named()) > 20
    for name in named():
        assert callable(found(name)), name


def test_the_walk_is_what_happens(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every function is called, and for the first time in the
    order in which the page names them.
    """
    order: list[str] = []
    words = "run fedov --data digits --parties 3 --partition labels:4 --train-per-class 10 -q"
    rest = ["--engine", "serial", "--set", "local.steps=2", "--out", str(tmp_path / "run")]
    rest += ["--data-dir", str(tmp_path)]  # so that no earlier run has the data in memory
    with followed({code_of(name): name for name in named()}, order):
        assert main([*words.split(), *rest]) == 0
    assert order == named()
    assert "fedov on digits" in capsys.readouterr().out


def test_what_is_not_there_is_found_missing() -> None:
    with pytest.raises(AttributeError, match="no_such"):
        found("runs.loop.no_such")
    with pytest.raises(ModuleNotFoundError, match="nowhere"):
        found("nowhere.at_all")
    assert found("errors.ConfigError") is ConfigError


GRAPH = {"top": {"middle", "low"}, "middle": {"low"}, "low": {"errors"}, "errors": set[str]()}
"""low follows from middle: the arrow from top to it is not drawn."""


def test_arrows_that_follow_from_others_are_left_out() -> None:
    assert reduced(GRAPH)["top"] == {"middle"}
    assert [height(GRAPH, layer) for layer in ("top", "middle", "low")] == [3, 2, 1]
    assert diagram(GRAPH) == ["top ───────> middle", "middle ────> low", "low"]


def test_a_circle_of_layers_is_an_error() -> None:
    with pytest.raises(ValueError, match="a > b > a"):
        reachable({"a": {"b"}, "b": {"a"}}, "a")


def test_layers_import_what_their_modules_do() -> None:
    """In functions too; not the version in `ostraka` itself, and not what is preloaded unnamed."""
    modules = [
        Source("ostraka.core.fit", "import torch\nfrom ostraka.errors import ConfigError"),
        Source("ostraka.cli.run", "def f():\n    from ostraka.core.fit import fit"),
        Source("ostraka.cli.main", "from ostraka import __version__\nimport ostraka.cli.run"),
        Source("ostraka.engines.warm", "import ostraka.methods\nimport ostraka.core.fit"),
        Source("ostraka.methods.solo", ""),
        Source("ostraka.errors", ""),
    ]
    assert layer_imports(modules) == {
        "core": {"errors"},
        "cli": {"core"},
        "engines": {"core"},
        "methods": set(),
        "errors": set(),
    }


def test_a_page_without_marks_is_refused() -> None:
    assert renewed(f"a {BEGIN} old {END} b", "new") == f"a {BEGIN}\nnew\n{END} b"
    with pytest.raises(ValueError, match="no place"):
        renewed(f"a {BEGIN} old b", "new")


def test_what_a_layer_may_import_in_words() -> None:
    there = {"core", "nets", "cli", "display"}
    assert LAYERS["errors"].words(there) == "the standard library"
    assert LAYERS["core"].words(there) == "numpy, torch"
    assert LAYERS["voting"].words(there) == "`core`, `nets`"
    assert LAYERS["runs"].words(there) == "all but `cli`, `display`"
    assert LAYERS["cli"].words(there) == "all"
