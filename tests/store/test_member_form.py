"""Files whose bytes are not those of a safetensors file that is read: refused before anything is
made of them, and at once.
"""

import gzip
import io
import pickle
import struct
import time
import tracemalloc
import zipfile
from pathlib import Path

import pytest

from ostraka.errors import DamagedFile, StoreError
from ostraka.store.container import HEADER, LARGEST, TENSORS, Container
from ostraka.store.member import load_member
from tests.store.member_files import (
    GOOD,
    joined,
    pieces,
    raw,
    refused,
)


def zipped() -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("data.pkl", pickle.dumps({"w": 1}))
    return file.getvalue()


ONE = {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}
FORM = {
    "empty": (b"", "has 0 bytes"),
    "nine bytes": (GOOD[:9], "has 9 bytes"),
    "cut in the header": (GOOD[:300], "cut short: its header has .* and the file 300"),
    "cut in the tensors": (GOOD[:-1], "cut short: its tensors take 104 bytes, and 103 are there"),
    "trailing bytes": (GOOD + b"xx", "2 bytes behind its last tensor"),
    "one trailing byte": (GOOD + b"\0", "1 bytes behind its last tensor"),
    "header of 2^63": (struct.pack("<Q", 2**63) + GOOD[8:], f"at most {HEADER:,} are read"),
    "50 MB of metadata": (raw({"__metadata__": {"x": "y" * 50_000_000}}), "header .* at most"),
    "text": (b"hello, this is not a file of ours", "at most 1,048,576|byte 8 is"),
    "pickle": (pickle.dumps({"w": [1.0] * 10}), r"is a pickle; .* never read"),
    "old pickle": (pickle.dumps({"w": [1.0] * 10}, 2), r"is a pickle; .* never read"),
    "zip": (zipped(), r"zip archive, as torch.save writes it; .* never read"),
    "gzip": (gzip.compress(GOOD), "is a gzip archive"),
    "no JSON": (raw(b"{]"), "header of .* is not proper JSON"),
    "no UTF-8": (raw(b'{"\xff\xfe": 1}'), "not proper JSON in UTF-8"),
    "nothing in it": (raw(b"{}  "), "its metadata hold"),
    "a header that is no object": (raw(b'{"a":[1]}'), "must have a dtype, a shape and data_offs"),
    "doubled keys": (raw(b'{"w":{},"w":{}}'), "the key 'w' stands twice"),
    "deep header": (raw(b'{"a":' + b"[" * 90_000), "holds 90,001 objects and lists"),
    "header that nests": (raw(b'{"a":{"b":{"c":{"d":1}}}}'), "nests more than 3 deep"),
    "metadata are a list": (raw({"__metadata__": [1]}), "are not texts by name"),
    "metadata are numbers": (raw({"__metadata__": {"a": 1}}), "are not texts by name"),
    "no metadata": (raw({"w": ONE}, bytes(4)), "its metadata hold"),
    "more metadata": (raw({"__metadata__": {"ostraka": "", "sha256": "", "x": ""}}), "'x'"),
    "overlap": (raw({"a": ONE, "b": ONE}, bytes(4)), "'b' .* overlaps the one before it"),
    "hole": (raw({"a": {**ONE, "data_offsets": [4, 8]}}, bytes(8)), "leaves a hole before it"),
    "offsets backwards": (raw({"a": {**ONE, "data_offsets": [4, 0]}}), "has the offsets"),
    "offsets of three": (raw({"a": {**ONE, "data_offsets": [0, 4, 4]}}), "has the offsets"),
    "offsets that lie": (raw({"a": {**ONE, "data_offsets": [0, 8]}}), "takes 4 bytes, but"),
    "negative shape": (raw({"a": {**ONE, "shape": [-1]}}), "whole numbers from 0"),
    "true shape": (raw({"a": {**ONE, "shape": [True]}}), "whole numbers from 0"),
    "overflowing shape": (raw({"a": {**ONE, "shape": [2**32, 2**32]}}), "takes 73,786,976"),
    "shape beyond 2^53": (raw({"a": {**ONE, "shape": [2**64]}}), r"beyond 2\^53"),
    "nine axes": (raw({"a": {**ONE, "shape": [1] * 9}}), "at most 8 whole numbers"),
    "no such type": (raw({"a": {**ONE, "dtype": "F31"}}), "type 'F31'; types: BF16"),
    "type that is a list": (raw({"a": {**ONE, "dtype": ["F32"]}}), "is of the type"),
    "more than it should say": (raw({"a": {**ONE, "x": 1}}), "and nothing else"),
    "../ in a name": (raw({"../../etc/passwd": ONE}, bytes(4)), "leads elsewhere"),
    "NUL in a name": (raw({"a\0b": ONE}, bytes(4)), "printable characters"),
    "backslash in a name": (raw({"a\\b": ONE}, bytes(4)), "without a backslash"),
    "control in a name": (raw({"\x1b[31m": ONE}, bytes(4)), "printable characters"),
    "long name": (raw({"a" * 257: ONE}, bytes(4)), "1 to 256"),
    "empty name": (raw({"": ONE}, bytes(4)), "1 to 256"),
    "half a surrogate": (raw({"\ud800": ONE}, bytes(4)), "printable characters"),
}  # fmt: skip


@pytest.mark.parametrize(("data", "words"), FORM.values(), ids=FORM)
def test_form(data: bytes, words: str) -> None:
    refused(data, words)


def test_a_file_that_is_cut_while_it_is_read() -> None:
    """It was whole when its length was asked for."""
    container = Container.of(io.BytesIO(GOOD[:-1]), len(GOOD), "x")
    with pytest.raises(DamagedFile, match="x became shorter while it was read"):
        container.tensors(lambda name, data: None)


def million_tensors() -> bytes:
    """A header with a million tensors, of 68 MB."""
    one = b'"%d":{"dtype":"F32","shape":[],"data_offsets":[%d,%d]}'
    return b"{" + b",".join(one % (i, 4 * i, 4 * i + 4) for i in range(10**6)) + b"}"


def seconds_of(path: Path, words: str) -> tuple[float, int]:
    """CPU-seconds and bytes of memory that it takes to refuse a file, the best of three."""
    best = float("inf")
    for _ in range(3):
        began = time.process_time()
        with pytest.raises(StoreError, match=words):
            load_member(path)
        best = min(best, time.process_time() - began)
    tracemalloc.start()  # apart, as to count memory takes time
    with pytest.raises(StoreError, match=words):
        load_member(path)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return best, most


def test_a_million_tensors_are_refused_at_once(tmp_path: Path) -> None:
    path = tmp_path / "many"
    path.write_bytes(raw(million_tensors()))
    seconds, memory = seconds_of(path, "would have 68,333,341 bytes; at most 1,048,576")
    assert seconds < 0.1
    assert memory < 200_000


def test_the_most_tensors_that_fit_into_a_header_are_refused_at_once(tmp_path: Path) -> None:
    """As many as 1 MiB holds, each as short as can be; no parser sees them."""
    one = b'"%x":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}'
    head = b"{" + b",".join(one % i for i in range(19_000)) + b"}"
    assert HEADER * 0.9 < len(head) < HEADER
    path = tmp_path / "many"
    path.write_bytes(raw(head))
    seconds, memory = seconds_of(path, "holds 57,001 objects and lists; at most 12,290")
    assert seconds < 0.1
    assert memory < 32 * HEADER


@pytest.mark.parametrize(
    "head",
    [
        b'{"a":"' + b'\\"' * 500_000,
        b'{"a":"' + b'\\"' * 500_000 + b"\\",
        b'{"a":' + b'"",' * 300_000,
        b'{"a":[' + b"1," * 500_000,
        b"{" + b",".join(b'"%d":1' % i for i in range(90_000)) + b',"7":1}',
        b"{" * 1_000_000,
    ],
    ids=["open text", "open text with a backslash", "texts", "numbers", "keys", "brackets"],
)
def test_no_header_takes_long(head: bytes) -> None:
    began = time.process_time()
    refused(raw(head), "header of")
    assert time.process_time() - began < 0.5


def test_as_many_tensors_as_are_allowed_are_looked_at() -> None:
    """4,096 are not too many for the header: their network is what they are not of."""
    header = {
        f"w{i}": {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]} for i in range(TENSORS)
    }
    refused(joined(pieces()[0], header, b""), "it has the tensor 'w0'")
    more = {**header, "w": ONE}
    refused(joined(pieces()[0], more, bytes(4)), "4,097 tensors|objects and lists")


def test_a_large_file_is_not_read(tmp_path: Path) -> None:
    """It takes no space: most of it was never written."""
    path = tmp_path / "large"
    with path.open("wb") as file:
        file.write(GOOD)
        file.truncate(LARGEST + 1)
    with pytest.raises(StoreError, match=r"has 1,073,741,825 bytes; at most 1,073,741,824"):
        load_member(path)
