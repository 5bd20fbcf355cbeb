"""DeDES on members whose last layers are put where the test wants them."""

from collections.abc import Sequence
from dataclasses import replace
from math import log
from typing import Any

import numpy as np
import pytest
import torch

from ostraka.core import settings
from ostraka.core.member import Member
from ostraka.core.net import Recipe, params_of
from ostraka.core.samples import Samples
from ostraka.errors import ConfigError
from ostraka.voting.ballots import Ballot, Plurality, Sum, Votes
from ostraka.voting.calibrated import Calibrated
from ostraka.voting.choice import NOWHERE
from ostraka.voting.cover import Cover
from ostraka.voting.dedes import DeDES, LabelCounts
from ostraka.voting.grouping import label_skew
from ostraka.voting.outliers import Box, Floor, KeepAll, Learnt, OutlierFilter
from ostraka.voting.representation import kinds, layers, rows_of
from ostraka.voting.selectors import Pool
from tests.contract.test_all_plug_ins import NET_CASES
from tests.voting.pool import CLASSES, answering, member, pool

PLACES = [0.0, 0.01, 0.02, 5.0, 5.01, 9.0]
KMEANS = DeDES(3, clustering="kmeans")
INSECTS = ("ant", "bee", "cicada")
COUNTS = [(10, 0, 0), (0, 10, 0), (0, 0, 10)]


def knowing(number: int, known: int) -> Member:
    """A member that answers a row of zeros and a 1 with its class, if the 1 stands in its place,
    else with unknown: logits 10 and 5, or 0 and 5.
    """
    last = torch.zeros(4, 3)
    last[known, known], last[3] = 10.0, 5.0
    return answering(number, INSECTS, last)


def test_one_of_each_cluster_the_best_by_score() -> None:
    """Sizes are even, so the score decides: members 1, 3 and the one that is alone."""
    scores = [0.80, 0.82, 0.81, 0.85, 0.84, 0.83]
    found = pool(
        [member(i, p, score=s) for i, (p, s) in enumerate(zip(PLACES, scores, strict=True))]
    )
    choice = KMEANS.choose(found)
    assert choice.chosen == (1, 3, 5)
    assert choice.groups == (0, 0, 0, 1, 1, 2)
    assert choice.why[1] == "best validation score of 3 in cluster 0"
    assert choice.why[0] == "cluster 0: party 1 has the best validation score"
    assert choice.why[5] == "alone in cluster 2"


@pytest.mark.parametrize(("largest", "chosen"), [(20, 1), (21, 0)])
def test_unequal_sizes_decide_above_twice_the_median(largest: int, chosen: int) -> None:
    """Sizes largest, 10, 10: the median is 10; 20 is not above twice that, 21 is."""
    sizes, scores = [largest, 10, 10], [0.80, 0.82, 0.81]
    both = zip(sizes, scores, strict=True)
    found = pool([member(i, size=n, score=s) for i, (n, s) in enumerate(both)])
    assert DeDES(1, clustering="kmeans").choose(found).chosen == (chosen,)


@pytest.mark.parametrize(
    ("sizes", "largest"),
    [((21, 10), True), ((20, 10), False), ((25, 20, 12, 11), True), ((24, 20, 12, 11), False)],
)
def test_the_median_of_an_even_cluster_is_the_lower_of_the_middle_two(
    sizes: tuple[int, ...], largest: bool
) -> None:
    """The element at len // 2 of the sizes in descending order, as the authors take it: 10 of two,
    12 of four. The mean of the middle two, 15.5 and 16, would call none of these unbalanced.
    """
    scores = [0.80, *[0.82] * (len(sizes) - 1)]
    both = zip(sizes, scores, strict=True)
    found = pool([member(i, size=n, score=s) for i, (n, s) in enumerate(both)])
    nobody_out = DeDES(1, clustering="kmeans", filter=KeepAll())
    assert (nobody_out.choose(found).chosen == (0,)) == largest


def test_a_score_on_few_samples_is_no_outlier_beside_scores_on_many() -> None:
    """Twelve honest scores on 60 samples, so the box reaches to 1 - 1.5 * 0 = 1. 5 of 6 is left out
    without its number of samples; 12 of 60 is with it too.
    """
    scores = [(1.0, 60)] * 12 + [(5 / 6, 6), (0.2, 60)]
    members = [member(i, 3.0 * i, score=s) for i, (s, _) in enumerate(scores)]
    everybody = replace(KMEANS, size=14)
    assert everybody.choose(pool(members)).chosen == tuple(range(12))
    told = [
        replace(m, card=replace(m.card, calibration={"held": n}))
        for m, (_, n) in zip(members, scores, strict=True)
    ]
    assert everybody.choose(pool(told)).chosen == tuple(range(13))
    strict = replace(everybody, filter=Box(errors=0.0))
    assert strict.choose(pool(told)).chosen == tuple(range(12))


def test_the_later_revision() -> None:
    """12 of a median of 10 is unbalanced there (10 / 12 < 0.9), 11 is not (10 / 11 > 0.9)."""
    revised = settings.build(DeDES, {"recipe": "tmlr", "size": 1, "clustering": "kmeans"})
    assert isinstance(revised.filter, Floor)
    for largest, chosen in ((12, 0), (11, 1)):
        sizes = [largest, 10, 10]
        scores = [0.8, 0.9, 0.8]
        both = zip(sizes, scores, strict=True)
        found = pool([member(i, size=n, score=s) for i, (n, s) in enumerate(both)])
        plain = replace(revised, filter=settings.build(DeDES, {"filter": "none"}).filter)
        assert plain.choose(found).chosen == (chosen,)


def test_a_badly_trained_member_is_left_out() -> None:
    """It is alone in its cluster, so it would vote."""
    scores = [0.9, 0.91, 0.92, 0.89, 0.9, 0.2]
    found = pool(
        [member(i, p, score=s) for i, (p, s) in enumerate(zip(PLACES, scores, strict=True))]
    )
    choice = KMEANS.choose(found)
    assert 5 not in choice.chosen
    assert choice.groups[5] == NOWHERE
    assert choice.why[5].startswith("left out: validation score 0.2 is below 0.")
    everyone = replace(KMEANS, filter=settings.build(DeDES, {"filter": "none"}).filter)
    assert 5 in everyone.choose(found).chosen


@pytest.mark.parametrize("score", [0.9, None])
def test_equal_ones_of_a_cluster_go_by_lot_not_by_number(score: float | None) -> None:
    """Whose place in the drawn order is the first; by number it would be member 0 every time."""
    alike = [member(i, score=score) for i in range(6)]
    for seed in range(5):
        found = pool(alike, seed)
        assert DeDES(1).choose(found).chosen == (found.lots().index(0),)
    assert {pool(alike, seed).lots().index(0) for seed in range(5)} != {0}


def test_without_scores_the_largest_and_a_note() -> None:
    sizes = [10, 12, 11, 10, 11, 10]
    found = pool([member(i, p, size=n) for i, (p, n) in enumerate(zip(PLACES, sizes, strict=True))])
    choice = KMEANS.choose(found)
    assert choice.chosen == (1, 4, 5)
    assert "6 of 6 members tell no validation score" in choice.notes


def test_fewer_survivors_than_asked_for_all_vote() -> None:
    found = pool([member(i, p) for i, p in enumerate(PLACES)])
    choice = DeDES(50, clustering="kmeans").choose(found)
    assert choice.chosen == (0, 1, 2, 3, 4, 5)
    assert any("all of them vote" in note for note in choice.notes)


def test_one_member_alone_needs_no_size() -> None:
    choice = DeDES(clustering="kmeans").choose(pool([member(0)]))
    assert (choice.chosen, choice.why) == ((0,), ("alone in cluster 0",))
    assert not any("size" in note for note in choice.notes)


def test_size_auto_finds_the_blobs() -> None:
    found = pool([member(i, p) for i, p in enumerate(PLACES)])
    choice = DeDES(clustering="kmeans").choose(found)
    assert choice.chosen[-1] == 5
    assert len(choice.chosen) == 3


def test_size_auto_without_clusters_is_half() -> None:
    """Random weights have no clusters."""
    found = pool([member(i) for i in range(9)])
    choice = DeDES(clustering="kmeans", representation="first").choose(found)
    assert choice.notes[-1] == "size 5: no clusters are separated, so half of the members or more"


def test_size_auto_leaves_no_class_out() -> None:
    """Two clusters are separated best, but nobody with bees would be in the team of two:
    the best score of the second one has ants alone.
    """
    places, counts = [0.0, 0.01, 5.0, 5.3], [(9, 0), (9, 0), (9, 0), (0, 9)]
    scores = [0.9, 0.8, 0.9, 0.8]
    rows = zip(places, counts, scores, strict=True)
    members = [member(i, p, counts=c, score=s) for i, (p, c, s) in enumerate(rows)]
    choice = DeDES(clustering="kmeans").choose(pool(members))
    assert choice.chosen == (0, 2, 3)
    silent = [replace(one, card=replace(one.card, counts=None)) for one in members]
    assert DeDES(clustering="kmeans").choose(pool(silent)).chosen == (0, 2)


def test_size_auto_by_votes_is_the_least_that_votes_as_all() -> None:
    """Equal networks vote alike: two are enough where there are public samples."""
    twins = [replace(member(1), card=member(i).card) for i in range(8)]
    public = Samples(torch.randn(30, 4, generator=torch.Generator().manual_seed(0)))
    choice = DeDES(clustering="kmeans").choose(replace(pool(twins), public=public))
    assert len(choice.chosen) <= 2
    assert choice.notes[-1] == "size 2: answers 100 % of the probes as all do"


def test_size_auto_by_votes_of_members_that_may_say_unknown() -> None:
    """Two members for each of three classes, which call all else unknown: of any sample four of
    six, and of any two or more of them most, say unknown. A team of two lacks a class and answers
    two thirds as all do; three clusters have one member of each class.
    """
    pairs = [knowing(i, i // 2) for i in range(6)]
    found = Pool(pairs, INSECTS, public=Samples(torch.eye(3).repeat(10, 1)))
    choice = DeDES(clustering="kmeans").choose(found)
    assert [i // 2 for i in choice.chosen] == [0, 1, 2]
    assert choice.notes[-1] == "size 3: answers 100 % of the probes as all do"


def test_size_auto_by_votes_leaves_no_class_out_that_no_probe_is_of() -> None:
    """There are public samples of the first class alone, so one or two members would do; but
    told counts say that then nobody knows some class.
    """
    pairs = [knowing(i, i // 2) for i in range(6)]
    told = [replace(m, card=replace(m.card, counts=COUNTS[i // 2])) for i, m in enumerate(pairs)]
    found = Pool(told, INSECTS, public=Samples(torch.eye(3)[:1].repeat(10, 1)))
    assert [i // 2 for i in DeDES(clustering="kmeans").choose(found).chosen] == [0, 1, 2]


@pytest.mark.parametrize(("ballot", "chosen"), [(Sum(), 2), (Plurality(), 5)])
def test_size_auto_by_votes_asks_the_ballot_in_use(ballot: Ballot, chosen: int) -> None:
    """Four alike give the class 0 a probability of 0.6, the fifth gives 1 to the class 1. Sums: 2.4
    to 2.6 of all, 0.6 to 1.4 of two, the same answer. Voices: 4 to 1 of all, but of two one each,
    which probability decides for the class 1; and four that are alike make no third cluster.
    """
    sides = [log(1.5)] * 4 + [-20.0]
    members = [answering(i, CLASSES, torch.tensor([[side], [0.0]])) for i, side in enumerate(sides)]
    found = Pool(members, CLASSES, 0, Samples(torch.ones(10, 1)), ballot)
    assert len(DeDES(clustering="kmeans").choose(found).chosen) == chosen


def test_clustering_is_decided_by_the_told_counts() -> None:
    skewed = [member(i, p, counts=((40, 0), (0, 40))[i % 2]) for i, p in enumerate(PLACES)]
    even = [member(i, p, counts=(20, 20)) for i, p in enumerate(PLACES)]
    silent = [member(i, p) for i, p in enumerate(PLACES)]
    for members, words in ((skewed, "kmeans, as the skew of the told class counts is 0.44"),
                           (even, "spectral, as"), (silent, "no counts are told")):  # fmt: skip
        assert any(words in note for note in DeDES(3).choose(pool(members)).notes)


def test_skew_by_hand_and_of_chance() -> None:
    """Ants alone and bees alone: each lies 1/2 from the whole, less sqrt(1/2 / (pi n))."""
    cards = [member(0, counts=(800, 0)).card, member(1, counts=(0, 800)).card]
    assert label_skew(cards) == pytest.approx(0.5 - (0.5 / (np.pi * 800)) ** 0.5)
    rng = np.random.default_rng(0)
    drawn = [member(i, counts=tuple(rng.multinomial(40, [0.5, 0.5]))).card for i in range(30)]
    assert (label_skew(drawn) or 0.0) < 0.05
    assert label_skew([member(0).card]) is None


def test_label_counts_cluster_by_counts_and_say_what_they_lack() -> None:
    counts = [(40, 0), (39, 1), (0, 40), (1, 39)]
    found = [member(i, place=i % 2, counts=c) for i, c in enumerate(counts)]
    assert LabelCounts(2).choose(pool(found)).groups == (0, 0, 1, 1)
    assert DeDES(2).choose(pool(found)).groups == (0, 1, 0, 1)
    with pytest.raises(ConfigError, match="tell their size only; use tell=counts"):
        LabelCounts(2).choose(pool([member(0), member(1)]))


def test_counts_have_mean_0_and_deviation_1() -> None:
    """10, 20 and 30 lie -10, 0 and 10 from their mean, with a deviation of sqrt(200 / 3)."""
    found = pool([member(i, counts=(10 + 10 * i, 7)) for i in range(3)])
    far = 10 / (200 / 3) ** 0.5
    assert LabelCounts().rows(found) == pytest.approx(np.array([[-far, 0], [0, 0], [far, 0]]))


def test_representations() -> None:
    found = pool([member(i, float(i)) for i in range(3)])
    names = list(layers(found.members[0].params))
    sizes = {how: rows_of(found, how).shape[1] for how in ("first", "last", "all", names[0])}
    assert sizes == {"first": 15, "last": 8, "all": 23, names[0]: 15}
    assert rows_of(found, "last").tolist() == [[float(i)] * 8 for i in range(3)]
    assert rows_of(found, "answers").shape == (3, 150 * 3)
    with pytest.raises(ConfigError, match="no layer or representation 'lost'"):
        rows_of(found, "lost")


@pytest.mark.parametrize(("name", "shape", "options"), NET_CASES)
def test_the_last_layer_of_every_net_is_its_head(
    name: str, shape: tuple[int, ...], options: dict[str, Any]
) -> None:
    """Its rows are the outputs: six classes and unknown. What an objective adds is no layer."""
    net = Recipe(name, options).build_net(shape, 6, True, 0)
    params = {**params_of(net), "objective.points.weight": torch.ones(3, 3)}
    found = layers(params)
    assert params[list(found.values())[-1][0]].shape[0] == 7
    assert not any(layer.startswith("objective") for layer in found)


def test_members_of_two_networks_are_compared_by_their_answers() -> None:
    members = [*(member(i, p) for i, p in enumerate(PLACES)), member(6, hidden=4)]
    assert [len(kind) for kind in kinds(members)] == [6, 1]
    found, way = pool(members), replace(KMEANS, size=4)
    choice = way.choose(found)
    assert choice.chosen == replace(way, representation="answers").choose(found).chosen
    assert "members of 2 networks: compared by answers" in choice.notes
    assert "compared by answers" not in " ".join(way.choose(pool(members[:6])).notes)


def test_the_same_seed_chooses_the_same() -> None:
    found = pool([member(i, float(i)) for i in range(20)], seed=5)
    assert DeDES(7).choose(found) == DeDES(7).choose(found)


@pytest.mark.parametrize("chosen_by", ["scale", "nan"])
def test_a_filter_that_leaves_nobody_leaves_everybody(chosen_by: str) -> None:
    """Least score 0.5, quartiles 0.625 and 0.875: a floor of 0.5 + 3 * 0.25 = 1.25, which no
    score reaches. A plug-in's may be no number at all.
    """

    class Nothing(OutlierFilter):
        def least(self, scores: Sequence[float]) -> float:
            return float("nan")

    rule = Floor(scale=3.0) if chosen_by == "scale" else Nothing()
    scores = [0.5, 0.625, 0.75, 0.875, 1.0]
    found = pool([member(i, 3.0 * i, score=score) for i, score in enumerate(scores)])
    choice = replace(KMEANS, size=5, filter=rule).choose(found)
    assert choice.chosen == (0, 1, 2, 3, 4)
    told = "1.25" if chosen_by == "scale" else "nan"
    assert f"all 5 validation scores are below {told}: all stay" in choice.notes


@pytest.mark.parametrize("rule", [Box, Floor, Learnt])
def test_quantiles_come_in_their_order(rule: type[Box] | type[Floor] | type[Learnt]) -> None:
    rule(low=0.5, high=0.5)
    with pytest.raises(ConfigError, match=r"low is 0\.9 and high is 0\.1; the lower"):
        rule(low=0.9, high=0.1)


def test_who_stands_at_the_least_score_stays() -> None:
    """Quartiles 0.5 and 0.75, so a floor of 0.5 + 0.25."""
    scores = [0.5, 0.5, 0.75, 0.75]
    found = pool([member(i, 3.0 * i, score=score) for i, score in enumerate(scores)])
    assert replace(KMEANS, size=4, filter=Floor()).choose(found).chosen == (2, 3)


def test_reduction_and_scaling_are_those_that_are_set() -> None:
    """Ten random last layers of eight numbers: by default each column from 0 to 1, else of mean 0
    and deviation 1, or as they are; and one column where one component is wanted.
    """
    rng = torch.Generator().manual_seed(0)
    shapes = {name: tensor.shape for name, tensor in member(0).params.items()}
    made = [
        {n: torch.randn(shape, generator=rng) for n, shape in shapes.items()} for _ in range(10)
    ]
    found = pool([replace(member(i), params=params) for i, params in enumerate(made)])
    plain = rows_of(found, "last").astype(np.float64)
    assert plain.shape == (10, 8)
    low, width = plain.min(axis=0), np.ptp(plain, axis=0)
    wanted = {
        "auto": (plain - low) / width,
        "min-max": (plain - low) / width,
        "standard": (plain - plain.mean(axis=0)) / plain.std(axis=0),
        "none": plain,
    }
    for scaling, rows in wanted.items():
        given = settings.build(DeDES, {"scaling": scaling}).rows(found)
        np.testing.assert_allclose(given, rows, atol=1e-12)
    for reduction in ("pca", "kernel-pca"):
        one = settings.build(DeDES, {"reduction": reduction, "components": 1, "scaling": "none"})
        assert one.rows(found).shape == (10, 1)
        assert one.rows(found).std() > 0


@pytest.mark.parametrize("selector", [DeDES(size_by="votes", clustering="kmeans"), Cover()])
def test_a_ballot_that_is_tuned_on_public_samples_is_tuned_for_each_team(
    selector: DeDES | Cover, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On the votes of the team alone; without them it could not count at all."""
    teams, tune = set[tuple[int, ...]](), Calibrated.tune

    def noted(self: Calibrated, public: Votes) -> tuple[float, ...]:
        teams.add(tuple(card.party for card in public.cards))
        return tune(self, public)

    monkeypatch.setattr(Calibrated, "tune", noted)
    members = [knowing(i, i % 3) for i in range(6)]
    members = [
        replace(one, card=replace(one.card, counts=COUNTS[i % 3])) for i, one in enumerate(members)
    ]
    found = Pool(members, INSECTS, 0, Samples(torch.eye(3).repeat(10, 1)), Calibrated(public="mix"))
    choice = selector.choose(found)
    assert len(choice.chosen) == 3
    assert {(0, 1, 2, 3, 4, 5), choice.chosen} <= {tuple(sorted(team)) for team in teams}
