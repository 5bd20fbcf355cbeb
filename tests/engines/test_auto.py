"""Which engine `auto` takes, and what a worker holds of a message."""

from dataclasses import replace

import pytest
import torch

from ostraka.core.fit import RoundBudget
from ostraka.core.net import Recipe
from ostraka.core.party import Parties
from ostraka.core.samples import Samples
from ostraka.core.task import Task
from ostraka.engines import auto, pool
from ostraka.engines.auto import Auto, expected_seconds, pays
from ostraka.engines.base import Work
from ostraka.engines.pool import Pool
from ostraka.engines.serial import Serial
from ostraka.methods.fedavg import FedAvg
from ostraka.methods.fedova import FedOVA
from ostraka.store import codec
from tests.engines.toy_work import Odd, work

TASK = Task(tuple("0123456789"), (1, 28, 28), Recipe("simple-cnn"))


def fedavg(parties: int, size: int, rounds: int = 1, epochs: int = 1, net: str = "mlp") -> Work:
    total = parties * size
    samples = Samples(
        torch.zeros(1).expand(total, 1, 28, 28), torch.zeros(total, dtype=torch.int64)
    )
    method = FedAvg(rounds=rounds, local=RoundBudget(epochs=epochs, batch=50))
    everyone = Parties.of(samples, torch.arange(total).split(size))
    return Work(method, replace(TASK, net=Recipe(net)), everyone)


@pytest.fixture(autouse=True)
def four_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "cores", lambda: 4)


def test_seconds_by_hand() -> None:
    """mlp on 784 inputs: 784*128+128 + 128*64+64 + 64*10+10 = 109,386 weights, each used once.

    3 parties of 100 samples in 2 steps of 50, twice, for 5 rounds."""
    step = 8e-4 + 50 * 109_386 * 6e-11
    assert expected_seconds(fedavg(3, 100, rounds=5, epochs=2)) == pytest.approx(
        5 * 3 * (2e-3 + 4 * step)
    )


def one_vs_all(*labels: list[int], rounds: int = 1, outliers: str = "none") -> Work:
    """Parties of 100 samples each, which hold these labels."""
    held = [torch.tensor(own).repeat(100)[:100] for own in labels]
    samples = Samples(torch.zeros(1).expand(100 * len(held), 1, 28, 28), torch.cat(held))
    method = FedOVA(rounds=rounds, outliers=outliers, local=RoundBudget(epochs=2, batch=50))
    everyone = Parties.of(samples, torch.arange(len(samples.x)).split(100))
    return Work(method, replace(TASK, net=Recipe("mlp")), everyone)


@pytest.mark.parametrize(("outliers", "networks"), [("none", 2 + 3), ("dd", 2 + 3 + 1)])
def test_every_network_that_a_party_trains_counts(outliers: str, networks: int) -> None:
    """Parties of 2, 3 and 1 labels: 4 steps of 50 samples for each network."""
    step = 8e-4 + 50 * 109_386 * 6e-11
    planned = one_vs_all([0, 1], [2, 3, 4], [5], outliers=outliers)
    assert expected_seconds(planned) == pytest.approx(3 * 2e-3 + networks * 4 * step)


def test_many_networks_are_worth_a_pool_where_one_is_not() -> None:
    """A step takes 1.13 ms. 500 rounds of 2 parties with 4 steps are 6.5 s, of which two workers
    save half, less than their start; with ten networks for each party they are 47 s."""
    every = list(range(10))
    assert not pays(fedavg(2, 100, rounds=500, epochs=2))
    assert not pays(one_vs_all([0], [1], rounds=500, outliers="dd"))
    assert pays(one_vs_all(every, every, rounds=500))


def test_weights_of_convolutions_count_at_every_place() -> None:
    """simple-cnn has about 2,500 weights in convolutions and 44,000 in all; a quarter of 28 x 28
    places is 196."""
    net = TASK.build_net(unknown=False)
    convolved = sum(p.numel() for p in net.parameters() if p.dim() == 4)
    whole = sum(p.numel() for p in net.parameters())
    assert auto._products(net, (1, 28, 28)) == convolved * 196 + whole - convolved


@pytest.mark.parametrize(
    ("planned", "workers", "wins"),
    [
        (fedavg(3, 20), None, False),
        (fedavg(10, 6000, rounds=20, epochs=10), None, True),
        (fedavg(1, 6000, rounds=200, epochs=10), None, False),
        (fedavg(3, 20), 2, True),
    ],
    ids=["trivial", "long", "one party alone", "workers are asked for"],
)
def test_a_pool_is_for_work_that_is_worth_its_start(
    planned: Work, workers: int | None, wins: bool
) -> None:
    assert pays(planned, workers) is wins


def test_a_method_that_does_not_tell_is_taken_for_long_work() -> None:
    assert expected_seconds(work(Odd())) is None
    assert pays(work(Odd()))


def test_one_core_has_no_use_for_a_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "cores", lambda: 1)
    assert not pays(fedavg(10, 6000, rounds=20, epochs=10))


@pytest.mark.parametrize("wins", [True, False])
def test_it_opens_what_it_has_decided_for(monkeypatch: pytest.MonkeyPatch, wins: bool) -> None:
    opened: list[object] = []
    for engine in (Pool, Serial):
        monkeypatch.setattr(engine, "open", lambda self, work: opened.append(self))
    monkeypatch.setattr(auto, "pays", lambda work, workers: wins)
    Auto(workers=3, timeout=9.0).open(work(Odd()))
    assert opened == [Pool(workers=3, timeout=9.0) if wins else Serial()]


def test_a_message_is_read_once_and_nobody_can_change_it_for_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read: list[bytes] = []
    usual = codec.Opened.of

    def of(data: bytes, *rest: object) -> codec.Opened:
        read.append(data)
        return usual(data, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(codec.Opened, "of", of)
    worker = work(Odd())
    one, other = codec.encode({"w": torch.zeros(2)}), codec.encode({"w": torch.ones(2)})
    first = worker.message(one)
    first["w"].fill_(9)
    assert worker.message(bytes(bytearray(one)))["w"].tolist() == [0, 0]
    assert worker.message(other)["w"].tolist() == [1, 1]
    assert worker.message(one)["w"].tolist() == [0, 0]
    assert read == [one, other, one]
