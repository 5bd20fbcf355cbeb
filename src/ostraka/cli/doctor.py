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
from typing import Any

from ostraka import __version__
from ostraka.registry import all_registries

NAME = "doctor"
PHOTO = (3, 32, 32)
"""A shape of samples that every built-in net takes."""


def add_to(verbs: Any) -> None:
    """Register the verb."""
    parser: argparse.ArgumentParser = verbs.add_parser(
        NAME,
        help="versions, cores, memory, disk, the fast convolution, data found",
        description="Show versions, cores, memory, disk space, the fast convolution, plug-ins\n"
        "and the data sets found.",
        epilog="example:\n  ostraka doctor --data-dir ~/datasets",
    )
    parser.add_argument(
        "--data-dir", metavar="DIR", help="folders with data sets (also: OSTRAKA_DATA)"
    )
    parser.add_argument(
        "--json", action="store_true", help="print one JSON object instead of a table"
    )
    parser.set_defaults(act=act)


def act(options: argparse.Namespace) -> int:
    """Look and tell."""
    from rich.console import Console

    from ostraka.data.sources import data_dirs
    from ostraka.display.tables import Table

    data_dirs(
        options.data_dir
    )  # a folder that was named and is not there is a mistake in the command
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


def _torch(options: argparse.Namespace) -> str:
    import torch

    return str(torch.__version__)


def _cores(options: argparse.Namespace) -> int:
    from ostraka.engines.pool import cores

    return cores()


def _memory(options: argparse.Namespace) -> str:
    from ostraka.display.tables import human_bytes
    from ostraka.runs.memory import available

    room = available()
    return "the system does not tell" if room is None else f"{human_bytes(room)} available"


def _disk(options: argparse.Namespace) -> str:
    return _space(Path.cwd())


def _temporary(options: argparse.Namespace) -> str:
    folder = Path(tempfile.gettempdir())
    return (
        _space(folder)
        if os.access(folder, os.W_OK)
        else f"{folder}, which may not be written; set TMPDIR"
    )


def _space(folder: Path) -> str:
    from ostraka.display.tables import human_bytes

    return f"{folder}, {human_bytes(shutil.disk_usage(folder).free)} free"


def _device(options: argparse.Namespace) -> str:
    from ostraka.runs.plan import pick_device

    return pick_device("auto")


def _convolution(options: argparse.Namespace) -> str:
    from ostraka.nets import native

    return native.describe()


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
    points = [
        point for registry in all_registries() for point in entry_points(group=registry.group)
    ]
    return [f"{point.name} ({point.value})" for point in points]


def _broken(options: argparse.Namespace) -> list[str]:
    return [reason for registry in all_registries() for reason in registry.broken()]


def _folders(options: argparse.Namespace) -> list[str]:
    from ostraka.data.sources import data_dirs

    return [str(folder) for folder in data_dirs(options.data_dir)]


def _missing(options: argparse.Namespace) -> list[str]:
    return [folder for folder in _folders(options) if not Path(folder).is_dir()]


def _data(options: argparse.Namespace) -> list[str]:
    from ostraka.data.sources import available, data_dirs

    return sorted({found.name for found in available(data_dirs(options.data_dir))})


PROBES: dict[str, Callable[[argparse.Namespace], Any]] = {
    "ostraka": lambda _: __version__,
    "python": lambda _: platform.python_version(),
    "torch": _torch,
    "cores": _cores,
    "memory": _memory,
    "disk": _disk,
    "temporary_folder": _temporary,
    "device": _device,
    "convolution": _convolution,
    "nets_with_it": _native_nets,
    "compiler": _compiler,
    "plugins": _plugins,
    "broken_plug_ins": _broken,
    "data_folders": _folders,
    "missing_data_folders": _missing,
    "data_sets": _data,
}
"""What is looked at, each by itself."""

NONE = {"plugins": "none", "data_folders": "none (set OSTRAKA_DATA or --data-dir)"}
"""What is said of an empty list."""


def _text(key: str, value: Any) -> str:
    return (", ".join(value) or NONE.get(key, "none")) if isinstance(value, list) else str(value)
