"""Speed beside plain torch, in one command.

    make bench                                   all tables: about half an hour
    python -m benchmarks.speed --quick           small and few: about three minutes, no page
    python -m benchmarks.speed --only steps      one table; the others of the page stay
    python -m benchmarks.speed --against DIR     with another checkout in turns: before and after

Variants take turns, each in a process of its own with one torch thread; CPU-seconds count. A ratio
is to the best of the plain variants (NCHW or channels_last, memory kept or not), which is found by
the medians; it is the median of the ratios round by round, with their range in brackets.
"""

import argparse
import json
from pathlib import Path

import torch

from benchmarks.speed.page import fill, markdown
from benchmarks.speed.peers.table import GUESTS
from benchmarks.speed.run import ROOT, Runners, measure
from benchmarks.speed.table import BEFORE, OURS
from benchmarks.speed.tables import ALONE, TABLES

PAGE, JSON = ROOT / "docs/results/speed.md", ROOT / "docs/results/speed.json"


def options() -> argparse.Namespace:
    """What the command line says."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.speed",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--only", nargs="+", choices=list(TABLES), default=list(ALONE))
    parser.add_argument("--quick", action="store_true", help="small jobs, two rounds, no page")
    parser.add_argument("--rounds", type=int, help="rounds of every table; default: each its own")
    parser.add_argument("--against", type=Path, help="another checkout, built")
    parser.add_argument("--peers", type=Path, help="the Python that has pfl, fluke and Flower")
    parser.add_argument("--json", type=Path, help="where the figures go instead of the page")
    return parser.parse_args()


def main() -> None:
    """Measure, print, and write the page."""
    asked = options()
    torch.set_num_threads(1)
    against = asked.against.resolve() if asked.against else None
    # not resolved: a link is how Python knows its virtual environment
    runners = Runners(against, asked.peers and asked.peers.absolute(), GUESTS)
    for_page = not (asked.quick or asked.json)
    target = JSON if for_page else asked.json or ROOT / "runs/bench/speed.json"
    kept = json.loads(target.read_text()) if target.exists() else {}
    for name in asked.only:
        table = TABLES[name]
        variants = [v for v in table.variants if v not in GUESTS or runners.peers]
        if against:
            variants.insert(variants.index(OURS), BEFORE)
        rounds = asked.rounds or (2 if asked.quick else table.rounds)
        kept[name] = measure(table, variants, rounds, runners, asked.quick)
        print(f"\n{markdown(table, kept[name])}\n", flush=True)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(json.dumps(kept, indent=1) + "\n")
    if for_page:
        PAGE.write_text(fill(PAGE.read_text(), TABLES, kept))
    print(f"figures: {target}" + (f"; tables: {PAGE}" if for_page else ""))


if __name__ == "__main__":
    main()
