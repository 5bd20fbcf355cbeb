"""Names: registration, aliases, suggestions, plug-ins that are broken."""

import importlib
import os
import subprocess
import sys
from dataclasses import dataclass
from importlib.metadata import EntryPoint
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ostraka import registry
from ostraka.core.method import Method
from ostraka.errors import ConfigError, PluginWarning, choices, did_you_mean
from ostraka.registry import (
    BALLOTS,
    ENGINES,
    METHODS,
    NETS,
    OBJECTIVES,
    PARTITIONS,
    PRESETS,
    SOURCES,
    Registry,
    summary_of,
)
from ostraka.runs.config import build_method, make

EMPTY = "ostraka.errors"
"""A package that registers nothing."""


@dataclass
class Thing:
    pass


def things() -> Registry[Any]:
    made: Registry[Any] = Registry("thing", EMPTY)
    made.add("spoon", "ladle")(Thing)
    made.add("fork")(int)
    return made


def test_names_and_aliases() -> None:
    made = things()
    assert made.names() == list(made) == ["fork", "spoon"]
    assert made.aliases() == {"ladle": "spoon"}
    assert made.get("ladle") is made.get("spoon") is Thing
    assert made.canonical("ladle") == "spoon"
    assert made.name_of(Thing) == "spoon"


def test_unknown_names_are_refused_with_the_nearest() -> None:
    with pytest.raises(
        ConfigError,
        match=r"unknown thing 'spon'\. Did you mean 'spoon'\? Known things: fork, spoon",
    ):
        things().get("spon")
    with pytest.raises(ConfigError, match=r"unknown thing 'ladel'\. Did you mean 'ladle'\?"):
        things().get("ladel")
    with pytest.raises(ConfigError, match=r"unknown thing 'xyz'\. Known things"):
        things().get("xyz")


def test_names_are_matched_without_regard_to_case() -> None:
    made = things()
    assert made.get("SPOON") is made.get("Ladle") is made.get("spoon")
    assert made.canonical("Ladle") == "spoon"
    assert ("Fork" in made, "LADLE" in made, "knife" in made) == (True, True, False)
    made.add("Spoon")(int)  # of two that differ in case, what is written exactly so
    assert (made.get("Spoon"), made.get("spoon")) == (int, Thing)


@pytest.mark.parametrize("kind", registry.all_registries(), ids=lambda kind: kind.kind)
def test_every_name_and_alias_is_found_in_any_case(kind: Registry[Any]) -> None:
    for name in (*kind, *kind.aliases()):
        assert kind.canonical(name.upper().replace("-", "_")) == kind.canonical(name)


def test_of_many_names_an_error_lists_the_nearest_few() -> None:
    with pytest.raises(ConfigError) as caught:
        METHODS.get("fedvo")
    text = str(caught.value)
    listed = text.partition("Known methods: ")[2].partition(" and ")[0].split(", ")
    assert text.startswith("unknown method 'fedvo'. Did you mean 'fedov'? Known methods: fedov, ")
    assert len(listed) == 8
    assert f"and {len(METHODS.names()) - 8} more (ostraka list methods)" in text


@pytest.mark.parametrize(
    ("given", "names", "nearest"),
    [
        ("fedvo", ["fedvc", "fedov", "fedova"], "fedov"),  # two letters in the wrong order
        ("mnits", ["minuts", "mnist"], "mnist"),
        ("clos", ["cos", "closed-voting", "closed"], "closed"),  # begins so; the shortest
        ("simple-cn", ["simplecnn", "simple-cnn"], "simple-cnn"),  # of two alike, as it is written
        ("fedov-pap", ["fedov-paper", "fedova"], "fedov-paper"),
        ("FEDOW", ["fedov", "FEDEX"], "fedov"),
        ("--alpha", ["--help", "--partition"], None),
        ("a", ["abcd"], None),  # one letter says nothing
        ("spoon", ["spoon"], None),  # what was given is not what was meant
        ("", ["a", ""], None),
        ("--", ["--"], None),
    ],
)
def test_what_is_nearest(given: str, names: list[str], nearest: str | None) -> None:
    told = f" Did you mean {nearest!r}?" if nearest else ""
    assert did_you_mean(given, names) == told == did_you_mean(given, reversed(names))


def test_a_few_of_many() -> None:
    names = [f"name-{n:02}" for n in range(13)]
    assert choices(names) == ", ".join(names)
    assert choices(names[:12], "nmae-07") == ", ".join(names[:12])
    told = choices([*names, "name-07"], "nmae-07")
    assert told.startswith("name-07, ")
    assert told.endswith(" and 5 more")
    assert told.count(",") == 7


def test_a_name_belongs_to_one_thing() -> None:
    made = things()
    made.add("fork")(int)
    with pytest.raises(ConfigError, match="two things are called 'fork'"):
        made.add("fork")(str)


def test_what_was_removed_is_unknown() -> None:
    made = things()
    made.remove("spoon")
    for name in ("spoon", "ladle"):
        with pytest.raises(ConfigError, match="unknown thing"):
            made.get(name)


def test_what_is_not_registered_has_no_name() -> None:
    with pytest.raises(ConfigError, match="is not registered as a thing"):
        things().name_of(float)


def with_plugins(monkeypatch: pytest.MonkeyPatch, **plugins: str) -> Registry[Any]:
    points = [EntryPoint(name, value, "ostraka.things") for name, value in plugins.items()]
    monkeypatch.setattr(
        registry, "entry_points", lambda group: [p for p in points if p.group == group]
    )
    return things()


def test_plug_ins_load_as_built_ins_do(monkeypatch: pytest.MonkeyPatch) -> None:
    made = with_plugins(monkeypatch, knife="decimal:Decimal")
    assert made.names() == ["fork", "knife", "spoon"]
    from decimal import Decimal

    assert made.get("knife") is Decimal
    assert made.name_of(Decimal) == "knife"


def test_a_broken_plug_in_is_named_and_harms_nobody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """It comes first in the alphabet, and still every other name and thing is found."""
    made = with_plugins(monkeypatch, aaa="no_such_module_at_all:X")
    assert made.get("spoon") is Thing
    assert made.name_of(Thing) == "spoon"
    assert "aaa" in made.names()
    with pytest.raises(
        ConfigError,
        match=r"plug-in thing 'aaa' \(no_such_module_at_all:X\) cannot be loaded.*fix or",
    ):
        made.get("aaa")
    with pytest.warns(
        PluginWarning, match="plug-in thing 'aaa' .no_such_module_at_all:X. cannot be loaded"
    ):
        assert made.working() == {"fork": int, "spoon": Thing}
    with (
        pytest.warns(PluginWarning),
        pytest.raises(ConfigError, match="is not registered as a thing"),
    ):
        made.name_of(float)
    [reason] = made.broken()
    assert "no_such_module_at_all" in reason


@pytest.mark.parametrize(
    ("base", "good", "bad"),
    [
        ("numbers:Number", "decimal:Decimal", "pathlib:Path"),  # a class must inherit from it
        ("collections.abc:Callable", "json:dumps", "math:pi"),  # an object must be one
    ],
)
def test_a_plug_in_of_another_kind_is_refused_by_its_entry_point(
    base: str, good: str, bad: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    points = [EntryPoint("good", good, "ostraka.things"), EntryPoint("bad", bad, "ostraka.things")]
    monkeypatch.setattr(registry, "entry_points", lambda group: points)
    made: Registry[Any] = Registry("thing", EMPTY, base)
    assert made.get("good") is not None
    with pytest.raises(
        ConfigError,
        match=rf"plug-in thing 'bad' .{bad}. cannot be loaded.*is no {base.split(':')[1]}",
    ):
        made.get("bad")


def test_a_class_that_lacks_a_function_of_its_kind_is_refused_by_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Registered by its own module or by an entry point; Python's words were a TypeError."""

    class Half(Method[Any, Any, Any]):
        def init(self, task: Any, seed: int) -> Any: ...
        def message(self, state: Any, party: Any) -> Any: ...
        def local_update(self, rnd: Any, party: Any, memory: Any) -> Any: ...
        def predictor(self, task: Any, state: Any) -> Any: ...

    registry.METHODS.add("half")(Half)
    try:
        with pytest.raises(
            ConfigError,
            match=r"the method 'half' lacks aggregate, which every method must define\. Add it",
        ):
            build_method(make({"method": "half"}))
    finally:
        registry.METHODS.remove("half")
    monkeypatch.setattr(
        registry, "entry_points", lambda group: [EntryPoint("odd", "numbers:Complex", group)]
    )
    made: Registry[Any] = Registry("thing", EMPTY, "numbers:Number")
    with pytest.raises(ConfigError, match=r"'odd' lacks __abs__, __add__, .*Add them"):
        made.get("odd")
    with pytest.warns(PluginWarning, match="'odd' lacks __abs__"):
        assert "odd" not in made.working()


def test_two_plug_ins_of_one_name_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    points = [
        EntryPoint("knife", value, "ostraka.things")
        for value in ("decimal:Decimal", "fractions:Fraction")
    ]
    monkeypatch.setattr(registry, "entry_points", lambda group: points)
    made = things()
    with pytest.warns(
        PluginWarning,
        match="'knife' .fractions:Fraction. is not used: 'knife' is also decimal:Decimal",
    ):
        assert made.get("knife").__name__ == "Decimal"


@pytest.mark.parametrize("name", ["tongs", "pincers", "spoon"])
def test_a_plug_in_cannot_take_the_name_of_what_stands_beside_it(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A user chooses from both by one name: a thing called as a tool,
    or as a tool's alias, would never be found.
    """
    made, tools = (
        with_plugins(monkeypatch, **{name: "decimal:Decimal"}),
        Registry[Any]("tool", EMPTY),
    )
    tools.add("tongs", "pincers")(int)
    made.stands_beside(tools)
    taken = "built in" if name == "spoon" else "a built-in tool"
    with pytest.warns(
        PluginWarning, match=f"plug-in thing '{name}' .* is not used: '{name}' is {taken}; give the"
    ):
        assert made.names() == ["fork", "spoon"]
    monkeypatch.setattr(
        registry, "entry_points", lambda group: [EntryPoint("fork", "decimal:Decimal", group)]
    )
    with pytest.warns(
        PluginWarning, match="plug-in tool 'fork' .* is not used: 'fork' is a built-in thing"
    ):
        assert tools.names() == ["tongs"]


def test_a_plug_in_beside_a_plug_in_is_not_called_built_in(monkeypatch: pytest.MonkeyPatch) -> None:
    made, tools = things(), Registry[Any]("tool", EMPTY)
    made.stands_beside(tools)
    monkeypatch.setattr(
        registry, "entry_points", lambda group: [EntryPoint("knife", "decimal:Decimal", group)]
    )
    assert tools.get("knife") is made.get("knife")


def test_the_package_of_a_plug_in_that_is_not_used_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    point = EntryPoint("fork", "decimal:Decimal", "ostraka.things")
    vars(point).update(dist=SimpleNamespace(name="cutlery"))
    monkeypatch.setattr(registry, "entry_points", lambda group: [point])
    with pytest.warns(
        PluginWarning, match=r"'fork' \(decimal:Decimal of the package cutlery\) is not used"
    ):
        things().names()


@pytest.mark.parametrize(
    ("kind", "name"), [("methods", "fedov-paper"), ("methods", "fedov"), ("presets", "fedavg")]
)
def test_methods_and_presets_have_their_names_together(
    kind: str, name: str, tmp_path: Path
) -> None:
    """In a process of its own, with an installed package that has such an entry point."""
    info = tmp_path / "cutlery-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: cutlery\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[ostraka.{kind}]\n{name} = decimal:Decimal\n")
    code = (
        "from ostraka.runs.config import build_method, make; "
        f"print(build_method(make({{'method': {name!r}}})))"
    )
    path = os.pathsep.join([str(tmp_path), *sys.path])
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert f"'{name}' (decimal:Decimal of the package cutlery) is not used" in done.stderr
    assert done.stdout.startswith(("FedOV(", "FedAvg("))


@pytest.mark.parametrize("kind", registry.all_registries(), ids=lambda kind: kind.kind)
def test_what_is_built_in_is_of_the_kind_that_plug_ins_must_be(kind: Registry[Any]) -> None:
    for item in kind.working().values():
        kind._check_kind(item)


@pytest.mark.parametrize("name", ["spoon", "ladle"])
def test_a_plug_in_cannot_take_a_built_ins_name_in_silence(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = with_plugins(monkeypatch, **{name: "decimal:Decimal", "knife": "decimal:Decimal"})
    with pytest.warns(
        UserWarning, match=f"plug-in thing '{name}' .decimal:Decimal. is not used.*another name"
    ):
        assert made.get(name) is Thing
    assert made.names() == ["fork", "knife", "spoon"]


@pytest.mark.parametrize(
    ("kind", "some"),
    [
        (METHODS, {"fedavg", "closed-voting", "solo", "centralised"}),
        (OBJECTIVES, {"cross-entropy"}),
        (NETS, {"simple-cnn", "lenet5", "mlp"}),
        (PARTITIONS, {"iid", "labels"}),
        (BALLOTS, {"sum"}),
        (ENGINES, {"serial", "pool"}),
    ],
)
def test_built_ins_are_there_and_described(kind: Registry[Any], some: set[str]) -> None:
    assert some <= set(kind.names())
    for name in kind:
        item = kind.get(name)
        assert (item.__doc__ or "").strip(), f"{kind.kind} {name} has no description"
        assert kind.name_of(item) == name


def test_a_summary_is_the_first_paragraph_on_one_line() -> None:
    class Long:
        """One that needs
        two lines.

        And more.
        """

    class Bare:
        pass

    assert summary_of(Long) == "One that needs two lines."
    assert summary_of(Bare()) == ""


def test_presets_name_methods() -> None:
    for name in PRESETS:
        preset = PRESETS.get(name)
        assert METHODS.canonical(preset.method) == preset.method
        assert preset.summary
        assert name not in METHODS.names(), "a preset must not hide a method"


def test_sources_are_registered() -> None:
    assert SOURCES.names()


def test_words_of_errors() -> None:
    assert choices(["b", "a"]) == "a, b"
    assert choices([]) == "(none)"
    assert did_you_mean("abcd", ["abce", "xyz"]) == " Did you mean 'abce'?"
    assert did_you_mean("q", ["abc"]) == ""


def test_a_new_module_of_a_package_registers_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A built-in method is its file: no list has to name it."""
    home = tmp_path / "rooms"
    home.mkdir()
    (home / "__init__.py").write_text(
        "from ostraka.registry import Registry, import_modules\n"
        "ROOMS = Registry('room', 'rooms')\n"
        "import_modules(__name__, __path__)\n"
    )
    (home / "kitchen.py").write_text("from rooms import ROOMS\nROOMS.add('kitchen')(object())\n")
    monkeypatch.syspath_prepend(tmp_path)
    rooms = importlib.import_module("rooms")
    assert rooms.ROOMS.names() == ["kitchen"]
