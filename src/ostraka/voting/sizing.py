"""How many members are enough: the least team that answers as all of them do."""

from collections.abc import Mapping, Sequence

import numpy as np

from ostraka.voting.ballots import Ballot, Votes
from ostraka.voting.choice import uncovered
from ostraka.voting.inspection import team_answers
from ostraka.voting.representation import votes_on_probes
from ostraka.voting.selectors import Pool

SIZES = 12
"""Sizes that an automatic size is found among, at the most, beside half of the members."""
SAME = 0.98
"""Share of public samples that a team must answer as all members do."""
ASKED = 1000
"""Public samples that are asked to find it at the most: 2 % of 200 would be 4, give or take 2."""


def sizes_to_try(count: int) -> list[int]:
    """Sizes below `count`, the closer together the smaller they are, with half of it."""
    steps: list[float] = np.geomspace(2, max(2, count - 1), SIZES).tolist()
    tried = {*(round(step) for step in steps), -(-count // 2)}
    return sorted(size for size in tried if size < count)


def asked(pool: Pool) -> Votes:
    """All members' votes on the probes by which teams are compared."""
    return votes_on_probes(pool, pool.ballot, ASKED)


def covering(pool: Pool, teams: Mapping[int, Sequence[int]]) -> dict[int, Sequence[int]]:
    """The teams that have somebody with samples of every class, as far as is told: too few probes
    may be of a rare class to show that nobody in a team has learnt it.
    """
    cards = pool.cards
    return {size: team for size, team in teams.items() if not uncovered(cards, team)}


def size_by_votes(
    votes: Votes, ballot: Ballot, teams: Mapping[int, Sequence[int]]
) -> tuple[int, str]:
    """The least size whose team answers nearly all probes as all do, and that in words.

    Closed answers by the ballot in use are compared. Voices alone would not do: of members that
    know two classes in ten most call any sample unknown, whoever is in the team.
    """
    count = len(votes.cards)
    whole = team_answers(votes, ballot, range(count), votes)
    for size, team in teams.items():
        found = team_answers(votes, ballot, team, votes)
        same = float((found == whole).float().mean())
        if same >= SAME:
            return size, f"answers {100 * same:.0f} % of the probes as all do"
    return count, "no smaller team that was tried answers the probes as all do"
