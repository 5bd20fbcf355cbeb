"""Member files: written by a run, read back whole, refused when they are something else."""

from pathlib import Path

import pytest
import torch

from ostraka.core.learner import load_predictor
from ostraka.core.method import Card
from ostraka.core.net import Recipe, params_of
from ostraka.core.samples import View
from ostraka.core.task import Task
from ostraka.errors import StoreError
from ostraka.objectives.cross_entropy import CrossEntropy
from ostraka.store import codec
from ostraka.store.member import load_member, make_member, save_member

TASK = Task(("cat", "dog"), (6,), Recipe("mlp", {"hidden": [5, 4]}))


def test_a_member_answers_alike_after_the_trip(tmp_path: Path) -> None:
    net = TASK.build_net(unknown=False, seed=4)
    card = Card(3, 20, (12, 8), {"loss": 0.5}, {"doubt": -1.5}, "north")
    view = View(scale=1 / 255, mean=(0.5,), std=(0.25,))
    path = tmp_path / "north.safetensors"
    save_member(path, make_member(card, params_of(net), TASK, {"name": "cross-entropy"}, view))
    member = load_member(path)
    assert member.card == card
    assert member.input_view() == view
    x = torch.rand(7, 6)
    again = load_predictor(member.task(), CrossEntropy(), member.params).scores(x)
    with torch.no_grad():
        assert torch.equal(again.known, net.eval()(x))


def test_other_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    codec.save(path, {"state": 1})
    with pytest.raises(StoreError, match="not a member"):
        load_member(path)
    later = make_member(Card(0, 1), {}, TASK, {}, View())
    codec.save(path, type(later)(**{**vars(later), "format": 99}))
    with pytest.raises(StoreError, match="update ostraka"):
        load_member(path)
