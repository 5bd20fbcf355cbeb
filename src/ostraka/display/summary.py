"""A run on a terminal, from its stored files: its figures, or how far it is."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console

from ostraka.display.confusion import show_confusion, stored_confusion
from ostraka.display.tables import (
    Cell,
    Number,
    Table,
    human_bytes,
    human_seconds,
    show_wide,
)
from ostraka.errors import counted
from ostraka.evaluation.evaluate import OPEN_FIGURES, OpenFigures
from ostraka.runs.config import build_method
from ostraka.runs.record import RunDir
from ostraka.runs.results import Summary
from ostraka.runs.summary import brief, notes_of

SHOWN = 16
"""Parties or classes that a summary lists; the rest is in summary.json."""


def show_run(folder: Path, as_json: bool) -> None:
    """Show the run in a folder: its figures, or, if it is not finished, how far it is."""
    home = RunDir(folder)
    summary = home.finished()
    if summary is not None:
        summary = replace(summary, out=str(folder))  # it may have been moved since
        if as_json:
            print(json.dumps(brief(summary)))
        else:
            show_summary(Console(), summary)
        return
    config, rows = home.stored_config(), home.read_metrics()
    evaluated, figure = (rows[-1].round, rows[-1].test.accuracy) if rows else (0, None)
    facts = {
        "status": "unfinished",
        "method": config.method,
        "data": config.data,
        "partition": config.partition,
        "seed": config.seed,
        "rounds": build_method(config).exchanges,
        "evaluated": evaluated,
        "accuracy": figure,
        "reports": len(list(home.desk().root.glob("reports/r*/p*.safetensors"))),
        "resume": home.resume_command(),
        "out": str(folder),
    }
    if as_json:
        print(json.dumps(facts))
        return
    figures = [
        ("evaluated rounds", f"{evaluated} of {facts['rounds']}"),
        ("accuracy", "none yet" if figure is None else f"{figure:.2f} % (round {evaluated})"),
        ("parties of the next round that are done", str(facts["reports"])),
        ("division", f"{config.partition}, seed {config.seed}"),
    ]
    console, title = Console(), f"{config.method} on {config.data}: not finished"
    console.print(Table(("figure", "value"), figures, title=title).rich())
    console.print(f"Go on with: {home.resume_command()}", soft_wrap=True, highlight=False)


def show_summary(console: Console, summary: Summary) -> None:
    """The figures of a finished run."""
    title = f"{summary.method} on {summary.data}"
    console.print(Table(("figure", "value"), _figures(summary), title=title).rich(console.width))
    for figures, title, column in (
        (summary.per_class, "accuracy per class", "class"),
        (summary.per_part, "each model alone", "model"),
    ):
        rows = [(name, Number(value or 0.0, _number(value))) for name, value in figures.items()]
        table = Table((column, "accuracy (%)"), rows, title=title)
        if rows:
            console.print(table.head(SHOWN).rich(console.width))
    if summary.confusion:
        show_confusion(console, stored_confusion(summary))
    if summary.per_domain:
        show_wide(console, _domains(summary))
    if selection := summary.selection:
        chosen, why = selection["chosen"], selection["why"]
        count = f"{len(chosen)} of {counted(len(selection['parties']), 'member')} vote"
        lines = [f"{name}: {why[name]}" for name in chosen]
        _listed(console, f"{count}, chosen by {selection['selector']}:", lines)
        for note in selection["notes"]:
            console.print(f"  ({note})", soft_wrap=True, highlight=False)
    _show_suspects(console, summary.trust)
    _show_dropped(console, summary.dropped)
    if summary.hardly_trained:
        _listed(console, "Hardly trained:", summary.hardly_trained)
    for note in notes_of(summary):
        console.print(f"Note: {note}", soft_wrap=True, highlight=False)
    console.print(f"Results: {summary.out}", soft_wrap=True, highlight=False)


def _listed(console: Console, title: str, lines: Sequence[str]) -> None:
    """A title and the first of its lines, whose names and reasons are no markup."""
    left = len(lines) - SHOWN
    more = [f"... and {left} more, in summary.json"] if left > 0 else []
    for line in [title, *(f"  {line}" for line in [*lines[:SHOWN], *more])]:
        console.print(line, soft_wrap=True, highlight=False, markup=False)


def _show_suspects(console: Console, trust: Mapping[str, Any]) -> None:
    """Members that the vote found unusual; nothing where there are none."""
    for what in trust.get("panel", ()):
        console.print(
            f"Most members {what}; the vote makes up for it as far as it can.", soft_wrap=True
        )
    suspects: Mapping[str, Sequence[str]] = trust.get("suspects", {})
    if suspects:
        count = f"{len(suspects)} of {counted(len(trust['parties']), 'member')}"
        lines = [f"{name} {'; '.join(words)}" for name, words in suspects.items()]
        _listed(console, f"The vote found {count} unusual:", lines)


def _show_dropped(console: Console, dropped: Sequence[Mapping[str, Any]]) -> None:
    """Which parties were dropped, in which rounds and why, each with the same reason once."""
    rounds: dict[tuple[str, str], list[str]] = {}
    for one in dropped:
        reason = one["party"], " ".join(one["why"].split())
        rounds.setdefault(reason, []).append(str(one["round"]))
    lines = [
        f"{party}, round {', '.join(where[:SHOWN])}"
        f"{f' and {len(where) - SHOWN} more' if where[SHOWN:] else ''}: {why}"
        for (party, why), where in rounds.items()
    ]
    if lines:
        _listed(console, "Dropped parties (failures.log has the tracebacks):", lines)


def _domains(summary: Summary) -> Table:
    """The figures on each domain, and their plain average."""
    average = {"accuracy": summary.accuracy, **_open_figures(summary.open)}
    parts = {name: vars(part) for name, part in summary.per_domain.items()}
    rows: list[tuple[Cell, ...]] = [
        (name, *(Number(part[key] or 0.0, _number(part[key])) for key in average))
        for name, part in [*parts.items(), ("average", average)]
    ]
    open_columns = (figure.column for key, figure in OPEN_FIGURES.items() if key in average)
    notes = ("the average counts every domain the same",)
    return Table(("domain", "accuracy", *open_columns), rows, title="per domain (%)", notes=notes)


def _figures(summary: Summary) -> list[tuple[str, str]]:
    domains, answer = len(summary.per_domain), summary.answer
    name = f"accuracy, average of {domains} domains" if domains else "accuracy"
    rows = [(name, f"{_number(summary.accuracy)} %")]
    if summary.rounds > 1 and (best := summary.best) is not None:
        rows.append(("best", f"{_number(best.accuracy)} % (round {best.round})"))
        rows.append(("mean of the last 20 rounds", f"{_number(summary.mean_last_20)} %"))
    if (best := summary.best_on_validation) is not None:
        rows.append(("best on validation", f"{_number(best.accuracy)} % (round {best.round})"))
    balanced = {"balanced accuracy": summary.balanced_accuracy, "F1 (macro)": summary.f1}
    rows += [(name, f"{_number(value)} %") for name, value in balanced.items() if value is not None]
    promised = f" (promised: {100 * answer.rate:g} %)" if answer and answer.rate else ""
    for key, value in _open_figures(summary.open).items():
        beside = promised if key == "known_refused" else ""
        rows.append((OPEN_FIGURES[key].name, f"{_number(value)} %{beside}"))
    cpu = human_seconds(summary.cpu_seconds)
    rows += [
        ("division", f"{summary.partition}, {summary.parties} parties, seed {summary.seed}"),
        ("time", f"{human_seconds(summary.seconds)} ({cpu} of CPU)"),
        ("sent up / down", f"{human_bytes(summary.bytes_up)} / {human_bytes(summary.bytes_down)}"),
    ]
    if "selection" in summary.spent:
        took = [f"{summary.spent[part]:.3f} s" for part in ("selection", "inference")]
        rows.append(("selection / inference", f"{' / '.join(took)} of CPU"))
    return rows


def _open_figures(opened: OpenFigures) -> dict[str, float | None]:
    """The open-set figures to print, by their names in OPEN_FIGURES.

    Where all classes are known, those that are defined; none if no sample was called unknown: the
    rows of a closed-set run would say nothing that the accuracy does not.
    """
    told = {**opened.as_dict(), "open_balanced_accuracy": opened.balanced_accuracy}
    if opened.unknown_refused is None and opened.auroc is None and not opened.known_refused:
        return {}
    every = opened.unknown_refused is not None
    return {name: told[name] for name in OPEN_FIGURES if every or told[name] is not None}


def _number(value: float | None) -> str:
    return "—" if value is None else f"{value:.2f}"
