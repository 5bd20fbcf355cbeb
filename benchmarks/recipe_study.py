"""Which training makes the best members?

FedOV under a list of variants, cell by cell, for choosing a recipe.

    python benchmarks/recipe_study.py --out recipes.jsonl --data digits fashion-4k \\
        --partition labels:1 labels:2 --seeds 0 1 --judge held-out --variant base \\
        --variant wide objective.outliers=wide local.most_steps=900

A variant is a name and settings of `fedov`, as `ostraka run --set` takes them; `net=vgg9` and
`net.width=2` choose the network. A cell is a variant, a data set, a partition, a seed and a number
of training samples per class (`all`, or the first N). Its members are trained once, and judged on
the data's test samples or, to choose without looking at those, on a fifth of the training samples
that no party gets (`--judge held-out`: then the test set is not used at all).

Columns: accuracy (%) of the plain sum and of the variant's own ballot (default: calibrated) on the
same members; the members' mean AUROC (%) between the classes they hold and the others, by their
probability of unknown; CPU-seconds. Every finished cell is a line of the file `--out`; a second
call runs only what is missing there. A cell that fails is named and does not stop the others. At
the end: means over seeds.
"""

import argparse
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from statistics import mean
from tempfile import TemporaryDirectory
from typing import Any

import torch

from ostraka.errors import OstrakaError
from ostraka.evaluation.metrics import accuracy, auroc
from ostraka.methods.fedov import FedOV
from ostraka.runs.config import Config, build_method, make, parse_assignments
from ostraka.runs.loop import execute
from ostraka.runs.plan import Plan, make_plan
from ostraka.runs.record import RunDir, load_state
from ostraka.voting.ballots import Sum
from ostraka.voting.calibrated import counts_of
from ostraka.voting.calibration import log_odds
from ostraka.voting.panel import Panel

HELD_OUT = 0.2
FIGURES = {"sum": ".1f", "ballot": ".1f", "auroc": ".2f", "cpu_seconds": ".1f"}
PLACE = ("data", "partition", "per_class", "seed")
GROUP = ("data", "partition", "per_class", "variant")

Cell = dict[str, Any]
"""What decides the numbers, as it is written into the results."""


def cells(options: argparse.Namespace) -> Iterator[Cell]:
    """Every cell: seeds outermost, so that all variants have been seen once early on."""
    for seed, data, partition, per_class, (name, *settings) in product(
        options.seeds, options.data, options.partition, options.per_class, options.variant
    ):
        yield {
            "variant": name, "settings": sorted(settings), "data": data, "partition": partition,
            "seed": seed, "per_class": per_class, "parties": options.parties,
            "judge": options.judge,
        }  # fmt: skip


def config_of(cell: Cell, workers: int | None) -> Config:
    values = parse_assignments(cell["settings"])
    net = values.pop("net", {})
    net = {"name": net} if isinstance(net, str) else dict(net)
    return make({
        "method": "fedov", "data": cell["data"], "partition": cell["partition"],
        "seed": cell["seed"], "train_per_class": cell["per_class"], "parties": cell["parties"],
        "workers": workers, "set": values, "net": {"name": net.pop("name", "auto"), "options": net},
        "validation": HELD_OUT if cell["judge"] == "held-out" else 0.0,
    })  # fmt: skip


def run(cell: Cell, workers: int | None) -> dict[str, float]:
    """Train the members of a cell and judge them."""
    plan = make_plan(config_of(cell, workers))
    if cell["judge"] == "held-out":
        assert plan.validation is not None
        plan = replace(plan, test=plan.validation, validation=None)
    with TemporaryDirectory() as folder:
        summary = execute(plan, RunDir(Path(folder)))
        panel = load_state(Path(folder))[1]
    return judge(plan, panel) | {"cpu_seconds": summary.cpu_seconds}


@torch.no_grad()
def judge(plan: Plan, panel: Panel) -> dict[str, float]:
    method, labels = plan.method, plan.test.samples.labels
    assert isinstance(method, FedOV)
    ensemble = method.ensemble(plan.task, panel)
    parts = [ensemble.votes(part.stored()) for part in plan.test.samples.chunks(1000)]
    figures = {}
    for name, ballot in {"sum": Sum(), "ballot": method.ballot}.items():
        answers = torch.cat([ballot.count(votes).closed for votes in parts])
        figures[name] = 100 * (accuracy(answers, labels) or 0.0)
    doubts = torch.cat([log_odds(votes.logits) for votes in parts], dim=1)
    strange = counts_of(ensemble.votes(plan.test.samples.stored(slice(0, 1))))[:, labels] == 0
    each = [auroc(doubt, unknown) for doubt, unknown in zip(doubts, strange, strict=True)]
    # a member that holds every class has none
    known = [value for value in each if value is not None]
    return figures | ({"auroc": 100 * mean(known)} if known else {})


def finished(path: Path) -> list[tuple[Cell, dict[str, float]]]:
    lines = path.read_text().splitlines() if path.exists() else []
    return [(record["cell"], record["figures"]) for record in map(json.loads, lines)]


def table(path: Path, wanted: list[Cell]) -> None:
    """Means over the seeds that are there.

    At the end, over all places where every variant has been.
    """
    done = [(cell, figures) for cell, figures in finished(path) if cell in wanted]
    variants = {cell["variant"] for cell in wanted}
    met: dict[tuple[Any, ...], set[str]] = {}
    groups: dict[tuple[Any, ...], list[dict[str, float]]] = {}
    for cell, figures in done:
        met.setdefault(tuple(cell[name] for name in PLACE), set()).add(cell["variant"])
        groups.setdefault(tuple(cell[name] for name in GROUP), []).append(figures)
    for cell, figures in done:
        if met[tuple(cell[name] for name in PLACE)] == variants:
            groups.setdefault(("all", "", "", cell["variant"]), []).append(figures)
    names = list(dict.fromkeys(cell["variant"] for cell in wanted))
    print("\n| data | partition | per class | variant | " + " | ".join(FIGURES) + " | cells |")
    print("|" + "---|" * (len(GROUP) + len(FIGURES) + 1))
    for group in sorted(groups, key=lambda g: (g[0] == "all", *map(str, g[:3]), names.index(g[3]))):
        rows = groups[group]
        means = {
            name: mean(row[name] for row in rows)
            for name in FIGURES
            if all(name in row for row in rows)
        }
        shown = [
            format(means[name], how) if name in means else "—" for name, how in FIGURES.items()
        ]
        print(
            "| "
            + " | ".join(["all" if g is None else str(g) for g in group] + shown)
            + f" | {len(rows)} |"
        )


def per_class(text: str) -> int | None:
    return None if text == "all" else int(text)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--out", type=Path, required=True, help="results, one JSON line for each cell; added to"
    )
    parser.add_argument(
        "--variant", nargs="+", action="append", metavar="NAME [SETTING=VALUE]", help="repeatable"
    )
    parser.add_argument("--data", nargs="+", default=["fashion-4k"])
    parser.add_argument("--partition", nargs="+", default=["labels:1", "labels:2"])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument(
        "--train-per-class", nargs="+", type=per_class, default=[None], dest="per_class"
    )
    parser.add_argument("--parties", type=int, default=None)
    parser.add_argument("--judge", choices=("test", "held-out"), default="held-out")
    parser.add_argument("--workers", type=int, default=None)
    options = parser.parse_args(arguments)
    options.variant = options.variant or [["base"]]
    torch.set_num_threads(1)
    wanted, failed = list(cells(options)), 0
    try:
        for cell in wanted:
            # a mistake in the last variant must show now
            build_method(config_of(cell, options.workers))
    except OstrakaError as error:
        parser.exit(error.exit_code, f"{error}\n")
    for number, cell in enumerate(wanted, 1):
        if any(cell == done for done, _ in finished(options.out)):
            continue
        named = " ".join(str(cell[name]) for name in ("variant", *PLACE))
        try:
            figures = run(cell, options.workers)
        except OstrakaError as error:
            if error.exit_code == 130:
                parser.exit(130, "stopped; finished cells are kept\n")
            print(f"{number}/{len(wanted)} {named}: {error}", flush=True)
            failed += 1
            continue
        with options.out.open("a") as file:
            file.write(json.dumps({"cell": cell, "figures": figures}) + "\n")
        print(
            f"{number}/{len(wanted)} {named}:",
            {n: round(v, 2) for n, v in figures.items()},
            flush=True,
        )
    table(options.out, wanted)
    if failed:
        parser.exit(3, f"{failed} cells failed\n")


if __name__ == "__main__":
    main()
