"""FedPD's division and alignment: algebra, hand-made cases, and what masks leave behind."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ostraka.alignment.masks import record
from ostraka.alignment.match import match, matched_average, move
from ostraka.alignment.parts import Conquest, Divided, Masks
from ostraka.alignment.transport import Exact
from ostraka.core.net import INPUT, OUTPUT, Layer, Net, Params, Recipe, params_of
from ostraka.core.params import average
from tests.alignment.copies import random_net, recipes, shuffled

CASES = settings(max_examples=20, deadline=None, derandomize=True)
SEEDS = st.integers(0, 10**6)
PLAIN = Conquest(Exact())


def random_masks(net: Net, seed: int) -> Masks:
    rng = torch.Generator().manual_seed(seed)
    state = net.state_dict()
    shapes = {layer.weight: state[layer.weight].shape for layer in net.anatomy()}
    return {
        name: torch.randint(0, 4, shape, generator=rng, dtype=torch.uint8)
        for name, shape in shapes.items()
    }


def same_masks(net: Net, code: int) -> Masks:
    return {name: torch.full_like(mask, code) for name, mask in random_masks(net, 0).items()}


def assert_equal(a: Params, b: Params, atol: float = 0.0) -> None:
    for name, tensor in b.items():
        torch.testing.assert_close(a[name], tensor, atol=atol, rtol=0, msg=name)


@CASES
@given(recipes(), SEEDS)
def test_identical_parties_give_that_party(recipe: Recipe, seed: int) -> None:
    """With any equal masks: every part's map is the identity,
    and nothing is lost or counted twice.
    """
    net = random_net(recipe, seed)
    params, masks = params_of(net), random_masks(net, seed)
    for how in (
        PLAIN,
        replace(PLAIN, divide=False),
        replace(PLAIN, maps="one"),
        replace(PLAIN, remainder="average"),
    ):
        assert_equal(how.merge(net.anatomy(), [params] * 3, [masks] * 3, 0), params)


@CASES
@given(recipes(), SEEDS)
def test_without_conquering_it_is_the_plain_mean(recipe: Recipe, seed: int) -> None:
    nets = [random_net(recipe, seed + i) for i in range(3)]
    models, masks = (
        [params_of(n) for n in nets],
        [random_masks(nets[0], seed + i) for i in range(3)],
    )
    for divide in (True, False):
        how = replace(PLAIN, conquer=False, divide=divide)
        assert_equal(
            how.merge(nets[0].anatomy(), models, masks, 1), average((m, 1.0) for m in models)
        )


@CASES
@given(recipes(), SEEDS, st.sampled_from(["parts", "one"]))
def test_full_masks_are_plain_matched_averaging(recipe: Recipe, seed: int, maps: Any) -> None:
    """Everything is shared, so there is one map, with either setting."""
    nets = [random_net(recipe, seed + i) for i in range(3)]
    models, layers = [params_of(n) for n in nets], nets[0].anatomy()
    found = replace(PLAIN, maps=maps).merge(layers, models, [same_masks(nets[0], 3)] * 3, 2)
    assert_equal(found, matched_average(layers, models, 2, Exact()))


@CASES
@given(recipes(), SEEDS)
def test_one_map_brings_a_shuffled_party_with_its_masks_back(recipe: Recipe, seed: int) -> None:
    """Any masks, moved as their party was: no weight is left
    unaligned if the remainder follows too.
    """
    net = random_net(recipe, seed)
    layers, masks = net.anatomy(), random_masks(net, seed)
    copy, maps = shuffled(net, seed + 1)
    theirs = move(layers, {**params_of(net), **masks}, maps)
    codes = {name: theirs[name] for name in masks}
    how = replace(PLAIN, maps="one")
    assert_equal(how.merge(layers, [params_of(net), copy], [masks, codes], 0), params_of(net))


def test_an_empty_part_reuses_the_shared_map() -> None:
    """Two networks in different orders, open-only weights in neither:
    the open map has nothing to go by.
    """
    net = random_net(Recipe("mlp", {"hidden": [5]}), 0)
    copy, _ = shuffled(net, 1)
    layers, shared = net.anatomy(), same_masks(net, 3)
    empty = {name: torch.zeros_like(t) for name, t in params_of(net).items()}
    base = match(layers, copy, params_of(net), Exact())
    assert not torch.equal(base["first"], torch.arange(5))
    assert torch.equal(match(layers, empty, empty, Exact(), prefer=base)["first"], base["first"])
    maps = PLAIN._maps(layers, Divided(copy, shared), Divided(params_of(net), shared), (1, 2, 3))
    assert all(torch.equal(maps[part]["first"], base["first"]) for part in (0, 1, 2, 3))


LAYERS = (Layer("a", INPUT, "h", ("bias",)), Layer("b", "h", OUTPUT))
THEIRS: Params = {
    "a": torch.tensor([[8.0, 1], [1, 8]]),
    "b": torch.tensor([[1.0, 2]]),
    "bias": torch.tensor([1.0, 2]),
}
MINE: Params = {
    "a": torch.tensor([[2.0, 8], [8, 2]]),
    "b": torch.tensor([[10.0, 20]]),
    "bias": torch.tensor([5.0, 7]),
}
CODES: Masks = {
    "a": torch.tensor([[1, 2], [2, 1]], dtype=torch.uint8),
    "b": torch.tensor([[1, 2]], dtype=torch.uint8),
}
"""Close-only on the diagonal, open-only beside it; nothing is shared,
so that map is the identity.
"""


def test_two_parts_by_hand() -> None:
    """Close weights of mine: rows (2, 0), (0, 2) against (8, 0), (0, 8): the identity.

    Open ones: (0, 8), (8, 0) against (0, 1), (1, 0): the identity too. So the result is the plain
    mean, half of each sum.
    """
    found = PLAIN.merge(LAYERS, [THEIRS, MINE], [CODES, CODES], 0)
    assert found["a"].tolist() == [[5.0, 4.5], [4.5, 5.0]]
    assert found["b"].tolist() == [[5.5, 11.0]]
    assert found["bias"].tolist() == [3.0, 4.5]


def test_parts_with_maps_of_their_own_by_hand() -> None:
    """My masks are the other way round, so my close rows are (0, 8), (8, 0) against (8, 0), (0, 8):
    crossed; the open rows (2, 0), (0, 2) against (0, 1), (1, 0): crossed. The bias follows the
    shared part, which is empty: it stays.

    close: a -> [[8, 0], [0, 8]], its b is 20 (column 1, close), which moves to column 0. open: a ->
    [[0, 2], [2, 0]] and b's 10 moves to column 1.
    """
    mine = {"a": 3 - CODES["a"], "b": 3 - CODES["b"]}
    found = PLAIN.merge(LAYERS, [THEIRS, MINE], [CODES, mine], 0)
    assert found["a"].tolist() == [[8.0, 1.5], [1.5, 8.0]]
    assert found["b"].tolist() == [[(1 + 20) / 2, (2 + 10) / 2]]
    assert found["bias"].tolist() == [3.0, 4.5]


@pytest.mark.parametrize(
    ("remainder", "corner"), [("average", 4.5), ("shared", 4.5), ("drop", 4.0)]
)
def test_weights_in_neither_mask(remainder: Any, corner: float) -> None:
    """The corner of the other party is in no mask: 1 and 8 make 4.5, or 4 if the 1 is dropped."""
    codes = {**CODES, "a": torch.tensor([[1, 0], [2, 1]], dtype=torch.uint8)}
    how = replace(PLAIN, conquer=False, remainder=remainder)
    found = how.merge(LAYERS, [THEIRS, MINE], [codes, CODES], 0)
    assert found["a"].tolist() == [[5.0, corner], [4.5, 5.0]]


def test_the_remainder_moves_with_the_shared_map_or_stays() -> None:
    """My first layer is crossed and all of it shared,
    but for the last weight of row 1, which is in no mask.
    """
    target = {
        "a": torch.tensor([[8.0, 0, 1], [0, 8, 1]]),
        "b": torch.ones(1, 2),
        "bias": torch.zeros(2),
    }
    mine = {
        "a": torch.tensor([[0.0, 8, 1], [8, 0, 5]]),
        "b": torch.ones(1, 2),
        "bias": torch.tensor([2.0, 4.0]),
    }
    shared = {
        "a": torch.full((2, 3), 3, dtype=torch.uint8),
        "b": torch.full((1, 2), 3, dtype=torch.uint8),
    }
    holed = {**shared, "a": torch.tensor([[3, 3, 3], [3, 3, 0]], dtype=torch.uint8)}
    average = replace(PLAIN, remainder="average")
    stays = average.merge(LAYERS, [target, mine], [shared, holed], 0)
    assert stays["a"].tolist() == [[8.0, 0.0, 0.5], [0.0, 8.0, 3.5]]
    moves = PLAIN.merge(LAYERS, [target, mine], [shared, holed], 0)
    assert moves["a"].tolist() == [[8.0, 0.0, 3.0], [0.0, 8.0, 1.0]]
    assert stays["bias"].tolist() == moves["bias"].tolist() == [2.0, 1.0]


def test_undivided_subnetworks_halve_what_lies_in_both() -> None:
    """Party 1 alone in a federation of two copies of itself with other masks: a weight in both
    masks, moved by two different maps, leaves half of itself at either place.

    Close subnetwork: rows (2, 0), (8, 0) against (8, 0), (1, 0) cross; open subnetwork: rows (2,
    8), (0, 2) against (0, 1), (0, 8) keep their order? 2*0 + 8*1 + 2*8 = 24 for keeping, 8*8 +
    2*1 = 66 for crossing: they cross too.
    """
    codes: Masks = {
        "a": torch.tensor([[3, 2], [1, 2]], dtype=torch.uint8),
        "b": torch.tensor([[3, 3]], dtype=torch.uint8),
    }
    theirs: Masks = {
        "a": torch.tensor([[1, 2], [1, 2]], dtype=torch.uint8),
        "b": torch.tensor([[3, 3]], dtype=torch.uint8),
    }
    how = replace(PLAIN, divide=False)
    maps = how._maps(LAYERS, Divided(MINE, codes), Divided(THEIRS, theirs), (1, 2))
    assert {part: way["h"].tolist() for part, way in maps.items() if part} == {
        1: [1, 0],
        2: [1, 0],
        3: [1, 0],
    }
    kept = {**maps, 2: {"h": torch.tensor([0, 1])}}
    monkey = pytest.MonkeyPatch()
    with monkey.context() as patch:
        patch.setattr(Conquest, "_maps", lambda *_: kept)
        found = how._aligned(LAYERS, Divided(MINE, codes), Divided(THEIRS, theirs))
    # close: (1, 0) and (8, 0) cross to (8, 0), (1, 0); open: (1, 8) and (0, 2) stay
    assert found["a"].tolist() == [[9.0, 8.0], [1.0, 2.0]]
    assert found["b"].tolist() == [[15.0, 15.0]]


def test_the_record_of_masks_by_hand() -> None:
    other: Masks = {
        "a": torch.tensor([[1, 1], [0, 3]], dtype=torch.uint8),
        "b": torch.zeros(1, 2, dtype=torch.uint8),
    }
    kept = record(LAYERS, [4, 7], [CODES, other])
    assert kept.parties == (4, 7)
    assert kept.first.tolist() == [[[1, 2], [2, 1]], [[1, 1], [0, 3]]]
    assert kept.close["a"].tolist() == [[0.5, 0.5], [1.0, 0.5]]
    assert kept.open["a"].tolist() == [[0.5, 0.5], [0.0, 0.5]]
    assert kept.shares["a"].tolist() == [[0, 0.5, 0.5, 0], [0.25, 0.5, 0, 0.25]]
    assert kept.overlap["a"][0, 0, 1].item() == pytest.approx(2 / 3)
    assert kept.overlap["a"][1, 0, 1].item() == 0.0
    assert kept.overlap["b"][0].tolist() == [[1.0, 0.0], [0.0, 1.0]]
