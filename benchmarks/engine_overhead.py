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
from collections.abc import Callable, Sequence
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

    @classmethod
    def of(cls, launched: float, began: Sequence[float], megabytes: float) -> "Lap":
        """From when a run was launched and when each of its rounds began."""
        rounds = [later - earlier for earlier, later in pairwise(began)]  # all but the last
        return cls(began[1] - launched, median(rounds[1:]), megabytes)


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
    return Lap.of(began, clock.began, result.summary.bytes_up / ROUNDS / parties / 1e6)


Laps = dict[tuple[str, int, int], list[Lap]]
"""By engine, parties and hidden units."""


def table(
    laps: Laps, engines: Sequence[str], few: int = FEW, many: int = MANY
) -> list[dict[str, Any]]:
    """The costs of each engine: differences between the three federations."""
    rows = []
    for engine in engines:
        usual = {
            key[1:]: median(one.usual for one in all_)
            for key, all_ in laps.items()
            if key[0] == engine
        }
        base, more, large = usual[few, SMALL], usual[many, SMALL], usual[few, LARGE]
        party = (more - base) / (many - few)
        megabytes = few * laps[engine, few, LARGE][0].megabytes
        first = [one.first - one.usual for one in laps[engine, few, SMALL]]
        rows.append(
            {
                "engine": engine,
                "start": median(first),
                "start_range": [min(first), max(first)],
                "round": base - few * party,
                "party": party,
                "megabyte": (large - base) / megabytes,
                "rounds": {
                    f"{key[1]} parties, {key[2]} units": sorted(one.usual for one in all_)
                    for key, all_ in laps.items()
                    if key[0] == engine
                },
            }
        )
    return rows


def measure(
    run: Callable[[str, int, int], Lap],
    engines: Sequence[str],
    times: int,
    out: Path,
    few: int = FEW,
    many: int = MANY,
) -> None:
    """Run the three federations on all engines in turn, write the table, and print it."""
    laps: Laps = {}
    for _ in range(times):
        for parties, hidden in ((few, SMALL), (many, SMALL), (few, LARGE)):
            for engine in engines:
                one = run(engine, parties, hidden)
                laps.setdefault((engine, parties, hidden), []).append(one)
                print(engine, parties, hidden, one, flush=True)
        rows = table(laps, engines, few, many)
        out.write_text(json.dumps(rows, indent=1))
    for row in rows:
        print(
            {
                key: round(value, 4) if isinstance(value, float) else value
                for key, value in row.items()
            }
        )


def main() -> None:
    ask = argparse.ArgumentParser(description=__doc__)
    ask.add_argument("--engines", nargs="+", default=["serial", "pool"])
    ask.add_argument("--address", default="", help="of a Ray cluster that runs already")
    ask.add_argument("--times", type=int, default=3)
    ask.add_argument("--out", type=Path, required=True)
    options = ask.parse_args()

    def run(engine: str, parties: int, hidden: int) -> Lap:
        return lap(engine, parties, hidden, options.address)

    measure(run, options.engines, options.times, options.out)


if __name__ == "__main__":
    main()
