"""Accuracy against epsilon, and what the loss attack finds with and without differential privacy.

One party trains on 700 images of scikit-learn's digits (8x8) or of fashion-4k (28x28). Accuracy is
that on the test images; the attack compares the 700 with 700 others that nobody trained on.

    python -m benchmarks.privacy_study            # cross-entropy, then FedOV's objective
    python -m benchmarks.privacy_study --seeds 0 --data fashion-4k --only cross-entropy --epsilon 8
"""

import argparse
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from statistics import fmean

import torch

from ostraka.core.fit import Budget
from ostraka.core.member import Member, Model
from ostraka.core.net import Recipe
from ostraka.core.objective import Objective
from ostraka.core.party import Party, PartyRef
from ostraka.core.private import Private
from ostraka.core.samples import Samples
from ostraka.data import load
from ostraka.methods.fedov import GENTLE
from ostraka.methods.panel import PRIVATE
from ostraka.objectives.cross_entropy import CrossEntropy
from ostraka.objectives.open_voting import OpenVoting
from ostraka.parties.audit import Audit, audit
from ostraka.voting.accountant import noise_for
from ostraka.voting.training import Terms, train_member

EACH = 700
USUAL = Budget(epochs=60, batch=32, optimiser="adam", lr=0.004, schedule="cosine")
"""The one-shot methods' training."""
GUARDED = Budget(epochs=20, batch=140, optimiser="adam", lr=0.01, weight_decay=0.0)
"""Larger batches: the noise of a step is shared by more samples."""
DELTA = 1e-4
EPSILONS: Mapping[str, tuple[float, ...]] = {
    "cross-entropy": (0, 16, 8, 4, 2, 1, 0.5),
    "fedov": (0, 8, 2),
}
OBJECTIVES: Mapping[str, Objective] = {
    "cross-entropy": CrossEntropy(),
    "fedov": OpenVoting(outliers="fedov", w_adversarial=0.0),
}


@dataclass(frozen=True)
class Outcome:
    """One member."""

    accuracy: float
    noise: float
    found: Audit
    seconds: float


def main() -> None:
    """All rows, as they are done."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--data", choices=("digits", "fashion-4k"), default="digits")
    parser.add_argument("--only", choices=OBJECTIVES)
    parser.add_argument("--epsilon", type=float, nargs="+", help="0: none; default: all")
    options = parser.parse_args()
    torch.set_num_threads(1)
    print("| objective | epsilon | noise | accuracy | AUC (range) | caught at 1 % | loss | s |")
    print("|---|---|---|---|---|---|---|---|")
    for name in OBJECTIVES if options.only is None else (options.only,):
        for epsilon in options.epsilon or EPSILONS[name]:
            show(name, epsilon, [outcome(options.data, name, epsilon, s) for s in options.seeds])
    show("neither side trained on", 0, [blank(options.data, options.seeds[0])])


def outcome(data: str, name: str, epsilon: float, seed: int) -> Outcome:
    """Train one member and attack it."""
    started = time.process_time()
    inside, outside, test = parts(data, seed)
    objective = GENTLE if epsilon and name == "fedov" else OBJECTIVES[name]
    dp = Private(epsilon, DELTA) if epsilon else Private()
    budget = (USUAL if not epsilon else GUARDED) if name == "cross-entropy" else (
        replace(USUAL, epochs=30) if not epsilon else PRIVATE
    )  # fmt: skip
    member = made(data, objective, Terms(budget, hold_out=0.0, dp=dp), inside, seed)
    noise = noise_for(dp, budget, EACH, 10).multiplier if epsilon else 0.0
    found = audit(member, inside, outside, seed)
    return Outcome(accuracy(member, test), noise, found, time.process_time() - started)


def blank(data: str, seed: int) -> Outcome:
    """The attack on a member that saw neither side: what chance alone gives."""
    inside, outside, test = parts(data, seed)
    half = EACH // 2
    member = made(data, CrossEntropy(), Terms(replace(USUAL, epochs=15), hold_out=0.0), test, seed)
    found = audit(member, inside.take(slice(0, half)), outside, seed)
    return Outcome(float("nan"), 0.0, found, 0.0)


def made(name: str, objective: Objective, terms: Terms, samples: Samples, seed: int) -> Member:
    """The member that one party makes of these samples."""
    data = load(name)
    recipe = Recipe("mlp", {"hidden": [64]})
    model = Model(data.classes, data.train.shape, recipe, objective, data.train.view)
    return train_member(model, terms, Party(PartyRef(0, len(samples)), samples), seed)


def parts(name: str, seed: int) -> tuple[Samples, Samples, Samples]:
    """What is trained on, what is not, and what accuracy is asked of."""
    data = load(name)
    order = torch.randperm(len(data.train), generator=torch.Generator().manual_seed(seed))
    inside, outside = (data.train.take(order[i : i + EACH]) for i in (0, EACH))
    return inside, outside, data.test


def accuracy(member: Member, test: Samples) -> float:
    """The share of closed answers that are right, in %."""
    answers = member.predictor().scores(test.stored()).closed
    return 100 * float((answers == test.labels).float().mean())


def show(name: str, epsilon: float, all_of: list[Outcome]) -> None:
    """One row: means over the seeds; the range of the first seed's AUC."""
    right = [one.accuracy for one in all_of]
    spread = f" ({min(right):.1f} to {max(right):.1f})" if len(right) > 1 else ""
    auc, caught = (
        fmean(getattr(one.found, key).value for one in all_of) for key in ("auc", "caught")
    )
    first = all_of[0].found.auc
    print(
        f"| {name} | {epsilon or 'none'} | {all_of[0].noise:.2f} | {fmean(right):.1f} %{spread} | "
        f"{auc:.3f} ({first.low:.3f} to {first.high:.3f}) | {caught:.1%} | "
        f"{fmean(one.found.loss_members for one in all_of):.3f} / "
        f"{fmean(one.found.loss_others for one in all_of):.3f} | "
        f"{fmean(one.seconds for one in all_of):.1f} |",
        flush=True,
    )


if __name__ == "__main__":
    main()
