"""Samples of one owner, with the names of the classes that it holds."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b

import torch
from torch import Tensor

from ostraka.core.names import normal
from ostraka.core.samples import Samples, View
from ostraka.data.dataset import PIXELS, Array
from ostraka.data.own.form import Form
from ostraka.errors import DataError, did_you_mean

WHOLE = re.compile(r"-?[0-9]{1,18}")

SHOWN = 5
"""Names that a message lists before it says how many more there are."""


@dataclass(frozen=True, eq=False)
class Collection:
    """Samples of one owner, with the names of the classes it holds.

    `samples.y` counts into `classes`; it is None, and `classes` empty, where they are unlabelled.
    Every class has a sample. `items` says what each sample is called (a file, "row 17"), `form`
    what it looks like, `notes` what must be said of the reading, each with a count. The samples'
    view has no statistics of them.
    """

    name: str
    classes: tuple[str, ...]
    samples: Samples
    items: tuple[str, ...]
    form: Form
    notes: tuple[str, ...] = ()
    digest: str = ""
    """Of the values, the labels and the names of the classes."""

    def __len__(self) -> int:
        return len(self.samples)

    @property
    def labelled(self) -> bool:
        """Whether it says which class each sample is of."""
        return self.samples.y is not None

    def for_classes(self, classes: Sequence[str]) -> Samples:
        """The samples with labels that count into `classes`, matched by name.

        `classes` may be more than these samples have; a class that is not among them is refused.
        """
        if self.samples.y is None:
            raise DataError(
                f"{self.name} has no labels; put the samples of each class into a folder of that "
                "name, or give the column with the classes"
            )
        places = {normal(name): place for place, name in enumerate(classes)}
        strange = [name for name in self.classes if name not in places]
        if strange:
            hint = did_you_mean(strange[0], places)
            raise DataError(
                f"{self.name} holds {listed(strange, 'class', 'classes')} that the task does not "
                f"have.{hint} Its classes: {some(list(classes))}; rename or remove what does not "
                f"belong to it{''.join(f'. Note: {note}' for note in self.notes[:SHOWN])}"
            )
        renumber = torch.tensor([places[name] for name in self.classes])
        return replace(self.samples, y=renumber[self.samples.y])

    def unlabelled(self) -> Samples:
        """The samples without labels."""
        return self.samples.unlabelled()

    def counts(self) -> dict[str, int]:
        """How many samples each class has."""
        if self.samples.y is None:
            return {}
        held = self.samples.counts(len(self.classes)).tolist()
        return dict(zip(self.classes, held, strict=True))


def collection(
    name: str,
    x: Array,
    labels: Sequence[str] | None,
    items: Sequence[str],
    form: Form,
    notes: Sequence[str] = (),
) -> Collection:
    """A collection of values with a class name each (or none), and the notes that follow from
    their content; `form` says of which kind they are."""
    assert form.kind is not None
    found, y = tuple[str, ...](), None
    if labels is not None:
        found = in_order({normal(label) for label in labels})
        number = {label: place for place, label in enumerate(found)}
        y = torch.tensor([number[normal(label)] for label in labels], dtype=torch.int64)
    view = PIXELS if form.kind == "image" else View(kind=form.kind)
    held = Samples(torch.from_numpy(x), y, view=view)
    said = [*notes, *_twice(held, found, items)]
    return Collection(name, found, held, tuple(items), form, tuple(said), _digest(held, found))


def in_order(names: set[str]) -> tuple[str, ...]:
    """Names in a fixed order: as numbers where all are whole numbers, else as text."""
    whole = all(WHOLE.fullmatch(name) for name in names)
    return tuple(sorted(names, key=int) if whole else sorted(names))


def hashes(samples: Samples) -> list[bytes]:
    """A hash of the stored values of each sample: equal samples have equal ones."""
    rows = samples.stored().contiguous().flatten(1).view(torch.uint8).numpy()
    return [blake2b(row.data, digest_size=16).digest() for row in rows]


def in_both(one: Samples, other: Samples) -> Tensor:
    """Which samples of `one` are in `other` too, value for value: their positions."""
    there = set(hashes(other))
    return torch.tensor([i for i, own in enumerate(hashes(one)) if own in there], dtype=torch.int64)


def some(names: Sequence[str], most: int = SHOWN) -> str:
    """The first few of many names."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def listed(names: Sequence[str], one: str, many: str, rest: str = "") -> str:
    """`3 files are no images (a, b, c)`: how many, what is said of them, and the first few."""
    said = f"{one if len(names) == 1 else many} {rest}".rstrip()
    return f"{len(names):,} {said} ({some(names)})"


def note(names: Sequence[str], one: str, many: str, rest: str, done: str) -> list[str]:
    """As `listed`, and what was done about it; nothing where there are no names."""
    return [f"{listed(names, one, many, rest)}; {done}"] if names else []


def _twice(samples: Samples, classes: Sequence[str], items: Sequence[str]) -> list[str]:
    """A note on samples that lie in two classes with the same content."""
    if samples.y is None:
        return []
    first: dict[bytes, int] = {}
    labels = samples.labels.tolist()
    pairs = [
        (first[own], i)
        for i, own in enumerate(hashes(samples))
        if labels[first.setdefault(own, i)] != labels[i]
    ]
    names = [
        f"{items[a]} ({classes[labels[a]]}) = {items[b]} ({classes[labels[b]]})" for a, b in pairs
    ]
    same = "the same content as one of another class"
    done = "a class was mistaken, or they cannot be told apart"
    return note(names, "sample has", "samples have", same, done)


def _digest(samples: Samples, classes: Sequence[str]) -> str:
    digest = blake2b(
        repr((samples.shape, str(samples.x.dtype), tuple(classes))).encode(), digest_size=16
    )
    for tensor in (samples.x, samples.y):
        if tensor is not None:
            digest.update(tensor.contiguous().view(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()
