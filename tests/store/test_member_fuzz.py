"""Member files with anything changed anywhere: a member or a StoreError comes out, nothing else.

OSTRAKA_FUZZ_EXAMPLES=100000 makes it a long search; `make fuzz` is another, led by coverage.
"""

import json
import math
import os
import struct
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ostraka.errors import StoreError
from ostraka.store.container import DTYPES
from ostraka.store.strict_json import parse
from tests.store.fuzzing import look_at, seeds
from tests.store.member_files import joined, pieces, raw, with_text

EXAMPLES = int(os.environ.get("OSTRAKA_FUZZ_EXAMPLES", "60"))
SEEDS = seeds()
CARD, HEADER, BODY = pieces()

usual = settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)

numbers = st.one_of(
    st.integers(-(2**70), 2**70), st.floats(), st.sampled_from([-1, 0, 1, 2**31, 2**63, 1e308])
)
plain = st.recursive(
    st.one_of(st.none(), st.booleans(), numbers, st.text(max_size=20)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=5), st.dictionaries(st.text(max_size=10), inner, max_size=4)
    ),
    max_leaves=12,
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths to every value inside a value of JSON."""
    found = [path] if path else []
    if isinstance(value, dict | list):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            found += places(item, (*path, key))
    return found


def replaced(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    """A copy of a value with `new` at `path`."""
    copy = json.loads(json.dumps(value))
    inside = copy
    for key in path[:-1]:
        inside = inside[key]
    inside[path[-1]] = new
    return copy


@usual
@given(st.data())
def test_changed_bytes(data: st.DataObject) -> None:
    """Some bytes overwritten, cut out or put in, at some places."""
    found = bytearray(data.draw(st.sampled_from(SEEDS)))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(found)))
        new = data.draw(st.binary(max_size=8))
        found[at : at + data.draw(st.integers(0, 8))] = new
    look_at(bytes(found))


@usual
@given(st.sampled_from(places(CARD)), plain)
def test_a_value_of_the_card_is_another(path: tuple[Any, ...], new: Any) -> None:
    look_at(joined(replaced(CARD, path, new), HEADER, BODY))


@usual
@given(st.sampled_from(places(HEADER)), plain)
def test_a_value_of_the_header_is_another(path: tuple[Any, ...], new: Any) -> None:
    look_at(with_text(json.dumps(CARD), replaced(HEADER, path, new), BODY))


@usual
@given(st.text(max_size=30), plain)
def test_a_field_more(name: str, value: Any) -> None:
    look_at(joined({**CARD, name: value}, HEADER, BODY))
    look_at(joined({**CARD, "more": {name: value}}, HEADER, BODY))
    look_at(joined({**CARD, "calibration": {name: value}}, HEADER, BODY))


@usual
@given(plain)
def test_any_card_and_any_header(value: Any) -> None:
    look_at(joined(json.dumps(value), HEADER, BODY))
    look_at(raw(json.dumps(value).encode(), BODY))


@usual
@given(st.binary(max_size=200), st.integers(0, 2**64 - 1))
def test_any_bytes(data: bytes, length: int) -> None:
    look_at(data)
    look_at(struct.pack("<Q", length) + data)
    look_at(struct.pack("<Q", len(data)) + data)


@usual
@given(st.floats(width=32), st.integers(0, 25))
def test_any_weight(value: float, place: int) -> None:
    body = BODY[: 4 * place] + struct.pack("<f", value) + BODY[4 * place + 4 :]
    look_at(joined(CARD, HEADER, body))


@usual
@given(
    st.sampled_from(sorted(DTYPES)),
    st.lists(st.sampled_from([0, 1, 2, 3, 2**20, 2**53]), max_size=4),
    st.binary(min_size=48, max_size=48),
)
def test_any_tensor_of_the_card(dtype: str, shape: list[int], values: bytes) -> None:
    size = min(math.prod(shape) * DTYPES[dtype].itemsize, len(values))
    said = {"dtype": dtype, "shape": shape, "data_offsets": [len(BODY), len(BODY) + size]}
    card = {**CARD, "calibration": {"x": {"tensor": "calibration/x"}}}
    look_at(joined(card, {**HEADER, "calibration/x": said}, BODY + values[:size]))


@usual
@given(plain)
def test_what_json_writes_is_read(value: Any) -> None:
    """Our reader of JSON gives what the library gives, or refuses what is not exact everywhere."""
    text = json.dumps(value)
    try:
        found = parse(text.encode(), "x", 20, 1000)
    except StoreError as refused:
        why = str(refused)
    else:
        why, text = "", text if json.dumps(found) == text else "another"
    assert text != "another"
    assert not why or "Infinity" in text or "NaN" in text or "2^53" in why
