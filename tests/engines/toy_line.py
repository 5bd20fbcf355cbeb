"""A line in memory: nodes answer when they are asked, some late, twice, or as somebody else."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace

from ostraka.core.samples import Samples
from ostraka.engines.brief import Brief
from ostraka.engines.letters import Letter, Line, Node
from ostraka.engines.node import Own, answer
from tests.engines.toy_work import parties

Answering = Callable[[Letter], Sequence[Letter]]


@dataclass
class ToyNode:
    """A node with a party's share of the toy data."""

    node: Node
    party: int
    stored: bytes | None = None
    orders: list[int] = field(default_factory=list)
    """Rounds of the orders that it was sent."""
    spoil: Answering | None = None
    """What it does instead of answering an order."""

    def honest(self, letter: Letter) -> Letter:
        try:
            told, self.stored = answer(letter, own(self.party), self.stored)
            return told
        except Exception as error:  # as a carrier does: what a node raises is its answer
            return Letter(letter.node, letter.about, error=str(error))

    def reply(self, letter: Letter) -> Sequence[Letter]:
        if letter.about == "order":
            self.orders.append(int(letter.facts["round"]))
            if self.spoil is not None:
                return self.spoil(letter)
        return [self.honest(letter)]


def own(party: int) -> Own:
    def samples(brief: Brief) -> Samples:
        return replace(parties()[party].samples, view=brief.view)

    return Own(party, parties().names[party], samples)


class ToyLine(Line):
    """Letters are answered when they are fetched."""

    def __init__(self, count: int = 4) -> None:
        self.there = {i: ToyNode(Node(i, b"key %d" % i, "first"), i - 100) for i in
                      range(100, 100 + count)}  # fmt: skip
        self.sent: dict[str, Letter] = {}
        self.waiting: dict[str, list[Letter]] = {}
        self.taken = True

    def nodes(self) -> Sequence[Node]:
        return [held.node for held in self.there.values()]

    def send(self, letter: Letter, seconds: float) -> str:
        if not self.taken:
            return ""
        name = f"letter {len(self.sent)}"
        self.sent[name] = letter
        node = self.there.get(letter.node)
        self.waiting[name] = list(node.reply(letter)) if node else []
        return name

    def fetch(self, names: Collection[str]) -> Sequence[Letter]:
        return [
            replace(told, answers=told.answers or name)
            for name in names
            for told in self.waiting.pop(name, [])
        ]

    def restart(self, node: int, since: str = "again") -> None:
        held = self.there[node]
        held.node = replace(held.node, since=since)
