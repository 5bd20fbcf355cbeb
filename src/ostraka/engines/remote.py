"""Parties on other machines, by letter: each is asked who it is, sent its orders, and counted once.

A letter may be lost with the node that had it, come late, come twice, or come from somebody else.
An answer is taken if it is the first of its party for this order and its seal names this run, round
and party; every other one is refused, and said. No wait is without a limit, and each says what it
waits for.
"""

import sys
import time
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from math import inf
from typing import final

from ostraka.core.party import PartyRef
from ostraka.core.settings import Settings, setting
from ostraka.engines.base import (
    Answer,
    Crew,
    Engine,
    Failure,
    Job,
    Outcome,
    Reader,
    Tell,
    Work,
    silent,
)
from ostraka.engines.brief import brief_of
from ostraka.engines.letters import Fact, Letter, Line, Node, number, shown, too_large
from ostraka.errors import OstrakaError, PartyFailed
from ostraka.store import codec
from ostraka.store.desk import seal

SAY_SECONDS = 60.0
"""A wait is said again after this time."""
POLL_SECONDS = 1.0
"""Answers are looked for this often."""
DETAILS = 20_000
"""Characters of a traceback that a party may send."""
SHOWN = 50
"""Parties whose shares are shown."""
SENDINGS = 3
"""How often an order is sent to a party whose node was started again meanwhile."""


@dataclass(frozen=True)
class Remote(Settings, Engine):
    """An engine whose parties are reached over a line: how long it waits for whom, and how few
    parties are enough."""

    min_parties: int | None = setting(
        None, "fewest parties that a round begins with; none: all", span="[1, inf)"
    )
    join: float = setting(
        600.0, "seconds that the server waits for a party that is not there", span="[0, inf)"
    )
    limit: float = setting(
        86400.0, "seconds after which a party that was sent an order is given up", span="(0, inf)"
    )
    away: float = setting(
        600.0, "seconds after which a party is given up whose node has gone away", span="(0, inf)"
    )
    largest: float = setting(
        4000.0, "megabytes that the answer of a party may have", span="(0, inf)"
    )
    most_samples: int | None = setting(
        None, "most samples that a party may say it holds; none: any number", span="[1, inf)"
    )

    @abstractmethod
    def line(self, work: Work) -> AbstractContextManager[Line]:
        """The line to the parties' nodes, closed at the end of the `with` block."""

    @abstractmethod
    def expected(self, work: Work) -> "Expected":
        """Who is to take part."""

    @contextmanager
    def open(self, work: Work) -> Iterator[Crew]:
        """Write to whoever is at the other end of the line."""
        with self.line(work) as line:
            yield Correspondence(line, brief_of(work), self.expected(work), self)


@dataclass(frozen=True)
class Expected:
    """The parties of a run, by number."""

    names: Sequence[str]
    keys: Mapping[bytes, int] = field(default_factory=dict)
    """The party that each public key belongs to; empty: nodes are believed who they are."""


def say_aloud(words: str) -> None:
    """Tell whoever watches the server."""
    print(f"ostraka: {words}", file=sys.stderr, flush=True)


@dataclass(frozen=True)
class Seat:
    """A party that has joined, and the node where it is."""

    ref: PartyRef
    node: Node


@dataclass
class Sent:
    """An order that is under way."""

    job: Job
    node: Node
    names: list[str]
    """Of the letters that carried it: more than one, if it was sent again."""
    began: float
    seen: float
    """When the party's node was last there."""
    times: int = 1
    """How often it was sent."""
    lost: bool = False
    """Whether the carrier has said that it was lost."""


@final
class Correspondence(Crew):
    """The server's side: who has joined, and which orders are under way."""

    def __init__(
        self,
        line: Line,
        brief: bytes,
        expected: Expected,
        terms: Remote,
        say: Callable[[str], None] = say_aloud,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.line, self.brief, self.terms, self.say = line, brief, terms, say
        self.names, self.keys = tuple(expected.names), expected.keys
        self.clock, self.sleep = clock, sleep
        self.there: set[Node] = set()
        self.seats: dict[int, Seat] = {}
        self.asked: dict[str, Node] = {}
        """Nodes that were asked who they are, by the letter."""
        self.known: set[Node] = set()
        """Nodes that were asked, since they last joined."""
        self.excused: set[int] = set()
        """Parties that were waited for in vain, and are not again until they come."""
        self.late: dict[str, str] = {}
        """Letters whose answers come too late, and what is said of them."""
        self.said: tuple[str, float] = ("", 0.0)
        self.sizes: dict[int, int] = {}
        """What each party said that it holds when it first joined: it bounds what it counts."""
        self.shown: dict[int, int] = {}
        """The sizes whose shares were shown last."""

    def roster(self) -> Sequence[PartyRef]:
        """All parties that have joined, once all others were waited for."""
        began = self.clock()
        while True:
            self._look_around()
            excused = set(self.seats) | self.excused
            missing = [n for n in range(len(self.names)) if n not in excused]
            left = began + self.terms.join - self.clock()
            if not missing or left <= 0:
                break
            self._wait(f"for {self._named(missing)} to join", left)
        self.excused |= set(missing)
        there, needed = len(self.seats), self.terms.min_parties or len(self.names)
        if there < needed:
            absent = [n for n in range(len(self.names)) if n not in self.seats]
            raise PartyFailed(
                f"{there} of {len(self.names)} parties have joined within {self.terms.join:g} "
                f"seconds, and at least {needed} are needed; missing: {self._named(absent)}. Start "
                "them, or wait longer (--set engine.join=SECONDS)"
            )
        roster = tuple(self.seats[party].ref for party in sorted(self.seats))
        sizes = {ref.id: ref.size for ref in roster}
        if sizes != self.shown:
            self.shown = sizes
            self.say(shares_of(roster))
        return roster

    def run(self, jobs: Sequence[Job], tell: Tell = silent) -> Iterator[Outcome]:
        """Send every job's order to its party; fetch answers until all have come or time is up."""
        reader, under_way = Reader(), dict[int, Sent]()
        for job in jobs:
            sent = self._send(job, reader)
            if isinstance(sent, Outcome):
                yield sent
            else:
                under_way[job.party] = sent
        while under_way:
            for outcome in self._answers(under_way):
                self._close(under_way, outcome.party)
                yield outcome
            self._look_around()
            for outcome in self._lost(under_way, reader):
                self._close(under_way, outcome.party)
                yield outcome
            if under_way:
                left = min(s.began for s in under_way.values()) + self.terms.limit - self.clock()
                self._wait(f"for the answer of {self._named(sorted(under_way))}", left)

    def _close(self, under_way: dict[int, Sent], party: int) -> None:
        """Nothing is expected of this order any more: what still comes of it is late."""
        sent = under_way.pop(party)
        words = f"a further answer of {self._named([party])} in round {sent.job.round}"
        self.late.update(dict.fromkeys(sent.names, words))

    # -- who is there ------------------------------------------------------------------------

    def _look_around(self) -> None:
        """Ask new nodes who they are, take up their answers, and forget those that went away."""
        self.there = there = set(self.line.nodes())
        self.seats = {p: seat for p, seat in self.seats.items() if seat.node in there}
        self.known &= there
        self.asked = {name: node for name, node in self.asked.items() if node in there}
        for node in sorted(there - self.known, key=lambda node: node.id):
            letter = Letter(node.id, "party", parts={"brief": self.brief})
            name = self.line.send(letter, self.terms.limit)
            if name:  # else it is asked the next time
                self.known.add(node)
                self.asked[name] = node
        for answer in self.line.fetch([*self.asked, *self.late]):
            if answer.answers in self.late and answer.lost:
                self.late.pop(answer.answers)
            elif answer.answers in self.late:
                self.say(f"{self.late.pop(answer.answers)} came too late; it is not counted")
            elif answer.answers in self.asked:
                node = self.asked.pop(answer.answers)
                if answer.lost:
                    self.known.discard(node)  # it is asked again
                else:
                    self._seat(node, answer)

    def _seat(self, node: Node, answer: Letter) -> None:
        """A node has told which party it is: give it the party's seat, or say why not."""
        party, size = answer.facts.get("party"), answer.facts.get("size")
        owner, name = self.keys.get(node.key), shown(answer.facts.get("name", ""), 32)
        problem = shown(answer.error)
        if problem:
            pass
        elif answer.node != node.id:
            problem = f"node {answer.node} answered in its place"
        elif not isinstance(party, int) or not 0 <= party < len(self.names):
            problem = (
                f"it says that it is party {shown(party, 32)}; there are 0 to {len(self.names) - 1}"
            )
        elif self.keys and owner != party:
            whose = "of no party" if owner is None else f"that of {self._named([owner])}"
            problem = f"it says that it is {self._named([party])}, but its key is {whose}"
        elif not isinstance(size, int) or size < 1:
            problem = f"it says that it holds {shown(size, 32)} samples; at least one is needed"
        elif size > (most := self.terms.most_samples or size):
            problem = f"it says that it holds {size} samples; at most {most} are taken "
            problem += "(engine.most_samples)"
        elif size != self.sizes.get(party, size):
            problem = f"it says that it holds {size} samples, and joined with {self.sizes[party]}"
        elif party in self.seats:
            taken = self.seats[party].node.id
            problem = f"it says that it is {self._named([party])}, and node {taken} is that already"
        if problem:
            self.say(f"node {node.id} cannot take part: {problem}")
            return
        assert isinstance(party, int)
        assert isinstance(size, int)
        # by the server's own list: a party that calls itself something else is still who it is
        ref = PartyRef(party, size, self.names[party] or name)
        self.seats[party], self.sizes[party] = Seat(ref, node), size
        self.excused.discard(party)
        self.say(f"{ref} has joined with {size} samples (node {node.id})")

    # -- orders ------------------------------------------------------------------------------

    def _send(self, job: Job, reader: Reader) -> Sent | Outcome:
        seat, now = self.seats.get(job.party), self.clock()
        if seat is None:
            return _failed(job.party, "its node has gone away")
        order = reader.order_of(job)
        if isinstance(order, Outcome):
            return order
        facts: dict[str, Fact] = {"party": job.party, "round": job.round, "run": job.owner}
        facts["seed"] = str(job.seed)  # as text: it may be too large for a carrier's numbers
        facts["largest"] = self.terms.largest
        parts = {"brief": self.brief, "message": order.message}
        name = self.line.send(Letter(seat.node.id, "order", facts, parts), self.terms.limit)
        if not name:
            return _failed(job.party, "its order could not be sent")
        return Sent(job, seat.node, [name], now, now)

    def _answers(self, under_way: Mapping[int, Sent]) -> Iterator[Outcome]:
        """The outcome of every order whose answer has come."""
        whose = {name: sent for sent in under_way.values() for name in sent.names}
        done: set[int] = set()
        for answer in self.line.fetch(list(whose)):
            sent = whose.get(answer.answers)
            if sent is None:
                self.say(f"node {answer.node} answered a letter that nobody wrote; it is refused")
            elif answer.lost:
                sent.names.remove(answer.answers)
                sent.lost = not sent.names
            elif answer.node != sent.node.id:
                self.say(
                    f"node {answer.node} answered an order of {self._named([sent.job.party])}, "
                    f"which went to node {sent.node.id}; it is refused"
                )
            elif sent.job.party in done:
                who = self._named([sent.job.party])
                self.say(f"{who} answered twice in round {sent.job.round}; one is counted")
            else:
                done.add(sent.job.party)
                sent.names.remove(answer.answers)
                yield outcome_of(answer, sent.job, self.terms.largest)

    def _lost(self, under_way: Mapping[int, Sent], reader: Reader) -> Iterator[Outcome]:
        """Send orders again that went down with their node; give up those whose time is over."""
        now, there = self.clock(), {node.id for node in self.there}
        for party, sent in list(under_way.items()):
            seat = self.seats.get(party)
            if sent.node.id in there:  # it need not have a seat: it may be at work, and not answer
                sent.seen = now
            if now - sent.began > self.terms.limit:
                yield _failed(party, f"no answer within the limit of {self.terms.limit:g} seconds")
            elif now - sent.seen > self.terms.away:
                yield _failed(party, f"its node went away for {self.terms.away:g} seconds")
            elif seat is not None and (sent.lost or seat.node != sent.node):
                if sent.times >= SENDINGS:
                    yield _failed(
                        party, f"its order was lost {SENDINGS} times with its node or process"
                    )
                    continue
                again = self._send(sent.job, reader)
                if isinstance(again, Outcome):
                    yield again
                    continue
                self.say(
                    f"the order of {seat.ref} was lost with its node or process; it is sent again"
                )
                sent.node, sent.names = again.node, [*sent.names, *again.names]
                sent.times, sent.lost = sent.times + 1, False

    # -- words -------------------------------------------------------------------------------

    def _named(self, parties: Sequence[int], most: int = 5) -> str:
        names = [self.names[party] or f"party {party}" for party in parties[:most]]
        return ", ".join(names) + (f" and {len(parties) - most} more" if parties[most:] else "")

    def _wait(self, what: str, left: float) -> None:
        """Sleep a little; say for what, when it is news or has not been said for a minute."""
        words, since = self.said
        if words != what or self.clock() - since > SAY_SECONDS:
            self.say(f"waiting {what}, up to {max(left, 0):.0f} seconds more")
            self.said = (what, self.clock())
        self.sleep(POLL_SECONDS)


def shares_of(roster: Sequence[PartyRef]) -> str:
    """What each party counts in a mean by size, the largest first, and a warning above one half."""
    total = sum(ref.size for ref in roster)
    ranked = sorted(roster, key=lambda ref: -ref.size)
    named = [f"{ref} {100 * ref.size / total:.1f} %" for ref in ranked[:SHOWN]]
    more = f" and {len(ranked) - SHOWN} more, at most {named[-1].split()[-2]} % each"
    words = f"shares of a mean by size: {', '.join(named)}{more if ranked[SHOWN:] else ''}"
    if len(ranked) > 1 and 2 * ranked[0].size > total:
        words += (
            f". Warning: {ranked[0]} counts for more than all others together. Check its size, set "
            "engine.most_samples, or weigh all parties the same (weights=uniform)"
        )
    return words


def outcome_of(answer: Letter, job: Job, largest: float = inf) -> Outcome:
    """What an answer of at most `largest` megabytes says of its order; one that is not sealed for
    it is a failure."""
    facts, excess = answer.facts, too_large(sum(map(len, answer.parts.values())), largest)
    if excess:  # before it is opened, or kept anywhere: a party may not have counted
        return _failed(job.party, excess)
    took, loss = number(facts.get("seconds")), number(facts.get("loss"))
    reason = shown(answer.error or facts.get("reason", ""))
    if reason:
        details, final_ = shown(facts.get("details", ""), DETAILS), bool(facts.get("final", 0))
        return Outcome(job.party, Failure(job.party, reason, details, final=final_), took)
    report = answer.parts.get("report", b"")
    try:
        codec.check(report, "it", seal("report", job.owner, job.round, job.party))
    except OstrakaError as error:
        # no fault of this machine's disk, though the codec calls it a stored value
        return _failed(job.party, f"its answer is refused: {error}")
    return Outcome(job.party, None, took, loss, Answer(report, None))


def _failed(party: int, reason: str) -> Outcome:
    return Outcome(party, Failure(party, reason))
