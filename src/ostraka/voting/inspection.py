"""Complete inspection: the accuracy of every team that can be made of a few members, and where
a selector's choice stands among them (DeDES's supplement, Table 2).

It needs labels, so it judges selectors and is none.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from torch import Tensor

from ostraka.errors import ConfigError
from ostraka.voting.ballots import Ballot, Votes

MOST = 12
"""Members of which all teams are tried: 4,095."""


@dataclass(frozen=True)
class Inspection:
    """The accuracy of every team, 0 to 1."""

    accuracy: Mapping[tuple[int, ...], float]

    def rank(self, team: Sequence[int]) -> int:
        """The place of a team, 1 for the best; teams that are equally good have the same one."""
        own = self.accuracy[tuple(sorted(team))]
        return 1 + sum(other > own for other in self.accuracy.values())

    @property
    def best(self) -> tuple[int, ...]:
        """The most accurate team; of equally good ones the smallest."""
        return max(self.accuracy, key=lambda team: (self.accuracy[team], -len(team)))


def inspect_teams(
    votes: Votes, labels: Tensor, ballot: Ballot, public: Votes | None = None
) -> Inspection:
    """The accuracy of each of the 2^m - 1 teams of the m members that voted."""
    count = len(votes.cards)
    if count > MOST:
        raise ConfigError(
            f"{count} members make {2**count - 1:.2g} teams; all are tried of up to {MOST} members"
        )
    teams = [team for size in range(1, count + 1) for team in combinations(range(count), size)]
    return Inspection({team: team_accuracy(votes, labels, ballot, team, public) for team in teams})


def team_accuracy(
    votes: Votes,
    labels: Tensor,
    ballot: Ballot,
    team: Sequence[int],
    public: Votes | None = None,
) -> float:
    """The share of samples of known classes whose closed answer by the team is right, 0 to 1."""
    known = labels >= 0
    right = team_answers(votes, ballot, team, public).cpu() == labels.cpu()
    return float(right[known].float().mean())


def team_answers(
    votes: Votes, ballot: Ballot, team: Sequence[int], public: Votes | None = None
) -> Tensor:
    """The team's closed answers [B], without a look at any samples; a ballot that is tuned on
    public samples is, on the team's votes on them (none: as `votes` are tuned).
    """
    part = votes_of(votes, team)
    if ballot.wants_public and public is not None:
        part = replace(part, tuned=ballot.tune(votes_of(public, team)))
    return ballot.count(part).closed


def votes_of(votes: Votes, team: Sequence[int]) -> Votes:
    """The votes of a part of the members."""
    index = list(team)
    return replace(
        votes,
        logits=votes.logits[index],
        cards=[votes.cards[i] for i in index],
        typicality=None if votes.typicality is None else votes.typicality[index],
        tuned=[votes.tuned[i] for i in index] if votes.tuned else (),
        junk=[votes.junk[i] for i in index] if votes.junk else (),
        assessment=None,
    )
