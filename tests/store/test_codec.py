"""Values to bytes and back: safetensors and JSON, and nothing else."""

import ast
import inspect
import json
import math
import os
import pickle
import struct
from collections import namedtuple
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import save as save_tensors

import ostraka.store
from ostraka.core.card import Card
from ostraka.core.method import Report
from ostraka.core.wire import WIRE_TYPES, wire
from ostraka.errors import StoreError
from ostraka.store import codec, jsonfile
from ostraka.testing import difference


@wire("tests.leaf/1")
@dataclass(frozen=True)
class Leaf:
    """A dataclass that may travel."""

    value: Any = None
    more: dict[str, Any] = field(default_factory=dict)


DTYPES = (
    torch.float32,
    torch.float64,
    torch.float16,
    torch.bfloat16,
    torch.int64,
    torch.int32,
    torch.uint8,
    torch.bool,
)


@st.composite
def tensors(draw: st.DrawFn) -> torch.Tensor:
    """Tensors of 0 to 3 dimensions, empty ones too, of every usual type,
    some of them views with strides.
    """
    shape = draw(st.lists(st.integers(0, 3), max_size=3))
    dtype = draw(st.sampled_from(DTYPES))
    rng = torch.Generator().manual_seed(draw(st.integers(0, 9)))
    tensor = (torch.randn(shape, generator=rng) * 3).to(dtype)
    if dtype.is_floating_point and tensor.numel():
        tensor.view(-1)[0] = draw(st.sampled_from([0.0, -0.0, math.inf, -math.inf, math.nan]))
    return tensor.t() if tensor.dim() == 2 and draw(st.booleans()) else tensor


SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
VALUES = st.recursive(
    SCALARS | tensors(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(
            st.text(max_size=3) | st.sampled_from(["a", "a/b", "b", "tensor", "float", "is"]),
            inner,
            max_size=4,
        )
        | st.builds(Leaf, inner, st.dictionaries(st.sampled_from("ab/"), inner, max_size=2))
    ),
    max_leaves=12,
)


@settings(max_examples=80, deadline=None)
@given(VALUES)
def test_every_value_comes_back(value: Any) -> None:
    """Types, structure and bits; equal values give equal bytes."""
    data = codec.encode(value)
    again = codec.decode(data)
    assert difference(value, again, "value") is None
    assert type(again) is type(value)
    assert codec.encode(again) == data


def test_the_sign_of_zero_and_odd_floats_survive() -> None:
    again = codec.decode(codec.encode([-0.0, math.inf, -math.inf, math.nan, 0.1, 5e-324]))
    assert math.copysign(1, again[0]) == -1
    assert again[1:3] == [math.inf, -math.inf]
    assert math.isnan(again[3])
    assert again[4:] == [0.1, 5e-324]


def test_keys_with_slashes_do_not_mix_tensors_up() -> None:
    """Both tensors lie at the path /a/b; each must come back as itself."""
    value = {"a/b": torch.zeros(1), "a": {"b": torch.ones(1)}, "a/b'": torch.full((1,), 2.0)}
    again = codec.decode(codec.encode(value))
    assert [float(again["a/b"]), float(again["a"]["b"]), float(again["a/b'"])] == [0.0, 1.0, 2.0]


def test_tensors_that_share_memory() -> None:
    x = torch.arange(4.0)
    again = codec.decode(codec.encode({"x": x, "y": x, "part": x[1:3]}))
    assert again["part"].tolist() == [1.0, 2.0]
    again["x"].zero_()
    assert again["y"].tolist() == [0.0, 1.0, 2.0, 3.0]


def test_a_tensor_with_gradient() -> None:
    again = codec.decode(codec.encode(torch.ones(2, requires_grad=True)))
    assert not again.requires_grad


def test_a_report_travels() -> None:
    report = Report(
        {"w": torch.ones(2)}, 3.0, Card(1, 3, (1, 2), {"loss": math.nan}), {"m": torch.zeros(1)}
    )
    assert difference(report, codec.decode(codec.encode(report)), "report") is None


@dataclass(frozen=True)
class Stranger:
    value: int = 1


Named = namedtuple("Named", ("x",))


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({1, 2}, "is a set"),
        (b"bytes", "is a bytes"),
        (Path("x"), "which cannot be stored"),
        (object(), "is a object"),
        (Stranger(), "is a Stranger"),
        ({"a": [1, {"b": 1j}]}, "/a/1/b is a complex"),
        ({1: "x"}, "only text keys"),
        (lambda: 1, "is a function"),
        (torch.eye(2).to_sparse(), "sparse_coo"),
        (torch.zeros(1, dtype=torch.complex128), "complex128"),
    ],
)
def test_anything_else_is_refused_with_its_place(value: Any, words: str) -> None:
    with pytest.raises(StoreError, match=words):
        codec.encode(value)


def test_a_class_that_merely_has_the_name_of_a_wire_type_is_refused() -> None:
    impostor = dataclass(frozen=True)(type("Leaf", (), {"__annotations__": {"value": int}}))
    with pytest.raises(StoreError, match="is a Leaf"):
        codec.encode(impostor(value=1))


GOOD = codec.encode({"w": torch.arange(100.0), "n": [1, 2]})


def foreign(tree: Any) -> bytes:
    return save_tensors({"x": torch.zeros(1)}, {codec.KEY: json.dumps(tree)})


DAMAGED = {
    "empty": b"",
    "text": b"hello, this is not a file of ours",
    "pickle": b"\x80\x04\x95\x10\x00\x00\x00\x00\x00\x00\x00\x8c\x05posix\x94.",
    "a length beyond the end": struct.pack("<Q", 2**60) + GOOD[8:],
    "another's safetensors": save_tensors({"w": torch.zeros(1)}),
    "another's metadata": save_tensors({"w": torch.zeros(1)}, {"format": "pt"}),
    "not JSON": save_tensors({}, {codec.KEY: "{"}),
    "deep": save_tensors({}, {codec.KEY: "[" * 100_000 + "]" * 100_000}),
    "no such tensor": foreign({"tensor": "y"}),
    "no such type": foreign({"is": "os.system", "fields": {}}),
    "another version": foreign({"is": "Card", "fields": {"nonsense": 1}}),
    "no fields": foreign({"is": "Card"}),
    "odd fields": foreign({"is": "Card", "fields": 5}),
    "odd dict": foreign({"dict": 5}),
    "odd list": foreign({"list": 5}),
    "odd float": foreign({"float": "abc"}),
    "odd tensor": foreign({"tensor": ["x"]}),
    "nothing": foreign({}),
}


@pytest.mark.parametrize("data", DAMAGED.values(), ids=DAMAGED)
def test_damaged_and_foreign_files_are_named(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "odd.safetensors"
    path.write_bytes(data)
    with pytest.raises(StoreError, match=r"odd\.safetensors"):
        codec.load(path)


@pytest.mark.parametrize("length", [1, 7, 8, 50, len(GOOD) - 1])
def test_truncated_files(length: int) -> None:
    with pytest.raises(StoreError, match="damaged"):
        codec.decode(GOOD[:length])


@settings(max_examples=100, deadline=None)
@given(st.integers(0, len(GOOD) - 1), st.integers(0, 255))
def test_a_flipped_byte_gives_a_value_or_a_store_error(place: int, byte: int) -> None:
    """Nothing but StoreError may come out of a damaged file, and damage is noticed:
    only blanks do not matter.
    """
    data = bytearray(GOOD)
    changed = data[place] != byte
    data[place] = byte
    try:
        codec.decode(bytes(data))
    except StoreError:
        assert changed
    else:
        assert not changed or chr(GOOD[place]).isspace() or chr(byte).isspace()


SEAL = {"what": "report", "run": "ab12", "round": 3, "party": 7}


def test_a_file_says_what_it_is(tmp_path: Path) -> None:
    path = tmp_path / "value.safetensors"
    codec.save(path, [1, 2], SEAL)
    assert codec.load(path, SEAL) == codec.load(path) == [1, 2]


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (
            {"party": 8},
            (
                "should be the report of run ab12, round 3, party 8, "
                "but it is the report of run ab12, round 3, "
            ),
        ),
        ({"round": 2}, "round 2, party 7, but it is the report of run ab12, round 3"),
        ({"run": "cd34"}, "of run cd34"),
        ({"what": "memory"}, "should be the memory of"),
    ],
)
def test_a_file_that_belongs_elsewhere_is_refused(
    other: dict[str, Any], words: str, tmp_path: Path
) -> None:
    path = tmp_path / "value.safetensors"
    codec.save(path, [1, 2], SEAL)
    with pytest.raises(StoreError, match=words):
        codec.load(path, {**SEAL, **other})


def test_a_file_without_a_seal_is_no_part_of_a_run(tmp_path: Path) -> None:
    path = tmp_path / "value.safetensors"
    codec.save(path, [1, 2])
    with pytest.raises(StoreError, match="but it is no part of a run"):
        codec.load(path, SEAL)


def test_a_changed_seal_is_damage() -> None:
    data = codec.encode([1, 2], SEAL)
    with pytest.raises(StoreError, match="does not fit the digest"):
        codec.decode(data.replace(b"ab12", b"ab13"))


def test_a_header_whose_length_looks_like_a_pickle_is_read() -> None:
    """Lengths of 0x..80 0x04 begin a file as a pickle of protocol 4 begins."""
    padded = [codec.encode("x" * n) for n in range(600, 1400, 8)]
    assert any(data[:2] == b"\x80\x04" for data in padded)
    assert [len(codec.decode(data)) for data in padded] == list(range(600, 1400, 8))


@pytest.mark.parametrize(
    "data", [pickle.dumps({"a": 1}), pickle.dumps([1], protocol=2), b"PK\x03\x04" + b"\0" * 40]
)
def test_pickles_are_never_read(data: bytes) -> None:
    with pytest.raises(StoreError, match=r"pickle .* never read\. Store tensors as safetensors"):
        codec.decode(data, "model.pt")


def test_signed_json(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    written = jsonfile.write_signed(path, {"accuracy": 91.25, "list": [1, None, "ü"]})
    assert jsonfile.read_signed(path) == written
    path.write_text(path.read_text().replace("91.25", "99.25"))
    with pytest.raises(StoreError, match="was changed after it was written"):
        jsonfile.read_signed(path)
    for content in ("{}", "[]", "3", '{"a": 1}'):
        path.write_text(content)
        with pytest.raises(StoreError, match="not a file that Ostraka wrote"):
            jsonfile.read_signed(path)


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="No such file"):
        codec.load(tmp_path / "none")
    with pytest.raises(StoreError, match="No such file"):
        jsonfile.read_json(tmp_path / "none")


def test_save_and_load(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "folder" / "value.safetensors"
    assert codec.save(path, {"x": torch.ones(3)}) == path.stat().st_size
    assert codec.load(path)["x"].tolist() == [1.0, 1.0, 1.0]


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_failed_write_leaves_the_old_file(
    step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "value.safetensors"
    codec.save(path, "old")

    def fail(*_: Any) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, step, fail)
    with pytest.raises(StoreError, match=r"value\.safetensors cannot be written: disk full"):
        codec.save(path, "new")
    assert codec.load(path) == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["value.safetensors"]


def test_json_files(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    jsonfile.write_json(path, {"a": [1, None]})
    assert jsonfile.read_json(path) == {"a": [1, None]}
    with pytest.raises(ValueError, match="JSON"):
        jsonfile.write_json(path, math.nan)
    path.write_text("{")
    with pytest.raises(StoreError, match="not valid JSON"):
        jsonfile.read_json(path)


def test_size_of() -> None:
    """3 floats of 4 bytes and 2 integers of 8."""
    assert codec.size_of({"a": torch.zeros(3), "b": torch.zeros(2, dtype=torch.int64)}) == 28


def test_nothing_here_can_unpickle() -> None:
    """No module of the store imports pickle or a relative of it, or uses torch's own reader."""
    for path in Path(inspect.getfile(ostraka.store)).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [ast.unparse(node.func)] if isinstance(node, ast.Call) else []
            forbidden = {
                "pickle",
                "cPickle",
                "dill",
                "shelve",
                "marshal",
                "joblib",
                "torch.load",
                "torch.save",
                "eval",
                "exec",
            }
            assert not forbidden & set(names), f"{path.name}: {names}"


def test_reading_creates_registered_types_only() -> None:
    assert all(found.__dataclass_params__.frozen for found in WIRE_TYPES.values())  # type: ignore[attr-defined]


@settings(max_examples=80, deadline=None)
@given(VALUES)
def test_a_value_that_stays_is_what_its_bytes_would_give(value: Any) -> None:
    """The same types and bits as by way of bytes, in tensors of its own; and its size is known."""
    data = codec.encode(value)
    opened = codec.Opened.of_value(value)
    assert difference(codec.decode(data), opened.value(), "value") is None
    assert codec.encode(opened.copy()) == data
    assert codec.encoded_size(value) == len(data)


def test_a_value_that_stays_shares_no_memory() -> None:
    """With neither its maker, nor a second name of the same tensor, nor any copy."""
    own = torch.zeros(2, 3, requires_grad=True)
    opened = codec.Opened.of_value({"a": own.t(), "b": own.t(), "n": np.float64(2.5)})
    first, again = opened.copy(), opened.copy()
    with torch.no_grad():
        own.fill_(1)
    first["a"].fill_(2)
    assert again["a"].tolist() == first["b"].tolist() == [[0, 0]] * 3
    assert again["a"].is_contiguous()
    assert not again["a"].requires_grad
    assert type(again["n"]) is float
    assert opened.size >= 48
    with pytest.raises(StoreError, match="cannot be stored"):
        codec.Opened.of_value({"a": object()})
