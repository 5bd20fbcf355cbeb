"""What all methods share: the draw of parties, needs, and settings that make no sense."""

from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch

from ostraka.core.method import Iterative, Needs
from ostraka.core.net import Recipe
from ostraka.core.party import PartyRef
from ostraka.core.samples import Samples
from ostraka.core.settings import walk
from ostraka.core.task import Commons, Task
from ostraka.core.wire import WIRE_TYPES, wire
from ostraka.errors import ConfigError, NeedError
from ostraka.registry import METHODS


@dataclass(frozen=True)
class Nothing(Iterative[Any, Any, Any]):
    def init(self, task: Any, seed: int) -> Any: ...
    def message(self, state: Any, party: Any) -> Any: ...
    def local_update(self, rnd: Any, party: Any, memory: Any) -> Any: ...
    def aggregate(self, task: Any, state: Any, reports: Any) -> Any: ...
    def predictor(self, task: Any, state: Any) -> Any: ...


TEN = tuple(PartyRef(i, 1) for i in range(10))


@pytest.mark.parametrize(
    ("fraction", "count"), [(1.0, 10), (0.3, 3), (0.25, 3), (0.24, 2), (0.01, 1), (0.96, 10)]
)
def test_draw_takes_a_fraction_without_repeats(fraction: float, count: int) -> None:
    """Half a party rounds up, and there is always one: 2.5 gives 3, 0.1 gives 1."""
    drawn = Nothing(fraction=fraction).draw(TEN, 1, seed=0)
    assert len(drawn) == len({ref.id for ref in drawn}) == count
    assert list(drawn) == sorted(drawn, key=lambda ref: ref.id)
    assert set(drawn) <= set(TEN)


def test_draw_depends_on_seed_and_round_only() -> None:
    method = Nothing(fraction=0.5)
    draws = {
        (seed, i): tuple(r.id for r in method.draw(TEN, i, seed))
        for seed in (0, 1)
        for i in range(1, 9)
    }
    assert draws == {(seed, i): tuple(r.id for r in method.draw(TEN, i, seed)) for seed, i in draws}
    assert len({draws[0, i] for i in range(1, 9)}) > 4
    assert draws[0, 1] != draws[1, 1]


def test_draw_is_uniform() -> None:
    """3 of 10 in 1,000 rounds: each about 300 times; five standard deviations (14.5) are 73."""
    counts = Counter(
        ref.id for i in range(1000) for ref in Nothing(fraction=0.3).draw(TEN, i, seed=5)
    )
    assert all(abs(counts[i] - 300) < 73 for i in range(10))


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"rounds": 0}, "'rounds' is 0"),
        ({"fraction": 0.0}, "'fraction' is 0"),
        ({"fraction": 1.1}, "at most 1"),
    ],
)
def test_senseless_settings(values: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        Nothing(**values)


def test_one_exchange_is_no_setting() -> None:
    """Methods with rounds make as many; pooled training makes the passes of all rounds at once."""
    several = [name for name in METHODS if issubclass(METHODS.get(name), Iterative)]
    assert {"average", "closed-voting", "fedkt", "fedov", "solo"} == set(METHODS) - set(several)
    for name in METHODS:
        method = METHODS.get(name)(**({"rounds": 3} if name in several else {}))
        assert method.exchanges == (3 if name in several and name != "centralised" else 1)
        assert hasattr(method, "rounds") == (name in several)
        assert any(n.endswith("late_rate") for n, _, _ in walk(method)) == (name in several)


def test_what_talks_and_what_is_pooled() -> None:
    regimes = {name: METHODS.get(name).regime for name in METHODS}
    others = {name: regime for name, regime in regimes.items() if regime != "federated"}
    assert others == {"solo": "alone", "centralised": "pooled"}
    for name in METHODS:
        method = METHODS.get(name)()
        assert (method.talks, method.pooled) == (name not in others, name == "centralised")


TASK = Task(("a", "b"), (2,), Recipe("mlp"))
SAMPLES = Samples(torch.zeros(1, 2), torch.zeros(1, dtype=torch.long))


def test_needs_name_everything_that_is_missing() -> None:
    every = Needs(public=True, shared=True, prior=True)
    with pytest.raises(NeedError) as caught:
        every.check("mine", TASK)
    text = str(caught.value)
    assert "the method 'mine' needs public, shared, prior" in text
    for advice in (
        "unlabelled samples",
        "labelled samples",
        "label shares",
    ):
        assert advice in text


def test_needs_that_are_met() -> None:
    commons = Commons(SAMPLES.unlabelled(), SAMPLES, {}, torch.ones(2))
    task = Task(("a", "b"), (2,), Recipe("mlp"), commons)
    Needs(public=True, shared=True, prior=True).check("mine", task)
    Needs().check("mine", TASK)
    with pytest.raises(NeedError, match="needs prior, which"):
        Needs(public=True, prior=True).check(
            "mine", replace(task, commons=replace(commons, prior=None))
        )


def test_commons_name_every_tensor_once() -> None:
    """What is sent down: rows that are held only, and labels of shared samples."""
    public = Samples(torch.zeros(5, 2), rows=torch.tensor([0, 1]))
    commons = Commons(public, SAMPLES, {"start": {"w": torch.zeros(3)}}, torch.ones(2))
    assert {name: tuple(t.shape) for name, t in commons.tensors().items()} == {
        "public.x": (2, 2),
        "shared.x": (1, 2),
        "shared.y": (1,),
        "start.w": (3,),
        "prior": (2,),
    }
    assert Commons().tensors() == {}


def test_equal_seeds_build_equal_nets() -> None:
    first, same, other = (TASK.build_net(unknown=True, seed=s).state_dict() for s in (1, 1, 2))
    assert all(torch.equal(first[k], same[k]) for k in first)
    assert not all(torch.equal(first[k], other[k]) for k in first)
    assert TASK.build_net(unknown=True).outputs == 3
    assert TASK.build_net(unknown=False)(torch.zeros(4, 2)).shape == (4, 2)


def test_wrong_net_options_are_the_users_error() -> None:
    with pytest.raises(
        ConfigError, match=r"unknown setting 'net.depth'. Settings of the net mlp: hidden"
    ):
        Task(("a",), (2,), Recipe("mlp", {"depth": 3})).build_net(unknown=False)


def test_only_frozen_dataclasses_travel_and_names_are_unique() -> None:
    with pytest.raises(TypeError, match="frozen dataclass"):
        wire("tests.loose/1")(type("Loose", (), {}))
    with pytest.raises(
        TypeError, match=r"'card/1' is already the wire name of ostraka\.core\.card\.Card"
    ):
        wire("card/1")(dataclass(frozen=True)(type("Card", (), {"__module__": "elsewhere"})))
    assert WIRE_TYPES["card/1"].__module__ == "ostraka.core.card"


@pytest.mark.parametrize(
    "name", ["Card", "card", "card/0", "card/x", "/1", "Card/1", "card/1/2", "", Needs]
)
def test_a_name_to_travel_under_has_a_version(name: Any) -> None:
    """A bare `@wire` is given the class itself."""
    with pytest.raises(
        TypeError,
        match=r"is no name to travel under; give one that can stay, with a version: @wire",
    ):
        wire(name)
