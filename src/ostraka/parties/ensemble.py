"""`ostraka.Ensemble`: members of several parties that answer together, for scripts and notebooks.

    ensemble = ostraka.Ensemble("wards/*.member")
    ensemble.predict(x)             # class names, or "unknown"
    print(ensemble.explain(x)[0])   # who said what, with which weight

The vote itself is `voting.ensemble`; here it gets files, names and a threshold.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, final

from ostraka.core.member import Member
from ostraka.core.party import labels
from ostraka.core.predictor import Placed, Predictor, Promise
from ostraka.core.samples import Samples, View, stored_values
from ostraka.core.settings import choice
from ostraka.errors import ConfigError, counted
from ostraka.parties.answering import RATE, Answering
from ostraka.parties.gathering import Gathered, answering, gather
from ostraka.parties.stream import Stream
from ostraka.parties.task_file import TaskFile
from ostraka.registry import BALLOTS, SELECTORS
from ostraka.runs.api import load_run
from ostraka.runs.promise import look_note
from ostraka.voting.ballots import Ballot, Plurality
from ostraka.voting.choice import told
from ostraka.voting.ensemble import Ensemble as Vote
from ostraka.voting.selectors import All, Pool, Selector, chosen
from ostraka.voting.union import all_classes
from ostraka.voting.window import EVERY, SIZE

Named = str | Mapping[str, Any]
"""A name, or a table with a name and settings."""


@final
class Ensemble(Answering):
    """Members that vote."""

    def __init__(
        self,
        members: str | Path | Member | Sequence[str | Path | Member],
        ballot: Named | Ballot = "guarded",
        *,
        select: Named | Selector = "all",
        classes: Sequence[str] | None = None,
        unknown_rate: float = RATE,
        public: Any = None,
        seed: int = 0,
        skip_broken: bool = False,
        task: TaskFile | None = None,
    ) -> None:
        """`members`: files, folders, patterns, or members that were loaded. `ballot`: how their
        votes are counted, `select`: who votes, each by name or as a table with a name and settings
        (`ostraka list ballots`). `classes`: what they are asked about (none: all that any of them
        knows). `unknown_rate`: see `keeping`. `public`: unlabelled samples for a ballot or selector
        that wants some. `skip_broken`: leave out files that cannot be used, with a note. `task`:
        the task of the members; others are refused.
        """
        found = gather(members, skip_broken, task)
        seen = None if public is None else _public(public, found.units)
        counting, found = as_ballot(ballot), answering(found, seen)
        voting, self._selection = selected(found, select, seen, seed, counting)
        vote = _vote(voting.members, counting, classes, seen)
        found = replace(voting, notes=(*voting.notes, *counting.notes(vote.cards)))
        super().__init__(vote, vote.classes, voting.names, unknown_rate, found)

    @property
    def selection(self) -> Mapping[str, Any]:
        """Who was chosen and why; empty where everybody votes."""
        return self._selection

    def stream(self, size: int = SIZE, every: int = EVERY) -> Stream:
        """What answers samples one after the other: the ballot looks at the last `size` of them
        after each `every`.
        """
        return Stream(self, size, every)

    def __repr__(self) -> str:
        members = counted(len(self.members), "member")
        return f"<Ensemble of {members} on {len(self.classes)} classes>"


@final
class RunAnswering(Answering):
    """A finished run: its vote, with the threshold that it was given and what it had found out, or
    its one model.
    """

    def __init__(self, folder: str | Path) -> None:
        result = load_run(folder)
        predictor: Predictor = result.predictor()
        line = predictor.threshold if isinstance(predictor, Placed) else None
        predictor = predictor.inner if isinstance(predictor, Placed) else predictor
        cards = predictor.cards if isinstance(predictor, Vote) else []
        super().__init__(predictor, result.classes, labels([str(card) for card in cards]), RATE)
        self._line, self._result = line, result

    @property
    def looks(self) -> bool:
        """No: a run answers as it did, with the look that it had or without one."""
        return False

    @property
    def looked(self) -> Mapping[str, Any]:
        """What the run looked at before it was evaluated."""
        return self._result.summary.looked

    @property
    def notes(self) -> tuple[str, ...]:
        """What it looked at, in words, and who was left out."""
        return (*((look_note("the run", self.looked),) if self.looked else ()), *self._notes)

    @property
    def selection(self) -> Mapping[str, Any]:
        """What the run's selector chose."""
        return self._result.summary.selection

    @property
    def promise(self) -> Promise:
        """What the run promised, as long as its threshold is where it was."""
        told = self._result.summary.answer
        return told if told is not None and told.threshold == self._line else super().promise


def as_ballot(ballot: Named | Ballot) -> Ballot:
    """The ballot of that name, or with those settings."""
    return ballot if isinstance(ballot, Ballot) else choice(ballot, BALLOTS, "ballot")


def selected(
    found: Gathered,
    select: Named | Selector,
    public: Samples | None,
    seed: int,
    ballot: Ballot | None = None,
) -> tuple[Gathered, dict[str, Any]]:
    """Those of the members that vote, and why (`voting.choice`); nothing where all do."""
    chooser = select if isinstance(select, Selector) else choice(select, SELECTORS, "select")
    if isinstance(chooser, All):
        return found, {}
    chooser.load()
    classes = all_classes([member.model.classes for member in found.members])
    pool = Pool(found.members, classes, seed, public, ballot or Plurality())
    made = chosen(chooser, pool)
    kept = replace(
        found,
        members=tuple(found.members[i] for i in made.chosen),
        files=tuple(found.files[i] for i in made.chosen) if found.files else (),
    )
    return kept, {"selector": SELECTORS.name_of(type(chooser)), **told(made, pool.cards, classes)}


def _vote(
    members: Sequence[Member],
    ballot: Ballot,
    classes: Sequence[str] | None,
    public: Samples | None,
) -> Vote:
    """The vote, with what its ballot wants to know beforehand."""
    vote = Vote.of(members, ballot, classes)
    if ballot.wants_junk:
        vote = replace(vote, junk=vote.known_junk())
    if not ballot.wants_public:
        return vote
    if public is None:
        raise ConfigError(
            f"the ballot {BALLOTS.name_of(type(ballot))} is set to be tuned on public samples; "
            "give some (public), or other settings"
        )
    return replace(vote, tuned=ballot.tune(vote.votes_on(public)))


def _public(given: Any, units: View) -> Samples:
    if not isinstance(given, Samples):
        return Samples(stored_values(given), view=units)
    return replace(given.in_unit(units.unit).unlabelled(), view=units)
