"""Member files: one trained model that stands on its own, with its card and all that is needed to
ask it, in a file that a stranger's machine may open without fear.

One safetensors file: the weights under the network's own names (any safetensors reader can list
them), and, as JSON in its metadata, the card. docs/member-file.md describes it for other programs.

There is one reader. It looks at limits before it parses, at the card before it builds, at what the
network would be before it reads a weight, and at the weights before anybody asks them.
"""

import hashlib
import io
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from torch import Tensor

from ostraka.core.arrival import check_numbers, check_varied, embedding_width
from ostraka.core.card import Card
from ostraka.core.member import Making, Member, Model
from ostraka.core.told import PLACES, check_places
from ostraka.errors import DamagedFile, OstrakaError, ReportRefused, StoreError, printable
from ostraka.store import codec, member_card
from ostraka.store.container import HEADER, TENSORS, Container, Entry, TensorHash, plain_file
from ostraka.store.layout import TYPES, bytes_of, file_of, head_of, header_of
from ostraka.store.outline import Outline, outline
from ostraka.store.strict_json import parse

CARD, CARD_HASH = codec.KEY, "sha256"
"""Names in the metadata: the card, and the sha256 of its text."""
DEEPEST, BRACKETS = 32, 20_000
"""How deep a card may nest, and how many objects and lists it may have."""
SHOWN = 600
"""Characters of an error: what it quotes is a stranger's."""
OWN = "calibration/"
"""Before the names of the card's own tensors."""
SPARE = 2**16
"""Bytes of a card's tensors in all, but for those that its network says the sizes of."""
STAGES = ("path", "header", "card", "network", "tensors", "answers")
"""What the reader looks at, in this order."""
Passed = Callable[[str], None]
"""Told of every stage that a file has passed."""


@dataclass(frozen=True)
class _Said:
    """What a file says before its tensors are read."""

    card: Card
    model: Model
    made: Making
    weights: Mapping[str, Entry]
    """The header's entries by the network's names."""
    found: Outline
    """What the network's tensors must be."""
    sha256: str


def save_member(path: Path, member: Member, private: bool = False) -> str:
    """Write a member, atomically; returns the sha256 of its tensors. One that is not `private` is
    meant to be handed over."""
    data, sha256 = _encoded(member)
    codec.write_atomically(path, data, private=private)
    return sha256


def save_members(
    folder: Path, members: Sequence[Member], made: Making | None = None, name: str = "members"
) -> codec.Beside:
    """Write members into the private folder `name` of `folder`; what a file of `folder` need not
    repeat.

    `made` says how they came about, if they do not say it themselves; whether their counts are
    bands, they do.
    """
    paths = [f"{name}/p{member.card.party:05d}.safetensors" for member in members]
    told = members
    if made is not None:
        told = [replace(m, made=replace(made, banded=m.made.banded)) for m in members]
    return codec.Beside.of(
        (path, save_member(folder / path, member, private=True), member.params)
        for path, member in zip(paths, told, strict=True)
    )


def encode_member(member: Member) -> bytes:
    """The bytes of a member file."""
    return _encoded(member)[0]


def _encoded(member: Member) -> tuple[bytes, str]:
    tensors: dict[str, Tensor] = dict(member.params)

    def put(path: str, tensor: Tensor) -> str:
        tensors[path] = tensor
        return path

    said = member_card.said_of(member, put)
    header = header_of(tensors)
    body = [bytes_of(tensors[name]) for name in header]
    digest = TensorHash()
    for name, data in zip(header, body, strict=True):
        digest.add(name, data)
    try:
        card = json.dumps({**said, "sha256": digest.hexdigest()}, allow_nan=False)
    except ValueError as error:
        raise StoreError(f"the card of {member.card} cannot be written: {error}") from None
    notes = {CARD: card, CARD_HASH: hashlib.sha256(card.encode()).hexdigest()}
    if len(header) > TENSORS or len(head_of(header, notes)) > HEADER:
        raise StoreError(
            f"the member of {member.card} has {len(header):,} tensors and a header of "
            f"{len(head_of(header, notes)):,} bytes; a member file has at most {TENSORS:,} and "
            f"{HEADER:,}: choose a smaller network"
        )
    return file_of(header, notes, body), digest.hexdigest()


def _unwatched(stage: str) -> None:
    """A `Passed` for nobody."""


def load_member(path: str | Path, passed: Passed = _unwatched) -> Member:
    """Read a member from a file; anything that is not one in every respect is refused.

    `passed` is told of each of the STAGES that the file has passed.
    """
    with plain_file(Path(path)) as file:
        passed("path")
        size = os.fstat(file.fileno()).st_size
        return _member(Container.of(file, size, str(path)), passed)


def decode_member(data: bytes, origin: str = "the data") -> Member:
    """Read a member from the bytes of its file; `origin` names them in errors."""
    return _member(Container.of(io.BytesIO(data), len(data), origin), _unwatched)


def _member(container: Container, passed: Passed) -> Member:
    passed("header")
    try:
        said = _read_card(container, passed)
        _check_tensors(said, container)
        member = _with_numbers(said, container.verified(said.sha256, "its card was written with"))
        passed("tensors")
        check_varied(member.model.task, member.model.objective, member.params)
        passed("answers")
        return member
    except StoreError as error:
        raise type(error)(_shown(error)) from None
    except OstrakaError as error:  # what a card tells, what a recipe takes, how a network answers
        raise StoreError(
            f"{container.origin} cannot be used as a member: {_shown(error)}"
        ) from None


def _shown(error: Exception) -> str:
    return printable(str(error)[:SHOWN])


def _read_card(container: Container, passed: Passed) -> _Said:
    notes = container.notes
    if notes.keys() != {CARD, CARD_HASH}:
        raise ReportRefused(
            f"it is not one; its metadata hold {sorted(notes)!r:.200}, those of a member hold its "
            f"card, {CARD!r}, and the hash of that, {CARD_HASH!r}. Members are written to a run's "
            "members/"
        )
    text = notes[CARD].encode("utf-8", "surrogatepass")
    if hashlib.sha256(text).hexdigest() != notes[CARD_HASH]:
        raise DamagedFile(
            f"the card of {container.origin} does not fit its sha256: it was damaged or changed; "
            "send it again, or write it anew with its hash"
        )
    values = parse(text, f"the card of {container.origin}", DEEPEST, BRACKETS)
    fields = dict(member_card.check_fields(values))
    told = fields.get("calibration", {})
    fields["calibration"] = member_card.with_entries(told, container.entries)
    weights = {name: e for name, e in container.entries.items() if not name.startswith(OWN)}
    model_text = json.dumps({name: fields[name] for name in member_card.MODEL}, sort_keys=True)
    model = _model(model_text)
    card, made = member_card.card_of(fields), member_card.making_of(fields)
    passed("card")
    found = _outline(model_text, len(container.entries), container.values)
    passed("network")
    return _Said(card, model, made, weights, found, fields["sha256"])


@lru_cache(maxsize=16)
def _model(text: str) -> Model:
    """The model that a card describes.

    Hundreds of members have the same one, so it is found once, and they share it.
    """
    return member_card.model_of(json.loads(text))


@lru_cache(maxsize=16)
def _outline(text: str, tensors: int, values: int) -> Outline:
    """The outline of the network of the model that a card describes."""
    return outline(_model(text), tensors, values)


def _check_tensors(said: _Said, container: Container) -> None:
    """Refuse tensors that are not those of the network and of the card, by their description."""
    net, wanted = said.model.net.name, said.found.tensors
    for name in said.weights:
        if name not in wanted:
            raise ReportRefused(f"it has the tensor {name!r:.80}; its network {net} has none such")
    for name, (dtype, shape) in wanted.items():
        if name not in said.weights:
            raise ReportRefused(f"it lacks the tensor {name!r} of its network {net}")
        entry = said.weights[name]
        if (entry.dtype, entry.shape) != (dtype, shape):
            raise ReportRefused(
                f"its tensor {name!r} is {entry!s:.80}; its network {net} has {TYPES[dtype]} "
                f"{list(shape)} there"
            )
    used = {said.weights[name].name for name in wanted}
    told = member_card.entries_in(said.card.calibration)
    places = said.card.calibration.get(PLACES)
    others = [container.entries[name] for name in told - member_card.entries_in(places)]
    if sum(entry.stop - entry.start for entry in others) > SPARE:
        raise ReportRefused(
            f"its card has tensors of more than {SPARE:,} bytes, {others[0]!s:.80} among them; "
            f"only those of {PLACES} may be larger. Leave them out"
        )
    if places is not None:  # and these are no larger than the network needs, before they are read
        width = embedding_width(said.model.task, said.model.objective)
        check_places(places, len(said.model.classes), width)
    for name in container.entries.keys() - used - told:
        raise ReportRefused(f"it has the tensor {name!r:.80}, of which its card does not tell")
    if used & told:
        raise ReportRefused(f"its card tells its weights {sorted(used & told)!r:.120} as its own")


def _with_numbers(said: _Said, tensors: Mapping[str, Tensor]) -> Member:
    """The member, after a look at its numbers."""
    params = {name: tensors[entry.name] for name, entry in said.weights.items()}
    calibration = member_card.filled(said.card.calibration, tensors)
    check_numbers(params, "the weights")
    check_numbers(calibration, "calibration")
    for name in said.found.variances:
        if float(params[name].min()) < 0:
            raise ReportRefused(f"its tensor {name!r} is a variance, but has negative values")
    for name, tensor in params.items():
        if not tensor.is_floating_point() and tensor.numel() and int(tensor.min()) < 0:
            raise ReportRefused(f"its tensor {name!r} counts something, but has negative values")
    return Member(replace(said.card, calibration=calibration), said.model, params, said.made)
