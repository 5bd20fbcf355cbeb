"""What must hold for any bytes that the reader of member files is given.

A member or a StoreError comes out; a member that comes out is written and read again. A hash in the
file would stop nearly all changes at once, so each input is read as it is and with its hashes put
right.
"""

import json
import struct
from dataclasses import replace
from pathlib import Path

import torch

from ostraka.errors import StoreError
from ostraka.store.member import decode_member, encode_member
from tests.store.member_files import CARD, GOOD, IMAGES, made, sha256_of, with_text

OLDER = Path(__file__).parent / "older"


def seeds() -> list[bytes]:
    """Files to begin with, small ones first."""
    files = [GOOD, (OLDER / "every-type.safetensors").read_bytes()]
    own = {"x": torch.ones(2, dtype=torch.float16), "y": torch.ones(0, 3)}
    told = encode_member(made(card=replace(CARD, calibration=own)))
    return [*files, told, encode_member(made(IMAGES))]


def look_at(data: bytes) -> None:
    """Read `data` as it is and with hashes that fit."""
    for one in {data, repaired(data)}:
        try:
            member = decode_member(one)
        except StoreError:
            continue
        again = encode_member(member)
        if encode_member(decode_member(again)) != again:
            raise AssertionError("a member is another after it was written and read")


def repaired(data: bytes) -> bytes:
    """The same with the hashes of its card and its tensors put right, where it has such."""
    try:
        (length,) = struct.unpack("<Q", data[:8])
        header, body = json.loads(data[8 : 8 + length]), data[8 + length :]
        text = header.pop("__metadata__")["ostraka"]
        card = json.loads(text)
        if "sha256" in card:
            text = text.replace(card["sha256"], sha256_of(header, body))
        return with_text(text, header, body)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, struct.error):
        return data
