"""What FedPD's maps do to the networks, round by round: the study behind docs/results/fedpd.md.

    python benchmarks/map_study.py --rounds 6 --data hdr-fl --train-per-class 600 --width 0.25

Trains FedPD's parties in this process. Every round it prints, for each part (close-only, open-only,
shared) and each group of hidden units, the share of units that the map moves away from their place,
as a mean over all parties but the reference; and accuracy / AUROC of the server's model under each
way to merge the very same reports. Training goes on from the model of `--follow`.
"""

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from ostraka.alignment.match import match
from ostraka.alignment.parts import CLOSE, OPEN, only
from ostraka.core.learner import build_net
from ostraka.core.method import Report, Round
from ostraka.evaluation.evaluate import Evaluation, evaluate
from ostraka.methods.fedpd import Conquered, Disentangled, FedPD
from ostraka.runs.config import make
from ostraka.runs.plan import Plan, make_plan, party_seed
from ostraka.runs.record import load_state

WAYS: dict[str, dict[str, Any]] = {
    "average": {"merge": "average"},
    "one map": {"maps": "one"},
    "parts, rest stays": {"remainder": "average"},
    "parts": {},
    "parts, rest dropped": {"remainder": "drop"},
    "unaligned, rest dropped": {"conquer": False, "remainder": "drop"},
}
PARTS = {"close": CLOSE, "open": OPEN, "shared": CLOSE | OPEN}


def moved_units(
    plan: Plan, method: FedPD, reports: list[Report[Disentangled]]
) -> dict[str, dict[str, float]]:
    """For each part, group of units to the share of them that is not mapped to itself."""
    layers = build_net(plan.task, method.objective).anatomy()
    target, *others = (report.payload for report in reports)
    shares: dict[str, dict[str, float]] = {"whole": {}, **{name: {} for name in PARTS}}
    for one in others:
        maps = {"whole": match(layers, one.params, target.params, method.solver())}
        base = None
        for name, part in reversed(PARTS.items()):  # the shared part's map settles the others' ties
            sides = (only(p.params, p.masks, part, divide=True) for p in (one, target))
            maps[name] = match(layers, *sides, method.solver(), prefer=base)
            base = base or maps[name]
        for name, ways in maps.items():
            for group, way in ways.items():
                away = float((way != torch.arange(len(way))).double().mean())
                shares[name][group] = shares[name].get(group, 0.0) + away / len(others)
    return shares


def figures(plan: Plan, method: FedPD, state: Conquered) -> Evaluation:
    return evaluate(
        method.predictor(plan.task, state),
        plan.test.samples,
        plan.task.classes,
        domains=plan.test.domains,
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", default="hdr-fl")
    parser.add_argument("--partition", default="domain")
    parser.add_argument("--train-per-class", type=int, default=600)
    parser.add_argument("--known", type=int, default=6)
    parser.add_argument("--width", type=float, default=0.25, help="of the digits network")
    parser.add_argument("--rounds", type=int, default=6, help="rounds to run")
    parser.add_argument(
        "--of", type=int, default=40, help="rounds of the whole schedule: half of them are closed"
    )
    parser.add_argument(
        "--first",
        type=int,
        default=1,
        help="number of the first round: past half of --of, it is open",
    )
    parser.add_argument(
        "--start", type=Path, help="begin with the model of this finished run of fedpd"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--follow", choices=WAYS, default="parts", help="whose model training goes on from"
    )
    options = parser.parse_args()
    torch.set_num_threads(1)
    config = make({
        "method": "fedpd", "data": options.data, "partition": options.partition,
        "known": options.known, "train_per_class": options.train_per_class, "seed": options.seed,
        "net": {"name": "digits", "options": {"width": options.width}},
        "set": {"rounds": options.of},
    })  # fmt: skip
    plan = make_plan(config)
    method = plan.method
    assert isinstance(method, FedPD)
    state = load_state(options.start)[1] if options.start else method.init(plan.task, config.seed)
    for index in range(options.first, options.first + options.rounds):
        reports = [
            method.local_update(
                Round(plan.task, index, state.params, party_seed(config, index, party.id)),
                party,
                {},
            )
            for party in plan.parties
        ]
        print(f"round {index}")
        for name, groups in moved_units(plan, method, reports).items():
            print(
                f"  moved, {name:6}",
                "  ".join(f"{group} {100 * share:5.1f} %" for group, share in groups.items()),
            )
        models = {}
        for name, settings in WAYS.items():
            models[name] = replace(method, **settings).aggregate(plan.task, state, reports)
            found = figures(plan, method, models[name])
            assert found.open is not None
            print(f"  {name:24} {found.accuracy:6.2f} / {found.open.auroc:6.2f}", flush=True)
        state = models[options.follow]


if __name__ == "__main__":
    main()
