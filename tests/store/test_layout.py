"""Our layout of tensors in a file against the library's own."""

import json
import struct

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import save as save_tensors
from torch import Tensor

from ostraka.core.card import Card
from ostraka.store import codec
from ostraka.store.layout import TYPES, bytes_of, header_of


def as_the_library(tensors: dict[str, Tensor]) -> tuple[dict[str, object], bytes]:
    """Header and values as safetensors writes them."""
    data = save_tensors({name: tensor.contiguous().clone() for name, tensor in tensors.items()})
    (length,) = struct.unpack("<Q", data[:8])
    return json.loads(data[8 : 8 + length]), data[8 + length :]


@given(
    st.dictionaries(
        st.text(max_size=5),
        st.tuples(st.sampled_from(list(TYPES)), st.lists(st.integers(0, 4), max_size=3)),
        max_size=8,
    ),
    st.integers(0, 10**6),
)
@settings(max_examples=150, deadline=None)
def test_headers_and_bytes_are_the_librarys(
    kinds: dict[str, tuple[torch.dtype, list[int]]], seed: int
) -> None:
    rng = torch.Generator().manual_seed(seed)
    tensors = {}
    for name, (dtype, shape) in kinds.items():
        count = torch.zeros(shape, dtype=dtype).nbytes
        raw = torch.randint(0, 2, (count,), dtype=torch.uint8, generator=rng)
        tensors[name] = raw.view(dtype).reshape(shape) if count else torch.zeros(shape, dtype=dtype)
    header, body = as_the_library(tensors)
    ours = header_of(tensors)
    assert list(ours.items()) == list(header.items()), "in the same order, too"
    assert b"".join(bytes_of(tensors[name]) for name in ours) == body


@pytest.mark.parametrize(
    "tensor",
    [
        torch.arange(12.0).reshape(3, 4).T,
        torch.arange(10)[2:7:2],
        torch.ones(3, requires_grad=True),
        torch.tensor([1 + 2j, 3 - 4j], dtype=torch.complex64).conj(),
    ],
    ids=["transposed", "strided", "with gradient", "conjugate"],
)
def test_views_are_stored_as_what_they_show(tensor: Tensor) -> None:
    assert bytes_of(tensor) == as_the_library({"x": tensor.detach().resolve_conj()})[1]


@given(
    st.recursive(
        st.one_of(
            st.none(), st.integers(), st.floats(), st.text(max_size=5),
            st.integers(0, 30).map(torch.zeros), st.just(Card(1, 3, (1, 2), {"loss": 0.5})),
        ),
        lambda inner: st.one_of(
            st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=3), inner, max_size=4)
        ),
        max_leaves=12,
    )
)  # fmt: skip
@settings(max_examples=150, deadline=None)
def test_the_size_is_known_without_the_bytes(value: object) -> None:
    assert codec.encoded_size(value) == len(codec.encode(value))
