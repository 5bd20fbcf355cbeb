"""How much memory a network needs, looked at before it is built, and how much there is."""

import os
import resource
import sys
from inspect import signature
from pathlib import Path
from typing import Any

import torch

from ostraka.core.fit import Budget
from ostraka.core.method import Method
from ostraka.core.net import Net
from ostraka.core.task import Task
from ostraka.engines.pool import cores
from ostraka.errors import ConfigError, OstrakaError
from ostraka.registry import NETS
from ostraka.runs.config import Config
from ostraka.store.container import TENSORS

AnyMethod = Method[Any, Any, Any]

CGROUP = Path("/sys/fs/cgroup")
"""Where Linux says how much memory a container may use."""

MEMBER_COPIES = 2
"""A member that votes is held as it was stored and as a network."""


def available() -> int | None:
    """Bytes of memory that a new process can have; None where the system does not tell."""
    limits = [_container_room()]
    try:
        told = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines())
        limits.append(int(told["MemAvailable"].split()[0]) * 1024)
    except (
        OSError,
        KeyError,
        ValueError,
    ):  # not Linux: what the machine has in all is better than nothing
        limits.append(_installed())
    known = [limit for limit in limits if limit is not None]
    return min(known) if known else None


def peak() -> int:
    """The most bytes of memory that this process has held so far."""
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024  # kilobytes everywhere but there


def shared() -> int:
    """Bytes of this process that others of its kind share:
    the code of libraries above all; 0 if nobody tells.
    """
    try:
        return int(Path("/proc/self/statm").read_text().split()[2]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0


def check_network(task: Task, config: Config, method: AnyMethod, parties: int) -> None:
    """Refuse a network that cannot take these samples,
    or that this machine has no room to train or to vote with.

    It must fail now, not at every party, and before the system ends the process for want of memory.
    """
    net, room = outline(task), available()
    tensors = len(net.state_dict())
    if votes(method) and tensors > TENSORS:
        raise ConfigError(
            f"the net {task.net.name!r} has {tensors:,} tensors here; every party's model is kept "
            f"as a member file, which has at most {TENSORS:,}: choose a net of fewer layers"
        )
    if room is None:
        return
    need, what, remedy = _need(net, config, method, parties, room)
    if need > room:
        sizes = ", ".join(f"net.{name}" for name in _options(task.net.name))
        smaller = f"Make the net smaller ({sizes})" if sizes else "Choose a smaller net (--net)"
        raise ConfigError(
            f"the net {task.net.name!r} has {weights(net):,} weights here; {what} needs at least "
            f"{_size(need)} of memory, and {_size(room)} are available. {smaller}{remedy}"
        )


def outline(task: Task) -> Net:
    """The task's network without any memory behind its tensors.

    A net that cannot be made so is built in full.
    """
    try:
        with torch.device("meta"):
            return task.build_net(unknown=False)
    except OstrakaError:
        raise
    except Exception as error:
        if "overflow" in str(error):  # more elements than torch can count
            raise _too_large(task, error) from error
    try:  # a plug-in's net may need real numbers to build itself; if it is broken, this says so
        return task.build_net(unknown=False)
    except (MemoryError, RuntimeError) as error:
        if isinstance(error, RuntimeError) and "memory" not in str(error):
            raise
        raise _too_large(task, error) from error


def weights(net: Net) -> int:
    """The number of a network's parameters."""
    return sum(parameter.numel() for parameter in net.parameters())


def training_bytes(net: Net, method: AnyMethod) -> int:
    """Bytes of one party's weights, gradients, optimiser and report.

    What a batch needs comes on top.
    """
    local = getattr(method, "local", None)
    optimiser = 2 if isinstance(local, Budget) and local.optimiser == "adam" else 1
    return _bytes(net) * (3 + optimiser)


def vote_bytes(net: Net, members: int) -> int:
    """Bytes of all members of a vote."""
    return _bytes(net) * members * MEMBER_COPIES


def votes(method: AnyMethod) -> bool:
    """Whether a method's result is all members together."""
    from ostraka.methods.panel import PanelMethod

    return isinstance(method, PanelMethod)


def workers(config: Config, parties: int) -> int:
    """How many parties are at work at the same time."""
    many = config.engine.name in ("pool", "auto")  # auto takes a pool for all that is large
    return min(config.workers or cores(), max(1, parties)) if many else 1


def _need(
    net: Net, config: Config, method: AnyMethod, parties: int, room: int
) -> tuple[int, str, str]:
    """Bytes, what needs them, and what beside a smaller network would help."""
    count, one = workers(config, 1 if method.pooled else parties), training_bytes(net, method)
    vote = vote_bytes(net, parties) if votes(method) else 0
    if vote > one * count:
        return vote, f"a vote of {parties} members", ", or have fewer parties (--parties)"
    who = "training it" if count == 1 else f"training it in {count} workers"
    return one * count, who, ", or use fewer workers (--workers 1)" if one <= room else ""


def _too_large(task: Task, error: BaseException) -> ConfigError:
    reason = str(error).partition("\n")[0] or "no memory is left"
    return ConfigError(
        f"the net {task.net.name!r} with the options {dict(task.net.options)} is too large for "
        f"this machine: {reason}; lower its sizes"
    )


def _bytes(net: Net) -> int:
    return sum(t.numel() * t.element_size() for t in (*net.parameters(), *net.buffers()))


def _options(name: str) -> list[str]:
    return [
        option
        for option in signature(NETS.get(name)).parameters
        if option in ("hidden", "width", "depth")
    ]


def _container_room() -> int | None:
    try:
        limit, used = (
            (CGROUP / name).read_text().strip() for name in ("memory.max", "memory.current")
        )
        return None if limit == "max" else max(0, int(limit) - int(used))
    except (OSError, ValueError):  # no container, or one that does not tell
        return None


def _installed() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (OSError, ValueError):
        return None


def _size(count: float) -> str:
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if count < 1000:
            return f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:,.0f} PB"
