"""Freed memory stays with the process.

A training step of a network with large layers frees hundreds of megabytes; the C library gives them
back to the system, and the next step pays for every page anew (docs/decisions/0005).
"""

import ctypes
import sys

_TRIM, _MAP = -1, -3
"""`mallopt`'s names: how much may lie free at the end of the heap,
and from which size a block is mapped by itself.
"""


def keep_freed_memory() -> bool:
    """Ask for it, for the whole process; False where the C library cannot (any but glibc)."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is None:
        return False
    # 32 MiB is the most that glibc takes for the second;
    # to set one of them stops it from adapting the other
    return all(mallopt(name, size) == 1 for name, size in ((_TRIM, 2**31 - 1), (_MAP, 32 * 2**20)))
