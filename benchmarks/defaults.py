"""Do the defaults train? Every method as it comes, on data, divisions and parties of many sizes.

    python -m benchmarks.defaults one-shot --out before.jsonl --minutes 60
    python -m benchmarks.defaults rounds --out before-rounds.jsonl --minutes 60
    python -m benchmarks.defaults one-shot --out after.jsonl --only default closed-voting
    python -m benchmarks.defaults show before.jsonl after.jsonl --picture defaults.png

The grid is data x division x parties x samples of a class, some 1,400 cells that can be divided. A
part of it is drawn at random by a fixed seed: for each data set and each number of samples of a
class the same number of cells, in an order in which every beginning of the list is a sample of the
whole. In every third cell the last two fifths of the classes are unknown (where there are five or
more), which shows what becomes of the answer *unknown*. A cell's own seed divides the data and
draws everything else.

`one-shot` runs FedOV's default beside its easy rivals: the same with 200 epochs, and closed voting.
`rounds` runs, in cells of its own, every averaging method for 20 rounds of its defaults, and as its
bare command (the method's own number of rounds), beside FedAvg with the best of three rates and two
batch sizes.

One line of JSON for each run, with its cell, its variant and the commit; a second call runs what is
missing there. `show` sets each file's defaults beside the best rivals of that file and of those
named before it: what was a rival stays one.
"""

import argparse
import json
import random
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from ostraka.data.sources import load
from ostraka.errors import OstrakaError
from ostraka.runs.api import run_config
from ostraka.runs.config import make

DATA = (
    "digits", "mnist", "fashion-mnist", "emnist-letters", "usps", "audiomnist-mfcc", "wine",
    "breast-cancer",
)  # fmt: skip
DIVISIONS = (
    "iid", "dirichlet:0.1", "dirichlet:0.5", "labels:1", "labels:2", "labels:3", "labels:5",
)  # fmt: skip
PARTIES = (2, 3, 5, 10, 20)
SIZES = (10, 30, 100, 300, 1200)
EACH = 6
"""Cells of a data set and a number of samples of a class."""
FEWEST = 4
"""Samples that a party has on average, at least."""

ONE_SHOT: Mapping[str, Mapping[str, Any]] = {
    "default": {"method": "fedov"},
    "epochs-200": {"method": "fedov", "set": {"local.epochs": 200}},
    "closed-voting": {"method": "closed-voting"},
}
ITERATIVE = (
    "fedavg", "fedprox", "fednova", "scaffold", "fedma", "fedir", "fedvc", "fedaws", "fedpd",
    "fedova", "fedos",
)  # fmt: skip
"""Data sharing is left out: it needs labelled samples that all parties have."""

ROUNDS = (
    ("digits", "iid", 10, 140), ("digits", "dirichlet:0.5", 10, 140), ("mnist", "iid", 10, 100),
    ("mnist", "labels:3", 10, 300), ("mnist", "labels:1", 10, 100),
    ("usps", "labels:3", 10, 100), ("fashion-mnist", "iid", 20, 30),
    ("emnist-letters", "dirichlet:0.5", 10, 100), ("audiomnist-mfcc", "labels:5", 5, 100),
    ("wine", "iid", 3, 30), ("breast-cancer", "dirichlet:0.5", 5, 30),
    ("fashion-mnist", "labels:3", 20, 1200),
)  # fmt: skip
"""Cells of `rounds`: data, division, parties, samples of a class. Defaults were chosen on the kinds
of the first five; in the fifth, every party has one class, for which FedAwS is made."""

Cell = dict[str, Any]


def cells(seed: int = 0) -> list[Cell]:
    """The sampled cells, in an order in which every beginning is a sample of the whole."""
    rng = random.Random(seed)
    chosen: list[tuple[float, Cell]] = []
    for name in DATA:
        data = load(name)
        classes = len(data.classes)
        most = int(data.train.counts(classes).min())
        for size in sorted({min(size, most) for size in SIZES}):
            fit = [
                {"data": name, "partition": division, "parties": parties, "train_per_class": size}
                for division, parties in product(DIVISIONS, PARTIES)
                if _can_be(division, parties, classes, size)
            ]
            drawn = rng.sample(fit, min(EACH, len(fit)))
            for place, cell in enumerate(drawn):
                known = classes - 2 * classes // 5 if place % 3 == 2 and classes >= 5 else None
                if known and not _can_be(cell["partition"], cell["parties"], known, size):
                    known = None
                cell |= {"known": known, "seed": rng.randrange(1000)}
                chosen.append(((place + rng.random()) / len(drawn), cell))
    return [cell for _, cell in sorted(chosen, key=lambda pair: pair[0])]


def cells_of_rounds() -> list[Cell]:
    """ROUNDS, each with a seed of its own; the last is one of the sample of `cells`."""
    names = ("data", "partition", "parties", "train_per_class")
    seeds = [*range(30, 29 + len(ROUNDS)), 756]
    return [
        dict(zip(names, values, strict=True)) | {"known": None, "seed": seed}
        for values, seed in zip(ROUNDS, seeds, strict=True)
    ]


def _can_be(division: str, parties: int, classes: int, size: int) -> bool:
    """Whether every class finds an owner and every party a few samples."""
    name, _, number = division.partition(":")
    if name == "labels" and not int(number) <= classes <= int(number) * parties:
        return False
    return classes * size >= FEWEST * parties


def variants(part: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """What is run in every cell, by name."""
    if part == "one-shot":
        yield from ONE_SHOT.items()
        return
    for method in ITERATIVE:
        yield method, {"method": method}
        yield f"{method} 20", {"method": method, "set": {"rounds": 20}}
    for lr, batch in product((0.01, 0.03, 0.1), (10, 32)):
        tuned = {"rounds": 20, "local.lr": lr, "local.batch": batch}
        yield f"tuned lr={lr} batch={batch}", {"method": "fedavg", "set": tuned}


def run(cell: Cell, values: Mapping[str, Any]) -> dict[str, Any]:
    """One run's figures, or why it failed."""
    config = make({**cell, **values, "engine": "serial"})
    with TemporaryDirectory() as folder:
        try:
            summary = run_config(config, Path(folder) / "run", False, None).summary
        except OstrakaError as error:
            if error.exit_code == 130:
                raise
            return {"error": str(error)}
    return {
        "accuracy": summary.accuracy,
        "auroc": summary.auroc,
        "known_refused": summary.known_refused,
        "unknown_refused": summary.unknown_refused,
        "rounds": summary.rounds,
        "cpu_seconds": round(summary.cpu_seconds, 2),
    }


def run_all(
    part: str,
    out: Path,
    minutes: float,
    most: int | None,
    only: Sequence[str] | None = None,
    first: int = 1,
) -> None:
    """What is missing in the file, as far as the time goes."""
    words = ["git", "rev-parse", "--short", "HEAD"]
    commit = subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()
    done = {_key(row) for row in rows_of(out)}
    until = time.monotonic() + 60 * minutes
    chosen = cells() if part == "one-shot" else cells_of_rounds()
    for number, cell in enumerate(chosen[:most], 1):
        for name, values in variants(part):
            if time.monotonic() > until:
                return
            row = {"variant": name, **cell}
            if number < first or _key(row) in done or (only and name not in only):
                continue
            found = {**row, "commit": commit, **run(cell, values)}
            with out.open("a") as file:
                file.write(json.dumps(found) + "\n")
            print(number, found, flush=True)


def _key(row: Mapping[str, Any]) -> tuple[Any, ...]:
    names = ("variant", "data", "partition", "parties", "train_per_class", "known", "seed")
    return tuple(row[name] for name in names)


def rows_of(path: Path) -> list[dict[str, Any]]:
    """The finished rows of a file."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def gaps(
    rows: Sequence[Mapping[str, Any]], before: Sequence[Mapping[str, Any]] = ()
) -> dict[tuple[str, str], list[float]]:
    """By variant and data set: its accuracy minus that of its best rival, in every cell; a rival of
    the rows `before` counts too.

    The rivals of FedOV's default are the other two; those of a method of rounds the tuned ones.
    """
    best: dict[tuple[Any, ...], float] = {}
    for row in [*before, *rows]:
        if _rival(row) and row.get("accuracy") is not None:
            key = _key({**row, "variant": ""})
            best[key] = max(row["accuracy"], best.get(key, 0.0))
    found: dict[tuple[str, str], list[float]] = {}
    for row in rows:
        key = _key({**row, "variant": ""})
        if not _rival(row) and key in best and row.get("accuracy") is not None:
            place = (row["variant"], row["data"])
            found.setdefault(place, []).append(row["accuracy"] - best[key])
    return found


def _rival(row: Mapping[str, Any]) -> bool:
    return row["variant"] in ("epochs-200", "closed-voting") or row["variant"].startswith("tuned")


def show(files: Sequence[Path], picture: Path | None) -> None:
    """A line for each file, variant and data set, and a point for each cell."""
    drawn: dict[str, list[tuple[int, float]]] = {}
    print("| file | variant | data | cells | mean | median | worst | within 4 |")
    print("|---|---|---|---|---|---|---|---|")
    rows = [rows_of(path) for path in files]
    for place, path in enumerate(files):
        earlier = [row for one in rows[:place] for row in one]
        for (name, data), each in sorted(gaps(rows[place], earlier).items()):
            near = 100 * sum(gap >= -4 for gap in each) / len(each)
            middle = sorted(each)[len(each) // 2]
            print(
                f"| {path.stem} | {name} | {data} | {len(each)} | {sum(each) / len(each):.1f} | "
                f"{middle:.1f} | {min(each):.1f} | {near:.0f} % |"
            )
            drawn.setdefault(f"{name}, {data}", []).extend((place, gap) for gap in each)
    if picture is not None:
        _draw(files, drawn, picture)


def _draw(
    files: Sequence[Path], drawn: Mapping[str, list[tuple[int, float]]], picture: Path
) -> None:
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(8, 1 + 0.35 * len(drawn)), layout="constrained")
    for line, points in enumerate(drawn.values()):
        for place, path in enumerate(files):
            mine = [gap for of, gap in points if of == place]
            height = [line + 0.3 * (place / max(1, len(files) - 1) - 0.5)] * len(mine)
            axes.scatter(mine, height, s=12, color=f"C{place}", label="" if line else path.stem)
    axes.axvline(0, color="black", linewidth=0.8)
    axes.set_yticks(range(len(drawn)), list(drawn))
    axes.set_xlabel("accuracy of the default minus that of the best rival, points")
    axes.legend()
    figure.savefig(picture, dpi=150)


def main(arguments: Sequence[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("part", choices=("one-shot", "rounds", "cells", "show"))
    parser.add_argument("files", nargs="*", type=Path, help="show: files of results")
    parser.add_argument("--out", type=Path, default=Path("defaults.jsonl"))
    parser.add_argument("--picture", type=Path, default=None)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--first", type=int, default=1, help="number of the first cell")
    parser.add_argument("--most", type=int, default=None, help="so many cells at the most")
    parser.add_argument("--only", nargs="+", default=None, help="these variants alone")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    if options.part == "cells":
        for cell in cells():
            print(cell)
    elif options.part == "show":
        show(options.files, options.picture)
    else:
        run_all(
            options.part, options.out, options.minutes, options.most, options.only, options.first
        )


if __name__ == "__main__":
    main()
