"""What travels has names that can stay, whatever its classes are called."""

from dataclasses import dataclass
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

import pytest

import ostraka.methods
import ostraka.store.desk  # its types too
from ostraka.core.wire import WIRE_TYPES, wire, wire_name
from ostraka.errors import StoreError
from ostraka.store import codec

for module in iter_modules(ostraka.methods.__path__):
    import_module(f"ostraka.methods.{module.name}")


def test_the_names_that_are_written_never_change() -> None:
    """A name in this list stands in files: a renamed or moved class keeps it,
    other fields get a new version.
    """
    ours = {
        wire_name(found) for found in WIRE_TYPES.values() if found.__module__.startswith("ostraka.")
    }
    assert ours == {
        "assessment/1", "card/1", "choice/1", "envelope/1", "fedaws.positive/1", "fedaws.spread/1",
        "feddf.fused/1", "fedkt.transfer/2", "fedma.matched/1", "fedma.order/1",
        "fednova.stepped/1", "fedova.late/2", "fedova.server/1", "fedpd.conquered/1",
        "fedpd.disentangled/1",
        "mask-record/1", "member/1", "panel/1", "report/2",
        "scaffold.controlled/1", "scaffold.controls/1",
    }  # fmt: skip


@pytest.fixture
def unregistered() -> Any:
    """Names that a test registers are forgotten after it."""
    before = dict(WIRE_TYPES)
    yield
    WIRE_TYPES.clear()
    WIRE_TYPES.update(before)


def test_a_renamed_class_reads_what_it_wrote_before(unregistered: None) -> None:
    @wire("tests.mark/1")
    @dataclass(frozen=True)
    class Mark:
        value: int

    written = codec.encode([Mark(3)])
    WIRE_TYPES.pop("tests.mark/1")

    @wire("tests.mark/1")
    @dataclass(frozen=True)
    class Grade:
        value: int

    assert codec.decode(written) == [Grade(3)]
    assert codec.encode([Grade(3)]) == written


def test_a_name_that_is_not_known_is_told(unregistered: None) -> None:
    @wire("tests.guest/7")
    @dataclass(frozen=True)
    class Guest:
        pass

    written = codec.encode(Guest())
    WIRE_TYPES.pop("tests.guest/7")
    with pytest.raises(
        StoreError,
        match=r"holds a 'tests.guest/7', which this version does not know: another version made it",
    ):
        codec.decode(written)
