"""The audit: figures by hand, a network that memorises, one that never saw the samples."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from ostraka.core.fit import Budget
from ostraka.core.member import Member, Model
from ostraka.core.net import Recipe
from ostraka.core.party import Party, PartyRef
from ostraka.core.private import Private
from ostraka.core.samples import Samples, View
from ostraka.errors import DataError
from ostraka.objectives.cross_entropy import CrossEntropy
from ostraka.objectives.open_voting import OpenVoting
from ostraka.parties import audit as module
from ostraka.parties.audit import (
    auc_of,
    audit,
    caught_of,
    guessed_shares,
    losses,
    matched,
    ranges,
    samples_for,
)
from ostraka.store.member import load_member, save_member
from ostraka.voting.training import Terms, train_member

VIEW = View(kind="table")
CLASSES = ("a", "b", "c", "d")
MODEL = Model(CLASSES, (20,), Recipe("mlp", {"hidden": [64]}), CrossEntropy(), VIEW)


def samples(count: int, seed: int, classes: int = 4) -> Samples:
    """Labels that have nothing to do with the values: all that can be learnt is memory."""
    rng = torch.Generator().manual_seed(seed)
    return Samples(torch.randn(count, 20, generator=rng), torch.arange(count) % classes, view=VIEW)


def trained(held: Samples, epochs: int, dp: Private | None = None, model: Model = MODEL) -> Member:
    budget = Budget(epochs=epochs, batch=20, optimiser="adam", lr=0.01)
    terms = Terms(budget, hold_out=0.0, dp=dp or Private())
    return train_member(model, terms, Party(PartyRef(0, len(held)), held), 1)


def test_auc_by_hand() -> None:
    """Of the pairs (1, 2), (1, 3), (3, 2), (3, 3): two are lower, one is higher, one is equal."""
    assert auc_of(np.array([1.0, 3.0]), np.array([2.0, 3.0])) == (2 + 0.5) / 4
    assert auc_of(np.array([0.0, 1.0]), np.array([2.0])) == 1.0
    assert auc_of(np.array([5.0]), np.array([2.0, 3.0])) == 0.0
    assert auc_of(np.array([2.0, 2.0]), np.array([2.0])) == 0.5


def test_auc_is_the_share_of_pairs() -> None:
    rng = np.random.default_rng(0)
    one, other = rng.integers(0, 9, 40).astype(float), rng.integers(2, 12, 30).astype(float)
    slow = np.mean([[float(a < b) + 0.5 * float(a == b) for b in other] for a in one])
    assert auc_of(one, other) == pytest.approx(slow)


def test_caught_by_hand() -> None:
    """200 others with losses 1 to 200: two may be named, so what lies below 3 is named."""
    others = np.arange(1.0, 201.0)
    assert caught_of(np.array([0.5, 2.9, 3.0, 50.0]), others) == 0.5
    assert caught_of(np.array([0.5, 1.0, 1.5]), others[:50]) == pytest.approx(1 / 3), "50: none"


def test_ranges_hold_the_figure_and_narrow_with_more_samples() -> None:
    rng = np.random.default_rng(2)
    wide, narrow = (ranges(rng.normal(0, 1, n), rng.normal(1, 1, n), 0)[0] for n in (30, 1000))
    for found in (wide, narrow):
        assert found.low < found.value < found.high
    assert narrow.low < 0.760 < narrow.high, "Phi(1 / sqrt 2) = 0.760"
    assert narrow.high - narrow.low < 0.5 * (wide.high - wide.low)


def test_the_loss_is_that_of_the_true_class_unknown_included() -> None:
    model = replace(MODEL, objective=OpenVoting(outliers="none"))
    member = trained(samples(40, 1), 1, model=model)
    held, net = samples(6, 2), member.predictor().net.eval()
    with torch.no_grad():
        chance = net(held.inputs()).double().softmax(1)
    assert chance.shape[1] == 5
    wanted = -chance[torch.arange(6), held.labels].log()
    assert torch.allclose(torch.from_numpy(losses(member, held)), wanted, atol=1e-6)


def test_both_sides_get_the_same_shares_of_each_class() -> None:
    """30 + 10 against 10 + 30 + 50 of a class that the first side has none of: 10 + 10 each."""
    one, other = np.repeat([0, 1], [30, 10]), np.repeat([0, 1, 2], [10, 30, 50])
    kept, against = matched(one, other, 0)
    first, second = np.bincount(one[kept]), np.bincount(other[against])
    assert len(second) == 2
    assert first / first.sum() == pytest.approx(second / second.sum(), abs=0.06)
    assert len(kept) >= 12
    assert len(set(kept)) == len(kept)


def test_sides_that_agree_already_are_kept_whole() -> None:
    kept, against = matched(np.repeat([0, 3], [20, 40]), np.repeat([0, 3], [10, 20]), 0)
    assert (len(kept), len(against)) == (60, 30)


def test_a_network_that_memorises_is_caught() -> None:
    held = samples(100, 1)
    found = audit(trained(held, 60), held, samples(300, 2))
    assert found.auc.low > 0.95
    assert found.caught.low > 5 * module.FALSE
    assert found.loss_members < 0.1 < found.loss_others
    assert "the file tells who was trained on" in found.verdict()


def test_a_network_that_never_saw_either_side_gives_a_coin() -> None:
    member = trained(samples(100, 1), 60)
    found = audit(member, samples(300, 2), samples(300, 3))
    assert found.auc.low < 0.5 < found.auc.high
    assert abs(found.auc.value - 0.5) < 0.06
    assert "no better than a coin" in found.verdict()


def test_classes_that_were_never_seen_are_no_credit_to_the_attack() -> None:
    """Trained on two classes; the others have all four: far losses of the other two must not
    count."""
    held = samples(100, 1, classes=2)
    member = trained(held, 3)
    fresh = samples(400, 5)
    found = audit(member, samples(200, 4, classes=2), fresh)
    assert found.others == 200
    assert abs(found.auc.value - 0.5) < 0.08
    assert any("same shares" in note for note in found.notes)


def test_privacy_closes_what_the_attack_uses() -> None:
    pytest.importorskip("opacus")
    held, fresh = samples(100, 1), samples(300, 2)
    open_door = audit(trained(held, 20), held, fresh).auc.value
    found = audit(trained(held, 20, Private(2.0, 1e-4)), held, fresh)
    assert open_door > 0.9
    assert found.auc.value < 0.65
    assert found.claimed == {"epsilon": 2.0, "delta": 1e-4}


def test_samples_on_both_sides_are_left_out() -> None:
    held = samples(60, 1)
    both = Samples(torch.cat([held.x[:10], samples(50, 2).x]), torch.arange(60) % 4, view=VIEW)
    found = audit(trained(held, 2), held, both)
    assert any(note.startswith("10 of the others are among the members") for note in found.notes)


def test_too_few_samples_are_refused() -> None:
    held = samples(40, 1)
    with pytest.raises(DataError, match="8 others of the same classes"):
        audit(trained(held, 1), held, samples(8, 2))


def test_shares_are_guessed_from_the_last_layer() -> None:
    """Weights and biases of the classes that sum up to log 3, log 1, and twice log 0.5."""
    member = trained(samples(40, 1), 1)
    weight, bias = torch.zeros(4, 64), torch.tensor([1.0, -1.0, 2.0, 0.0])
    weight[:, 5] = torch.tensor([3.0, 1.0, 0.5, 0.5]).log() - bias
    member = replace(member, params={**member.params, "last.weight": weight, "last.bias": bias})
    assert list(guessed_shares(member).values()) == pytest.approx([0.6, 0.2, 0.1, 0.1])
    told = audit(member, samples(40, 1), samples(40, 2)).told
    assert told == {"a": 0.25, "b": 0.25, "c": 0.25, "d": 0.25}


def test_the_guess_finds_the_largest_class() -> None:
    """200, 60, 15 and 5 samples of classes that can be learnt."""
    labels = torch.repeat_interleave(torch.arange(4), torch.tensor([200, 60, 15, 5]))
    centres = torch.randn(4, 20, generator=torch.Generator().manual_seed(7))
    x = 2 * centres[labels] + torch.randn(280, 20, generator=torch.Generator().manual_seed(8))
    guessed = list(guessed_shares(trained(Samples(x, labels, view=VIEW), 4)).values())
    assert max(guessed) == guessed[0]
    assert guessed[3] < 0.25


def test_files_are_read_by_class_name(tmp_path: Path) -> None:
    held = samples(40, 1)
    names = np.array(["d", "zebra", "a", "b"])
    np.savez(tmp_path / "own.npz", x=held.x.numpy(), y=held.labels.numpy(), classes=names)
    path = tmp_path / "one.member"
    save_member(path, trained(held, 1))
    found = samples_for(load_member(path), tmp_path / "own.npz")
    assert sorted(set(found.labels.tolist())) == [0, 1, 3]
    assert len(found) == 30
