"""Samples that a group is asked about: own data by path, or a data set by name, brought to the
form and the units of what answers.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from zipfile import ZipFile, is_zipfile

import torch

from ostraka.core.names import normal
from ostraka.core.predictor import UNKNOWN
from ostraka.core.samples import Samples
from ostraka.data.own import Collection, Form, Part, read
from ostraka.data.own.collection import SHOWN, some
from ostraka.data.sources import load
from ostraka.errors import ConfigError, DataError, counted, did_you_mean
from ostraka.parties.answering import Answering

FEW = 25
"""Samples below which a look at them tells little of the members."""


def read_for(
    asked: Answering,
    given: str | Path | Sequence[str | Path],
    labelled: bool | None = None,
    form: Form | None = None,
    part: Part = "test",
) -> Collection:
    """The samples in one or several places, as `asked` takes them.

    A place is a folder or file of own data (`data.own`), or the name of a data set. Of data in two
    parts, train and test, `part` is meant. `form` says more of them than the members do (the
    columns of a table).
    """
    places = [given] if isinstance(given, str | Path) else list(given)
    wanted = form or Form(kind=asked.units.kind, shape=asked.shape)
    try:
        found = [_collection(place, wanted, labelled, part) for place in places]
    except DataError as error:
        if form is not None or wanted.kind != "table":
            raise
        raise DataError(
            f"{error}. The columns of a table are in the task of the members: give it (--task)"
        ) from None
    whole = found[0] if len(found) == 1 else _joined(found)
    return replace(whole, samples=asked.taken(whole.samples))


def shown_before(
    asked: Answering, held: Collection, like: Collection | None = None
) -> tuple[Answering, list[str]]:
    """What answers the samples `held`, with member trust estimated from the samples `like` them (of
    none, from themselves), and what has to be said of that.
    """
    if not asked.looks and like is not None:
        raise ConfigError(
            f"samples to estimate member trust from were given ({like.name}), but what answers has "
            "no use for them: a run, one model, or a ballot that does not look. Leave --like out, "
            "or ask a run's members anew with --ballot guarded"
        )
    if not asked.looks:
        return asked, []
    shown = held if like is None else like
    ready = asked.seeing(shown.samples, shown.name)
    count = ready.looked.get("samples", 0)
    said = f"looked at {count:,} unlabelled samples of {shown.name} to estimate member trust"
    if like is None:
        said += (
            ": those that are asked about. Answers to the same samples may differ when they "
            "are asked with others; --like FILE fixes the samples to look at"
        )
    else:
        said += "; an answer does not depend on what else is asked"
    few = f"{counted(len(shown), 'sample')}: too few to estimate member trust. Use --like FILE"
    return ready, [*([said] if count else []), *([few] if count < FEW else [])]


def labels_for(asked: Answering, held: Collection) -> tuple[Samples, list[str]]:
    """The samples with labels that count into the classes of `asked`, UNKNOWN where it knows no
    such class, and what has to be said of that.
    """
    if held.samples.y is None:
        raise DataError(
            f"{held.name} has no labels, and a vote is judged by them; ostraka predict answers "
            "samples without labels"
        )
    where = asked.numbers
    strange = [name for name in held.classes if normal(name) not in where]
    renumber = torch.tensor([where.get(normal(name), UNKNOWN) for name in held.classes])
    samples = held.samples.with_labels(renumber[held.samples.labels])
    return samples, [*_strangers(held, strange, asked.classes), *_unseen(held, asked)]


def _unseen(held: Collection, asked: Answering) -> list[str]:
    """What is said of classes that members know by name, but may have no samples of."""
    owned = dict(zip(map(normal, asked.classes), asked.owned, strict=True))
    nobody = [name for name in held.classes if owned.get(normal(name), True) is False]
    untold = [name for name in held.classes if owned.get(normal(name), True) is None]
    notes = []
    if nobody:
        notes.append(
            f"samples of {some(nobody)} count as unknown: no member that votes has samples of "
            "such a class"
        )
    if untold:
        notes.append(
            f"samples of {some(untold)} count as known; whether a member that votes has samples of "
            "such a class is not known, as the cards do not tell it"
        )
    return notes


def _strangers(held: Collection, strange: Sequence[str], classes: Sequence[str]) -> list[str]:
    """What is said of classes that nobody knows: they may be meant so, or be misspelt."""
    if not strange:
        return []
    if len(strange) == len(held.classes):
        hint = did_you_mean(strange[0], classes)
        raise DataError(
            f"no class of {held.name} is known to any member ({some(strange)}).{hint} "
            f"Known: {some(classes)}; classes are matched by name"
        )
    hints = dict.fromkeys(did_you_mean(name, classes) for name in strange[:SHOWN])
    said = f"samples of {some(strange)} count as unknown: no member knows such a class."
    return [said + "".join(hints)]


def _collection(place: str | Path, form: Form, labelled: bool | None, part: Part) -> Collection:
    if Path(place).expanduser().exists():
        path = Path(place).expanduser()
        return read(path, form, labelled=labelled, part=part if _has_test(path) else "train")
    data = load(str(place))
    samples = data.test if part == "test" else data.train
    if data.kind != form.kind or samples.shape != form.shape:
        raise DataError(
            f"{data.name} holds samples of the kind {data.kind} and shape {list(samples.shape)}; "
            f"the members take {form.kind} {list(form.shape or ())}"
        )
    numbers = samples.row_numbers.tolist()
    return Collection(
        name=data.name,
        classes=() if labelled is False else data.classes,
        samples=samples.unlabelled() if labelled is False else samples,
        items=tuple(f"{part} sample {number}" for number in numbers),
        form=form,
    )


def _has_test(path: Path) -> bool:
    """Whether the data is stored in two parts."""
    if path.is_dir():
        return all((path / part).is_dir() for part in ("train", "test"))
    return is_zipfile(path) and "x_test.npy" in ZipFile(path).namelist()


def _joined(parts: Sequence[Collection]) -> Collection:
    """Several collections as one without labels, their items called after them."""
    stored = [part.samples.stored() for part in parts]
    if len({(values.dtype, values.shape[1:], part.samples.view.unit)
            for values, part in zip(stored, parts, strict=True)}) > 1:  # fmt: skip
        raise DataError(
            f"{parts[0].name} and {parts[1].name} hold samples of different shapes or units; ask "
            "about one after the other"
        )
    items = [
        item if len(part) == 1 else f"{part.name}: {item}" for part in parts for item in part.items
    ]
    return replace(
        parts[0],
        name=f"{parts[0].name} and {len(parts) - 1} more",
        classes=(),
        samples=Samples(torch.cat(stored), view=parts[0].samples.view),
        items=tuple(items),
        notes=tuple(note for part in parts for note in part.notes),
    )
