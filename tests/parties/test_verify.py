"""What is found of a member file: each check by itself, junk, and everything that leaves."""

import json
import struct
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from ostraka.core.member import Member
from ostraka.parties.leaving import REVEALS, leaving
from ostraka.parties.train import train_party
from ostraka.parties.verify import CHECKS, JUNK, unknown_on_junk, verify
from ostraka.store.member import STAGES, encode_member, save_member
from ostraka.store.member_card import NEEDED, OPTIONAL
from tests.parties.wards import CLASSES, pictures, short_task


@pytest.fixture(scope="module")
def member() -> Member:
    return train_party(pictures(CLASSES[:2], 15), short_task(tell="statistics"), name="x").member


def test_a_good_file(member: Member, tmp_path: Path) -> None:
    save_member(tmp_path / "x.member", member)
    verdict = verify(tmp_path / "x.member")
    assert verdict.passed
    assert [(check.name, check.passed) for check in verdict.checks] == [(s, True) for s in STAGES]
    assert verdict.junk is not None
    assert tuple(verdict.junk) == JUNK
    assert json.loads(json.dumps(verdict.as_dict()))["passed"] is True


def changed(data: bytes, old: bytes, new: bytes) -> bytes:
    assert data.count(old) == 1
    assert len(old) == len(new)
    return data.replace(old, new)


def weights_of(member: Member, value: float) -> Member:
    params = {name: torch.full_like(tensor, value) for name, tensor in member.params.items()}
    return replace(member, params=params)


def rewritten(data: bytes, old: str, new: str) -> bytes:
    """With another card, and a hash of it that fits."""
    import hashlib

    (length,) = struct.unpack("<Q", data[:8])
    head = json.loads(data[8 : 8 + length])
    notes = head["__metadata__"]
    assert old in notes["ostraka"]
    notes["ostraka"] = notes["ostraka"].replace(old, new, 1)
    notes["sha256"] = hashlib.sha256(notes["ostraka"].encode()).hexdigest()
    text = json.dumps(head).encode()
    return struct.pack("<Q", len(text)) + text + data[8 + length :]


def broken(member: Member, stage: str) -> bytes:
    """A file that fails at this stage."""
    data = encode_member(member)
    if stage == "header":
        return data + b"more"
    if stage == "card":
        return rewritten(data, '"size": 30', '"size": -5')
    if stage == "network":
        return rewritten(data, '"options": {}', '"options": {"hidden": [900000]}')
    if stage == "tensors":
        return data[:-1] + bytes([data[-1] ^ 1])
    return encode_member(weights_of(member, 0.0))


@pytest.mark.parametrize("stage", STAGES[1:])
def test_the_check_that_fails_is_named(stage: str, member: Member, tmp_path: Path) -> None:
    path = tmp_path / "x.member"
    path.write_bytes(broken(member, stage))
    verdict = verify(path)
    assert not verdict.passed
    place = STAGES.index(stage)
    found = [check.passed for check in verdict.checks]
    assert found == [True] * place + [False] + [None] * (len(STAGES) - place - 1)
    assert str(path) in verdict.checks[place].words
    assert verdict.leaving == ()
    assert verdict.junk is None


def test_a_path_that_leads_elsewhere(member: Member, tmp_path: Path) -> None:
    save_member(tmp_path / "x.member", member)
    (tmp_path / "link.member").symlink_to(tmp_path / "x.member")
    for name, words in (("link.member", "symbolic link"), ("gone.member", "cannot be read")):
        verdict = verify(tmp_path / name)
        assert verdict.checks[0].passed is False
        assert words in verdict.checks[0].words


def test_every_stage_and_every_field_has_its_words() -> None:
    assert tuple(CHECKS) == STAGES
    assert set(REVEALS) == {*NEEDED, *OPTIONAL}


def test_all_bytes_are_accounted_for(member: Member) -> None:
    size = len(encode_member(member))
    things = leaving(member, size)
    assert sum(thing.bytes for thing in things) == size
    assert all(thing.bytes > 0 for thing in things)
    by_name = {thing.what: thing for thing in things}
    numbers = sum(tensor.numel() for tensor in member.params.values())
    assert by_name[f"weights ({numbers:,} numbers)"].bytes == 4 * numbers
    places = sum(t.nbytes for t in member.card.calibration["typicality"].values())
    assert by_name["calibration"].bytes > places
    assert "class means" in by_name["calibration"].reveals
    assert "single samples" in by_name["calibration"].reveals
    assert "deviation" not in by_name["view"].reveals
    shown = replace(member.model, view=replace(member.model.view, mean=(0.5,), std=(0.2,)))
    told = {thing.what: thing for thing in leaving(replace(member, model=shown), size)}
    assert "the deviation of every column" in told["view"].reveals


def test_what_is_not_told_does_not_leave(member: Member) -> None:
    silent = replace(member, card=replace(member.card, counts=None, scores={}, calibration={}))
    names = {thing.what for thing in leaving(silent, len(encode_member(silent)))}
    assert not names & {"counts", "bands", "scores", "calibration"}


@pytest.mark.parametrize(("bias", "share"), [(50.0, 1.0), (-50.0, 0.0)])
def test_junk_is_what_the_network_says_of_it(bias: float, share: float, member: Member) -> None:
    """All weights zero but the bias of the last output, unknown: it decides alone."""
    params = weights_of(member, 0.0).params
    last = [name for name in params if name.endswith("bias")][-1]
    params[last][-1] = bias
    found = unknown_on_junk(replace(member, params=params))
    assert found == dict.fromkeys(JUNK, share)


def test_a_member_that_cannot_refuse_never_does() -> None:
    closed = short_task(method="closed-voting")
    member = train_party(pictures(CLASSES[:2], 15), closed).member
    assert unknown_on_junk(member) is None
