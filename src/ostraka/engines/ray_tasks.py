"""The worker's side of the Ray engine: what a task does on its node, and what it holds there.

The one module that imports Ray.
"""

import os
import socket
import tempfile
import time
import warnings
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from shutil import rmtree
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ostraka.engines.base import Order, Outcome, Work, begun_from, try_order
from ostraka.engines.memory import keep_freed_memory
from ostraka.errors import ConfigError, StoreError
from ostraka.store.desk import Place

TELL_SECONDS = 0.5
"""A worker reports its progress at most this often."""


def the_ray() -> Any:
    """The module, without its reports of usage to its makers."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    # its new meaning; the old one comes with a warning
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    try:
        import ray
    except ImportError as error:
        raise ConfigError(
            f"the engine ray needs the package ray, which cannot be imported ({error}); "
            "install it with: pip install 'ostraka[ray]', or use --engine pool"
        ) from error
    return ray


@dataclass(frozen=True)
class Errand:
    """What goes with an order beside it; references are fetched once in every worker process."""

    work: tuple[Any]
    message: tuple[Any]
    versions: dict[str, str]
    node: str
    """Where half-finished training may stay in the run's folder: the server's node; empty: nowhere.
    """
    board: Any


def versions_here() -> dict[str, str]:
    """What must be the same everywhere for the same bits."""
    try:
        own = version("ostraka")
    except PackageNotFoundError:
        own = "as source"
    return {"ostraka": own, "torch": torch.__version__, "numpy": np.__version__}


def to_array(tensor: torch.Tensor) -> NDArray[Any]:
    """A tensor as what Ray maps instead of copying."""
    return tensor.detach().cpu().contiguous().numpy()


def to_tensor(array: NDArray[Any]) -> torch.Tensor:
    """The tensor again, on the mapped memory."""
    with warnings.catch_warnings():  # mapped memory cannot be written to; samples never are
        warnings.simplefilter("ignore", UserWarning)
        return torch.from_numpy(array)


class Board:
    """What workers told last; lives on the server's node."""

    def __init__(self) -> None:
        self.news: dict[int, tuple[float, float | None]] = {}

    def tell(self, party: int, done: float, loss: float | None) -> None:
        """Put up a party's progress."""
        self.news[party] = done, loss

    def take(self) -> dict[int, tuple[float, float | None]]:
        """All that is new."""
        news, self.news = self.news, {}
        return news


_held: dict[str, tuple[Any, Any]] = {}
"""What this worker process last fetched, by what it is: a reference and its value."""


def _fetched(what: str, ref: Any) -> Any:
    """The value of a reference, fetched once by this process."""
    last, value = _held.get(what, (None, None))
    if last != ref:
        _held.pop(what, None)  # the old value must not lie beside the new one
        value = the_ray().get(ref)
        _held[what] = ref, value
    return value


def do(errand: Errand, order: Order, progress: Place) -> Outcome:
    """In a worker: carry out one order."""
    here = versions_here()
    if here != errand.versions:
        raise ConfigError(
            f"the node {socket.gethostname()} ({the_ray().util.get_node_ip_address()}) of the "
            f"cluster has {here}, the server has {errand.versions}; install the same versions on "
            "both, or take the node out of the cluster"
        )
    torch.set_num_threads(1)
    keep_freed_memory()
    last = 0.0

    def tell(party: int, done: float, loss: float | None) -> None:
        nonlocal last
        if time.monotonic() - last > TELL_SECONDS:
            last = time.monotonic()
            errand.board.tell.remote(party, done, loss)

    errand.board.tell.remote(order.party, 0.0, None)
    work: Work = _fetched("work", errand.work[0])
    order = replace(order, message=_fetched("message", errand.message[0]))
    if the_ray().get_runtime_context().get_node_id() == errand.node:
        return try_order(work, order, progress, tell)
    place = _own_place(progress, order)
    outcome = try_order(work, order, place, tell)
    if outcome.failure is None:
        rmtree(place.path, ignore_errors=True)
    return outcome


def own_root() -> Path:
    """The folder in which this node keeps half-finished training; another user's is refused."""
    root = Path(tempfile.gettempdir(), f"ostraka-ray-{os.getuid()}")
    root.mkdir(mode=0o700, exist_ok=True)
    if root.is_symlink() or root.stat().st_uid != os.getuid():
        raise StoreError(f"{root} belongs to somebody else; remove it, or set TMPDIR elsewhere")
    return root


def _own_place(progress: Place, order: Order) -> Place:
    """Where a node keeps half-finished training: the server's folders are not here.

    What a former run of the same settings left is found only if it began from the same.
    """
    folder = own_root() / order.owner / f"r{order.round:05d}-p{order.party:05d}-{begun_from(order)}"
    folder.mkdir(parents=True, exist_ok=True)
    return Place(folder, progress.seal)
