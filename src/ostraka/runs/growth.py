"""A class that arrives later: a finished run goes on with one network more.

Only a method whose networks are independent of each other can do that (`Method.adds_classes`); what
the finished run has learnt stays as it is.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ostraka.core.settings import merge, values_of
from ostraka.errors import ConfigError, choices
from ostraka.runs.config import build_method, canonical_method, make
from ostraka.runs.division import load_for
from ostraka.runs.record import RunDir, nothing_in

DECIDED = ("known", "known_classes", "start_from", "start_digest")
"""Settings of a run that follow from the finished one and the classes to be added."""


def grown(folder: Path, names: Sequence[str], given: Mapping[str, Any]) -> dict[str, Any]:
    """The configuration of a run that adds the classes `names` to the finished run in `folder`.

    It is that run's own with `given` laid over it. The classes keep their numbers, new ones come
    behind them.
    """
    home = RunDir(folder)
    done = home.finished()
    if done is None:
        raise ConfigError(nothing_in(folder))
    was = home.stored_config()
    if not build_method(was).adds_classes:
        raise ConfigError(
            f"{folder} is a run of {was.method}, whose model has all classes in one network: a new "
            "class needs a new training. fedova has a network for each class and can add one"
        )
    _check_given(given, was.method)
    values = merge(values_of(was), given)
    every, old = load_for(make(values), str(values["data"])).classes, tuple(done.per_class)
    for place, name in enumerate(names):
        if name in names[:place]:
            raise ConfigError(f"the class {name!r} is to be added twice; name every class once")
        if name not in every:
            raise ConfigError(
                f"there is no class {name!r} in {values['data']}; it has: {choices(every)}"
            )
        if name in old:
            raise ConfigError(f"the run in {folder} knows the class {name!r} already")
    lost = [name for name in old if name not in every]
    if lost:
        raise ConfigError(
            f"the run in {folder} knows the class {lost[0]!r}, which {values['data']} does not "
            "have; give data with all its classes (--data)"
        )
    listed = [every.index(name) for name in (*old, *names)]
    return values | {
        "start_from": str(folder),
        "start_digest": None,
        "known": None,
        "known_classes": [] if listed == list(range(len(every))) else listed,
        "set": merge(values["set"], {"only": list(names)}),
    }


def _check_given(given: Mapping[str, Any], method: str) -> None:
    """Refuse what adding classes decides itself."""
    asked = given.get("method")
    if asked is not None and canonical_method(str(asked)) != method:
        raise ConfigError(
            f"a class is added by the method of the finished run, {method}; {asked} was given. "
            "Leave it out"
        )
    settings = given.get("set", {})
    only = settings.get("only") if isinstance(settings, Mapping) else None
    said = {**{name: given.get(name) for name in DECIDED}, "only": only}
    for name, value in said.items():
        if value:
            raise ConfigError(
                f"{name} = {value!r} was given, but whoever adds classes starts from the finished "
                "run, knows its classes and the added ones, and trains these alone; leave "
                f"{name} out"
            )
