"""A run once more, from its stored files alone; or how far it is."""

import json
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from ostraka.display.summary import show_summary
from ostraka.display.tables import Table
from ostraka.runs.config import build_method
from ostraka.runs.record import RunDir
from ostraka.runs.summary import brief


def show_run(folder: Path, as_json: bool) -> None:
    """Show the run in a folder: its figures, or, if it is not finished, how far it is."""
    summary = RunDir(folder).finished()
    if summary is None:
        _show_unfinished(folder, as_json)
        return
    summary = replace(summary, out=str(folder))  # it may have been moved since
    if as_json:
        print(json.dumps(brief(summary)))
    else:
        show_summary(Console(), summary)


def _show_unfinished(folder: Path, as_json: bool) -> None:
    home = RunDir(folder)
    config, rows = home.stored_config(), home.read_metrics()
    evaluated, figure = (rows[-1].round, rows[-1].test.accuracy) if rows else (0, None)
    waiting = len(list(home.desk().root.glob("reports/r*/p*.safetensors")))
    facts = {
        "status": "unfinished",
        "method": config.method,
        "data": config.data,
        "partition": config.partition,
        "seed": config.seed,
        "rounds": build_method(config).exchanges,
        "evaluated": evaluated,
        "accuracy": figure,
        "reports": waiting,
        "resume": home.resume_command(),
        "out": str(folder),
    }
    if as_json:
        print(json.dumps(facts))
        return
    accuracy = "none yet" if figure is None else f"{figure:.2f} % (round {evaluated})"
    figures = [
        ("evaluated rounds", f"{evaluated} of {facts['rounds']}"),
        ("accuracy", accuracy),
        ("parties of the next round that are done", str(waiting)),
        ("division", f"{config.partition}, seed {config.seed}"),
    ]
    console = Console()
    console.print(
        Table(
            ("figure", "value"), figures, title=f"{config.method} on {config.data}: not finished"
        ).rich()
    )
    console.print(f"Go on with: {home.resume_command()}", soft_wrap=True, highlight=False)
