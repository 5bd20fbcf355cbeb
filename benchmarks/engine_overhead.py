"""What an engine costs beside the parties' work: its start, a round, a party, a megabyte.

    python -m benchmarks.engine_overhead --engines serial pool ray --out overhead.json

FedAvg on scikit-learn's digits, one step at each party, the last round is evaluated alone. Three
federations are run in turn, `--times` times: few parties and small weights, many parties, large
weights; the differences of their median rounds give the table. Wall seconds. A megabyte goes down
and up again. The engine `ray` needs the extra of that name.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any, final

import ostraka
from ostraka.runs.watch import Watch

ROUNDS = 6
FEW, MANY = 4, 40
SMALL, LARGE = 8, 2000
"""Hidden units, twice: 3 kB of weights, and 17 MB."""


@final
class _Clock(Watch):
    """Notes when each round began."""

    def __init__(self) -> None:
        self.began: list[float] = []

    def round_begins(self, index: int, rounds: int, parties: int, ready: int) -> None:
        """The round before is over."""
        self.began.append(time.perf_counter())


@final
@dataclass(frozen=True)
class Lap:
    """One run: seconds before the first round is over, of a later round, and its megabytes."""

    first: float
    usual: float
    megabytes: float


def lap(engine: str, parties: int, hidden: int, address: str = "") -> Lap:
    """Run one small federation."""
    clock, began = _Clock(), time.perf_counter()
    chosen: Any = engine
    if engine == "ray" and address:
        chosen = {"name": "ray", "options": {"address": address}}
    with tempfile.TemporaryDirectory() as folder:
        result = ostraka.run(
            "fedavg",
            data="digits",
            partition="iid",
            parties=parties,
            net={"name": "mlp", "options": {"hidden": [hidden, hidden]}},
            set={"rounds": ROUNDS, "local": {"epochs": 1, "batch": 1000}},
            eval_every=ROUNDS,
            engine=chosen,
            out=Path(folder, "run"),
            watch=clock,
        )
    rounds = [later - earlier for earlier, later in pairwise(clock.began)]  # all but the last
    usual = median(rounds[1:])
    each = result.summary.bytes_up / ROUNDS / parties / 1e6
    return Lap(clock.began[1] - began, usual, each)


def table(
    laps: dict[tuple[str, int, int], list[Lap]], engines: Sequence[str]
) -> list[dict[str, Any]]:
    """The costs of each engine: differences between the three federations."""
    rows = []
    for engine in engines:
        usual = {
            key[1:]: median(one.usual for one in all_)
            for key, all_ in laps.items()
            if key[0] == engine
        }
        few, many, large = usual[FEW, SMALL], usual[MANY, SMALL], usual[FEW, LARGE]
        party = (many - few) / (MANY - FEW)
        megabytes = FEW * laps[engine, FEW, LARGE][0].megabytes
        first = [one.first - one.usual for one in laps[engine, FEW, SMALL]]
        rows.append(
            {
                "engine": engine,
                "start": median(first),
                "start_range": [min(first), max(first)],
                "round": few - FEW * party,
                "party": party,
                "megabyte": (large - few) / megabytes,
            }
        )
    return rows


def main() -> None:
    ask = argparse.ArgumentParser(description=__doc__)
    ask.add_argument("--engines", nargs="+", default=["serial", "pool"])
    ask.add_argument("--address", default="", help="of a Ray cluster that runs already")
    ask.add_argument("--times", type=int, default=3)
    ask.add_argument("--out", type=Path, required=True)
    options = ask.parse_args()
    laps: dict[tuple[str, int, int], list[Lap]] = {}
    for _ in range(options.times):
        for parties, hidden in ((FEW, SMALL), (MANY, SMALL), (FEW, LARGE)):
            for engine in options.engines:
                one = lap(engine, parties, hidden, options.address)
                laps.setdefault((engine, parties, hidden), []).append(one)
                print(engine, parties, hidden, one, flush=True)
        rows = table(laps, options.engines)
        options.out.write_text(json.dumps(rows, indent=1))
    for row in rows:
        print(
            {
                key: value if isinstance(value, str | list) else round(value, 4)
                for key, value in row.items()
            }
        )


if __name__ == "__main__":
    main()
