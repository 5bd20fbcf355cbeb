"""One network in place of a vote: a student that learns, on public samples, to answer as it does.

As the student of `fedov-distilled`, but for two things: where the vote can answer unknown, so can
the student, and a part of the public samples is kept from it, to tell how far it agrees.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, final

import torch
from torch import Tensor

from ostraka import __version__
from ostraka.core.card import Card
from ostraka.core.digest import digest_of
from ostraka.core.fit import Student, fit
from ostraka.core.learner import WHOLE, build_net
from ostraka.core.member import Making, Member, Model
from ostraka.core.net import Net, Recipe
from ostraka.core.predictor import UNKNOWN, Scores, join
from ostraka.core.progress import Progress
from ostraka.core.samples import Samples, View
from ostraka.core.seeds import derive, torch_rng
from ostraka.core.settings import plain_choice, values_of
from ostraka.data.own.collection import hashes
from ostraka.data.standardise import statistics
from ostraka.engines.threads import one_thread
from ostraka.errors import ConfigError, DataError, Interrupted
from ostraka.nets.generator import draw_stored
from ostraka.objectives.cross_entropy import CrossEntropy
from ostraka.objectives.distil import Distillation, numbered
from ostraka.objectives.open_voting import OpenVoting
from ostraka.parties.answers import Answers
from ostraka.parties.ensemble import Ensemble
from ostraka.parties.halt import Halting, Tell, check_free, deliver, place_of, tidy
from ostraka.registry import BALLOTS, NETS
from ostraka.runs.generator import READY, load_generator
from ostraka.runs.promise import look_note
from ostraka.store.generator import sha256_of
from ostraka.store.member import encode_member
from ostraka.store.member_card import TEXT
from ostraka.voting.calibration import held_scores, measure, tell_of

STUDENT = Student(
    epochs=100, least_steps=300, least_batches=4, optimiser="adam", lr=1e-3, weight_decay=1e-5
)
HELD_OUT = 0.1
"""Share of the public samples by which the student is judged."""
FEWEST = 20
"""Public samples below which nothing can be learnt and judged."""
GENERATOR = "generator"
DRAWN = 5000
"""Samples that are drawn from a generator."""
REPLACE = "overwrite=True, --replace"
NAME = "distilled"
SURE = 2.0
"""Mean log odds, for or against, with which a student is taught whether a sample is unknown."""
SAVE_SECONDS = 30.0
"""A kill loses about this much of the training; Ctrl-C loses nothing."""
MOST_NAMED = 50
"""Teachers that a student's card names."""


@final
@dataclass(frozen=True, eq=False)
class Distilled:
    """A student, and how far it answers as the vote does on public samples that it has not seen."""

    member: Member
    agreement: float
    """Percent of these samples with the same answer, unknown included."""
    nearest_agreement: float
    """Percent with the same likeliest class."""
    refused: float
    """Percent that the vote calls unknown."""
    held: int
    """How many samples these figures rest on."""
    looked: Mapping[str, Any]
    """How many unlabelled samples of what the vote looked at; empty: none."""
    notes: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """The figures as plain values."""
        return {
            "agreement": self.agreement,
            "nearest_agreement": self.nearest_agreement,
            "vote_refused": self.refused,
            "held": self.held,
            "looked": dict(self.looked),
            "notes": list(self.notes),
        }


def distil(
    members: Ensemble | str | Path | Sequence[str | Path | Member],
    public: Any,
    out: str | Path | None = None,
    *,
    net: str | None = None,
    training: Student = STUDENT,
    seed: int = 0,
    name: str = "",
    overwrite: bool = False,
    tell: Tell | None = None,
) -> Distilled:
    """Train one network that answers as an ensemble does, on unlabelled `public` samples.

    `members`: an `Ensemble`, or the files of one. `public`: an array of samples as they are stored,
    or `Samples`. `net`: a network by name (none: that of most members). `out`: where to write the
    student's member file, which votes and answers as any other; half-finished training lies beside
    it, so that the same call goes on where it was stopped; a file that is there already is replaced
    only to `overwrite` it. `tell` hears the share that is done and the loss. Where the vote never
    names a class on these samples, the student cannot learn it; a note says so.
    """
    ensemble = members if isinstance(members, Ensemble) else Ensemble(members)
    path = None if out is None else Path(out)
    called = _name(name, path, overwrite)
    samples = as_public(ensemble, public)
    mark = mark_of(ensemble, samples, net, training, seed)
    place = None if path is None else place_of(path, mark, "training of a student")
    progress = Halting(place, tell, SAVE_SECONDS)
    try:
        with one_thread(), progress.on_interrupt():
            made = _distilled(ensemble, samples, net, training, seed, progress)
    except KeyboardInterrupt:
        raise Interrupted(
            "stopped; the same command goes on where it was"
            if progress.keeps
            else "stopped; nothing is kept of it, as no file to write was given"
        ) from None
    made = replace(made, member=replace(made.member, card=replace(made.member.card, name=called)))
    if path is not None:
        deliver(path, encode_member(made.member), mark, overwrite, REPLACE)
        tidy(path)
    return made


def _name(name: str, path: Path | None, overwrite: bool) -> str:
    """What the student is called; what could not be written in the end is refused now."""
    called = name or (NAME if path is None else path.stem)
    if len(called) > TEXT or not called.isprintable():
        raise ConfigError(
            f"the student would be called {called[:80]!r}; names have at most {TEXT} printable "
            "characters"
        )
    if path is None:
        return called
    if path.is_dir() or not path.parent.is_dir():
        raise ConfigError(
            f"the student cannot be written to {path}; give a file in a folder that exists"
        )
    check_free(path, overwrite, REPLACE)
    return called


def _distilled(
    ensemble: Ensemble, samples: Samples, net: str | None, training: Student, seed: int,
    progress: Progress,
) -> Distilled:  # fmt: skip
    teacher, _ = ensemble.seeing(samples, "public").asked(samples.stored())
    learnt, held = samples.split(HELD_OUT, derive(seed, "student", "held"))
    model = _model(teacher, net, learnt, teacher.threshold is not None)
    seen, asked = replace(learnt, view=model.view), replace(held, view=model.view)
    student = build_net(model.task, model.objective, derive(seed, "student"))
    goal = Distillation(_targets(teacher, learnt), answers=model.objective)
    fitted = fit(student, None, numbered(seen), goal, training, derive(seed, "distil"), progress)
    answers, said = (teacher.answer(part.stored()) for part in (learnt, held))
    same, nearest, refused = _judged(student, model, asked, said)
    card = _card(student, model, seen, answers.numbers, asked, said.numbers, fitted.figures())
    more = {
        "teachers": [str(member.card) for member in teacher.members][:MOST_NAMED],
        "agreement": round(same, 2),
    }
    member = Member(card, model, fitted.params, Making("distil", more=more))
    left, looked = teacher.notes[len(ensemble.notes) :], teacher.looked
    notes = [*left, *_untaught(ensemble.classes, answers.numbers)]
    notes += [look_note("the vote", looked)] if looked else []
    return Distilled(member, same, nearest, refused, len(held), looked, tuple(notes))


def as_public(ensemble: Ensemble, given: Any) -> Samples:
    """Unlabelled samples in the members' unit."""
    held = ensemble.taken(given).unlabelled()
    if len(held) < FEWEST:
        raise DataError(
            f"there are {len(held)} public samples; a student needs {FEWEST} at least, and "
            "hundreds of each class to be good"
        )
    return held


def drawn(ensemble: Ensemble, name: str, seed: int = 0) -> Samples:
    """Public samples of a generator: `generator` (the one in this package) or `generator:FILE`."""
    file = name.partition(":")[2] or READY
    view = ensemble.units
    if view.kind != "image":
        raise DataError(
            f"a generator makes images, and these members take samples of the kind {view.kind}; "
            "give other public samples"
        )
    dtype = torch.uint8 if view.unit > WHOLE else torch.float32
    rng = torch_rng(seed, "public", GENERATOR)
    made = draw_stored(load_generator(file), DRAWN, ensemble.shape, view, dtype, rng)
    return Samples(made, view=view)


def mark_of(
    ensemble: Ensemble, public: Samples, net: str | None, training: Student, seed: int
) -> str:
    """A digest of all that a student depends on: half-finished training of another is no use."""
    seen = ensemble.seen
    return digest_of(
        {
            "members": [sha256_of(member.params) for member in ensemble.members],
            "ballot": plain_choice(ensemble.ballot, BALLOTS),
            "classes": list(ensemble.classes),
            "threshold": ensemble.promise.as_dict(),
            "seen": [] if seen is None else [seen.weight.tolist(), seen.shift.tolist()],
            "public": digest_of([each.hex() for each in hashes(public)]),
            "net": net,
            "training": values_of(training),
            "seed": seed,
            "version": __version__,
        }
    )


def _model(ensemble: Ensemble, net: str | None, public: Samples, opened: bool) -> Model:
    nets = [member.model.net for member in ensemble.members]
    recipe = max(nets, key=nets.count) if net is None else Recipe(NETS.canonical(net), {})
    objective = OpenVoting(outliers="none") if opened else CrossEntropy()
    return Model(ensemble.classes, ensemble.shape, recipe, objective, _view(ensemble, public))


def _view(ensemble: Ensemble, public: Samples) -> View:
    """The members' view if they have one; else by the public samples, if members standardise."""
    views = {replace(member.model.view, augment="none") for member in ensemble.members}
    if len(views) == 1:
        return views.pop()
    plain = ensemble.units
    if not any(view.mean for view in views):
        return plain
    mean, std = statistics(replace(public, view=plain))
    return replace(plain, mean=mean, std=std)


@torch.no_grad()
def _targets(teacher: Ensemble, samples: Samples) -> Tensor:
    """What the vote says of each sample as shares: of the classes, and, where it can answer
    unknown, of that too [N, K or K + 1].
    """
    return open_shares(teacher, join([teacher.scores(x.stored()) for x in samples.chunks(1000)]))


def open_shares(teacher: Ensemble, scores: Scores) -> Tensor:
    """The classes' shares, and beside them one for unknown, above 1/2 where that is the answer.

    Its log odds are the unknown score's distance from the threshold, in units in which they are
    SURE on average: ballots score on scales of their own.
    """
    shares = teacher.shares(scores)
    if scores.threshold == float("inf"):
        return shares
    over = scores.unknown - scores.threshold
    unknown = (SURE * over / over.abs().mean().clamp(min=1e-6)).sigmoid().unsqueeze(1)
    return torch.cat([(1 - unknown) * shares, unknown], dim=1)


@torch.no_grad()
def _judged(student: Net, model: Model, held: Samples, said: Answers) -> tuple[float, float, float]:
    """Agreement, agreement on the likeliest class, and what the vote refuses, in percent."""
    scores = model.objective.scores(student.eval(), held.inputs())
    same, nearest = scores.open == said.numbers, scores.closed == said.nearest
    found = (same, nearest, said.numbers == UNKNOWN)
    same_share, nearest_share, refused = (100 * float(part.double().mean()) for part in found)
    return same_share, nearest_share, refused


def _untaught(classes: Sequence[str], answers: Tensor) -> list[str]:
    counts = torch.bincount(answers[answers != UNKNOWN], minlength=len(classes)).tolist()
    missed = [name for name, count in zip(classes, counts, strict=True) if not count]
    if not missed:
        return []
    return [
        f"the vote names no public sample {', '.join(missed)}; the student cannot have learnt "
        "that: give public samples that are more like those of the parties"
    ]


def _card(
    student: Net, model: Model, learnt: Samples, answers: Tensor, held: Samples, said: Tensor,
    figures: Mapping[str, float],
) -> Card:  # fmt: skip
    """What is told of the student, with the vote's answers for labels: they are all it knows."""
    own, judged = _named(learnt, answers), _named(held, said)
    counts = own.counts(len(model.classes)) + judged.counts(len(model.classes))
    numbers = measure(student, model.objective, own, typicality=False) if len(own) else {}
    numbers |= tell_of(student, model.objective, judged, None) if model.objective.refuses else {}
    scores = {**figures, **held_scores(student, model.objective, judged)}
    return Card(0, len(own) + len(judged), tuple(counts.tolist()), scores, numbers)


def _named(samples: Samples, answers: Tensor) -> Samples:
    """The samples that the vote gives a class, with that class for a label."""
    return samples.with_labels(answers).take((answers != UNKNOWN).nonzero().squeeze(1))
