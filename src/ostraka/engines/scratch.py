"""The folder in which Python keeps the socket between a pool and its workers.

Python removes it when the process ends, but a killed process removes nothing. So it has a name that
tells whose it is: the process that workers are forked from removes it when its parent is gone, and
if that was killed too, the next pool does.
"""

import atexit
import os
import re
import shutil
import tempfile
from multiprocessing import current_process
from pathlib import Path

PREFIX = "ostraka-pool-"
VARIABLE = "OSTRAKA_POOL_FOLDER"
"""Tells the process that workers are forked from which folder it shall remove."""


def use_own_folder() -> None:
    """Let this process keep its sockets in a folder of our own; once, before its first worker."""
    settings = current_process()._config  # type: ignore[attr-defined]  # as multiprocessing hands it to children
    if "tempdir" not in settings:
        remove_left_behind(Path(tempfile.gettempdir()))
        folder = tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-")
        settings["tempdir"] = os.environ[VARIABLE] = folder
        atexit.register(_remove, folder, os.getpid())


def remove_at_exit() -> None:
    """For the process that workers are forked from:
    it ends when nobody needs workers any more, however that came.
    """
    folder = os.environ.get(VARIABLE)
    if folder is not None and Path(folder).name.startswith(PREFIX):
        atexit.register(_remove, folder, os.getpid())


def remove_left_behind(where: Path) -> None:
    """Remove the folders of processes that are gone."""
    for folder in where.glob(f"{PREFIX}*-*"):
        found = re.match(rf"{PREFIX}(\d+)-", folder.name)
        if found and not _alive(int(found[1])):
            shutil.rmtree(folder, ignore_errors=True)  # another user's folder stays


def _remove(folder: str, owner: int) -> None:
    if os.getpid() == owner:  # a forked worker inherits this call, and must not make it
        shutil.rmtree(folder, ignore_errors=True)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
