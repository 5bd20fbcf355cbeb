"""Member files for tests: good ones, and the same with one thing changed and the hashes put right.

Whoever changes a file on purpose writes its hashes anew, so they must not be what keeps him out.
"""

import hashlib
import json
import struct
from collections.abc import Callable, Mapping
from typing import Any

import pytest
import torch

from ostraka.core.build import build_net
from ostraka.core.card import Card
from ostraka.core.member import Making, Member, Model
from ostraka.core.net import Recipe, params_of
from ostraka.core.samples import View
from ostraka.errors import StoreError
from ostraka.objectives.cross_entropy import CrossEntropy
from ostraka.objectives.open_voting import OpenVoting
from ostraka.store.member import decode_member, encode_member

QUANTILES = tuple(float(i) for i in range(9))
ROWS = Model(
    ("cat", "dog"), (3,), Recipe("mlp", {"hidden": [4]}), CrossEntropy(), View(kind="table")
)
IMAGES = Model(
    ("cat", "dog"), (1, 28, 28), Recipe("lenet5", {"norm": "batch"}), OpenVoting(),
    View(scale=1 / 255, mean=(0.25,), std=(0.5,)),
)  # fmt: skip
CARD = Card(
    3, 20, (12, 8), {"loss": 0.5, "validation": 0.75},
    {"doubt": -1.5, "held": 2, "claims": QUANTILES}, "north",
)  # fmt: skip
MADE = Making("fedov", "fast", "2026-11-18T04:45:52Z", {"contact": "ward 7", "runs": [1, 2]})


def made(model: Model = ROWS, card: Card = CARD, making: Making = MADE) -> Member:
    return Member(card, model, params_of(build_net(model.task, model.objective, 4)), making)


GOOD = encode_member(made())


def pieces(data: bytes = GOOD) -> tuple[dict[str, Any], dict[str, Any], bytes]:
    """The card, the rest of the header and the tensors' bytes."""
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    return json.loads(header.pop("__metadata__")["ostraka"]), header, data[8 + length :]


def joined(card: Any, header: Mapping[str, Any], body: bytes, hashed: bool = True) -> bytes:
    """A file of these pieces, its hashes put right."""
    if isinstance(card, dict) and hashed:
        card = {**card, "sha256": sha256_of(header, body)}
    text = card if isinstance(card, str) else json.dumps(card)
    return with_text(text, header, body)


def with_text(text: str, header: Mapping[str, Any], body: bytes) -> bytes:
    """A file with this text as its card."""
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return raw({"__metadata__": {"ostraka": text, "sha256": digest}, **header}, body)


def raw(header: Any, body: bytes = b"") -> bytes:
    """A safetensors file with this header: a value, or bytes as they are."""
    head = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(head)) + head + body


def sha256_of(header: Mapping[str, Any], body: bytes) -> str:
    digest = hashlib.sha256()
    for name, said in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
        start, stop = said["data_offsets"]
        digest.update(name.encode("utf-8", "surrogatepass") + b"\0" + body[start:stop])
    return digest.hexdigest()


def changed(change: Callable[[dict[str, Any]], Any], data: bytes = GOOD) -> bytes:
    """A good file after `change` of its card."""
    card, header, body = pieces(data)
    change(card)
    return joined(card, header, body)


def with_tensors(change: Callable[[dict[str, torch.Tensor]], Any], model: Model = ROWS) -> bytes:
    """A good file after `change` of its weights."""
    member = made(model)
    change(member.params)
    return encode_member(member)


def refused(data: bytes, words: str) -> None:
    """Hold the reader to an error with these words, that names the file and can be shown."""
    with pytest.raises(StoreError, match=words) as caught:
        decode_member(data, "st-anna.safetensors")
    said = str(caught.value)
    assert "st-anna.safetensors" in said
    assert len(said) < 800
    assert said.isprintable()
