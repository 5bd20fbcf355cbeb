"""Engines run the parties' work: one after the other, one process per core, or on a cluster.

Importing registers the built-ins. They are listed here and not found by scanning, because importing
`warm` does the work that it is there for.
"""

from ostraka.engines import auto, flower, pool, ray, serial

__all__ = ["auto", "flower", "pool", "ray", "serial"]
