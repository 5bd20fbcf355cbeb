"""The final figures of a run."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from ostraka.core.method import Iterative
from ostraka.core.party import labels
from ostraka.runs.plan import Plan

LAST = 20
"""Rounds at the end whose mean accuracy is reported (as FedOVA does)."""

CALLED_ALIKE = {"balanced_accuracy": "open_balanced_accuracy"}
"""What closed and open answers both have: where they stand side by side, the open one gets this name."""

BESIDE_ACCURACY = ("auroc", "known_refused", "unknown_refused", "open_balanced_accuracy")
"""Figures of `open` that stand beside the accuracy as well, in summaries and grids."""


def summarise(
    plan: Plan, rows: Sequence[Mapping[str, Any]], totals: Mapping[str, Any], out: Path
) -> dict[str, Any]:
    """Last, best, best-on-validation, mean of the last 20 evaluated rounds, costs, and the last round's tables.

    The start of a run that has one is not among its rounds; `start` says what it was.
    """
    before, rows = (
        [row for row in rows if row["round"] == 0],
        [row for row in rows if row["round"] > 0],
    )
    last, names = rows[-1]["test"], labels(plan.partition.names)
    figures = [row["test"]["accuracy"] for row in rows]
    best = max(range(len(rows)), key=lambda i: (figures[i] or 0.0, -i))
    return {
        "method": plan.name,
        "data": plan.config.data,
        "partition": plan.config.partition,
        "parties": len(plan.partition.parties),
        "seed": plan.config.seed,
        "rounds": plan.method.rounds if isinstance(plan.method, Iterative) else 1,
        "accuracy": last["accuracy"],
        "balanced_accuracy": last["balanced_accuracy"],
        "f1": last["f1"],
        **{name: flat_open(last["open"]).get(name) for name in BESIDE_ACCURACY},
        "open": last["open"],
        "answer": rows[-1].get("answer"),
        "best": {"accuracy": figures[best], "round": rows[best]["round"]},
        "best_on_validation": _best_on_validation(rows),
        "mean_last_20": fmean(f for f in figures[-LAST:] if f is not None)
        if figures[-1] is not None
        else None,
        "per_class": last["per_class"],
        "per_party": {names[int(party)]: seen for party, seen in rows[-1]["per_party"].items()},
        "per_part": {
            names[int(party)]: part["accuracy"] for party, part in last["per_part"].items()
        },
        "per_domain": {name: _domain(part) for name, part in last["per_domain"].items()},
        "confusion": rows[-1]["confusion"],
        "notes": list(plan.notes),
        "seconds": totals["seconds"],
        "cpu_seconds": totals["cpu_seconds"],
        "bytes_up": totals["bytes_up"],
        "bytes_down": totals["bytes_down"],
        "dropped": totals["dropped"],
        "reused": totals["reused"],
        "start": {**plan.start.record(), "accuracy": before[0]["test"]["accuracy"]}
        if plan.start
        else None,
        "out": str(out),
    }


def _domain(part: Mapping[str, Any]) -> dict[str, Any]:
    """The figures on one domain, those of the open-set test beside the accuracy."""
    sizes = {key: part[key] for key in ("samples", "unknown_samples")}
    figures = {key: part[key] for key in ("accuracy", "balanced_accuracy", "f1")}
    return {**sizes, **figures, **flat_open(part["open"])}


def flat_open(opened: Mapping[str, Any] | None) -> dict[str, Any]:
    """The figures of `open` under names that can stand beside those of the closed answer; none of a run without them.

    Runs of older versions have fewer, and none at all where every class is known.
    """
    return {CALLED_ALIKE.get(name, name): figure for name, figure in (opened or {}).items()}


def _best_on_validation(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    """Test accuracy of the round that was best on the server's validation samples."""
    judged = [row for row in rows if row["validation"] is not None]
    if not judged:
        return None
    best = max(judged, key=lambda row: row["validation"])
    return {
        "accuracy": best["test"]["accuracy"],
        "round": best["round"],
        "validation": best["validation"],
    }


JSON_KEYS = (
    "method", "data", "partition", "parties", "accuracy", "balanced_accuracy", "f1", *BESIDE_ACCURACY, "seconds",
    "cpu_seconds", "bytes_up", "bytes_down", "rounds", "seed", "per_domain", "notes", "out",
)  # fmt: skip
"""What `--json` prints."""

WHERE_THERE_IS_ONE = (*BESIDE_ACCURACY, "per_domain", "notes")
"""Keys that `--json` leaves out where they say nothing."""


def brief(summary: Mapping[str, Any]) -> dict[str, Any]:
    """The summary as `--json` prints it; open-set figures only where the test defines them, per_domain with domains."""
    empty = [key for key in WHERE_THERE_IS_ONE if summary.get(key) in (None, {}, [])]
    return {key: summary.get(key) for key in JSON_KEYS if key not in empty}
