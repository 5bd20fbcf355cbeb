"""`ostraka figure`: pictures of outliers, of what a member sees,
of whom a vote trusts, of accuracy.
"""

import argparse
from dataclasses import fields
from pathlib import Path
from textwrap import fill

from ostraka.cli.options import DATA_DIR, given, option
from ostraka.display.canvas import FORMATS
from ostraka.display.figures import KINDS, Wanted, draw

NAME = "figure"
HELP = "draw confusion, outliers, a member's features, accuracy against k or rounds"
DESCRIPTION = "\n".join(fill(f"{name}: {kind.shows}.", 78) for name, kind in KINDS.items())

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

OPTIONS = (
    option("what WHAT", "what to draw: see above", choices=tuple(KINDS)),
    option("--out FILE", f"where to draw it ({FORMATS})", Path, required=True),
    option(
        "--run DIR",
        "a finished run (features, top-k, clusters, sizes, teams, parties: of a vote)",
        Path,
    ),
    option("--party N", "whose member (default 0)", int, default=0),
    option(
        "--runs DIR", "for rounds and networks: finished runs or grids", Path, nargs="+", default=[]
    ),
    option(
        "--x",
        "for rounds: against what (default rounds)",
        choices=("rounds", "bytes"),
        default="rounds",
    ),
    option(
        "--smooth N",
        "for rounds and networks: each point is the mean of N evaluated rounds (default 1)",
        int,
        default=1,
    ),
    option("--data D", "without --run: which images (default fashion-4k)", default="fashion-4k"),
    DATA_DIR,
    option("--seed S", "seed of the drawing (default 0)", int, default=0),
)


def act(options: argparse.Namespace) -> int:
    """Draw one figure."""
    from ostraka.engines.memory import keep_freed_memory
    from ostraka.engines.threads import one_thread

    keep_freed_memory()  # votes and evaluation run in this process
    wanted = Wanted(
        **{**given(options, (spec.name for spec in fields(Wanted))), "runs": tuple(options.runs)}
    )
    with one_thread():
        draw(options.what, wanted)
    print(f"drawn: {options.out}")
    return 0
