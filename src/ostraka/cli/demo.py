"""`ostraka demo`: ten parties with two classes each, and six ways to make one model of them."""

import argparse
from pathlib import Path
from typing import Any

from ostraka.cli.options import option, place

NAME = "demo"
HELP = "ten parties, two classes each: watch them train and vote"
DESCRIPTION = """\
Compare methods on the bundled data (about a minute).
Every party holds two of ten classes.
"""
EXAMPLE = "example:\n  ostraka demo --out runs/demo"

BEST: dict[str, dict[str, Any]] = {
    "fedavg": {"rounds": 45, "local": {"epochs": 1, "batch": 64, "lr": 0.1}},
    "centralised": {
        "rounds": 1,
        "local": {"epochs": 45, "batch": 64, "optimiser": "adam", "lr": 0.001},
    },
}
"""As many passes over the data as the one-shot methods make by default. Eight ways to spend 60
passes of FedAvg (1 to 60 exchanges, SGD and Adam, several rates) were judged on training samples
held back: one pass in each exchange, by SGD at 0.1, was the best; here it has 45 of them.
"""

NEXT = """\
What to try next:
  ostraka partition dirichlet:0.1 --plot division.svg       another division
  ostraka run fedov --partition labels:3 --known 6          classes that nobody has seen
  ostraka figure outliers --out outliers.png                what members learn to doubt
  ostraka compare fedavg centralised --partition iid --rounds 10 --set local.epochs=1
  ostraka list methods                                      everything there is"""

OPTIONS = (option("--out DIR", "folder of the results", place, default=Path("runs/demo")),)


def act(options: argparse.Namespace) -> int:
    """Divide, train, compare."""
    from rich.console import Console

    from ostraka.display.comparison import comparison
    from ostraka.display.grid import stored_grid
    from ostraka.display.heatmap import heatmap_svg, show_division
    from ostraka.display.progress import NORMAL, follow_grid
    from ostraka.display.tables import show_wide
    from ostraka.engines.memory import keep_freed_memory
    from ostraka.runs.config import make
    from ostraka.runs.division import divide
    from ostraka.runs.folder import check_free
    from ostraka.runs.grid import Grid, run_grid

    keep_freed_memory()  # votes and evaluation run in this process
    check_free(options.out, "grid")
    console = Console()
    config = make({})
    division = divide(config)
    console.print(
        "Ten parties share 4,000 images of Fashion-MNIST; each sees only two of the ten classes.\n"
    )
    names, classes = division.partition.names, division.data.classes
    show_division(console, division)
    grid = Grid(
        methods=("solo", "fedavg", "closed-voting", "fedov-sum", "fedov", "centralised"),
        data=(config.data,),
        partitions=(config.partition,),
        seeds=(0,),
        base={},
        per_method=BEST,
    )
    with follow_grid(NORMAL) as follow:
        records = run_grid(grid, options.out, follow)
    stored_grid(options.out).save()
    heatmap_svg(division.counts, names, classes, options.out / "division.svg", "Who holds what")
    for table in comparison(records):
        show_wide(console, table)
    console.print(
        "solo: each party's own model, on average.\n"
        "fedavg: 45 exchanges, one pass each, at the learning rate that is best for it; the votes "
        "need one exchange.\n"
        "fedov-sum: members that may answer unknown, counted as the paper does; fedov: by our "
        "calibrated ballot.\n"
        "centralised: all data in one place, which a federation cannot have.\n",
        highlight=False,
    )
    console.print(f"Results: {options.out}\n\n{NEXT}", soft_wrap=True, highlight=False)
    return 3 if any(record.status == "failed" for record in records) else 0
