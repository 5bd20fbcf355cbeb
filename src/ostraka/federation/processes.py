"""Flower's processes: the environment that they get, and that they end with us."""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ostraka.engines.flower import ENVIRONMENT
from ostraka.errors import NeedError


def environment(more: dict[str, str]) -> dict[str, str]:
    """This environment, without what Flower would do unasked; its programs find each other."""
    programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    return {**os.environ, **ENVIRONMENT, "PATH": programs, **more}


def program(name: str) -> str:
    """A program of Flower's, which lies beside this Python."""
    found = Path(sys.executable).parent / name
    if not found.exists():
        raise NeedError(
            f"{name} is not installed beside {sys.executable}: pip install 'ostraka[flower]'"
        )
    return str(found)


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """Let a request to end (SIGTERM) do in here what Ctrl-C does: nothing is left behind."""

    def end(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
