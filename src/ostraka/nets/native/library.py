"""Finds and loads the compiled kernel that suits this processor.

`setup.py` builds the same C++ source once per instruction-set level. The baseline build runs
everywhere and is asked what the processor can do before a higher level is opened, so an illegal
instruction cannot happen.
"""

from __future__ import annotations

import ctypes
import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from pathlib import Path

from ostraka.errors import ConfigError, choices

INTERFACE = 3
"""Must equal `ostraka_interface()` of the library; a stale build is refused rather than misused."""

SWITCH = "OSTRAKA_NATIVE"
"""Environment variable: `0` turns the kernel off,
a name of `LEVELS` asks for that build (for tests and timing).
"""

LEVELS = {
    "v4": "native x86-64-v4 (AVX-512)",
    "v3": "native x86-64-v3 (AVX2)",
    "base": "native baseline",
}
"""Builds, best first. Only x86-64 has more than the baseline."""

SUFFIX = ".so"
"""Of the libraries on every system: they belong to no version of Python,
so its suffixes are not asked for.
"""

_override: ContextVar[str | None] = ContextVar("ostraka_native", default=None)


MOST_LAYERS = 16
"""Layers that the C++ side has room for."""


def _numbers(*names: str) -> list[tuple[str, type]]:
    return [(name, ctypes.c_int32) for name in names]


def _reals(*names: str) -> list[tuple[str, type]]:
    return [(name, ctypes.c_float) for name in names]


class Layer(ctypes.Structure):
    """One layer's sizes, as the C++ side declares them; `kernel` 0: fully connected."""

    _fields_ = _numbers(
        "inputs", "outputs", "height", "width", "kernel", "padding", "activation", "pool"
    )


class Network(ctypes.Structure):
    """Layers one behind the other, and the number of samples."""

    _fields_ = [*_numbers("batch", "count"), ("layers", Layer * MOST_LAYERS)]


class Lesson(ctypes.Structure):
    """What the rows of a batch are to learn: the first `known` ones their label and, second, the
    last class; the others the last class. Weights are those of one row.
    """

    _fields_ = [*_numbers("known"), *_reals("w_label", "w_second", "w_rest")]


class Attack(ctypes.Structure):
    """Adversarial steps that climb the cross-entropy of the last class: how often, how far, within
    which values, and the weights of that cross-entropy before and after.
    """

    _fields_ = [*_numbers("steps"), *_reals("size", "low", "high", "w_start", "w_end")]


@contextmanager
def disabled() -> Iterator[None]:
    """Within this context (and thread) every layer runs in torch."""
    with choose("0"):
        yield


@contextmanager
def choose(switch: str) -> Iterator[None]:
    """Within this context, act as if the environment variable `OSTRAKA_NATIVE` had this value."""
    token = _override.set(switch)
    try:
        yield
    finally:
        _override.reset(token)


def current() -> ctypes.CDLL | None:
    """The library to use now, or None."""
    return _resolve(_switch())[0]


def available() -> bool:
    """Whether layers run natively now."""
    return current() is not None


def describe() -> str:
    """The build in use, or why there is none."""
    return _resolve(_switch())[1]


def built() -> tuple[str, ...]:
    """Levels that were built and that this processor can run, best first."""
    base = _open("base")
    if base is None:
        return ()
    able: int = base.ostraka_cpu_level()
    return tuple(
        level
        for level in LEVELS
        if (level == "base" or int(level[1:]) <= able) and _find(level) is not None
    )


def _switch() -> str:
    override = _override.get()
    return os.environ.get(SWITCH, "") if override is None else override


@cache
def _resolve(switch: str) -> tuple[ctypes.CDLL | None, str]:
    if switch == "0":
        return None, f"switched off by {SWITCH}=0"
    levels = built()
    if switch not in ("", "1", *levels):
        raise ConfigError(
            f"{SWITCH}={switch} is not possible here; allowed: 0, 1, {choices(levels)}"
        )
    for level in [switch] if switch in levels else levels:
        library = _open(level)
        if library is not None:
            # only x86-64 has levels, so the baseline's title says for which machine it is
            machine = f" ({platform.machine() or 'unknown machine'})" if level == "base" else ""
            return library, LEVELS[level] + machine
    if _find("base") is not None:
        return None, "built for another system or version of ostraka; install again"
    return None, "not built (no compiler at install)"


def _find(level: str) -> Path | None:
    path = Path(__file__).with_name(f"_kernel_{level}{SUFFIX}")
    return path if path.is_file() else None


@cache
def _open(level: str) -> ctypes.CDLL | None:
    path = _find(level)
    if path is None:
        return None
    try:
        library = ctypes.CDLL(str(path))
    except OSError:  # built for another system, e.g. a tree shared between machines
        return None
    if library.ostraka_interface() != INTERFACE:
        return None
    pointer, network = ctypes.c_void_p, ctypes.POINTER(Network)
    library.ostraka_kept.argtypes = library.ostraka_scratch.argtypes = [network]
    library.ostraka_kept.restype = library.ostraka_scratch.restype = ctypes.c_size_t
    library.ostraka_forward.argtypes = [network, *[pointer] * 5]
    library.ostraka_backward.argtypes = [network, *[pointer] * 6]
    library.ostraka_forward.restype = library.ostraka_backward.restype = None
    library.ostraka_learn.argtypes = [network, ctypes.POINTER(Lesson), *[pointer] * 6]
    library.ostraka_attack.argtypes = [network, ctypes.POINTER(Attack), *[pointer] * 5]
    library.ostraka_learn.restype = library.ostraka_attack.restype = ctypes.c_double
    return library
