"""Where a server's time goes: named parts of its work,
added up for whoever wants to know.

A state must be the same however long it took to make, so seconds cannot be a part of it.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_ACCOUNT: ContextVar[dict[str, float] | None] = ContextVar("account", default=None)


@contextmanager
def account() -> Iterator[dict[str, float]]:
    """CPU-seconds of all that is `spent_on` something inside, by its name."""
    spent: dict[str, float] = {}
    token = _ACCOUNT.set(spent)
    try:
        yield spent
    finally:
        _ACCOUNT.reset(token)


@contextmanager
def spent_on(name: str) -> Iterator[None]:
    """Count what is done inside as CPU-seconds of `name`, if anybody keeps an account."""
    spent, begun = _ACCOUNT.get(), time.process_time()
    try:
        yield
    finally:
        if spent is not None:
            spent[name] = spent.get(name, 0.0) + time.process_time() - begun
