"""A student of a vote that is written down: what it is taught, that it learns it, and that it goes
on where it was stopped."""

from pathlib import Path

import numpy as np
import pytest
import torch

import ostraka
from ostraka.core.fit import Student
from ostraka.core.samples import Samples
from ostraka.errors import ConfigError, DataError, Interrupted
from ostraka.parties.distilling import Distilled, as_public, distil, drawn, open_shares
from ostraka.parties.ensemble import Ensemble
from ostraka.store.member import load_member
from tests.parties.voters import samples, three, voter

SHORT = Student(epochs=30, optimiser="adam", lr=0.02)


def public(each: int = 40) -> np.ndarray:
    """Samples near the five that the votes are written down for."""
    rng = np.random.default_rng(0)
    x = np.repeat(samples(), each, axis=0)
    return np.abs(x + rng.normal(0, 0.05, x.shape)).astype(np.float32)


def test_what_is_taught_by_hand() -> None:
    """Unknown scores 0.2 below and 0.4 above the threshold lie 0.3 from it on average: log odds
    of -4/3 and 8/3 where 2 are meant on average."""
    ensemble = Ensemble(three(), "sum")
    scores = ensemble.scores(samples()[:2])
    moved = type(scores)(torch.tensor([[3.0, 1.0, 0.0]] * 2), torch.tensor([0.3, 0.9]), 0.5)
    taught = open_shares(ensemble, moved)
    unknown = [1 / (1 + np.exp(4 / 3)), 1 / (1 + np.exp(-8 / 3))]
    np.testing.assert_allclose(taught[:, 3], unknown, atol=1e-6)
    np.testing.assert_allclose(
        taught[0, :3], (1 - unknown[0]) * np.array([0.75, 0.25, 0]), atol=1e-6
    )
    np.testing.assert_allclose(taught.sum(dim=1), 1.0, atol=1e-6)


def test_closed_votes_teach_no_unknown() -> None:
    members = [voter(name, ("cat", "dog"), [(2, 1), (0, 3 + i)]) for i, name in enumerate("ab")]
    made = distil(Ensemble(members, "sum"), np.repeat(np.eye(2), 20, axis=0), training=SHORT)
    assert made.agreement == 100.0
    assert made.member.predictor().predict(torch.eye(2)).tolist() == [0, 1]
    assert not made.member.model.objective.refuses


def test_a_student_answers_as_the_vote(tmp_path: Path) -> None:
    ensemble = Ensemble(three(), "sum")
    made = ostraka.distil(ensemble, public(), tmp_path / "s.member", training=SHORT)
    assert isinstance(made, Distilled)
    assert (made.agreement, made.held) == (100.0, 20)
    assert made.nearest_agreement >= 80, "of two samples that nobody knows any class may be nearest"
    assert 0 < made.refused < 100
    student = load_member(tmp_path / "s.member")
    assert (str(student.card), student.model.classes) == ("s", ensemble.classes)
    for ballot in ("sum", "guarded"):
        answers = Ensemble(student, ballot).predict(samples()).tolist()
        assert answers == ["cat", "dog", "eel", "unknown", "unknown"]
    # of 200 samples the vote names about 120: what the student tells of itself
    assert student.card.counts is not None
    assert sum(student.card.counts) == student.card.size
    assert student.card.size == pytest.approx(120, abs=5)
    assert student.made.more["teachers"] == ["anna", "berta", "carl"]
    assert student.made.more["agreement"] == 100.0
    together = Ensemble([tmp_path / "s.member", *three()])
    assert together.predict(samples())[:3].tolist() == ["cat", "dog", "eel"]


def test_a_class_that_the_vote_never_names_is_told() -> None:
    made = distil(Ensemble(three(), "sum"), public()[:80], training=Student(epochs=1))
    assert "names no public sample eel" in made.notes[0]


def test_it_says_how_far_it_agrees_where_it_has_not_learnt() -> None:
    made = distil(Ensemble(three(), "sum"), public(), training=Student(epochs=1, lr=1e-6))
    assert made.agreement < 90
    assert made.as_dict()["agreement"] == made.agreement


def test_stopped_it_goes_on_to_the_same_bits(tmp_path: Path) -> None:
    ensemble, x = Ensemble(three(), "sum"), public(20)
    whole = distil(ensemble, x, tmp_path / "whole.member", training=SHORT)

    def stop(done: float, loss: float | None) -> None:
        if done > 0.5:
            raise KeyboardInterrupt

    out = tmp_path / "cut.member"
    monkey = pytest.MonkeyPatch()
    with monkey.context() as patched:
        patched.setattr("ostraka.parties.distilling.SAVE_SECONDS", 0.0)
        with pytest.raises(Interrupted, match="the same command goes on where it was"):
            distil(ensemble, x, out, training=SHORT, tell=stop)
    assert not out.exists()
    kept = list(Path(f"{out}.progress").rglob("*.safetensors"))
    assert kept
    with pytest.raises(ConfigError, match="half-finished training with other data"):
        distil(ensemble, x, out, training=SHORT, seed=7)
    steps: list[float] = []
    again = distil(ensemble, x, out, training=SHORT, tell=lambda done, loss: steps.append(done))
    assert min(steps) > 0.4, "it did not begin anew"
    for name, tensor in whole.member.params.items():
        assert torch.equal(again.member.params[name], tensor)
    assert not Path(f"{out}.progress").exists()
    with pytest.raises(Interrupted, match="nothing is kept"):
        distil(ensemble, x, training=SHORT, tell=stop)


def test_a_file_that_is_there_is_not_replaced(tmp_path: Path) -> None:
    ensemble, x, one = Ensemble(three(), "sum"), public(10), Student(epochs=1)
    out = tmp_path / "s.member"
    out.write_text("mine")
    with pytest.raises(ConfigError, match="is there already"):
        distil(ensemble, x, out, training=one)
    assert out.read_text() == "mine"
    distil(ensemble, x, out, training=one, overwrite=True)
    assert load_member(out).card.name == "s"
    with pytest.raises(ConfigError, match="a folder that exists"):
        distil(ensemble, x, tmp_path / "gone" / "s.member")
    with pytest.raises(ConfigError, match="printable characters"):
        distil(ensemble, x, tmp_path / "a\nb.member")


def test_another_seed_and_another_network() -> None:
    ensemble, x, one = Ensemble(three(), "sum"), public(10), Student(epochs=1)
    first, same, other = (distil(ensemble, x, training=one, seed=s).member for s in (0, 0, 1))
    key = next(iter(first.params))
    assert torch.equal(first.params[key], same.params[key])
    assert not torch.equal(first.params[key], other.params[key])
    assert distil(ensemble, x, training=one, net="mlp").member.model.net.options == {}


def test_members_that_see_samples_differently_have_a_student_of_its_own_view() -> None:
    from dataclasses import replace

    anna, berta, carl = three()
    shifted = replace(berta.model, view=replace(berta.model.view, mean=(0.0,) * 5, std=(1.0,) * 5))
    members = [anna, replace(berta, model=shifted), carl]
    made = distil(Ensemble(members, "sum"), public(), training=SHORT)
    view, learnt = made.member.model.view, public()
    np.testing.assert_allclose(view.mean, learnt.mean(axis=0), atol=0.05)
    assert made.agreement == 100.0


@pytest.mark.parametrize(
    ("x", "words"),
    [
        (samples(), "there are 5 public samples; a student needs 20"),
        (np.full((30, 5), np.inf), "NaN or infinity"),
        (np.zeros((30, 4)), r"samples of shape \[5\]"),
    ],
)
def test_public_samples_that_are_none(x: np.ndarray, words: str) -> None:
    with pytest.raises(DataError, match=words):
        distil(Ensemble(three(), "sum"), x)


def test_labels_of_public_samples_are_not_looked_at() -> None:
    held = Samples(torch.as_tensor(public()), torch.zeros(200, dtype=torch.int64))
    assert as_public(Ensemble(three()), held).y is None


def test_a_generator_is_for_images() -> None:
    with pytest.raises(DataError, match="a generator makes images"):
        drawn(Ensemble(three()), "generator")
