"""Data sharing: who gets which shared samples, and nothing shared is FedAvg."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from ostraka.core.method import Round
from ostraka.core.samples import Samples, View
from ostraka.errors import ConfigError, DataError, NeedError
from ostraka.methods.data_sharing import DataSharing, joined
from ostraka.runs.config import make
from ostraka.store import codec
from tests.methods.toy_line import final_state, plan_of


def test_the_shared_set_is_held_back_before_the_rest_is_divided() -> None:
    """120 samples, a fifth shared and a tenth for validation: 84 are divided,
    and nobody holds two kinds.
    """
    plan = plan_of("data-sharing", shared=0.2, validation=0.1)
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
    plan = plan_of("data-sharing", shared=0.05, set={"beta": 0.9})
    with pytest.raises(DataError, match="hold back more"):
        plan.method.local_update(
            Round(plan.task, 1, plan.method.init(plan.task, 0), 1), plan.parties[0], {}
        )
    with pytest.raises(ConfigError, match="nothing is left"):
        make({"shared": 0.6, "validation": 0.4})
    with pytest.raises(DataError, match=r"shared share of 0\.001"):
        plan_of("data-sharing", shared=0.001)


def test_a_party_keeps_the_samples_it_drew() -> None:
    """A tenth of a party's own number; another round with another seed uses the same ones."""
    plan = plan_of("data-sharing-10", shared=0.2, set={"local": {"epochs": 1}})
    start, party = plan.method.init(plan.task, 0), plan.parties[0]
    first = plan.method.local_update(Round(plan.task, 1, start, 1), party, {})
    again = plan.method.local_update(Round(plan.task, 2, start, 2), party, first.memory)
    fresh = plan.method.local_update(Round(plan.task, 2, start, 2), party, {})
    assert len(first.memory["shared"]) == round(0.1 * len(party.samples)) > 0
    assert torch.equal(first.memory["shared"], again.memory["shared"])
    assert not torch.equal(first.memory["shared"], fresh.memory["shared"])
    assert first.weight == len(party.samples)


def test_nothing_shared_is_fedavg(tmp_path: Path) -> None:
    training = {"rounds": 2, "local": {"epochs": 1}}
    sharing = final_state(plan_of("data-sharing", set={**training, "beta": 0.0}), tmp_path / "a")
    assert codec.encode(sharing) == codec.encode(
        final_state(plan_of("fedavg", set=training), tmp_path / "b")
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
