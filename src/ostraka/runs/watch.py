"""Who follows a run: a progress display, or nobody."""


class Watch:
    """Called as a run goes on; this one does nothing, a display overrides what it shows."""

    def round_begins(self, index: int, rounds: int, parties: int, ready: int) -> None:
        """A round starts with `parties`, `ready` of which had finished before an interruption."""

    def party_at(self, party: int, done: float, loss: float | None) -> None:
        """A party has done this share of its work."""

    def party_ends(self, party: int, failed: bool) -> None:
        """A party has finished or failed."""

    def evaluated(self, index: int, accuracy: float | None) -> None:
        """A round was evaluated."""
