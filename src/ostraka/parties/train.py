"""A party makes its member: from its own samples to one file that it can hand over.

The work itself is the method's own (`PanelMethod.local_update`), the same that a run has its
parties do. Stopped in any way and begun again, it goes on where it was, and the file is the same to
the bit: half-finished training lies beside it, in OUT.progress.
"""

import os
import secrets
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import final

from ostraka import __version__
from ostraka.core.card import BANDS, band_of
from ostraka.core.digest import digest_of
from ostraka.core.equip import equipped, generator_of
from ostraka.core.member import Making, Member
from ostraka.core.method import Round
from ostraka.core.party import Party, PartyRef
from ostraka.core.private import Private
from ostraka.core.samples import Samples
from ostraka.core.settings import values_of
from ostraka.core.task import Task
from ostraka.data.own import Collection
from ostraka.data.own.form import ANYTHING
from ostraka.data.standardise import statistics
from ostraka.engines.threads import one_thread
from ostraka.errors import ConfigError, Interrupted, StoreError, writing
from ostraka.methods.panel import PanelMethod
from ostraka.parties.dp import check_covered
from ostraka.parties.halt import Halting, Tell, place_of, progress_of
from ostraka.parties.rare import rare_classes, without
from ostraka.parties.samples import OwnData, collected
from ostraka.parties.task_file import TaskFile, load_task, make_task
from ostraka.runs.config import Config
from ostraka.runs.generator import load_generator
from ostraka.runs.memory import check_network
from ostraka.runs.plan import party_seed, pick_device
from ostraka.store.codec import write_atomically
from ostraka.store.desk import Place
from ostraka.store.member import load_member, save_member
from ostraka.store.member_card import TEXT
from ostraka.voting.panel import Seat

SAVE_SECONDS = 30.0
"""A kill loses about this much of the training; Ctrl-C loses nothing."""
SHARED_SEED = 0
"""Where all members begin with the same weights, these cannot depend on one party's seed."""


@final
@dataclass(frozen=True)
class Trained:
    """A member that was made, and what its party should know of it."""

    member: Member
    task: TaskFile
    path: Path | None
    counts: Mapping[str, int]
    """Samples of each class that it was trained on, or held out; classes without any are not
    named."""
    left_out: Mapping[str, int]
    """Classes with so few samples that they were left out, and how many there are."""
    rare: Mapping[str, int]
    """Classes as few, which were kept."""
    notes: tuple[str, ...] = ()

    @property
    def statistics(self) -> dict[str, tuple[float, float]]:
        """The mean and the standard deviation of each feature of the party's own samples that are
        in the file."""
        view = self.member.model.view
        if self.task.standardise != "own":
            return {}
        names = self.task.form.features or tuple(f"feature {i}" for i in range(len(view.mean)))
        return dict(zip(names, zip(view.mean, view.std, strict=True), strict=True))


def train_party(
    data: OwnData,
    task: TaskFile | str | Path | None = None,
    out: str | Path | None = None,
    *,
    name: str = "",
    seed: int | None = None,
    keep_rare: bool = False,
    skip_broken: bool = False,
    replace_file: bool = False,
    device: str = "auto",
    dp: Private | None = None,
    tell: Tell | None = None,
    save_seconds: float = SAVE_SECONDS,
) -> Trained:
    """Make the member of a party from its own `data`, and write it to `out`.

    Without a task, the classes found are those of the task. `name` is what the party is called in
    the file (default: as the file). The seed is 0 by default; with differential privacy it is
    secret, as whoever knew it could take the noise away. `dp` promises that, whether the task does
    or not; then no class is left out for being rare, as that would tell of its samples.
    `skip_broken` leaves out files that cannot be read, with a note. `tell` follows the training.
    """
    path = None if out is None else Path(out)
    name = name or ("" if path is None else path.stem)
    _check(name, path, replace_file)
    agreed, held = _given(data, task, skip_broken)
    samples = held.for_classes(agreed.classes)
    method = agreed.build_method(dp)
    rare = rare_classes(samples, agreed.classes, agreed.rare)
    if method.dp.wanted:
        check_covered(agreed.standardise, samples)
        keep_rare = True
    if rare and not keep_rare:
        samples = without(samples, agreed.classes, list(rare))
    samples = _seen(samples, agreed)
    work = _Work.of(agreed, method, samples, name, seed)
    with one_thread():
        mark = work.mark(held.digest)
        place = None if path is None else place_of(path, mark, "training of a member")
        progress = Halting(place, tell, save_seconds)
        member = work.member(progress, pick_device(device), place)
    if path is not None:
        save_member(path, member)
        shutil.rmtree(progress_of(path), ignore_errors=True)
        member = load_member(path)  # what others will read, by the reader that they will use
    counts = samples.counts(len(agreed.classes)).tolist()
    return Trained(
        member=member,
        task=agreed,
        path=path,
        counts={c: n for c, n in zip(agreed.classes, counts, strict=True) if n},
        left_out={} if keep_rare else rare,
        rare=rare if keep_rare else {},
        notes=(*held.notes, *work.notes()),
    )


def _check(name: str, path: Path | None, replace_file: bool) -> None:
    """Refuse what would fail only after hours of training."""
    if len(name) > TEXT or not name.isprintable():
        raise ConfigError(
            f"the name is {name[:80]!r}; it takes at most {TEXT} printable characters"
        )
    if path is None:
        return
    if path.is_dir():
        raise ConfigError(f"{path} is a folder; give a file, such as {path / 'st-anna.member'}")
    if path.exists() and not replace_file:
        raise ConfigError(
            f"{path} is there already; give another file, or say that it may be replaced "
            "(replace=True, --replace)"
        )
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    if not os.access(path.parent, os.W_OK):
        raise StoreError(f"{path.parent} cannot be written to; choose another place")


def _given(
    data: OwnData, task: TaskFile | str | Path | None, skip_broken: bool
) -> tuple[TaskFile, Collection]:
    """The task and the samples, each as the other wants it."""
    if task is None:
        held = collected(data, ANYTHING, skip_broken)
        return make_task(data=held), held
    agreed = task if isinstance(task, TaskFile) else load_task(task)
    held = collected(data, agreed.form, skip_broken)
    if (held.form.kind, held.form.shape) != (agreed.kind, agreed.shape):
        raise ConfigError(
            f"{held.name} has samples of the kind {held.form.kind} and the shape "
            f"{list(held.form.shape or ())}; the task wants {agreed.kind} and "
            f"{list(agreed.shape)}: read it with the task's form"
        )
    return agreed, held


def _seen(samples: Samples, task: TaskFile) -> Samples:
    """The samples as the networks shall see them."""
    view = replace(task.view(), augment=task.augment)
    if task.standardise == "own" and samples.x.is_floating_point():
        mean, std = statistics(samples)
        view = replace(view, mean=mean, std=std)
    return replace(samples, view=view)


@final
@dataclass(frozen=True)
class _Work:
    """All that a member depends on."""

    agreed: TaskFile
    method: PanelMethod
    task: Task
    party: Party
    seed: int | None
    """None: secret."""

    @classmethod
    def of(
        cls, agreed: TaskFile, method: PanelMethod, samples: Samples, name: str, seed: int | None
    ) -> "_Work":
        """With the network built, and known to fit."""
        if method.dp.wanted and seed is not None:
            raise ConfigError(
                f"the seed is {seed}, but differential privacy is promised: whoever knew the "
                "seed could take the noise away; leave it out, and a secret one is drawn"
            )
        seed = None if method.dp.wanted else seed or 0
        source = generator_of(method)
        method = equipped(method, load_generator(source)) if source else method
        task = agreed.task(samples.view)
        check_network(task, Config(), method, parties=1)
        return cls(agreed, method, task, Party(PartyRef(0, len(samples), name), samples), seed)

    def notes(self) -> tuple[str, ...]:
        """What the method has to say of such samples."""
        counts = self.party.samples.counts(len(self.task.classes))
        return self.method.notes(self.task, counts.unsqueeze(0))

    def mark(self, data: str) -> str:
        """Stands for all that the training depends on, where the data has this digest."""
        return digest_of(
            {
                "task": self.agreed.digest,
                "data": data,
                "size": len(self.party.samples),  # with and without rare classes
                "seed": self.seed,
                "dp": values_of(self.method.dp),
                "version": __version__,
            }
        )

    def member(self, progress: Halting, device: str, place: Place | None) -> Member:
        """Train: the one exchange of the method, as a run has it."""
        method, task = self.method, self.task
        secret = secret_seed(place) if self.seed is None else self.seed
        first = method.init(task, SHARED_SEED)
        party = self.party.at_work(progress, device)
        seed = party_seed(Config(seed=secret), 1, party.id)
        order = Round(task, 1, method.message(first, party.ref), seed)
        try:
            with progress.on_interrupt():
                report = method.local_update(order, party, {})
        except KeyboardInterrupt:
            raise Interrupted(
                "stopped; the same command goes on where it was"
                if progress.keeps
                else "stopped; nothing is kept of it, as no file to write was given"
            ) from None
        method.inspect(task, report)
        (member,) = method.seated(task, [Seat(report.card, report.payload)])
        return self._told(member)

    def _told(self, member: Member) -> Member:
        """The member with what is said of how it was made, and counts in bands if so agreed."""
        banded, card = self.agreed.tell == "bands", member.card
        if banded and card.counts is not None:
            card = replace(card, counts=tuple(BANDS[band_of(n)] for n in card.counts))
        # no time of day: the same data, task and seed make the same file
        made = Making(
            method=self.agreed.method,
            recipe=str(self.agreed.set.get("recipe", "")),
            more={"task": self.agreed.digest, "unknown_rate": self.agreed.unknown_rate},
            banded=banded,
        )
        return replace(member, card=card, made=made)


def secret_seed(place: Place | None) -> int:
    """A seed that nobody knows; kept with half-finished training, for its owner alone, until that
    is done."""
    drawn = secrets.randbits(62)
    if place is None:
        return drawn
    kept = place.path / "secret"
    if not kept.exists():
        with writing(kept):
            kept.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(kept, str(drawn).encode(), mode=0o600)
    return int(kept.read_text())
