"""How safetensors lays tensors into a file: the header's entries, and the bytes behind them.

Written out here because a header alone tells how long a file will be, and because the bytes can
be hashed and joined where the tensors lie, without another copy. What comes out is what the
library writes, byte for byte; a test compares them.
"""

import json
import struct
from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import Tensor

METADATA = "__metadata__"
"""What the header calls the texts that are no tensor."""

TYPES = {
    torch.uint64: "U64",
    torch.int64: "I64",
    torch.float64: "F64",
    torch.complex64: "C64",
    torch.float32: "F32",
    torch.uint32: "U32",
    torch.int32: "I32",
    torch.bfloat16: "BF16",
    torch.float16: "F16",
    torch.uint16: "U16",
    torch.int16: "I16",
    torch.float8_e5m2fnuz: "F8_E5M2FNUZ",
    torch.float8_e4m3fnuz: "F8_E4M3FNUZ",
    torch.float8_e4m3fn: "F8_E4M3",
    torch.float8_e5m2: "F8_E5M2",
    torch.int8: "I8",
    torch.uint8: "U8",
    torch.bool: "BOOL",
}
"""Names of the types, in the order in which their tensors lie in a file."""

_ORDER = {dtype: place for place, dtype in enumerate(TYPES)}


def header_of(tensors: Mapping[str, Tensor]) -> dict[str, Any]:
    """The entries of a header in the order of the file: by type, then by name."""
    header: dict[str, Any] = {}
    end = 0
    for name in sorted(tensors, key=lambda name: (_ORDER[tensors[name].dtype], name.encode())):
        tensor = tensors[name]
        start, end = end, end + tensor.nbytes
        header[name] = {
            "dtype": TYPES[tensor.dtype],
            "shape": list(tensor.shape),
            "data_offsets": [start, end],
        }
    return header


def bytes_of(tensor: Tensor) -> memoryview:
    """The values of a tensor as they lie in a file; on the CPU they are not copied."""
    flat = tensor.detach().cpu().resolve_conj().resolve_neg().contiguous().reshape(-1)
    return flat.view(torch.uint8).numpy().data


def text_of(header: Mapping[str, Any], notes: Mapping[str, str]) -> bytes:
    """The header with the notes, before it is filled up with spaces."""
    return json.dumps({METADATA: dict(notes), **header}).encode()


def head_of(header: Mapping[str, Any], notes: Mapping[str, str]) -> bytes:
    """What stands before the tensors: the length of the header, and the header with the notes."""
    head = text_of(header, notes)
    head += b" " * (-len(head) % 8)  # safetensors aligns the tensors this way
    return struct.pack("<Q", len(head)) + head


def file_of(
    header: Mapping[str, Any], notes: Mapping[str, str], body: Iterable[memoryview]
) -> bytes:
    """The bytes of a whole file."""
    return b"".join([head_of(header, notes), *body])
