"""FedIR and FedVC (both by Hsu, Qi & Brown): weights,
draws and equal sizes by hand, and their limit cases.
"""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from ostraka.core.method import Round
from ostraka.core.party import PartyRef
from ostraka.core.seeds import torch_rng
from ostraka.errors import ConfigError, DataError
from ostraka.methods.fedir import FedIR
from ostraka.methods.fedvc import FedVC, virtual
from ostraka.objectives.proser import Proser
from tests.methods.toy_line import final_state, plan_of


def test_the_prior_of_a_simulation_is_the_parties_label_shares() -> None:
    plan = plan_of("fedir", partition="labels:2", parties=10)
    prior = plan.task.commons.prior
    assert prior is not None
    assert prior.tolist() == pytest.approx([0.1] * 10)
    assert plan_of("fedavg").task.commons.prior is None


def test_fedir_with_parties_like_the_target_is_fedavg(tmp_path: Path) -> None:
    """One party: its label shares are the target's, all weights are 1."""
    training = {"rounds": 2, "local": {"epochs": 2, "batch": 16}}
    fedir = final_state(plan_of("fedir", parties=1, set=training), tmp_path / "a")
    fedavg = final_state(plan_of("fedavg", parties=1, set=training), tmp_path / "b")
    assert all(torch.allclose(fedir[name], fedavg[name], atol=1e-5) for name in fedavg)


def test_fedir_listens_to_rare_classes_more() -> None:
    """90 samples of class 0 and 10 of class 1 that look the same: the best a model
    can do is to answer with the label shares. FedAvg learns the party's, 1/10 for
    class 1; fedir the target's, 1/2.
    """
    x = torch.zeros(100, 1, 28, 28)
    shares = {}
    for name in ("fedir", "fedavg"):
        plan = plan_of(
            name,
            parties=1,
            partition="iid",
            set={"local": {"epochs": 300, "batch": 100, "lr": 0.1}},
        )
        classes = len(plan.task.classes)
        if name == "fedir":
            even = torch.tensor([0.5, 0.5] + [0.0] * (classes - 2))
            plan = replace(
                plan, task=replace(plan.task, commons=replace(plan.task.commons, prior=even))
            )
        party = plan.parties[0]
        samples = replace(party.samples, x=x, y=torch.tensor([0] * 90 + [1] * 10), rows=None)
        start = plan.method.init(plan.task, 0)
        report = plan.method.local_update(
            Round(plan.task, 1, start, 1), replace(party, samples=samples), {}
        )
        known = (
            plan.method.predictor(plan.task, report.payload)
            .scores(samples.inputs(slice(0, 1)))
            .known
        )
        shares[name] = known.softmax(dim=1)[0, 1].item()
    assert shares["fedavg"] == pytest.approx(0.1, abs=0.01)
    assert shares["fedir"] == pytest.approx(0.5, abs=0.01)


def test_fedir_refuses_what_it_cannot_weigh() -> None:
    with pytest.raises(ConfigError, match="only cross-entropy"):
        FedIR(objective=Proser())
    plan = plan_of("fedir")
    task = replace(plan.task, commons=replace(plan.task.commons, prior=torch.ones(3) / 3))
    with pytest.raises(DataError, match="each of the 10 classes; the prior has 3 shares"):
        plan.method.local_update(Round(task, 1, {}, 0), plan.parties[0], {})


@pytest.mark.parametrize(("size", "count"), [(10, 4), (10, 10), (256, 256)])
def test_a_large_party_gives_no_sample_twice(size: int, count: int) -> None:
    rows = virtual(size, count, torch_rng(0, "test"))
    assert len(rows.unique()) == len(rows) == count
    assert rows.max() < size


def test_a_small_party_draws_among_all_its_samples_every_time() -> None:
    """300 draws of 8 among 4: each sample in a quarter of them (2400: +- 4 deviations), and its
    share of a single draw varies as that of independent draws does: 8 * 1/4 * 3/4 = 1.5 (equal
    shares would never vary).
    """
    times = torch.stack(
        [
            torch.bincount(virtual(4, 8, torch_rng(i, "test")), minlength=4).double()
            for i in range(300)
        ]
    )
    assert times.sum(dim=1).eq(8).all()
    assert times.mean(dim=0).tolist() == pytest.approx([2.0] * 4, abs=0.3)
    assert times.var(dim=0).mean().item() == pytest.approx(1.5, abs=0.25)
    assert virtual(1, 5, torch_rng(0, "test")).tolist() == [0] * 5


def test_a_party_trains_on_other_samples_every_round() -> None:
    first, second = (virtual(100, 10, torch_rng(seed, "virtual")).tolist() for seed in (1, 2))
    assert sorted(first) != sorted(second)


def test_fedvc_draws_in_proportion_to_size() -> None:
    """One of two parties with 30 and 10 samples: the first in 3/4 of the rounds
    (2000 rounds: +- 4 deviations).
    """
    roster = [PartyRef(0, 30), PartyRef(1, 10)]
    drawn = [FedVC(fraction=0.5).draw(roster, index, seed=0) for index in range(2000)]
    assert all(len(parties) == 1 for parties in drawn)
    assert sum(parties[0].id == 0 for parties in drawn) / 2000 == pytest.approx(0.75, abs=0.04)
    assert FedVC().draw(roster, 1, seed=0) == tuple(roster)


def test_fedvc_draws_without_repeats_in_order() -> None:
    roster = [PartyRef(i, 1 + i) for i in range(10)]
    for index in range(20):
        ids = [party.id for party in FedVC(fraction=0.5).draw(roster, index, seed=3)]
        assert ids == sorted(set(ids))
        assert len(ids) == 5


def test_fedvc_gives_all_parties_the_same_steps_and_weight() -> None:
    """40 samples in batches of 16: 3 steps for each, whatever its size."""
    plan = plan_of("fedvc", set={"samples": 40, "local": {"batch": 16}})
    start = plan.method.init(plan.task, 0)
    sizes = {len(party.samples) for party in plan.parties}
    assert len(sizes) == 3
    reports = [
        plan.method.local_update(Round(plan.task, 1, start, 1), party, {}) for party in plan.parties
    ]
    assert {report.weight for report in reports} == {1.0}
    assert {report.card.size for report in reports} == sizes


def test_fedvc_needs_samples() -> None:
    with pytest.raises(ConfigError, match="'samples' is 0"):
        FedVC(samples=0)
