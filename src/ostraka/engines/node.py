"""A party's side of the letters: who it is, its orders carried out on its own data, its memory.

What a party keeps between rounds never leaves it. It holds what it kept after its last two rounds,
each by the number of the round: a server that was resumed one round back asks for that round
again, and must find the party as it was.
"""

import tempfile
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from math import inf
from pathlib import Path
from typing import final

import numpy as np
import torch

from ostraka.core.party import Parties
from ostraka.core.samples import Samples
from ostraka.engines.base import Failure, Order, Outcome, Work, begun_from, silent, try_order
from ostraka.engines.brief import Brief, read_brief
from ostraka.engines.letters import Fact, Letter, too_large
from ostraka.engines.threads import one_thread
from ostraka.errors import DataError, OstrakaError, StoreError
from ostraka.store import codec
from ostraka.store.desk import Desk, seal

KEPT = 2
"""Rounds whose memories a party holds."""


def to_anything(brief: Brief, index: int) -> None:
    """What a party has agreed to that nobody has asked: a node of a simulation."""


@final
@dataclass(frozen=True)
class Own:
    """What a node knows of itself."""

    party: int
    name: str
    samples: Callable[[Brief], Samples]
    """Its own data, labelled by the classes of the task and seen as the brief says."""
    folder: Path | None = None
    """Where half-finished training is kept; None: nowhere, it begins again."""
    device: str = "cpu"
    agreed: Callable[[Brief, int], None] = to_anything
    """Called with the brief and the round of an order, 0 for none, before anything is done: raises
    what is wrong where the party has not agreed to that."""


@final
@dataclass(frozen=True)
class Kept:
    """A party's memories of one run, by round."""

    run: str = ""
    rounds: Mapping[int, bytes] = field(default_factory=dict)
    gone: int = 0
    """The first round whose memory was given up for later ones; 0: none."""

    @classmethod
    def of(cls, stored: bytes | None) -> "Kept":
        """What `stored` gave; None: nothing yet."""
        if stored is None:
            return cls()
        held = codec.decode(stored, "the party's memory", {"what": "memories"})
        rounds = {int(index): data.numpy().tobytes() for index, data in held["rounds"].items()}
        return cls(held["run"], rounds, held["gone"])

    def stored(self) -> bytes:
        """All of it as bytes."""
        rounds = {
            str(index): torch.from_numpy(np.frombuffer(data, dtype=np.uint8).copy())
            for index, data in self.rounds.items()
        }
        content = {"run": self.run, "rounds": rounds, "gone": self.gone}
        return codec.encode(content, {"what": "memories"})

    def before(self, run: str, index: int, party: int) -> bytes | None:
        """What was kept last before round `index`; None: nothing was.

        Memories of another run, or of a round that will come again, do not count.
        """
        if run != self.run:
            return None
        earlier = [held for held in self.rounds if held < index]
        if earlier:
            newest = max(earlier)
            data = self.rounds[newest]
            codec.check(data, "the party's memory", seal("memory", run, newest, party))
            return data
        if self.gone and self.gone < index:
            raise StoreError(
                f"round {index} needs what this party kept before it, and it holds only rounds "
                f"{', '.join(map(str, sorted(self.rounds)))}, the first that it kept was round "
                f"{self.gone}; the server went back too far: begin a new run"
            )
        return None

    def after(self, run: str, index: int, memory: bytes | None) -> "Kept":
        """With what the party keeps after round `index`; later rounds will come again."""
        kept = self if run == self.run else Kept(run)
        rounds = {held: data for held, data in kept.rounds.items() if held < index}
        if memory is not None:
            rounds[index] = memory
        last = sorted(rounds)[-KEPT:]
        # what was given up of rounds that come again will be made again
        lost = [held for held in (kept.gone, *rounds) if 0 < held < index and held not in last]
        return Kept(run, {held: rounds[held] for held in last}, min(lost, default=0))


def answer(letter: Letter, own: Own, stored: bytes | None) -> tuple[Letter, bytes | None]:
    """The answer to a letter, and the memories that the node keeps from now on."""
    brief = read_brief(letter.parts["brief"])
    own.agreed(brief, int(letter.facts["round"]) if letter.about == "order" else 0)
    samples = _checked(own.samples(brief), brief, own.name)
    if letter.about == "party":
        facts: dict[str, Fact] = {"party": own.party, "name": own.name, "size": len(samples)}
        return Letter(letter.node, "party", facts), stored
    return _carried_out(letter, own, brief, samples, Kept.of(stored))


def _checked(samples: Samples, brief: Brief, name: str) -> Samples:
    if not len(samples):
        raise DataError(f"{name} holds no samples; give it some, or leave it out of the federation")
    if samples.shape != brief.task.shape:
        raise DataError(
            f"the samples of {name} have the shape {samples.shape}, those of the task "
            f"{brief.task.shape}; bring them to that shape"
        )
    return samples


def _carried_out(
    letter: Letter, own: Own, brief: Brief, samples: Samples, kept: Kept
) -> tuple[Letter, bytes | None]:
    """An order's answer: `try_order` on this party's data, with the memory of the round before."""
    facts = letter.facts
    party, index, run = int(facts["party"]), int(facts["round"]), str(facts["run"])
    if party != own.party:
        raise DataError(f"an order of party {party} came to party {own.party}; it is not done")
    work = Work(brief.method, brief.task, alone(own, samples), own.device)
    try:
        memory = kept.before(run, index, party)
    except OstrakaError as error:
        failed = Outcome(party, Failure(party, str(error)), 0.0)
        return _letter(letter, failed), kept.stored()
    order = Order(party, index, int(facts["seed"]), run, letter.parts["message"], memory)
    with ExitStack() as stack:
        folder = own.folder or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        desk = Desk(folder / "work", run)
        stack.enter_context(one_thread())
        progress = desk.progress(index, party)
        # never on with what was begun on other data: a party may have been started with the wrong
        start = begun_from(order, letter.parts["brief"], *_bytes_of(samples))
        outcome = try_order(work, order, replace(progress, path=progress.path / start), silent)
        if outcome.answer is not None:
            kept = kept.after(run, index, outcome.answer.memory)
            desk.clear_until(index)
    return _letter(letter, outcome), kept.stored()


def _bytes_of(samples: Samples) -> tuple[memoryview, memoryview]:
    x, y = (held.contiguous().numpy() for held in (samples.stored(), samples.labels))
    return x.reshape(-1).view(np.uint8).data, y.reshape(-1).view(np.uint8).data


def _letter(letter: Letter, outcome: Outcome) -> Letter:
    """An outcome as it can travel, without the memory."""
    facts: dict[str, Fact] = {"seconds": outcome.seconds or 0.0}
    if outcome.loss is not None:
        facts["loss"] = outcome.loss
    if outcome.failure is not None:
        failure = outcome.failure
        more: dict[str, Fact] = {"details": failure.details, "final": int(failure.final)}
        return Letter(letter.node, "order", {**facts, "reason": failure.reason, **more})
    assert outcome.answer is not None
    report = outcome.answer.report
    assert isinstance(report, bytes), "server and party share no process"
    excess = too_large(len(report), float(letter.facts.get("largest", inf)))
    if excess:
        raise DataError(excess)
    return Letter(letter.node, "order", facts, {"report": report})


def alone(own: Own, samples: Samples) -> Parties:
    """One party under its own number; those before it are empty here."""
    rows = samples.row_numbers
    ends = (0,) * own.party + (len(rows),)
    names = ("",) * own.party + (own.name,)
    return Parties(replace(samples, rows=None), rows, ends, names)
