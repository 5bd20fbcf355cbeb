"""`ostraka figure`: pictures of outliers, of what a member sees,
of whom a vote trusts, of accuracy.
"""

import argparse
from pathlib import Path
from textwrap import fill
from typing import Any

from ostraka.display.canvas import FORMATS
from ostraka.display.figures import KINDS, Wanted, draw

NAME = "figure"

EXAMPLE = """\
examples:
  ostraka figure outliers --data fashion-4k --out outliers.png
  ostraka run fedov --set local.epochs=20 --out runs/mine
  ostraka figure outliers --run runs/mine --party 2 --out enhanced.png
  ostraka figure features --run runs/mine --party 2 --out features.svg
  ostraka figure top-k --run runs/mine --out top-k.svg
  ostraka run dedes --data digits --out runs/few
  ostraka figure clusters --run runs/few --out clusters.svg
  ostraka figure teams --run runs/few --out teams.svg
  ostraka figure masks --run runs/fedpd --out masks.png
  ostraka figure confusion --run runs/mine --out confusion.pdf
  ostraka figure trust --run runs/mine --out trust.svg
  ostraka figure rounds --runs runs/compare --out rounds.svg
  ostraka figure rounds --runs runs/a runs/b --x bytes --out bytes.svg
  ostraka figure rounds --runs runs/compare --smooth 10 --out smooth.svg
  ostraka figure networks --runs runs/fedova --out networks.svg
"""


def add_to(verbs: Any) -> None:
    """Register the verb."""
    parser: argparse.ArgumentParser = verbs.add_parser(
        NAME,
        help="draw confusion, outliers, a member's features, accuracy against k or rounds",
        description="\n".join(fill(f"{name}: {kind.shows}.", 78) for name, kind in KINDS.items()),
        epilog=EXAMPLE,
    )
    parser.add_argument(
        "what", choices=tuple(KINDS), metavar="WHAT", help="what to draw: see above"
    )
    parser.add_argument(
        "--out", type=Path, required=True, metavar="FILE", help=f"where to draw it ({FORMATS})"
    )
    parser.add_argument(
        "--run",
        type=Path,
        metavar="DIR",
        help="a finished run (features, top-k, clusters, sizes, teams, parties: of a vote)",
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
        help="for rounds and networks: finished runs or grids",
    )
    parser.add_argument(
        "--x",
        choices=("rounds", "bytes"),
        default="rounds",
        help="for rounds: against what (default rounds)",
    )
    parser.add_argument(
        "--smooth",
        type=int,
        default=1,
        metavar="N",
        help="for rounds and networks: each point is the mean of N evaluated rounds (default 1)",
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
    wanted = Wanted(
        out=options.out,
        run=options.run,
        runs=tuple(options.runs),
        x=options.x,
        smooth=options.smooth,
        party=options.party,
        data=options.data,
        data_dir=options.data_dir,
        seed=options.seed,
    )
    with one_thread():
        draw(options.what, wanted)
    print(f"drawn: {options.out}")
    return 0
