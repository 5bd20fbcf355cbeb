"""What FedPD's server makes of one model in two orders: a study behind docs/results/fedpd.md.

    python benchmarks/permuted_copies.py --net digits --width 0.1

Trains FedPD at one party, permutes the hidden units of its model and of its masks, and merges the
model with its permuted copy under every `maps` and `remainder`. Both answer the same, so a merge
that loses something has moved some weights of a unit and left others. Prints accuracy, AUROC and
the largest change of a weight.
"""

import argparse
from dataclasses import replace
from typing import Any, get_args

import torch

from ostraka.alignment.match import hidden_groups, move
from ostraka.alignment.parts import Remainder
from ostraka.core.learner import build_net
from ostraka.core.method import Report, Round
from ostraka.core.net import Params
from ostraka.core.seeds import torch_rng
from ostraka.evaluation.evaluate import evaluate
from ostraka.methods.fedpd import Conquered, Disentangled, FedPD
from ostraka.runs.config import make
from ostraka.runs.plan import make_plan


def main() -> None:
    """Train, permute, merge, print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--data", default="digits")
    parser.add_argument("--net", default="digits")
    parser.add_argument("--width", type=float, default=0.1, help="of the net digits")
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    width: dict[str, Any] = {"width": options.width} if options.net == "digits" else {}
    values = {
        "method": "fedpd", "data": options.data, "known": 6, "parties": 1, "partition": "iid",
        "net": {"name": options.net, "options": width}, "seed": options.seed,
        "set": {"local": {"epochs": options.epochs}},
    }  # fmt: skip
    plan = make_plan(make(values))
    method: FedPD = plan.method  # type: ignore[assignment]
    start = method.init(plan.task, options.seed).params
    own = method.local_update(Round(plan.task, 1, start, options.seed), plan.parties[0], {})
    layers = build_net(plan.task, method.objective).anatomy()
    params, masks, rng = own.payload.params, own.payload.masks, torch_rng(options.seed, "order")
    sizes = {layer.outputs: len(params[layer.weight]) for layer in layers}
    maps = {group: torch.randperm(sizes[group], generator=rng) for group in hidden_groups(layers)}
    moved = move(layers, {**params, **masks}, maps)
    copy = Disentangled(move(layers, params, maps), {name: moved[name] for name in masks})
    reports = [own, Report(copy, own.weight, replace(own.card, party=1))]

    def say(name: str, merged: Params) -> None:
        predictor = method.predictor(plan.task, Conquered(merged))
        found = evaluate(predictor, plan.test.samples, plan.task.classes)
        change = max(float((merged[key] - params[key]).abs().max()) for key in params)
        print(f"{name}: {found.accuracy:.1f} / {found.open.auroc:.1f}, change {change:.3g}")

    say("the model", params)
    for way in ("parts", "one"):
        for remainder in get_args(Remainder):
            one = replace(method, maps=way, remainder=remainder)
            say(f"maps={way} remainder={remainder}",
                one.aggregate(plan.task, Conquered({}), reports).params)  # fmt: skip


if __name__ == "__main__":
    main()
