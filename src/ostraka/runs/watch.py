"""Who follows a run: a progress display, or nobody."""

from pathlib import Path
from typing import TYPE_CHECKING

from ostraka.engines.base import Outcome
from ostraka.runs.results import Record

if TYPE_CHECKING:
    from ostraka.runs.plan import Plan


class Watch:
    """Called as a run goes on; this one does nothing, a display overrides what it shows."""

    def run_begins(self, plan: "Plan", out: Path) -> None:
        """A run starts, or goes on after an interruption, in the folder `out`."""

    def round_begins(self, index: int, rounds: int, parties: int, ready: int) -> None:
        """A round starts with `parties`, `ready` of which had finished before an interruption."""

    def party_at(self, party: int, done: float, loss: float | None) -> None:
        """A party has done this share of its work."""

    def party_ends(self, outcome: Outcome) -> None:
        """A party has finished or failed."""

    def evaluated(self, index: int, accuracy: float | None) -> None:
        """A round was evaluated."""

    def run_ends(self, record: Record) -> None:
        """A run of a grid is over, or was before: its summary or its error."""
