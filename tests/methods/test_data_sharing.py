"""Data sharing: who gets which shared samples, and nothing shared is FedAvg."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from ostraka.core.method import Round
from ostraka.core.samples import Samples, View
from ostraka.errors import ConfigError, DataError, NeedError
from ostraka.federation.plan import plan_for_own_data
from ostraka.methods.data_sharing import DataSharing, joined
from ostraka.runs.commons import shared_with_all
from ostraka.runs.config import make
from ostraka.runs.division import divide
from ostraka.runs.loop import execute
from ostraka.runs.record import RunDir
from ostraka.store import codec
from tests.methods.toy_line import final_state, plan_of

TRAINING = {"rounds": 2, "local": {"epochs": 1}}


def test_the_shared_set_is_held_back_before_the_rest_is_divided() -> None:
    """120 samples, a fifth shared and a tenth for validation: 84 are divided,
    and nobody holds two kinds.
    """
    plan = plan_of("data-sharing", shared=0.2, validation=0.1, set={"sets": "each"})
    shared, held = plan.task.commons.shared, plan.validation
    assert shared is not None
    assert held is not None
    assert shared.rows is not None
    assert held.samples.rows is not None
    rows = [set(tensor.tolist()) for tensor in (plan.parties.rows, shared.rows, held.samples.rows)]
    assert [len(r) for r in rows] == [84, 24, 12]
    assert len(set.union(*rows)) == 120
    assert shared.labels.min() >= 0


def test_a_validation_share_alone_is_divided_as_before() -> None:
    """A shared set changes nothing for runs without one:
    the same validation rows with and without it.
    """
    alone, both = plan_of("fedavg", validation=0.1), plan_of("fedavg", validation=0.1, shared=0.1)
    assert alone.validation is not None
    assert both.validation is not None
    assert torch.equal(alone.validation.samples.rows, both.validation.samples.rows)  # type: ignore[arg-type]
    assert alone.task.commons.shared is None


def test_shared_samples_are_needed_and_must_suffice() -> None:
    with pytest.raises(NeedError, match="shared"):
        plan_of("data-sharing")
    with pytest.raises(DataError, match=r"38 samples on average.* is 34; .* are 6 samples"):
        plan_of("data-sharing", shared=0.05, set={"beta": 0.9})
    with pytest.raises(DataError, match=r"0\.01 times .* \(38; .* has no sample"):
        plan_of("data-sharing", shared=0.05, set={"beta": 0.01})
    plan = plan_of("data-sharing", shared=0.05, set={"beta": 0.9, "sets": "each"})
    with pytest.raises(DataError, match=r"party-0 has 38 .* Hold back more"):
        plan.method.local_update(
            Round(plan.task, 1, plan.method.init(plan.task, 0), 1), plan.parties[0], {}
        )
    with pytest.raises(ConfigError, match="nothing is left"):
        make({"shared": 0.6, "validation": 0.4})
    with pytest.raises(DataError, match=r"shared share of 0\.001"):
        plan_of("data-sharing", shared=0.001)


def test_a_party_keeps_the_samples_it_drew() -> None:
    """A tenth of a party's own number; another round with another seed uses the same ones."""
    plan = plan_of("data-sharing-10", shared=0.2, set={"sets": "each", "local": {"epochs": 1}})
    start, party = plan.method.init(plan.task, 0), plan.parties[0]
    first = plan.method.local_update(Round(plan.task, 1, start, 1), party, {})
    again = plan.method.local_update(Round(plan.task, 2, start, 2), party, first.memory)
    fresh = plan.method.local_update(Round(plan.task, 2, start, 2), party, {})
    assert len(first.memory["shared"]) == round(0.1 * len(party.samples)) > 0
    assert torch.equal(first.memory["shared"], again.memory["shared"])
    assert not torch.equal(first.memory["shared"], fresh.memory["shared"])
    assert first.weight == len(party.samples)


def test_all_parties_get_one_set_of_the_size_of_a_mean_party() -> None:
    """FedOVA's section V-C: |D_s| = beta |D_k|. 120 samples, 24 of them held back: three parties of
    96 in all have 32 on average, whatever each of them holds; a quarter of that is 8."""
    plans = [
        plan_of("data-sharing", shared=0.2, seed=seed, set={"beta": 0.25, **TRAINING})
        for seed in (0, 0, 1)
    ]
    sizes = [ref.size for ref in plans[0].parties.roster()]
    assert sum(sizes) == 96
    assert len(set(sizes)) > 1
    sets = [plan.task.commons.shared for plan in plans]
    rows = [() if one is None or one.rows is None else tuple(one.rows.tolist()) for one in sets]
    assert len(set(rows[0])) == 8
    assert rows[0] == rows[1]
    assert rows[0] != rows[2]
    assert not set(rows[0]) & set(plans[0].parties.rows.tolist())


def test_the_draw_is_the_runs_own_from_the_same_samples() -> None:
    """Another seed draws others of one pool, and a larger share has the smaller one's first."""
    values = {"method": "data-sharing", "data": "digits", "parties": 3, "partition": "iid"}
    config = make({**values, "shared": 0.2})
    division = divide(config)
    drawn = [
        shared_with_all(replace(config, seed=seed), division, share)
        for seed, share in ((0, 0.05), (0, 0.05), (1, 0.05), (0, 0.1))
    ]
    rows = [one.row_numbers.tolist() for one in drawn if one is not None]
    assert rows[0] == rows[1] == rows[3][: len(rows[0])]
    assert rows[0] != rows[2]
    assert len(rows[3]) == round(0.1 * division.counts.sum() / 3)


def test_every_party_trains_on_its_own_samples_and_on_that_set(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In any round, with nothing to remember; a party's weight counts its own samples alone."""
    plan = plan_of("data-sharing", shared=0.2, set={"beta": 0.25, **TRAINING})
    seen: list[Samples] = []
    plain = DataSharing.train

    def train(self: DataSharing, *given: Any, samples: Samples, **more: Any) -> Any:
        seen.append(samples)
        return plain(self, *given, samples=samples, **more)

    monkeypatch.setattr(DataSharing, "train", train)
    start, shared = plan.method.init(plan.task, 0), plan.task.commons.shared
    assert shared is not None
    for index, party in [(1, plan.parties[0]), (2, plan.parties[0]), (2, plan.parties[1])]:
        report = plan.method.local_update(Round(plan.task, index, start, index), party, {})
        assert report.memory == {}
        assert report.weight == len(party.samples)
        own = len(party.samples)
        assert len(seen[-1]) == own + 8
        assert torch.equal(seen[-1].stored()[own:], shared.stored())
        assert torch.equal(seen[-1].labels[own:], shared.labels)


def test_what_is_sent_is_the_one_set_and_not_what_was_held_back(tmp_path: Path) -> None:
    """Bytes down are those of FedAvg and of 8 samples for each of three parties."""
    own = plan_of("fedavg", shared=0.2, set=TRAINING)
    sharing = plan_of("data-sharing", shared=0.2, set={"beta": 0.25, **TRAINING})
    shared = sharing.task.commons.shared
    assert shared is not None
    each = codec.size_of({"shared.x": shared.stored(), "shared.y": shared.labels})
    down = [execute(plan, RunDir(tmp_path / plan.name)).bytes_down for plan in (own, sharing)]
    assert len(shared) == 8
    assert down[1] - down[0] == 3 * each


def test_parties_whose_sizes_nobody_knows_yet_draw_their_own() -> None:
    """In a federation the parties have their own data, and tell how much when they join."""
    values = {"method": "data-sharing", "data": "digits", "shared": 0.2}
    with pytest.raises(DataError, match=r"mean size \(0; .*--set sets=each"):
        plan_for_own_data(make(values), ("north", "east"))
    plan = plan_for_own_data(make({**values, "set": {"sets": "each"}}), ("north", "east"))
    assert plan.task.commons.shared is not None


def test_nothing_shared_is_fedavg(tmp_path: Path) -> None:
    sharing = final_state(plan_of("data-sharing", set={**TRAINING, "beta": 0.0}), tmp_path / "a")
    assert codec.encode(sharing) == codec.encode(
        final_state(plan_of("fedavg", set=TRAINING), tmp_path / "b")
    )


def test_joined_samples_by_hand() -> None:
    own = Samples(
        torch.tensor([[1.0], [2.0], [3.0]]), torch.tensor([0, 1, 2]), rows=torch.tensor([2, 0])
    )
    both = joined(own, Samples(torch.tensor([[9.0]]), torch.tensor([5])))
    assert both.inputs().flatten().tolist() == [3.0, 1.0, 9.0]
    assert both.labels.tolist() == [2, 0, 5]
    with pytest.raises(DataError, match="one view"):
        joined(own, replace(own, view=View(scale=2.0)))


def test_a_negative_share_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"'beta' is -0\.1; it must be at least 0"):
        DataSharing(beta=-0.1)
