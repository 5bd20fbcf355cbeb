"""Networks that no machine can hold are refused before they are built."""

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from ostraka.core.net import Net, Recipe
from ostraka.core.task import Task
from ostraka.errors import ConfigError
from ostraka.methods.closed_voting import ClosedVoting
from ostraka.methods.fedavg import FedAvg
from ostraka.registry import NETS
from ostraka.runs import memory
from ostraka.runs.config import Config, make
from ostraka.runs.memory import check_network, outline, weights
from ostraka.runs.plan import make_plan

MLP = Task(("a", "b"), (3,), Recipe("mlp", {"hidden": [5]}))
"""3*5 + 5 + 5*2 + 2 = 32 weights, 128 bytes."""


class Stubborn(Net):
    """A net whose constructor looks at real numbers."""

    def __init__(self, shape: tuple[int, ...], classes: int, unknown: bool) -> None:
        super().__init__(classes, unknown)
        self.first = nn.Linear(3, self.outputs)
        self.scale = float(self.first.weight.detach().sum())

    def early(self, x: Tensor) -> Tensor:
        return x

    def embed_late(self, hidden: Tensor) -> Tensor:
        return hidden

    def head(self, embedding: Tensor) -> Tensor:
        logits: Tensor = self.first(embedding)
        return logits


@pytest.mark.parametrize(
    ("net", "options", "setting"),
    [
        ("mlp", {"hidden": [10_000_000_000]}, "net.hidden"),
        ("wideresnet", {"width": 100_000}, "net.width"),
        ("digits", {"width": 3000.0}, "net.width"),
    ],
)
def test_a_plan_with_a_giant_names_need_room_and_setting(
    net: str, options: dict[str, object], setting: str
) -> None:
    values = {
        "method": "fedavg",
        "data": "digits",
        "partition": "iid",
        "net": {"name": net, "options": options},
    }
    with pytest.raises(
        ConfigError, match=rf"needs at least .* of memory, and .* available\. .*{setting}"
    ):
        make_plan(make(values))


@pytest.mark.parametrize(
    ("net", "options", "words"),
    [
        ("mlp", {"hidden": [10**10, 10**10]}, "too large for this machine: .*overflow"),
        ("mlp", {"hidden": [10**19]}, "refused the options"),
        ("wideresnet", {"depth": 6_000_004}, "at least 10 and at most 1204"),
    ],
)
def test_sizes_beyond_counting_are_refused_at_once(
    net: str, options: dict[str, object], words: str
) -> None:
    with pytest.raises(ConfigError, match=words) as refused:
        outline(Task(("a", "b"), (1, 8, 8), Recipe(net, options)))
    assert "\n" not in str(refused.value)


def test_an_outline_holds_no_memory_and_leaves_chance_alone() -> None:
    before = torch.get_rng_state()
    net = outline(MLP)
    assert weights(net) == 32
    assert all(parameter.is_meta for parameter in net.parameters())
    assert torch.equal(torch.get_rng_state(), before)
    assert not MLP.build_net(unknown=False).first.weight.is_meta  # type: ignore[union-attr]


def test_a_net_that_needs_real_numbers_is_built_with_them() -> None:
    NETS.add("stubborn")(Stubborn)
    try:
        net = outline(Task(("a", "b"), (3,), Recipe("stubborn")))
    finally:
        NETS.remove("stubborn")
    assert weights(net) == 8
    assert not any(parameter.is_meta for parameter in net.parameters())


@pytest.mark.parametrize(
    ("optimiser", "workers", "need"),
    [("sgd", 1, 4 * 128), ("adam", 1, 5 * 128), ("adam", 3, 15 * 128)],
)
def test_training_needs_weights_gradients_optimiser_and_report_of_every_worker(
    monkeypatch: pytest.MonkeyPatch, optimiser: str, workers: int, need: int
) -> None:
    config = Config(workers=workers)
    method = make_plan(
        make({"data": "digits", "set": {"local": {"optimiser": optimiser}}, "partition": "iid"})
    ).method
    monkeypatch.setattr(memory, "available", lambda: need)
    check_network(MLP, config, method, parties=10)
    monkeypatch.setattr(memory, "available", lambda: need - 1)
    with pytest.raises(ConfigError, match="has 32 weights here"):
        check_network(MLP, config, method, parties=10)


def test_fewer_workers_are_advised_only_where_they_help(monkeypatch: pytest.MonkeyPatch) -> None:
    config, method = Config(workers=3), FedAvg()
    monkeypatch.setattr(memory, "available", lambda: 4 * 128)
    with pytest.raises(ConfigError, match=r"in 3 workers .*or use fewer workers"):
        check_network(MLP, config, method, parties=10)
    monkeypatch.setattr(memory, "available", lambda: 4 * 128 - 1)
    with pytest.raises(ConfigError) as refused:
        check_network(MLP, config, method, parties=10)
    assert "fewer workers" not in str(refused.value)


def test_all_members_of_a_vote_are_in_memory_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each as it was stored and as a network: 1000 * 2 * 128 bytes."""
    config = make({"engine": "serial"})
    monkeypatch.setattr(memory, "available", lambda: 256_000)
    check_network(MLP, config, ClosedVoting(), parties=1000)
    monkeypatch.setattr(memory, "available", lambda: 255_999)
    check_network(MLP, config, FedAvg(), parties=1000)
    with pytest.raises(ConfigError, match=r"a vote of 1000 members needs .*fewer parties"):
        check_network(MLP, config, ClosedVoting(), parties=1000)


def test_a_net_that_no_member_file_holds_is_refused_before_it_trains(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two layers of a weight and a bias each: 4 tensors."""
    monkeypatch.setattr(memory, "TENSORS", 4)
    check_network(MLP, Config(), ClosedVoting(), parties=2)
    monkeypatch.setattr(memory, "TENSORS", 3)
    check_network(MLP, Config(), FedAvg(), parties=2)
    with pytest.raises(ConfigError, match=r"has 4 tensors here; .* member file, .*at most 3"):
        check_network(MLP, Config(), ClosedVoting(), parties=2)


def test_a_system_that_does_not_tell_refuses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "available", lambda: None)
    check_network(
        Task(("a", "b"), (3,), Recipe("mlp", {"hidden": [10**10]})), Config(), FedAvg(), 2
    )


def test_the_limit_of_a_container_counts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(memory, "CGROUP", tmp_path)
    free = memory.available()
    assert free is not None
    (tmp_path / "memory.max").write_text("1000\n")
    (tmp_path / "memory.current").write_text("400\n")
    assert memory.available() == 600
    (tmp_path / "memory.max").write_text("max\n")
    unlimited = memory.available()
    assert unlimited is not None
    assert unlimited > 600
