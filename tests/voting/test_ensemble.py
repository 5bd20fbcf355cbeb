"""Members that vote: each with its own statistics, and the one that cannot answer is named."""

import pytest
import torch

from ostraka.core.card import Card
from ostraka.core.member import Member, Model
from ostraka.core.net import Recipe, params_of
from ostraka.core.samples import Samples
from ostraka.core.task import Commons, Task
from ostraka.errors import DataError
from ostraka.methods import panel as panel_module
from ostraka.methods.fedov import FedOV
from ostraka.objectives.distil import Distillation
from ostraka.objectives.open_voting import OpenVoting
from ostraka.voting.ballots import Sum, TopK
from ostraka.voting.calibrated import Calibrated
from ostraka.voting.calibration import measure, typicality
from ostraka.voting.ensemble import Ensemble
from ostraka.voting.panel import Panel, Seat

OBJECTIVE = OpenVoting(outliers="none")
TASK = Task(("ant", "bee"), (4,), Recipe("mlp", {"hidden": [5]}))


def member(number: int, scale: float = 1.0) -> Member:
    """A random network, told with the statistics of random samples of its own."""
    net = TASK.build_net(unknown=True, seed=number)
    rng = torch.Generator().manual_seed(number)
    samples = Samples(3.0 * number + torch.randn(40, 4, generator=rng), torch.arange(40) % 2)
    card = Card(
        number,
        40,
        (20, 20),
        calibration=measure(net, OBJECTIVE, samples, typicality=True),
        name=f"p{number}",
    )
    params = {name: tensor * scale for name, tensor in params_of(net).items()}
    return Member(card, Model.of(TASK, OBJECTIVE), params)


def test_every_members_typicality_is_its_own() -> None:
    members = [member(i) for i in range(3)]
    ensemble = Ensemble.of(members, Calibrated())
    x = torch.randn(6, 4, generator=torch.Generator().manual_seed(9))
    found = ensemble.votes(x).typicality
    assert found is not None
    with torch.no_grad():
        for i, own in enumerate(members):
            net = own.predictor().net
            torch.testing.assert_close(
                found[i], typicality(net.embed(x), own.card.calibration["typicality"])
            )
    assert not torch.allclose(found[0], found[1])


def test_a_member_that_answers_no_number_is_named() -> None:
    members = [member(0), member(1, scale=1e30), member(2)]
    with pytest.raises(DataError, match="the member of p1 answers with NaN or infinity"):
        Ensemble.of(members, Sum()).scores(torch.ones(3, 4))


@pytest.mark.parametrize(
    "ballot", [Sum(), TopK(1), Calibrated()], ids=["sum", "top-k", "calibrated"]
)
def test_a_student_learns_what_its_ballot_says(
    ballot: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The targets are the ballot's shares: not another ballot's, and every row sums to 1."""
    learnt: list[torch.Tensor] = []

    def fit(
        net: torch.nn.Module, start: None, samples: Samples, goal: Distillation, *rest: object
    ) -> object:
        learnt.append(goal.targets)
        return type("Fitted", (), {"params": params_of(net)})

    monkeypatch.setattr(panel_module, "fit", fit)
    x = torch.randn(50, 4, generator=torch.Generator().manual_seed(5))
    task = Task(TASK.classes, TASK.shape, TASK.net, Commons(public=Samples(x)))
    members = [member(i) for i in range(3)]
    panel = Panel(tuple(Seat(one.card, one.params) for one in members))
    method = FedOV(objective=OBJECTIVE, ballot=ballot)  # type: ignore[arg-type]
    method._student(task, panel, Samples(x))
    expected = method.ballot.shares(Ensemble.of(members, method.ballot).scores(x))
    torch.testing.assert_close(learnt[0], expected)
    torch.testing.assert_close(learnt[0].sum(dim=1), torch.ones(50))
    others = [b for b in (Sum(), TopK(1), Calibrated()) if b != ballot]
    for other in others:
        shares = other.shares(Ensemble.of(members, other).scores(x))
        assert not torch.allclose(learnt[0], shares, atol=1e-3)
