"""Engines run the parties' work: one after the other, or in one process per core.

Importing registers the built-ins.
"""

from ostraka.engines import auto, pool, serial

__all__ = ["auto", "pool", "serial"]
