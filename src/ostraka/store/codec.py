"""Values to bytes and back: tensors as safetensors, everything else as JSON in the same file.

A value is made of tensors, text, numbers, truth values, None, lists, tuples, dicts with text
keys, and frozen dataclasses registered with `core.wire`. Nothing else is written, and
reading can create nothing else.

Every file holds a digest of its content, so damage is noticed; one that belongs to a run
holds a seal as well: what it is, of which run, round and party. Whoever reads it says
what it should be, so a file that was copied from elsewhere is noticed too. Neither keeps
out somebody who writes both anew.
"""

import json
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import Any, final

import torch
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from torch import Tensor

from ostraka.errors import DamagedFile, StoreError
from ostraka.store.container import opened
from ostraka.store.files import write_atomically
from ostraka.store.layout import METADATA, bytes_of, file_of, header_of, text_of
from ostraka.store.tree import Named, tree_of, value_of

KEY, SEAL, FILES, DIGEST = "ostraka", "seal", "files", "digest"
"""Names in the file's metadata: the JSON tree, what the file is, which files beside it hold a part
of its tensors, and the hash of all that.
"""

DIGEST_BYTES = 16

_PICKLES = (b"PK", b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05")
"""How an archive and a pickle begin."""

Seal = Mapping[str, str | int]
"""What a stored value is: `what`, `run`, `round`, `party`."""

_DAMAGE = (
    SafetensorError,
    ValueError,
    KeyError,
    TypeError,
    AttributeError,
    RecursionError,
    struct.error,
)
"""What reading a file of another kind, or a damaged one, may raise."""


@final
@dataclass(frozen=True)
class Beside:
    """Files that lie beside one that is written: their tensors are named there, not repeated."""

    digests: Mapping[str, str] = field(default_factory=dict)
    """What its tensors hash to (`container.TensorHash`), of every file, by its path from the
    folder of the one that is written."""
    names: Mapping[int, str] = field(default_factory=dict)
    """Where a tensor lies, by its `id`: the path of the file and its name there."""

    @classmethod
    def of(cls, files: Iterable[tuple[str, str, Mapping[str, Tensor]]]) -> "Beside":
        """Files by path and sha256, with the tensors that they hold under their own names."""
        digests, names = dict[str, str](), dict[int, str]()
        for path, sha256, tensors in files:
            digests[path] = sha256
            names |= {id(tensor): f"{path}:{name}" for name, tensor in tensors.items()}
        return cls(digests, names)


def encode(
    value: Any, seal: Seal | None = None, bare: str = "", beside: Beside | None = None
) -> bytes:
    """The bytes of `value`; equal values give equal bytes.

    Tensors are stored under the path that leads to them; those of the dict at the key `bare`, if
    one is given, under their own names alone; those that lie in files `beside` are not stored.
    """
    beside = beside or Beside()
    tensors = Named(f"/{bare}/" if bare else "", beside.names)
    header, notes = _described(value, seal, tensors)
    if beside.digests:
        notes[FILES] = json.dumps(dict(beside.digests), sort_keys=True)
    body = [bytes_of(tensors.by_name[name]) for name in header]
    return file_of(header, {**notes, DIGEST: _digest(header, notes, body)}, body)


def encoded_size(value: Any) -> int:
    """The number of bytes that `encode(value)` has, without making them."""
    tensors = Named()
    tree = json.dumps(_tree_text(value, tensors))
    entries = tuple([(name, t.dtype, t.shape) for name, t in tensors.by_name.items()])
    head = _empty_head_size(entries) - len('""') + len(tree)
    return 8 + head + -head % 8 + size_of(tensors.by_name)


@lru_cache(maxsize=64)
def _empty_head_size(entries: tuple[tuple[str, torch.dtype, torch.Size], ...]) -> int:
    """The length of a head with these tensors and nothing in its tree, before it is filled up."""
    meta = {name: torch.empty(shape, dtype=dtype, device="meta") for name, dtype, shape in entries}
    return len(text_of(header_of(meta), {KEY: "", DIGEST: "0" * 2 * DIGEST_BYTES}))


def _described(
    value: Any, seal: Seal | None, tensors: Named
) -> tuple[dict[str, Any], dict[str, str]]:
    """The header of a value's file and what its metadata say, but for the digest."""
    tree = _tree_text(value, tensors)
    notes = {KEY: tree} | ({SEAL: json.dumps(dict(seal), sort_keys=True)} if seal else {})
    return header_of(tensors.by_name), notes


def _tree_text(value: Any, tensors: Named) -> str:
    return json.dumps(tree_of(value, "", tensors), allow_nan=False, separators=(",", ":"))


def decode(data: bytes, origin: str = "the data", seal: Seal | None = None) -> Any:
    """The value behind `data`, which must be what `seal` says; `origin` names it in errors."""
    return Opened.of(data, origin, seal).value()


@final
@dataclass(frozen=True)
class Opened:
    """Bytes that were looked through once, to make a value of them as often as it is wanted.

    A copy has tensors of its own: whoever changes one changes nobody else's.
    """

    tree: Any
    tensors: Mapping[str, Any]
    """By name; or whatever shall stand in their place, for who only looks."""
    origin: str
    size: int
    """About how many bytes it takes."""

    @classmethod
    def of_value(cls, value: Any, origin: str = "the data") -> "Opened":
        """What opening `encode(value)` would give, for a value that stays in this process.

        Its tensors are copies: whoever has the value may go on with it.
        """
        named = Named()
        text = _tree_text(value, named)
        tensors = {name: _stored_alike(tensor) for name, tensor in named.by_name.items()}
        return cls(json.loads(text), tensors, origin, len(text) + size_of(tensors))

    @classmethod
    def of(
        cls,
        data: bytes,
        origin: str = "the data",
        seal: Seal | None = None,
        folder: Path | None = None,
    ) -> "Opened":
        """`data`, which must be whole and what `seal` says; `origin` names it in errors.

        Tensors that lie in files beside it are read from there, if `folder` says where that is.
        """
        notes = check(data, origin, seal)
        try:
            tensors, tree = load_tensors(data), json.loads(notes[KEY])
            files: dict[str, str] = json.loads(notes.get(FILES, "{}"))
        except _DAMAGE as error:
            raise _damaged(origin, error) from None
        if folder is not None:
            for path, digest in files.items():
                tensors |= _tensors_beside(folder, path, digest, origin)
        return cls(tree, tensors, origin, len(data))

    def value(self) -> Any:
        """The value, with the tensors that were read: for whoever opens it alone."""
        try:
            return value_of(self.tree, self.tensors, self.origin)
        except _DAMAGE as error:
            raise _damaged(self.origin, error) from None

    def copy(self) -> Any:
        """The value, with copies of the tensors."""
        tensors = {name: tensor.clone() for name, tensor in self.tensors.items()}
        return replace(self, tensors=tensors).value()


def _stored_alike(tensor: Tensor) -> Tensor:
    """A copy as a file would give it back: on the CPU, one value behind the other."""
    plain = tensor.detach().cpu().resolve_conj().resolve_neg()
    return plain.clone(memory_format=torch.contiguous_format)


def _tensors_beside(folder: Path, path: str, digest: str, origin: str) -> dict[str, Tensor]:
    """The tensors of a file that another one names, under the names that it has for them."""
    if Path(path).is_absolute() or ".." in Path(path).parts:
        raise StoreError(f"{origin} names {path}, which is not in its folder; it is not ours")
    with opened(folder / path) as found:
        tensors = found.verified(digest, f"{origin} was written with")
    return {f"{path}:{name}": tensor for name, tensor in tensors.items()}


def check(data: bytes, origin: str, seal: Seal | None = None) -> Mapping[str, str]:
    """Refuse what is damaged or not what `seal` says, without making a value of it.

    Returns what its metadata say.
    """
    # these two bytes can also be the length of our header
    if data[:2] in _PICKLES and data[8:9] != b"{":
        raise StoreError(
            f"{origin} is a pickle or an archive of pickles, as torch.save writes them; such files "
            "can run code when they are opened and are never read. Store tensors as safetensors"
        )
    try:
        header, body = _split(data)
        notes = dict(header.pop(METADATA))
        given = notes.pop(DIGEST)
        if KEY not in notes or given != _digest(header, notes, [body]):
            raise ValueError("its content does not fit the digest in it")
        _check_seal(json.loads(notes.get(SEAL, "{}")), seal, origin)
    except _DAMAGE as error:
        raise _damaged(origin, error) from None
    return {**notes, DIGEST: given}


def _damaged(origin: str, error: Exception) -> DamagedFile:
    return DamagedFile(
        f"{origin} is not a file that Ostraka wrote, or it is damaged ({error}); "
        "remove it or make it anew"
    )


def _split(data: bytes) -> tuple[dict[str, Any], memoryview]:
    """The header of a safetensors file, and its tensors' bytes."""
    (length,) = struct.unpack("<Q", data[:8])
    if length > len(data) - 8:
        raise ValueError("it has no header of safetensors")
    header: dict[str, Any] = json.loads(data[8 : 8 + length].decode("utf-8"))
    return header, memoryview(data)[8 + length :]


def _digest(header: Mapping[str, Any], notes: Mapping[str, str], body: Iterable[memoryview]) -> str:
    said = json.dumps([header, notes], sort_keys=True).encode()
    digest = blake2b(said, digest_size=DIGEST_BYTES)
    for part in body:
        digest.update(part)
    return digest.hexdigest()


def _check_seal(found: Seal, wanted: Seal | None, origin: str) -> None:
    if wanted is not None and dict(found) != dict(wanted):
        raise StoreError(
            f"{origin} should be {_said(wanted)}, but it is {_said(found)}; it was copied or moved "
            "there. Remove it, and it will be made anew"
        )


def _said(seal: Seal) -> str:
    rest = ", ".join(
        f"{key} {seal[key]}" for key in ("run", "round", "party", "name") if key in seal
    )
    return f"the {seal.get('what', 'value')} of {rest}" if rest else "no part of a run"


def save(
    path: Path,
    value: Any,
    seal: Seal | None = None,
    durable: bool = True,
    beside: Beside | None = None,
) -> int:
    """Write `value` to `path`, a private file, so that a reader sees either the old one or the
    whole new one; returns its size. See `write_atomically` for `durable`.
    """
    data = encode(value, seal, beside=beside)
    write_atomically(path, data, durable, private=True)
    return len(data)


def load(path: Path, seal: Seal | None = None) -> Any:
    """The value in the file `path`, which must be what `seal` says."""
    return Opened.of(read_bytes(path), str(path), seal, path.parent).value()


def read_bytes(path: Path) -> bytes:
    """The content of a file."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror}") from None


def size_of(tensors: Mapping[str, Tensor]) -> int:
    """Bytes of the tensors alone."""
    return sum(t.numel() * t.element_size() for t in tensors.values())


__all__ = [
    "Seal",
    "check",
    "decode",
    "encode",
    "load",
    "read_bytes",
    "save",
    "size_of",
    "write_atomically",
]
