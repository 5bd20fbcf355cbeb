"""`ostraka figure`: pictures of outliers, of what a member sees, of whom a vote trusts, of accuracy."""

import argparse
from collections.abc import Callable
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any, NamedTuple

from ostraka.errors import ConfigError, DataError
from ostraka.report.canvas import FORMATS, check_suffix

if TYPE_CHECKING:
    from ostraka.runs.plan import Plan
    from ostraka.runs.results import Summary
    from ostraka.voting.ensemble import Panel

NAME = "figure"

EXAMPLE = """\
examples:
  ostraka figure outliers --data fashion-4k --out outliers.png
  ostraka run fedov --set local.epochs=20 --out runs/mine
  ostraka figure outliers --run runs/mine --party 2 --out enhanced.png
  ostraka figure features --run runs/mine --party 2 --out features.svg
  ostraka figure top-k --run runs/mine --out top-k.svg
  ostraka figure masks --run runs/fedpd --out masks.png
  ostraka figure confusion --run runs/mine --out confusion.pdf
  ostraka figure trust --run runs/mine --out trust.svg
  ostraka figure rounds --runs runs/compare --out rounds.svg
  ostraka figure rounds --runs runs/a runs/b --x bytes --out bytes.svg
"""


def add_to(verbs: Any) -> None:
    """Register the verb."""
    parser: argparse.ArgumentParser = verbs.add_parser(
        NAME,
        help="draw confusion, outliers, a member's features, accuracy against k or rounds",
        description="\n".join(fill(f"{name}: {kind.shows}.", 78) for name, kind in KINDS.items()),
        epilog=EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("what", choices=tuple(KINDS), help="what to draw")
    parser.add_argument(
        "--out", type=Path, required=True, metavar="FILE", help=f"where to draw it ({FORMATS})"
    )
    parser.add_argument(
        "--run",
        type=Path,
        metavar="DIR",
        help="a finished run (features, top-k: of a voting method)",
    )
    parser.add_argument(
        "--party", type=int, default=0, metavar="N", help="whose member (default 0)"
    )
    parser.add_argument(
        "--runs",
        type=Path,
        nargs="+",
        default=[],
        metavar="DIR",
        help="for rounds: finished runs or grids",
    )
    parser.add_argument(
        "--x",
        choices=("rounds", "bytes"),
        default="rounds",
        help="for rounds: against what (default rounds)",
    )
    parser.add_argument(
        "--data",
        default="fashion-4k",
        metavar="D",
        help="without --run: which images (default fashion-4k)",
    )
    parser.add_argument(
        "--data-dir", metavar="DIR", help="folders with data sets (also: OSTRAKA_DATA)"
    )
    parser.add_argument(
        "--seed", type=int, default=0, metavar="S", help="seed of the drawing (default 0)"
    )
    parser.set_defaults(act=act)


def act(options: argparse.Namespace) -> int:
    """Draw one figure."""
    from ostraka.engines.memory import keep_freed_memory
    from ostraka.engines.threads import one_thread

    keep_freed_memory()  # votes and evaluation run in this process
    kind = KINDS[options.what]
    for name in kind.needs:
        if not getattr(options, name):
            raise ConfigError(f"the figure {options.what!r} needs --{name}: {NEEDED[name]}")
    check_suffix(options.out)  # before anything is computed
    with one_thread():
        kind.draw(options)
    print(f"drawn: {options.out}")
    return 0


def _outliers(options: argparse.Namespace) -> None:
    from ostraka.report.gallery import draw_gallery
    from ostraka.runs.config import make
    from ostraka.runs.plan import divide

    if options.run is None:
        division = divide(
            make(
                {
                    "data": options.data,
                    "data_dir": options.data_dir,
                    "partition": "iid",
                    "parties": 1,
                }
            )
        )
        return draw_gallery(division.data.train, options.out, options.seed)
    plan, panel = _panel(options.run)
    net = _member(plan, panel, options.party)
    draw_gallery(plan.parties[options.party].samples, options.out, options.seed, net)


def _features(options: argparse.Namespace) -> None:
    from ostraka.report.features import draw_features

    plan, panel = _panel(options.run)
    net = _member(plan, panel, options.party)
    seen = [c for c, n in enumerate(plan.counts[options.party]) if n]
    draw_features(net, plan.test, seen, plan.task.classes, options.out, options.seed)


def _rounds(options: argparse.Namespace) -> None:
    from ostraka.report.rounds import draw_rounds, histories

    runs, unfinished = histories(options.runs)
    draw_rounds(runs, options.x, options.out)
    for folder in unfinished:
        print(f"left out, as it is not finished: {folder}")


def _confusion(options: argparse.Namespace) -> None:
    from ostraka.report.confusion import draw_confusion, stored_confusion

    summary = _summary(options.run)
    draw_confusion(stored_confusion(summary, str(options.run)), options.out, _title(summary))


def _trust(options: argparse.Namespace) -> None:
    from ostraka.report.trust import draw_trust, stored_trust

    summary = _summary(options.run)
    draw_trust(
        stored_trust(summary, str(options.run)),
        list(summary.per_class),
        options.out,
        _title(summary),
    )


def _summary(folder: Path) -> "Summary":
    from ostraka.runs.api import load_run

    return load_run(folder).summary


def _title(summary: "Summary") -> str:
    return f"{summary.method} on {summary.data}, {summary.partition}, seed {summary.seed}"


def _panel(folder: Path) -> "tuple[Plan, Panel]":
    from ostraka.runs.plan import make_plan
    from ostraka.runs.record import load_state
    from ostraka.voting.ensemble import Panel

    config, state = load_state(folder)
    if not isinstance(state, Panel):
        raise ConfigError(
            f"{folder} is a run of {config.method}, which has no members; take one of fedov or closed-voting"
        )
    return make_plan(config), state


def _member(plan: "Plan", panel: "Panel", party: int) -> Any:
    from ostraka.core.learner import load_predictor

    chosen = [member for member in panel.members if member.card.party == party]
    if not chosen:
        have = ", ".join(str(member.card.party) for member in panel.members)
        raise ConfigError(f"party {party} has no member in this run; members: {have}")
    return load_predictor(plan.task, plan.method.objective, chosen[0].params).net  # type: ignore[attr-defined]


def _top_k(options: argparse.Namespace) -> None:
    from ostraka.evaluation.evaluate import evaluate
    from ostraka.report.curves import Curve, accuracy_curve
    from ostraka.voting.ballots import TopK
    from ostraka.voting.ensemble import Ensemble

    plan, panel = _panel(options.run)
    ks = range(1, len(panel.members) + 1)
    values = []
    for k in ks:
        ensemble = Ensemble.of(plan.task, plan.method.objective, panel, TopK(k))  # type: ignore[attr-defined]
        accuracy = evaluate(ensemble, plan.test, plan.task.classes, domains=plan.domains).accuracy
        if accuracy is None:
            raise DataError(
                f"{options.run} has no accuracy to draw: its test samples are all of unknown classes"
            )
        values.append(accuracy)
    title = f"{plan.name} on {plan.config.data}, {plan.config.partition}, seed {plan.config.seed}"
    curve = Curve("top-k vote", list(ks), [values])
    accuracy_curve([curve], options.out, title, xlabel="members that count for a sample (k)")


def _masks(options: argparse.Namespace) -> None:
    from ostraka.methods.fedpd import Conquered
    from ostraka.report.masks import draw_masks
    from ostraka.runs.record import load_state

    config, state = load_state(options.run)
    if not isinstance(state, Conquered) or state.masks is None:
        raise ConfigError(
            f"{options.run} is a run of {config.method}, whose parties send no masks; take one of fedpd"
        )
    draw_masks(state.masks, options.out, options.party)


class Kind(NamedTuple):
    """One figure: what it shows, how it is drawn, and the options without which it cannot be."""

    shows: str
    draw: Callable[[argparse.Namespace], None]
    needs: tuple[str, ...] = ()


KINDS = {
    "outliers": Kind("samples and what destruction and enhancement make of them", _outliers),
    "features": Kind("t-SNE of a member's embedding", _features, ("run",)),
    "top-k": Kind("accuracy of the vote against the number of voters that count", _top_k, ("run",)),
    "masks": Kind(
        "which weights fedpd's parties found important for what, by layer and unit",
        _masks,
        ("run",),
    ),
    "confusion": Kind("which classes a finished run takes for which others", _confusion, ("run",)),
    "trust": Kind(
        "how far the members of a vote agree with each other, by party and class", _trust, ("run",)
    ),
    "rounds": Kind(
        "accuracy of finished runs against rounds, or against bytes sent (--x bytes)",
        _rounds,
        ("runs",),
    ),
}

NEEDED = {"run": "the folder of a finished run", "runs": "the folders of finished runs or grids"}
