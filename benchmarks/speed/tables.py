"""All tables, in the order in which they are measured."""

from benchmarks.speed import destruction, layers, rounds, startup, steps, votes
from benchmarks.speed.peers import table as peers
from benchmarks.speed.table import Table

TABLES: dict[str, Table] = {
    module.TABLE.name: module.TABLE
    for module in (steps, rounds, votes, destruction, startup, layers, peers)
}
ALONE = tuple(name for name in TABLES if name != peers.TABLE.name)
"""Those that need nothing but Ostraka and torch."""
