"""Networks that are copied or lent must be as good as new ones."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from ostraka.core import build
from ostraka.core.build import build_net, lent_net
from ostraka.core.fit import Budget, fit
from ostraka.core.net import Net, Recipe, load_params, move, params_of
from ostraka.core.samples import Samples
from ostraka.core.task import Task
from ostraka.nets.sequential import MLP
from ostraka.objectives.cross_entropy import CrossEntropy
from ostraka.objectives.rpl import RPL
from ostraka.registry import NETS
from ostraka.store import codec

TASK = Task(("a", "b"), (1, 8, 8), Recipe("mlp", {"hidden": [5]}))
GOAL = CrossEntropy()
SAMPLES = Samples(torch.arange(640.0).reshape(10, 1, 8, 8) / 640, torch.arange(10) % 2)


@pytest.fixture(autouse=True)
def forget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "_kinds", ())


def same(a: Net, b: Net) -> bool:
    return codec.encode(params_of(a)) == codec.encode(params_of(b))


def test_without_a_seed_a_network_is_that_of_seed_0_and_nobody_elses() -> None:
    first = build_net(TASK, GOAL)
    assert same(first, build_net(TASK, GOAL, 0))
    assert not same(first, build_net(TASK, GOAL, 1))
    with torch.no_grad():
        next(first.parameters()).zero_()
    assert same(build_net(TASK, GOAL), build_net(TASK, GOAL, 0)), "the first was a copy"


@pytest.mark.parametrize(
    "other",
    [
        Task(("a", "b", "c"), (1, 8, 8), TASK.net),
        Task(("a", "b"), (1, 4, 4), TASK.net),
        Task(("a", "b"), (1, 8, 8), Recipe("mlp", {"hidden": [6]})),
    ],
    ids=["classes", "shape", "recipe"],
)
def test_another_task_has_another_network(other: Task) -> None:
    build_net(TASK, GOAL)
    assert same(build_net(other, GOAL), build_net(other, GOAL, 0))


def test_another_objective_brings_its_own_tensors() -> None:
    build_net(TASK, GOAL)
    points = RPL()
    assert same(build_net(TASK, points), build_net(TASK, points, 0))
    assert params_of(build_net(TASK, points)).keys() > params_of(build_net(TASK, GOAL)).keys()


def test_a_lent_network_trains_as_a_new_one() -> None:
    """Trained, evaluated and moved once, it is loaded and trained again: the same to the bit."""
    start, budget = params_of(build_net(TASK, GOAL, 3)), Budget(epochs=2, batch=4)
    wanted = codec.encode(fit(build_net(TASK, GOAL, 7), start, SAMPLES, GOAL, budget, 5).params)
    lent = []
    for _ in range(3):
        with lent_net(TASK, GOAL) as net:
            lent.append(net)
            trained = fit(net, start, SAMPLES, GOAL, budget, 5)
        assert codec.encode(trained.params) == wanted
    assert lent[0] is lent[1] is lent[2]


def test_two_at_a_time_are_two_and_one_that_failed_is_not_lent_again() -> None:
    with lent_net(TASK, GOAL) as first, lent_net(TASK, GOAL) as second:
        assert first is not second
    with pytest.raises(ZeroDivisionError), lent_net(TASK, GOAL) as broken:
        raise ZeroDivisionError
    with lent_net(TASK, GOAL) as one, lent_net(TASK, GOAL) as two:
        assert broken is not one
        assert broken is not two


class Hiding(MLP):
    """A net with a tensor that its state dict does not hold."""

    def __init__(self, shape: tuple[int, ...], classes: int, unknown: bool) -> None:
        super().__init__(shape, classes, unknown)
        self.register_buffer("seen", torch.zeros(1), persistent=False)

    def early(self, x: Tensor) -> Tensor:
        self.get_buffer("seen").add_(1)
        return super().early(x) + self.get_buffer("seen")


def test_what_a_state_dict_does_not_set_is_never_lent_twice() -> None:
    NETS.add("hiding")(Hiding)
    try:
        task = Task(("a", "b"), (1, 8, 8), Recipe("hiding"))
        for _ in range(2):
            with lent_net(task, GOAL) as net:
                assert isinstance(net, nn.Module)
                assert float(net.get_buffer("seen")) == 0
                net(SAMPLES.inputs(torch.arange(2)))
    finally:
        NETS.remove("hiding")


def test_few_kinds_are_remembered() -> None:
    for hidden in range(1, 10):
        build_net(Task(("a",), (1, 2, 2), Recipe("mlp", {"hidden": [hidden]})), GOAL)
    assert len(build._kinds) == build.KINDS


class Loud(nn.Linear):
    """Loads in a way of its own."""

    def _load_from_state_dict(self, state: dict[str, Tensor], prefix: str, *rest: object) -> None:
        super()._load_from_state_dict({k: v + 1 for k, v in state.items()}, prefix, *rest)


def hooked() -> nn.Module:
    net = nn.Sequential(nn.Linear(2, 2))
    net[0].register_load_state_dict_pre_hook(
        lambda module, state, prefix, *rest: state.update({k: v * 2 for k, v in state.items()})
    )
    return net


@pytest.mark.parametrize(
    "make",
    [
        lambda: nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1)),
        lambda: nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2)),
        lambda: nn.Sequential(Loud(2, 2)),
        lambda: nn.Linear(2, 2).double(),
        hooked,
    ],
    ids=["plain", "batch norm", "own way", "double", "hook"],
)
def test_tensors_are_loaded_as_torch_loads_them(make: Callable[[], nn.Module]) -> None:
    """Values, types and what a module does on the way; nothing of what is loaded is kept."""
    params = {name: torch.rand(t.shape) for name, t in make().state_dict().items()}
    ours, theirs = make(), make()
    before = list(ours.parameters())
    load_params(ours, params)
    theirs.load_state_dict(params)
    assert codec.encode(params_of(ours)) == codec.encode(params_of(theirs))
    assert all(a is b for a, b in zip(before, ours.parameters(), strict=True))
    for tensor in params.values():
        tensor.zero_()
    assert codec.encode(params_of(ours)) == codec.encode(params_of(theirs))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"weight": torch.zeros(2, 3)}, "size mismatch for weight"),
        ({"bias": torch.zeros(1)}, "size mismatch for bias"),  # would broadcast
        ({"more": torch.zeros(1)}, "Unexpected key"),
    ],
)
def test_tensors_that_do_not_fit_are_refused_as_torch_does(
    change: dict[str, Tensor], words: str
) -> None:
    net = nn.Linear(2, 2)
    with pytest.raises(RuntimeError, match=words):
        load_params(net, {**params_of(net), **change})
    with pytest.raises(RuntimeError, match="Missing key"):
        load_params(net, {"weight": net.weight.detach()})


def test_a_network_is_moved_only_where_it_is_not() -> None:
    net = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(net, "to", None)
        move(net, torch.device("cpu"))
    move(net, torch.device("meta"))
    net[1].running_mean = torch.zeros(2)  # one that was left behind
    move(net, torch.device("meta"))
    assert {t.device.type for t in net.state_dict().values()} == {"meta"}
