"""A sound toy passes all checks of its kind.

One broken in one way fails the check for it, and none before that.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from ostraka import registry
from ostraka.data.partitions.rule import Rule
from ostraka.testing import (
    ContractBroken,
    ballots,
    check_ballot,
    check_net,
    check_objective,
    check_partition,
    check_selector,
    check_source,
    nets,
    objectives,
    partitions,
    selectors,
    sources,
)
from tests.contract import broken_ballots as votes
from tests.contract import broken_data as data
from tests.contract import broken_nets as layers
from tests.contract import broken_objectives as losses
from tests.contract import broken_selectors as choices

Check = Callable[..., None]


def expect_first(checks: Sequence[Check], check: Check, words: str, *given: Any) -> None:
    """Those before `check` pass, and it says `words` and what to do."""
    for earlier in checks[: list(checks).index(check)]:
        earlier(*given)
    with pytest.raises(ContractBroken, match=words) as caught:
        check(*given)
    assert "What to do" in str(caught.value)


OBJECTIVES: dict[Any, tuple[Check, str]] = {
    losses.CannotBeWritten(): (objectives.check_settings, "registry"),
    losses.AttachesElsewhere(): (objectives.check_attached, "points"),
    losses.AttachesByNumpysRandomness(): (
        objectives.check_attached,
        "the same seed attaches the same",
    ),
    losses.RefusesInSilence(): (
        objectives.check_scores,
        "it says True, and the threshold of its answers is inf",
    ),
    losses.AddsRows(): (objectives.check_prepare, "keeps 12 rows"),
    losses.NeedsTwoSamples(): (objectives.check_loss, "loss of a single sample"),
    losses.LossOfEverySample(): (objectives.check_loss, r"it has the shape \[12\]"),
    losses.NumpysRandomness(): (objectives.check_randomness, "draw from the rng"),
    losses.ChangesBatch(): (objectives.check_unchanged, "batch and weights unchanged"),
    losses.LeavesGradients(): (objectives.check_unchanged, "no gradient behind"),
    losses.ScoresByBatch(): (objectives.check_scores, "without the second half"),
    losses.MeasuresNowhere(): (objectives.check_statistics, "does not exist"),
    losses.HidesTensors(): (objectives.check_stored, "nothing on self"),
    losses.LowerIsLikelier(): (objectives.check_learns, "order of the scores"),
    losses.ForgetfulHelper(): (
        objectives.check_in_methods,
        "ForgetfulHelper in FedAvg: .* taken up again",
    ),
}


@pytest.mark.parametrize("toy", OBJECTIVES, ids=lambda toy: type(toy).__name__)
def test_a_broken_objective_is_caught(toy: Any) -> None:
    check, words = OBJECTIVES[toy]
    expect_first(objectives.CHECKS, check, words, toy, objectives.bench_of())


NETS: dict[type[layers.Sound], tuple[Check, str]] = {
    layers.ForgetsUnknown: (nets.check_outputs, r"gives \[1, 4\]; it gives \[1, 3\]"),
    layers.ForwardOfItsOwn: (nets.check_parts, "is the forward pass"),
    layers.EmbedsImages: (nets.check_parts, r"embed gives \[samples, width\]"),
    layers.MixesTheBatch: (nets.check_rows, "in training"),
    layers.OneSeedForAll: (nets.check_seeds, "another seed gives other weights"),
    layers.HidesAScale: (nets.check_tensors, "answers the same"),
    layers.UnusedLayer: (nets.check_gradients, r"spare\.weight has none"),
    layers.WrongInputGradient: (nets.check_input_gradient, "leave input_gradient to Net"),
    layers.ForgetsItsBias: (nets.check_anatomy, r"no layer claims the tensor first\.bias"),
    layers.UnitsWithAnOrder: (nets.check_anatomy, "in another order give the same"),
    layers.TakesAnyShape: (nets.check_shapes, r"shape \(1,\) are taken, or refused"),
}


@pytest.mark.parametrize("toy", NETS)
def test_a_broken_net_is_caught(toy: type[layers.Sound]) -> None:
    check, words = NETS[toy]
    expect_first(nets.CHECKS, check, words, nets.Sketch(toy, (2, 3, 3)))


BALLOTS: dict[Any, tuple[Check, str]] = {
    votes.ForgetsSettings(power=2.0): (ballots.check_settings, "power=2.0"),
    votes.TunesOneNumber(): (ballots.check_tuned, "one finite number for each member"),
    votes.ChangesVotes(): (ballots.check_unchanged, "leaves the votes unchanged"),
    votes.LogOfZero(): (ballots.check_scores, "contradict each other with finite numbers"),
    votes.DoubtsClosedMembers(): (ballots.check_closed, "the threshold is 0.5"),
    votes.LowIsUnknown(): (ballots.check_unanimous, r"\(unknown\) wins"),
    votes.FirstMemberCountsTwice(): (ballots.check_members, "order of the members"),
    votes.CountsByBatch(): (ballots.check_samples, "without half of the others"),
    votes.PrefersLateClasses(): (ballots.check_classes, "other numbers"),
    votes.NegativeScores(): (ballots.check_shares, "override shares"),
    votes.SaysWeights(): (ballots.check_say, "shares of one whole"),
    votes.LooksAgain(): (ballots.check_assessed, "with an assessment a sample scores the same"),
    votes.TrustsCounts(): (ballots.check_silent, "ConfigError"),
}


@pytest.mark.parametrize("toy", BALLOTS, ids=lambda toy: type(toy).__name__)
def test_a_broken_ballot_is_caught(toy: Any) -> None:
    check, words = BALLOTS[toy]
    expect_first(ballots.CHECKS, check, words, toy)


SELECTORS: dict[Any, tuple[Check, str]] = {
    choices.ForgetsSettings(size=3): (selectors.check_settings, "size=3"),
    choices.ChoosesNobody(): (selectors.check_choice, r"it chose \(\)"),
    choices.ChoosesTwice(): (selectors.check_choice, r"it chose \(0, 0\)"),
    choices.NoReasonForTheRest(): (selectors.check_choice, "it gave 2 reasons"),
    choices.GroupsOfTheChosen(): (selectors.check_choice, r"the groups are \(0, 1, 2, 3\)"),
    choices.ScalesWeights(): (selectors.check_unchanged, "they vote later"),
    choices.GlobalRandomness(): (selectors.check_repeatable, r"torch_rng\(pool.seed"),
    choices.OneMore(): (selectors.check_size, "with the size 1 it chose 2"),
    choices.NumpysGroups(): (selectors.check_stored, "use plain numbers and words"),
    choices.TrustsCounts(): (selectors.check_strangers, "tell their size alone"),
}


@pytest.mark.parametrize("toy", SELECTORS, ids=lambda toy: type(toy).__name__)
def test_a_broken_selector_is_caught(toy: Any) -> None:
    check, words = SELECTORS[toy]
    expect_first(selectors.CHECKS, check, words, toy)


SOURCES: dict[str, tuple[Check, str]] = {
    "finds everything": (sources.check_find, "passes over files of other kinds"),
    "finds nothing": (sources.check_find, "found nothing in"),
    "reads to find": (sources.check_find_is_light, "damaged file"),
    "leaves a mark": (sources.check_find_is_light, "changes nothing"),
    "a class without samples": (sources.check_read, "a class has no training sample"),
    "augmented test": (sources.check_read, "would be augmented"),
    "its own name": (sources.check_read, "use the name that read got"),
    "odd info": (sources.check_read, "written as JSON"),
    "not listed, but reads": (sources.check_read, "leave listed=True"),
    "shuffles": (sources.check_same_data, "reading twice"),
    "trusts its files": (sources.check_damage, "is missing"),
    "fills up": (sources.check_damage, "is empty"),
}


@pytest.mark.parametrize("toy", data.BROKEN_SOURCES)
def test_a_broken_source_is_caught(toy: str, tmp_path: Path) -> None:
    check, words = SOURCES[toy]
    expect_first(
        sources.CHECKS, check, words, data.BROKEN_SOURCES[toy], data.write_points(tmp_path)
    )


RULES: dict[type[Rule], tuple[Check, str]] = {
    data.ManySettings: (partitions.check_spec, "written as text"),
    data.LosesARow: (partitions.check_complete, "belong to no party"),
    data.TakesAllRows: (partitions.check_complete, "a part of the rows among all parties; row"),
    data.OneName: (partitions.check_complete, "name of its own"),
    data.GlobalRandomness: (partitions.check_same_seed, r"pool\.rng"),
    data.ShufflesInPlace: (partitions.check_unchanged, "work on a copy"),
    data.NeedsEveryClass: (partitions.check_refusals, "one class only for 1 parties"),
}


@pytest.fixture
def registered() -> Any:
    """Give toys a name for the time of a test."""
    used = []

    def register(kind: Any, into: registry.Registry[Any] = registry.PARTITIONS) -> Any:
        into.names()  # the built-in ones first
        used.append(into)
        return into.add("toy")(kind)

    yield register
    for one in used:
        one.remove("toy")


@pytest.mark.parametrize("toy", RULES)
def test_a_broken_partition_is_caught(toy: type[Rule], registered: Callable[..., Any]) -> None:
    check, words = RULES[toy]
    settings = {"shares": [3]} if toy is data.ManySettings else {}
    expect_first(
        partitions.CHECKS, check, words, registered(toy)(**settings), partitions.ground_of()
    )


def test_sound_toys_pass(tmp_path: Path, registered: Callable[..., Any]) -> None:
    check_objective(registered(losses.Sound, registry.OBJECTIVES)(scale=2.0))
    check_net(layers.Sound, (2, 3, 3))
    check_ballot(votes.Sound(power=0.5))
    check_selector(choices.Sound(size=3))
    check_source(data.SOUND, data.write_points(tmp_path))
    check_partition(registered(data.Deal)(start=3))


def test_a_rule_that_refuses_in_words_passes(registered: Callable[..., Any]) -> None:
    check_partition(registered(data.RefusesInWords)())


def test_a_rule_without_a_name_is_told_so() -> None:
    with pytest.raises(ContractBroken, match="register it"):
        check_partition(data.Deal())


def test_a_source_of_files_needs_an_example() -> None:
    with pytest.raises(ContractBroken, match="give the path of a small file"):
        check_source(data.SOUND)


@pytest.mark.parametrize(
    ("module", "caught"),
    [
        (objectives, OBJECTIVES),
        (nets, NETS),
        (ballots, BALLOTS),
        (selectors, SELECTORS),
        (sources, SOURCES),
        (partitions, RULES),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_each_check_has_a_toy_that_fails_it(
    module: Any, caught: dict[Any, tuple[Check, str]]
) -> None:
    assert {check for check, _ in caught.values()} == set(module.CHECKS)
