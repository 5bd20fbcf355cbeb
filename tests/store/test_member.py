"""Member files: written by a run, read back whole, refused when they are something else."""

from pathlib import Path

import pytest
import torch
from safetensors import safe_open

from ostraka.core.card import Card
from ostraka.core.member import Member, Model
from ostraka.core.net import Recipe, params_of
from ostraka.core.samples import View
from ostraka.errors import ConfigError, StoreError
from ostraka.objectives.cross_entropy import CrossEntropy
from ostraka.objectives.open_voting import OpenVoting
from ostraka.store import codec
from ostraka.store.member import load_member, save_member

VIEW = View(scale=1 / 255, mean=(0.5,) * 6, std=(0.25,) * 6)
MODEL = Model(("cat", "dog"), (6,), Recipe("mlp", {"hidden": [5, 4]}), CrossEntropy(), VIEW)
CARD = Card(3, 20, (12, 8), {"loss": 0.5}, {"doubt": -1.5, "places": torch.ones(2)}, "north")


def made(model: Model = MODEL, card: Card = CARD) -> Member:
    return Member(card, model, params_of(model.task.build_net(model.objective.unknown, seed=4)))


def test_a_member_answers_alike_after_the_trip(tmp_path: Path) -> None:
    """Bytes go in; the member's own view makes inputs of them: (value / 255 - 0.5) / 0.25."""
    member, path = made(), tmp_path / "north.safetensors"
    save_member(path, member)
    again = load_member(str(path))
    assert again.model == MODEL
    assert (again.card.counts, again.card.name) == ((12, 8), "north")
    assert torch.equal(again.card.calibration["places"], torch.ones(2))
    x = torch.randint(0, 256, (7, 6), generator=torch.Generator().manual_seed(1)).byte()
    net = MODEL.task.build_net(unknown=False, seed=4).eval()
    with torch.no_grad():
        expected = net((x.float() / 255 - 0.5) / 0.25)
    torch.testing.assert_close(again.predictor().scores(x).known, expected)
    assert again.predictor().predict(x.numpy()).tolist() == expected.argmax(dim=1).tolist()


def test_weights_lie_under_the_networks_own_names(tmp_path: Path) -> None:
    """Any reader of safetensors lists them; a card's own tensors are told apart."""
    member, path = made(), tmp_path / "north.safetensors"
    save_member(path, member)
    with safe_open(path, "pt") as file:
        names = set(file.keys())
        assert names == {*member.params, "/card/calibration/places"}
        assert torch.equal(file.get_tensor("last.bias"), member.params["last.bias"])


def test_settings_of_objective_and_net_are_kept(tmp_path: Path) -> None:
    model = Model(("a", "b"), (4,), Recipe("mlp", {"hidden": [3]}), OpenVoting(steps=3), View())
    path = tmp_path / "m.safetensors"
    save_member(path, Member(Card(0, 1), model, {}))
    assert load_member(path).model == model


def test_other_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    codec.save(path, {"state": 1})
    with pytest.raises(StoreError, match="not a member"):
        load_member(path)
    codec.save(path, {"member": 99})
    with pytest.raises(StoreError, match="format 99; this version reads up to 2: update ostraka"):
        load_member(path)
    codec.save(path, {"member": 2, "card": Card(0, 1), "classes": ("a",)})
    with pytest.raises(StoreError, match="a member without shape, net, objective, view, weights"):
        load_member(path)


def test_a_member_of_an_objective_that_is_not_there_says_which(tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    save_member(path, made())
    content = codec.load(path)
    codec.save(path, {**content, "objective": {"name": "cross-entropie"}})
    with pytest.raises(ConfigError, match=r"cross-entropie.*Did you mean 'cross-entropy'"):
        load_member(path)
