"""A class that arrives later: a finished run goes on with one network more.

Only a method whose networks are independent of each other can do that (`Method.adds_classes`); what
the finished run has learnt stays as it is.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ostraka.core.settings import merge, values_of
from ostraka.errors import ConfigError, choices
from ostraka.runs.config import build_method, make
from ostraka.runs.division import load_for
from ostraka.runs.record import RunDir, nothing_in


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
