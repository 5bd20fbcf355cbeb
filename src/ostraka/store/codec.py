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
import math
import os
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any, final

import torch
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from torch import Tensor

from ostraka.core.wire import WIRE_TYPES, wire_name
from ostraka.errors import DamagedFile, StoreError, writing
from ostraka.store.layout import TYPES, bytes_of, header_of

KEY, SEAL, DIGEST = "ostraka", "seal", "digest"
"""Names in the file's metadata: the JSON tree, what the file is, and the hash of all that."""

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


def encode(value: Any, seal: Seal | None = None, bare: str = "") -> bytes:
    """The bytes of `value`; equal values give equal bytes.

    Tensors are stored under the path that leads to them; those of the dict at the key `bare`, if
    one is given, under their own names alone.
    """
    tensors = _Named(f"/{bare}/" if bare else "")
    header, notes = _described(value, seal, tensors)
    body = [bytes_of(tensors.by_name[name]) for name in header]
    head = _head(header, notes, _digest(header, notes, body))
    return b"".join([struct.pack("<Q", len(head)), head, *body])


def encoded_size(value: Any) -> int:
    """The number of bytes that `encode(value)` has, without making them."""
    tensors = _Named("")
    header, notes = _described(value, None, tensors)
    return 8 + len(_head(header, notes, "0" * 2 * DIGEST_BYTES)) + size_of(tensors.by_name)


def _described(
    value: Any, seal: Seal | None, tensors: "_Named"
) -> tuple[dict[str, Any], dict[str, str]]:
    """The header of a value's file and what its metadata say, but for the digest."""
    tree = json.dumps(_tree(value, "", tensors), allow_nan=False, separators=(",", ":"))
    notes = {KEY: tree} | ({SEAL: json.dumps(dict(seal), sort_keys=True)} if seal else {})
    return header_of(tensors.by_name), notes


def _head(header: Mapping[str, Any], notes: Mapping[str, str], digest: str) -> bytes:
    head = json.dumps({"__metadata__": {**notes, DIGEST: digest}, **header}).encode()
    return head + b" " * (-len(head) % 8)  # safetensors aligns the tensors this way


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
    tensors: Mapping[str, Tensor]
    origin: str

    @classmethod
    def of(cls, data: bytes, origin: str = "the data", seal: Seal | None = None) -> "Opened":
        """`data`, which must be whole and what `seal` says; `origin` names it in errors."""
        tree = check(data, origin, seal)
        try:
            return cls(tree, load_tensors(data), origin)
        except _DAMAGE as error:
            raise _damaged(origin, error) from None

    def value(self) -> Any:
        """The value, with the tensors that were read: for whoever opens it alone."""
        try:
            return _value(self.tree, self.tensors, self.origin)
        except _DAMAGE as error:
            raise _damaged(self.origin, error) from None

    def copy(self) -> Any:
        """The value, with copies of the tensors."""
        tensors = {name: tensor.clone() for name, tensor in self.tensors.items()}
        return replace(self, tensors=tensors).value()


def check(data: bytes, origin: str, seal: Seal | None = None) -> Any:
    """Refuse what is damaged or not what `seal` says, without making a value of it.

    Returns its JSON tree.
    """
    # these two bytes can also be the length of our header
    if data[:2] in _PICKLES and data[8:9] != b"{":
        raise StoreError(
            f"{origin} is a pickle or an archive of pickles, as torch.save writes them; such files "
            "can run code when they are opened and are never read. Store tensors as safetensors"
        )
    try:
        header, body = _split(data)
        notes = dict(header.pop("__metadata__"))
        given, tree = notes.pop(DIGEST), json.loads(notes[KEY])
        if given != _digest(header, notes, [body]):
            raise ValueError("its content does not fit the digest in it")
        _check_seal(json.loads(notes.get(SEAL, "{}")), seal, origin)
    except _DAMAGE as error:
        raise _damaged(origin, error) from None
    return tree


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


def save(path: Path, value: Any, seal: Seal | None = None, durable: bool = True) -> int:
    """Write `value` to `path` so that a reader sees either the old file or the
    whole new one; returns its size. See `write_atomically` for `durable`.
    """
    data = encode(value, seal)
    write_atomically(path, data, durable)
    return len(data)


def load(path: Path, seal: Seal | None = None) -> Any:
    """The value in the file `path`, which must be what `seal` says."""
    return decode(read_bytes(path), str(path), seal)


def read_bytes(path: Path) -> bytes:
    """The content of a file."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror}") from None


def write_atomically(path: Path, data: bytes, durable: bool = True) -> None:
    """Replace `path` by `data` in one step; an error in between leaves the old file whole.

    A `durable` file survives a power cut. One that is not may then be empty or cut short, which
    its digest tells; it is for what can be made again, and costs a small part of the time.
    """
    with writing(path):
        name = _beside(path)
        try:
            with open(name, "xb") as file:
                file.write(data)
                file.flush()
                if durable:
                    os.fsync(file.fileno())
            os.replace(name, path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise


def _beside(path: Path) -> str:
    """A name for a moment in the folder of `path`, which is made if it is not there."""
    if not path.parent.is_dir():
        path.parent.mkdir(parents=True, exist_ok=True)
    return str(path.with_name(f".{path.name}.{os.getpid()}-{os.urandom(4).hex()}"))


def write_json(path: Path, value: Any) -> None:
    """Write plain values as readable JSON, atomically."""
    write_atomically(path, (json.dumps(value, indent=2, allow_nan=False) + "\n").encode())


def read_json(path: Path) -> Any:
    """The plain values in a JSON file."""
    try:
        return json.loads(path.read_bytes())
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise StoreError(f"{path} is not valid JSON: {error}") from None


def write_signed(path: Path, value: Mapping[str, Any]) -> dict[str, Any]:
    """Write plain values as JSON with a digest of them; returns what was written."""
    signed = {**value, DIGEST: _json_digest(value)}
    write_json(path, signed)
    return signed


def read_signed(path: Path) -> dict[str, Any]:
    """What `write_signed` wrote; anything else, or what was changed since, is refused."""
    value = read_json(path)
    if not isinstance(value, dict) or DIGEST not in value:
        raise StoreError(f"{path} is not a file that Ostraka wrote; move it away")
    if value[DIGEST] != _json_digest({key: item for key, item in value.items() if key != DIGEST}):
        raise StoreError(
            f"{path} was changed after it was written: "
            "its content does not fit its digest; move it away"
        )
    return value


def _json_digest(value: Mapping[str, Any]) -> str:
    return blake2b(
        json.dumps(value, sort_keys=True, allow_nan=False).encode(), digest_size=16
    ).hexdigest()


class _Named:
    """The tensors of a value, by the names under which they are stored."""

    def __init__(self, bare: str) -> None:
        self.bare = bare
        self.by_name: dict[str, Tensor] = {}

    def put(self, path: str, tensor: Tensor) -> str:
        """Name a tensor; returns the name."""
        name = path.removeprefix(self.bare) or "value"
        # a key with a slash in it can lead to the path of another value
        while name in self.by_name:
            name += "'"
        self.by_name[name] = tensor
        return name


def _tree(value: Any, path: str, tensors: "_Named") -> Any:
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"float": str(value)}
    if isinstance(value, Tensor):
        if value.layout != torch.strided or value.is_quantized or value.dtype not in TYPES:
            raise StoreError(
                f"{path or 'the value'} is a tensor of {value.dtype} and "
                f"{value.layout}, which cannot be stored"
            )
        return {"tensor": tensors.put(path, value)}
    if isinstance(value, Mapping):
        if not all(isinstance(key, str) for key in value):
            raise StoreError(
                f"the keys of {path or 'the value'} are {list(value)[:3]}...; "
                "only text keys can be stored"
            )
        return {"dict": {key: _tree(item, f"{path}/{key}", tensors) for key, item in value.items()}}
    if isinstance(value, list | tuple):
        kind = "list" if isinstance(value, list) else "tuple"
        return {kind: [_tree(item, f"{path}/{i}", tensors) for i, item in enumerate(value)]}
    called = wire_name(type(value))
    if called is not None:
        items = {
            f.name: _tree(getattr(value, f.name), f"{path}/{f.name}", tensors)
            for f in fields(value)
            if f.init
        }
        return {"is": called, "fields": items}
    raise StoreError(
        f"{path or 'the value'} is a {type(value).__name__}, which cannot be stored; use tensors, "
        "plain values, lists, dicts, or a frozen dataclass decorated with "
        "ostraka.core.wire.wire(name)"
    )


def _value(tree: Any, tensors: Mapping[str, Tensor], origin: str) -> Any:
    if not isinstance(tree, dict):
        return tree
    if "float" in tree:
        return float(tree["float"])
    if "tensor" in tree:
        if tree["tensor"] not in tensors:
            raise StoreError(f"{origin} lacks the tensor {tree['tensor']!r}; it is damaged")
        return tensors[tree["tensor"]]
    if "dict" in tree:
        return {key: _value(item, tensors, origin) for key, item in tree["dict"].items()}
    if "list" in tree:
        return [_value(item, tensors, origin) for item in tree["list"]]
    if "tuple" in tree:
        return tuple(_value(item, tensors, origin) for item in tree["tuple"])
    return _dataclass(tree, tensors, origin)


def _dataclass(tree: dict[str, Any], tensors: Mapping[str, Tensor], origin: str) -> Any:
    known = WIRE_TYPES.get(str(tree.get("is")))
    if known is None:
        raise StoreError(
            f"{origin} holds a {tree.get('is')!r}, which this version does not know: a newer "
            "version or a package that is not installed wrote it"
        )
    try:
        stored: Mapping[str, Any] = {
            key: _value(item, tensors, origin) for key, item in tree["fields"].items()
        }
        return known.cls(**(stored if known.upgrade is None else known.upgrade(stored)))
    except (TypeError, KeyError) as error:
        raise StoreError(f"{origin} holds a {tree['is']} of another version: {error}") from None


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
    "read_json",
    "read_signed",
    "save",
    "size_of",
    "write_atomically",
    "write_json",
    "write_signed",
]
