"""Unknown scores as a picture: shares that add up, at the right places."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from ostraka.core.member import Member
from ostraka.core.told import LEVELS
from ostraka.data.own import Form
from ostraka.data.own.arrays import held
from ostraka.parties.scores import data_picture, seen_classes, told_picture
from ostraka.parties.train import train_party
from tests.parties.wards import CLASSES, pictures, short_task


@pytest.fixture(scope="module")
def member() -> Member:
    return train_party(pictures(CLASSES[:2], 15), short_task()).member


def telling(member: Member, refusals: tuple[float, ...]) -> Member:
    numbers = {**member.card.calibration, "refusals": refusals, "held": 40}
    return replace(member, card=replace(member.card, calibration=numbers))


def test_told_quantiles_become_shares(member: Member) -> None:
    """Refusals spread evenly from -1 to 3 are unknown scores from -3 to 1: a quarter above 0."""
    even = tuple(-1 + 4 * level for level in LEVELS)
    picture = told_picture(telling(member, even))
    assert picture is not None
    (own,) = picture.series
    assert own.refused == pytest.approx(0.25)
    assert own.samples == 40
    assert sum(own.shares) == pytest.approx(1.0)
    assert 0.0 in [pytest.approx(edge, abs=1e-9) for edge in picture.edges]
    above = sum(s for s, low in zip(own.shares, picture.edges, strict=False) if low > -1e-9)
    assert above == pytest.approx(0.25)
    inner = own.shares[1:-1]
    assert inner == pytest.approx([1 / 12] * len(inner), rel=1e-6)  # 12 ranges cover the span


def test_all_quantiles_alike(member: Member) -> None:
    picture = told_picture(telling(member, (2.0,) * len(LEVELS)))
    assert picture is not None
    assert sum(picture.series[0].shares) == pytest.approx(1.0)
    assert picture.series[0].refused == 0.0


def test_nothing_told_is_no_picture(member: Member) -> None:
    assert told_picture(replace(member, card=replace(member.card, calibration={}))) is None


def test_samples_of_its_classes_and_of_others(member: Member) -> None:
    x, y = pictures(CLASSES[:3], 10, seed=3)
    found = held(x, y, Form())
    picture = data_picture(member, found)
    own, other = picture.series
    assert (own.name, own.samples) == ("its own classes", 20)
    assert (other.name, other.samples) == ("other classes", 10)
    scores = member.predictor().scores(torch.from_numpy(x[:, None]))
    refused = (scores.unknown > 0).numpy()
    assert own.refused == pytest.approx(refused[np.isin(y, CLASSES[:2])].mean())
    assert other.refused == pytest.approx(refused[y == "dot"].mean())
    assert sum(own.shares) == pytest.approx(1.0)
    assert sum(other.shares) == pytest.approx(1.0)


def test_samples_without_labels_are_one_group(member: Member) -> None:
    picture = data_picture(member, held(pictures(CLASSES, 4)[0], None, Form()))
    assert [one.name for one in picture.series] == ["all samples"]


def test_a_member_that_cannot_refuse_has_no_threshold() -> None:
    closed = train_party(pictures(CLASSES[:2], 15), short_task(method="closed-voting")).member
    assert told_picture(closed) is None
    picture = data_picture(closed, held(*pictures(CLASSES[:2], 5), Form()))
    assert picture.threshold is None
    assert sum(picture.series[0].shares) == pytest.approx(1.0)


def test_classes_that_it_saw(member: Member) -> None:
    assert seen_classes(member) == CLASSES[:2]
    silent = replace(member, card=replace(member.card, counts=None))
    assert seen_classes(silent) == CLASSES
