"""Rounds of FedAvg in other frameworks, on the same work."""

from importlib import import_module

from benchmarks.speed import rounds
from benchmarks.speed.peers import operators
from benchmarks.speed.table import KEPT, OURS, PLAIN, Job, Table

GUESTS = ("pfl", "fluke", "Flower")


def job(cell: str, variant: str, small: bool) -> Job:
    """The same federation as in the table `rounds`."""
    if variant not in GUESTS:
        return rounds.job(cell, variant, small)
    if variant == "fluke":
        operators.declare()
    peer = import_module(f"benchmarks.speed.peers.with_{variant.lower()}")
    made: Job = peer.job(rounds.FEDERATIONS[cell])
    return made


TABLE = Table(
    name="peers",
    title="Rounds of FedAvg",
    unit="rounds",
    cells=rounds.CELLS,
    variants=(PLAIN, KEPT, *GUESTS, OURS),
    opponents=(PLAIN, KEPT, *GUESTS),
    job=job,
    rounds=5,
    alone=False,
    memory=True,
)
