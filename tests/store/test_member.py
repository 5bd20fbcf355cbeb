"""Member files: written by a run, read back whole, with all that the card says."""

import json
import os
import resource
import stat
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors import safe_open

from ostraka.core.build import build_net
from ostraka.core.card import Card, band_of
from ostraka.core.member import Making, Model
from ostraka.core.net import Recipe
from ostraka.core.samples import View
from ostraka.errors import StoreError
from ostraka.objectives.cross_entropy import CrossEntropy
from ostraka.objectives.open_voting import OpenVoting
from ostraka.objectives.openmax import OpenMax
from ostraka.objectives.rpl import RPL
from ostraka.store.member import (
    decode_member,
    encode_member,
    load_member,
    save_member,
    save_members,
)
from tests.store.member_files import CARD, IMAGES, MADE, QUANTILES, ROWS, made, pieces

VIEW = View(scale=1 / 255, mean=(0.5,) * 6, std=(0.25,) * 6, kind="table")
MODEL = Model(("cat", "dog"), (6,), Recipe("mlp", {"hidden": [5, 4]}), CrossEntropy(), VIEW)
PLACES = {
    "means": torch.arange(168.0).reshape(2, 84),
    "precision": torch.eye(84),
    "usual": torch.ones(2, 2),
    "placed": torch.tensor([True, False]),
}
TOLD = replace(CARD, calibration={**CARD.calibration, "typicality": PLACES, "standing": QUANTILES})


def test_a_member_answers_alike_after_the_trip(tmp_path: Path) -> None:
    """Bytes go in; the member's own view makes inputs of them: (value / 255 - 0.5) / 0.25."""
    member, path = made(MODEL), tmp_path / "north.safetensors"
    save_member(path, member)
    again = load_member(str(path))
    assert (again.model, again.card, again.made) == (MODEL, CARD, MADE)
    x = torch.randint(0, 256, (7, 6), generator=torch.Generator().manual_seed(1)).byte()
    net = build_net(MODEL.task, MODEL.objective, 4).eval()
    with torch.no_grad():
        expected = net((x.float() / 255 - 0.5) / 0.25)
    torch.testing.assert_close(again.predictor().scores(x).known, expected)
    assert again.predictor().predict(x.numpy()).tolist() == expected.argmax(dim=1).tolist()


def test_weights_lie_under_the_networks_own_names(tmp_path: Path) -> None:
    """Any reader of safetensors lists them; a card's own tensors are told apart."""
    member, path = made(IMAGES, TOLD), tmp_path / "north.safetensors"
    save_member(path, member)
    with safe_open(path, "pt") as file:
        own = {f"calibration/typicality/{name}" for name in PLACES}
        assert set(file.keys()) == {*member.params, *own}
        assert torch.equal(file.get_tensor("fc2.bias"), member.params["fc2.bias"])
    told = load_member(path).card.calibration["typicality"]
    assert all(torch.equal(told[name], PLACES[name]) for name in PLACES)


def test_the_card_says_what_the_page_says_it_says() -> None:
    card, _, _ = pieces(encode_member(made(MODEL)))
    assert len(card.pop("sha256")) == 64
    assert card == {
        "format": 4, "classes": ["cat", "dog"], "unknown": False, "kind": "table", "shape": [6],
        "unit": 255,
        "view": {"scale": 1 / 255, "mean": [0.5] * 6, "std": [0.25] * 6, "augment": "none"},
        "net": {"name": "mlp", "options": {"hidden": [5, 4]}},
        "objective": {"name": "cross-entropy", "smoothing": 0.0},
        "party": 3, "name": "north", "size": 20, "counts": [12, 8],
        "scores": {"loss": 0.5, "validation": 0.75},
        "calibration": {"doubt": -1.5, "held": 2, "claims": list(QUANTILES)},
        "method": "fedov", "recipe": "fast", "created": "2026-11-18T04:45:52Z",
        "more": {"contact": "ward 7", "runs": [1, 2]},
    }  # fmt: skip


def test_a_card_tells_no_more_than_the_party_does() -> None:
    """Without counts, scores, calibration and all the rest, nothing stands in their place."""
    member = made(ROWS, Card(0, 20), Making())
    card, header, _ = pieces(encode_member(member))
    needed = {
        "format",
        "classes",
        "unknown",
        "kind",
        "shape",
        "unit",
        "view",
        "net",
        "objective",
        "size",
    }
    assert card.keys() == needed | {"sha256", "party"}
    assert header.keys() == member.params.keys()
    again = decode_member(encode_member(member))
    assert (again.card, again.made) == (Card(0, 20), Making())


def test_bands_in_place_of_counts() -> None:
    """9 is below 10 and 10 is not; what is read is the least that a band can be, and stays so."""
    assert [band_of(n) for n in (0, 9, 10, 99, 100, 999, 1000, 10**6)] == [
        "<10", "<10", "10-99", "10-99", "100-999", "100-999", ">=1000", ">=1000",
    ]  # fmt: skip
    member = made(ROWS, replace(CARD, size=127, counts=(9, 118)), replace(MADE, banded=True))
    data = encode_member(member)
    card = pieces(data)[0]
    assert card["bands"] == ["<10", "100-999"]
    assert "counts" not in card
    assert "118" not in json.dumps({**card, "sha256": ""})
    again = decode_member(data)
    assert (again.card.counts, again.made.banded) == ((0, 100), True)
    assert encode_member(again) == data


@pytest.mark.parametrize(
    "model",
    [
        replace(ROWS, objective=OpenVoting(steps=3)),
        replace(IMAGES, objective=OpenMax()),
        replace(IMAGES, objective=RPL(points=2)),
        replace(IMAGES, net=Recipe("simple-cnn", {"padding": "same"})),
        replace(IMAGES, net=Recipe("wideresnet", {"depth": 10})),
        replace(IMAGES, shape=(1, 40, 30), view=View(kind="sound"), net=Recipe("mlp")),
    ],
    ids=["fedov", "openmax", "rpl", "simple-cnn", "wideresnet", "sound"],
)
def test_nets_and_objectives_of_all_kinds_are_read(model: Model) -> None:
    member = made(model)
    again = decode_member(encode_member(member))
    assert again.model == model
    assert list(again.params) == sorted(member.params, key=lambda n: (
        member.params[n].dtype != torch.int64, n
    ))  # fmt: skip
    assert all(torch.equal(again.params[name], member.params[name]) for name in member.params)


def test_members_of_one_kind_share_their_model() -> None:
    """So that a network is outlined and built once for hundreds of them."""
    first, second = (decode_member(encode_member(made(card=Card(i, 20)))) for i in range(2))
    assert first.model is second.model


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_who_may_read_a_member_file(umask: int, tmp_path: Path) -> None:
    """What is to be handed over: whom the umask lets. In the folder of a run: its owner alone."""
    before = os.umask(umask)
    try:
        save_member(tmp_path / "x", made())
        save_members(tmp_path, [made()])
    finally:
        os.umask(before)
    found = [tmp_path / "x", tmp_path / "members", *(tmp_path / "members").iterdir()]
    modes = [stat.S_IMODE(path.stat().st_mode) for path in found]
    assert modes == [0o666 & ~umask, 0o700, 0o600]


def test_a_full_disk_loses_nothing(tmp_path: Path) -> None:
    """The system refuses to write more than 600 bytes: the old member stays, nothing beside it."""
    path = tmp_path / "x"
    save_member(path, made())
    old = path.read_bytes()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (600, hard))
    try:
        with pytest.raises(StoreError, match="cannot be written"):
            save_member(path, made(MODEL))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert path.read_bytes() == old
    assert list(tmp_path.iterdir()) == [path]


def test_what_cannot_be_told_is_not_written() -> None:
    with pytest.raises(StoreError, match="the card of north cannot be written"):
        encode_member(made(card=replace(CARD, scores={"loss": float("nan")})))
    many = {f"w{i}": torch.zeros(0) for i in range(4097)}
    with pytest.raises(StoreError, match=r"has 4,097 tensors .* at most 4,096"):
        encode_member(replace(made(), params=many))


def test_files_with_equal_weights_have_equal_hashes(tmp_path: Path) -> None:
    """Whatever the card says: a run names the weights of its members by them."""
    first = save_member(tmp_path / "a", made())
    assert first == save_member(tmp_path / "b", made(making=Making.now("fedov")))
    other = made()
    other.params["last.bias"][0] += 1
    assert first != save_member(tmp_path / "c", other)
    assert pieces((tmp_path / "a").read_bytes())[0]["sha256"] == first
