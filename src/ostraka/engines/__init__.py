"""Engines run the parties' work: one after the other, or in one process per core.

Importing registers the built-ins. They are listed here and not found by scanning, because importing
`warm` does the work that it is there for.
"""

from ostraka.engines import auto, pool, serial

__all__ = ["auto", "pool", "serial"]
