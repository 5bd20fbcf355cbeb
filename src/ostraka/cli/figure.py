"""`ostraka figure`: pictures of outliers, of what a member sees, and of the vote against the number of voters."""

import argparse
from pathlib import Path
from typing import Any

from ostraka.core.learner import load_predictor
from ostraka.engines.threads import one_thread
from ostraka.errors import ConfigError
from ostraka.evaluation.evaluate import evaluate
from ostraka.report.curves import Curve, accuracy_curve
from ostraka.report.features import draw_features
from ostraka.report.gallery import draw_gallery
from ostraka.runs.config import make
from ostraka.runs.plan import Plan, divide, make_plan
from ostraka.runs.record import load_run
from ostraka.voting.ballots import TopK
from ostraka.voting.ensemble import Ensemble, Panel

NAME = "figure"

EXAMPLE = """\
examples:
  ostraka figure outliers --data fashion-4k --out outliers.png
  ostraka run fedov --set local.epochs=20 --out runs/mine
  ostraka figure outliers --run runs/mine --party 2 --out enhanced.png
  ostraka figure features --run runs/mine --party 2 --out features.svg
  ostraka figure top-k --run runs/mine --out top-k.svg
"""


def add_to(verbs: Any) -> None:
    """Register the verb."""
    parser: argparse.ArgumentParser = verbs.add_parser(
        NAME,
        help="draw outliers, a member's features, accuracy against k",
        description="outliers: samples and what destruction and enhancement make of them.\n"
        "features: t-SNE of a member's embedding.\n"
        "top-k: accuracy of the vote against the number of voters that count.",
        epilog=EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("what", choices=("outliers", "features", "top-k"), help="what to draw")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="where to draw it (.svg or .png)")
    parser.add_argument("--run", type=Path, metavar="DIR", help="a finished run of a voting method")
    parser.add_argument("--party", type=int, default=0, metavar="N", help="whose member (default 0)")
    parser.add_argument(
        "--data", default="fashion-4k", metavar="D", help="without --run: which images (default fashion-4k)"
    )
    parser.add_argument("--data-dir", metavar="DIR", help="folders with data sets (also: OSTRAKA_DATA)")
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="seed of the drawing (default 0)")
    parser.set_defaults(act=act)


def act(options: argparse.Namespace) -> int:
    """Draw one figure."""
    if options.run is None:
        if options.what != "outliers":
            raise ConfigError(f"the figure {options.what!r} needs --run: the folder of a finished run")
        division = divide(make({"data": options.data, "data_dir": options.data_dir, "partition": "iid", "parties": 1}))
        draw_gallery(division.data.train, options.out, options.seed)
    else:
        with one_thread():
            _from_run(options)
    print(f"drawn: {options.out}")
    return 0


def _from_run(options: argparse.Namespace) -> None:
    plan, panel = _panel(options.run)
    if options.what == "top-k":
        return _top_k(plan, panel, options.out)
    net = _member(plan, panel, options.party)
    if options.what == "features":
        seen = [c for c, n in enumerate(plan.counts[options.party]) if n]
        draw_features(net, plan.test, seen, plan.task.classes, options.out, options.seed)
    else:
        draw_gallery(plan.parties[options.party].samples, options.out, options.seed, net)


def _panel(folder: Path) -> tuple[Plan, Panel]:
    config, state = load_run(folder)
    if not isinstance(state, Panel):
        raise ConfigError(
            f"{folder} is a run of {config.method}, which has no members; take one of fedov or closed-voting"
        )
    return make_plan(config), state


def _member(plan: Plan, panel: Panel, party: int) -> Any:
    chosen = [member for member in panel.members if member.card.party == party]
    if not chosen:
        have = ", ".join(str(member.card.party) for member in panel.members)
        raise ConfigError(f"party {party} has no member in this run; members: {have}")
    return load_predictor(plan.task, plan.method.objective, chosen[0].params).net  # type: ignore[attr-defined]


def _top_k(plan: Plan, panel: Panel, path: Path) -> None:
    ks = range(1, len(panel.members) + 1)
    values = []
    for k in ks:
        ensemble = Ensemble.of(plan.task, plan.method.objective, panel, TopK(k))  # type: ignore[attr-defined]
        values.append(evaluate(ensemble, plan.test, plan.task.classes).accuracy or 0.0)
    title = f"{plan.config.data}, {plan.config.partition}, seed {plan.config.seed}"
    accuracy_curve([Curve("top-k vote", list(ks), [values])], path, title, xlabel="members that count for a sample (k)")
