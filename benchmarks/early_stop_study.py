"""Would members do better to stop by their own validation samples?

The study behind docs/results/time-to-accuracy.md.

    python benchmarks/early_stop_study.py --data fashion-mnist --train-per-class 1200 \\
        --seed 11 --epochs 100

Trains FedOV's members by the paper's recipe (constant rate), each on 9/10 of its samples, and looks
at every `--every`-th epoch: the member's objective on the tenth it kept, outliers made anew by the
same draws each time, and its closed-set accuracy there. Then the panel votes (plain sum) as if all
had stopped at the same epoch, and as if each had stopped where its own validation was best.
"""

import argparse
from dataclasses import dataclass, field

import torch

from ostraka.core.card import Card
from ostraka.core.fit import fit
from ostraka.core.learner import build_net
from ostraka.core.member import Member, Model
from ostraka.core.net import Net, Params, params_of
from ostraka.core.objective import Batch, Objective
from ostraka.core.samples import Samples
from ostraka.core.seeds import derive, torch_rng
from ostraka.evaluation.evaluate import evaluate
from ostraka.methods.fedov import FedOV
from ostraka.runs.config import Config, make
from ostraka.runs.plan import Plan, make_plan, party_seed
from ostraka.voting.ballots import Sum
from ostraka.voting.ensemble import Ensemble

PATIENCE = 3
"""Looks without a better one after which a member that stops early would have stopped."""


@dataclass(frozen=True)
class Look:
    """A member after so many epochs, and what its own validation samples say of it."""

    epoch: int
    params: Params
    loss: float
    accuracy: float


@dataclass
class Looks:
    """Looks at a network while it trains."""

    net: Net
    kept: Samples
    objective: Objective
    every: int
    looks: list[Look] = field(default_factory=list)

    def after(self, epoch: int) -> bool:
        """Look, if it is time, and let the training go on."""
        if epoch % self.every:
            return False
        self.net.eval()
        rng, y = torch_rng(0, "validation"), self.kept.labels
        batch = self.objective.prepare(Batch(self.kept.inputs(), y), rng)
        value = float(self.objective.loss(self.net, batch, rng).detach())
        with torch.no_grad():
            right = self.objective.scores(self.net, batch.x).known.argmax(dim=1) == y
        params = {name: tensor.clone() for name, tensor in params_of(self.net).items()}
        self.looks.append(Look(epoch, params, value, 100 * float(right.double().mean())))
        self.net.train()
        return False


def members(plan: Plan, method: FedOV, config: Config, every: int) -> list[list[Look]]:
    """Every member's looks."""
    found = []
    for party in plan.parties:
        seed = party_seed(config, 1, party.id)
        train, kept = party.samples.split(0.1, seed)
        watch = Looks(
            build_net(plan.task, method.objective, derive(seed, "init")),
            kept,
            method.objective,
            every,
        )
        fit(watch.net, None, train, method.objective, method.local, seed, after_epoch=watch.after)
        found.append(watch.looks)
        best = min(watch.looks, key=lambda look: look.loss)
        print(
            f"party {party.id}: {len(train)} samples, best loss {best.loss:.3f} after "
            f"{best.epoch} epochs, then {watch.looks[-1].loss:.3f}; accuracy {best.accuracy:.1f}, "
            f"then {watch.looks[-1].accuracy:.1f}",
            flush=True,
        )
    return found


def patient(looks: list[Look]) -> Look:
    """The best look that a member finds if it gives up after
    PATIENCE looks without a better one.
    """
    best = looks[0]
    for look in looks[1:]:
        if look.loss < best.loss:
            best = look
        elif look.epoch - best.epoch >= PATIENCE * (looks[1].epoch - looks[0].epoch):
            break
    return best


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", default="fashion-mnist")
    parser.add_argument("--partition", default="labels:2")
    parser.add_argument("--train-per-class", type=int, default=1200)
    parser.add_argument("--seed", type=int, default=11)
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--every", type=int, default=5, help="epochs between two looks")
    options = parser.parse_args()
    torch.set_num_threads(1)
    config = make({
        "method": "fedov", "data": options.data, "partition": options.partition,
        "seed": options.seed, "train_per_class": options.train_per_class,
        "set": {"recipe": "paper", "local": {"epochs": options.epochs}, "ballot": "sum"},
    })  # fmt: skip
    plan = make_plan(config)
    method = plan.method
    assert isinstance(method, FedOV)
    looks = members(plan, method, config, options.every)

    def vote(name: str, chosen: list[Look]) -> None:
        model = Model.of(plan.task, method.objective)
        members = [Member(Card(i, 0), model, look.params) for i, look in enumerate(chosen)]
        ensemble = Ensemble.of(members, Sum())
        accuracy = evaluate(ensemble, plan.test.samples, plan.task.classes).accuracy
        epochs = sum(look.epoch for look in chosen) / len(chosen)
        print(f"{name:40} {accuracy:5.1f}   {epochs:5.1f} epochs on average", flush=True)

    for at in range(3, len(looks[0]), 4):
        vote(f"all after {looks[0][at].epoch} epochs", [one[at] for one in looks])
    vote(
        "each at its best validation loss", [min(one, key=lambda look: look.loss) for one in looks]
    )
    vote(f"each until {PATIENCE} looks bring none better", [patient(one) for one in looks])
    vote(
        "each at its best validation accuracy",
        [max(one, key=lambda look: look.accuracy) for one in looks],
    )


if __name__ == "__main__":
    main()
