"""What travels has names that can stay, and files of versions
before there were such names are read.
"""

from dataclasses import dataclass, fields
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

import pytest

import ostraka.methods
import ostraka.store.desk  # its types too
from ostraka.core.wire import WIRE_TYPES, WireType, wire, wire_name
from ostraka.errors import StoreError
from ostraka.store import codec

OLDER = Path(__file__).parent / "older"
"""Written by the last version that had the names of classes in its files."""

for module in iter_modules(ostraka.methods.__path__):
    import_module(f"ostraka.methods.{module.name}")

BARE = (
    "Card", "Conquered", "Controlled", "Controls", "Disentangled", "Envelope", "Fused",
    "MaskRecord", "Matched", "Member", "Order", "Panel", "Positive", "Report",
    "Spread", "Stepped", "Transfer",
)  # fmt: skip
"""The names in those files."""


LATER = {"Panel": {"junk": (), "choice": None}}
"""Fields that came afterwards, and what they are in such files."""


def test_every_type_of_an_older_file_is_read() -> None:
    """Its fields hold their own names; what came later has its default."""
    found = codec.load(OLDER / "every-type.safetensors")
    assert tuple(found) == BARE
    for name, value in found.items():
        assert type(value) is WIRE_TYPES[name].cls
        later = LATER.get(name, {})
        expected = {
            spec.name: later.get(spec.name, f"the {spec.name}")
            for spec in fields(value)
            if spec.init
        }
        assert {key: getattr(value, key) for key in expected} == expected


def test_a_report_that_names_its_round_is_read() -> None:
    found = codec.load(OLDER / "every-type.safetensors")["Report"]
    assert not hasattr(found, "round")
    assert (found.payload, found.weight) == ("the payload", "the weight")


def test_a_state_of_fedkt_that_names_its_public_samples_is_read() -> None:
    """They are named in the key of its parties' work instead."""
    found = codec.load(OLDER / "every-type.safetensors")["Transfer"]
    assert [spec.name for spec in fields(found)] == ["seed", "student"]
    assert (found.seed, found.student) == ("the seed", "the student")


def test_the_names_that_are_written_never_change() -> None:
    """A name in this list stands in files: a renamed or moved class keeps it,
    other fields get a new version.
    """
    ours = {
        wire_name(found.cls)
        for found in WIRE_TYPES.values()
        if found.cls.__module__.startswith("ostraka.")
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


def test_fields_of_an_older_version_are_brought_up_to_date(unregistered: None) -> None:
    """Version 1 had percent; a value of version 2 is taken as it is."""

    @wire("tests.share/1")
    @dataclass(frozen=True)
    class Percent:
        percent: float

    written = codec.encode(Percent(25.0))
    WIRE_TYPES.pop("tests.share/1")

    @wire(
        "tests.share/2", "tests.share/1", upgrade=lambda fields: {"share": fields["percent"] / 100}
    )
    @dataclass(frozen=True)
    class Share:
        share: float

    assert codec.decode(written) == Share(0.25)
    assert codec.decode(codec.encode(Share(0.5))) == Share(0.5)
    assert WIRE_TYPES["tests.share/2"] == WireType(Share)


def test_a_name_that_is_not_known_is_told(unregistered: None) -> None:
    @wire("tests.guest/7")
    @dataclass(frozen=True)
    class Guest:
        pass

    written = codec.encode(Guest())
    WIRE_TYPES.pop("tests.guest/7")
    with pytest.raises(
        StoreError,
        match=r"holds a 'tests.guest/7', which this version does not know: a newer version",
    ):
        codec.decode(written)
