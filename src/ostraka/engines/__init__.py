"""Engines run the parties' work: one after the other, or in one process per core.

Importing registers the built-ins. They are listed here and not found by scanning, because importing
`warm` does the work that it is there for.
"""

from ostraka.engines import auto, flower, pool, serial

__all__ = ["auto", "flower", "pool", "serial"]
