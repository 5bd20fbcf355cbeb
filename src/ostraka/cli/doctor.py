"""`ostraka doctor`: what this installation has and what it lacks."""

import argparse
import json
import os
import platform
import shutil
import tempfile
from collections.abc import Callable
from importlib.metadata import entry_points
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

from ostraka import __version__
from ostraka.cli.options import DATA_DIR, option
from ostraka.registry import all_registries

NAME = "doctor"
HELP = "versions, cores, memory, disk, the fast convolution, data found"
DESCRIPTION = """\
Show versions, cores, memory, disk space, the fast convolution, plug-ins
and the data sets found.
"""
EXAMPLE = "example:\n  ostraka doctor --data-dir ~/datasets"
PHOTO = (3, 32, 32)
"""A shape of samples that every built-in net takes."""

OPTIONS = (DATA_DIR, option("--json", "print one JSON object instead of a table"))


def act(options: argparse.Namespace) -> int:
    """Look and tell."""
    from rich.console import Console

    from ostraka.data.sources import data_dirs
    from ostraka.display.tables import Table

    data_dirs(options.data_dir)  # one that was named and is not there is a mistake in the command
    facts = {name: _told(probe, options) for name, probe in PROBES.items()}
    if options.json:
        print(json.dumps(facts))
    else:
        rows = [(key.replace("_", " "), _text(key, value)) for key, value in facts.items()]
        Console().print(Table(("what", "found"), rows).rich())
    return 0


def _told(probe: Callable[[argparse.Namespace], Any], options: argparse.Namespace) -> Any:
    """What a probe finds; one that fails says why, and the others go on."""
    try:
        return probe(options)
    except Exception as error:  # the doctor is called where something is broken
        return f"failed: {type(error).__name__}: {str(error).partition(chr(10))[0]}"


def _memory(options: argparse.Namespace) -> str:
    from ostraka.display.tables import human_bytes
    from ostraka.runs.memory import available

    room = available()
    return "the system does not tell" if room is None else f"{human_bytes(room)} available"


def _temporary(options: argparse.Namespace) -> str:
    folder = Path(tempfile.gettempdir())
    if not os.access(folder, os.W_OK):
        return f"{folder}, which may not be written; set TMPDIR"
    return _space(folder)


def _space(folder: Path) -> str:
    from ostraka.display.tables import human_bytes

    return f"{folder}, {human_bytes(shutil.disk_usage(folder).free)} free"


def _native_nets(options: argparse.Namespace) -> list[str]:
    """The nets with layers that the fast convolution takes; the others run by torch."""
    from torch import device

    from ostraka.core.net import Recipe
    from ostraka.nets import native
    from ostraka.nets.blocks import convolution_of
    from ostraka.registry import NETS

    if not native.available():
        return []
    own = [name for name, make in NETS.working().items() if make.__module__.startswith("ostraka.")]
    with device("meta"):
        nets = {name: Recipe(name).build_net(PHOTO, 2, False, 0) for name in own}
    return [name for name, net in nets.items() if convolution_of(net) == native.describe()]


def _compiler(options: argparse.Namespace) -> str:
    names = [name for name in (os.environ.get("CXX"), "c++", "g++", "clang++") if name]
    found = [path for name in names if (path := shutil.which(name)) is not None]
    return found[0] if found else "none (only needed to install the fast convolution from source)"


def _plugins(options: argparse.Namespace) -> list[str]:
    """Every plug-in by name and place, those that cannot be loaded among them."""
    groups = [entry_points(group=registry.group) for registry in all_registries()]
    return [f"{point.name} ({point.value})" for points in groups for point in points]


def _folders(options: argparse.Namespace) -> list[str]:
    from ostraka.data.sources import data_dirs

    return [str(folder) for folder in data_dirs(options.data_dir)]


def _data(options: argparse.Namespace) -> list[str]:
    from ostraka.data.sources import available, data_dirs

    return sorted({found.name for found in available(data_dirs(options.data_dir))})


PROBES: dict[str, Callable[[argparse.Namespace], Any]] = {
    "ostraka": lambda _: __version__,
    "python": lambda _: platform.python_version(),
    "torch": lambda _: str(resolve_name("torch:__version__")),
    "cores": lambda _: resolve_name("ostraka.engines.pool:cores")(),
    "memory": _memory,
    "disk": lambda _: _space(Path.cwd()),
    "temporary_folder": _temporary,
    "device": lambda _: resolve_name("ostraka.runs.plan:pick_device")("auto"),
    "convolution": lambda _: resolve_name("ostraka.nets.native:describe")(),
    "nets_with_it": _native_nets,
    "compiler": _compiler,
    "plugins": _plugins,
    "broken_plug_ins": lambda _: [why for each in all_registries() for why in each.broken()],
    "data_folders": _folders,
    "missing_data_folders": lambda options: [
        folder for folder in _folders(options) if not Path(folder).is_dir()
    ],
    "data_sets": _data,
}
"""What is looked at, each by itself; it imports what it needs, which may not even load."""

NONE = {"plugins": "none", "data_folders": "none (set OSTRAKA_DATA or --data-dir)"}
"""What is said of an empty list."""


def _text(key: str, value: Any) -> str:
    return (", ".join(value) or NONE.get(key, "none")) if isinstance(value, list) else str(value)
