"""A member file on a terminal: its card, its classes, its unknown scores; what was found of it; how
its training went.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console

from ostraka.core.card import band_of
from ostraka.core.member import Member
from ostraka.data.own.collection import some
from ostraka.display.canvas import check_suffix, new_figure, save
from ostraka.display.tables import Cell, Number, Table, human_bytes
from ostraka.parties.scores import Picture
from ostraka.parties.train import Trained
from ostraka.parties.verify import Verdict

SHOWN = 40
"""Classes that are listed."""
BAR = 24
"""Characters of the longest bar."""
MARKS = {True: "ok", False: "FAILED", None: "-"}
LEAST = 0.005
"""A share below it has no bar."""


def show_member(console: Console, member: Member, path: Path, picture: Picture | None) -> None:
    """Card, classes, unknown scores."""
    facts = card_facts(member)
    rows = [(name, _words(value)) for name, value in facts.items() if value not in ("", {}, None)]
    console.print(Table(("card", "value"), rows, title=f"{path}").rich(console.width))
    console.print(_classes(member).head(SHOWN).rich(console.width))
    if picture is None:
        _say(console, "Unknown scores: its party tells nothing of held-out samples; --data DATA "
             "shows those of own samples.")  # fmt: skip
    else:
        show_picture(console, picture)


def card_facts(member: Member) -> dict[str, Any]:
    """What a card says but for the classes, as plain values."""
    card, model, made = member.card, member.model, member.made
    weights = sum(tensor.numel() for tensor in member.params.values())
    return {
        "name": card.name,
        "samples": card.size,
        "classes": len(model.classes),
        "sample": f"{model.view.kind}, {' x '.join(map(str, model.shape))}",
        "standardised": bool(model.view.mean),
        "network": f"{model.net.name}, {weights:,} numbers",
        "can answer unknown": model.objective.refuses,
        "method": f"{made.method} {made.recipe}".strip(),
        "created": made.created,
        "scores": dict(card.scores),
        "held-out samples": card.calibration.get("held"),
        "more": dict(made.more),
    }


def _words(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        return "\n".join(f"{key}: {_words(item)}" for key, item in value.items())
    return f"{value:.3f}" if isinstance(value, float) else str(value)


def _classes(member: Member) -> Table:
    counts, names = member.card.counts, member.model.classes
    if counts is None:
        rows = [(name, "not told") for name in names]
        return Table(("class", "samples"), rows, title="Classes")
    told = [
        band_of(count) if member.made.banded else f"{count:,}" if count else "none"
        for count in counts
    ]
    return Table(("class", "samples"), list(zip(names, told, strict=True)), title="Classes")


def show_picture(console: Console, picture: Picture) -> None:
    """Bars of the shares of samples by unknown score."""
    most = max(max(one.shares) for one in picture.series)
    rows = []
    for i, (low, high) in enumerate(zip(picture.edges, picture.edges[1:], strict=False)):
        above = picture.threshold is not None and low >= picture.threshold
        bars = [_bar(one.shares[i], most) for one in picture.series]
        rows.append((f"{low:8.2f} to {high:8.2f}", "unknown" if above else "", *bars))
    names = [f"{one.name} ({one.samples})" for one in picture.series]
    title = f"Unknown scores of {picture.basis}"
    console.print(Table(("score", "answer", *names), rows, title=title).rich(console.width))
    for one in picture.series if picture.threshold is not None else ():
        _say(console, f"Of {one.name}, {100 * one.refused:.1f} % are called unknown.")


def _bar(share: float, most: float) -> str:
    if share < LEAST:
        return ""
    return "█" * max(1, round(BAR * share / most)) + f" {100 * share:.0f} %"


def draw_picture(picture: Picture, path: Path, title: str) -> None:
    """Draw the shares of samples by unknown score into `path`."""
    check_suffix(path)
    figure = new_figure(7.0, 3.6)
    axes = figure.add_subplot()
    for one in picture.series:
        label = f"{one.name} ({one.samples})"
        axes.stairs([100 * share for share in one.shares], picture.edges, fill=True, alpha=0.55,
                    label=label)  # fmt: skip
    if picture.threshold is not None:
        axes.axvline(picture.threshold, color="black", linewidth=1)
        axes.text(picture.threshold, 1.0, " unknown", transform=axes.get_xaxis_transform(),
                  va="top", fontsize=9)  # fmt: skip
    axes.set_xlabel("unknown score")
    axes.set_ylabel("samples (%)")
    axes.set_title(title, loc="left", fontsize=11)
    axes.legend(frameon=False, fontsize=9)
    save(figure, path)


def show_verdict(console: Console, verdict: Verdict) -> None:
    """The checks, what the member makes of junk, what leaves."""
    rows = [(check.name, MARKS[check.passed], check.words) for check in verdict.checks]
    title = f"{verdict.path}: {'a member file' if verdict.passed else 'NOT a usable member file'}"
    console.print(Table(("check", "", "what was looked at"), rows, title=title).rich(console.width))
    if not verdict.passed:
        return
    if verdict.junk is None:
        _say(console, "Junk: this member never answers unknown; it claims whatever it is shown.")
    else:
        shares = ", ".join(f"{100 * share:.0f} % of {name}" for name, share in verdict.junk.items())
        _say(console, f"Junk that it calls unknown: {shares}.")
    told = [one for one in verdict.leaving if not one.reveals.startswith("nothing")]
    silent = [one for one in verdict.leaving if one not in told]
    things: list[tuple[Cell, ...]] = [
        (one.what, Number(one.bytes, human_bytes(one.bytes)), one.reveals) for one in told
    ]
    size = sum(one.bytes for one in silent)
    names = ", ".join(one.what for one in silent)
    things.append(
        ("what the network is", Number(size, human_bytes(size)), f"nothing of this party: {names}")
    )
    title = "What leaves this machine with the file"
    console.print(Table(("what", "size", "what it may reveal"), things, title=title)
                  .rich(console.width))  # fmt: skip


def show_trained(console: Console, trained: Trained) -> None:
    """What was trained on, how well it went, and what is told."""
    member = trained.member
    title = f"{member.card.name or 'The member'}: trained by {trained.task.method}"
    rows = [(name, Number(count, f"{count:,}")) for name, count in trained.counts.items()]
    console.print(Table(("class", "samples"), rows, title=title).head(SHOWN).rich(console.width))
    for line in trained_lines(trained):
        _say(console, line)


def trained_lines(trained: Trained) -> list[str]:
    """In words."""
    card, task = trained.member.card, trained.task
    lacking = len(task.classes) - len(trained.counts)
    lines = [f"{lacking} of the task's {len(task.classes)} classes are not here; the member learns "
             "to call them unknown."] if lacking else []  # fmt: skip
    if trained.left_out:
        lines.append(
            f"Left out, as so few samples may identify people (below {task.rare}): "
            f"{_counted(trained.left_out)}. --keep-rare keeps them."
        )
    if trained.rare:
        lines.append(
            f"Kept, although so few samples may identify people: {_counted(trained.rare)}."
        )
    score, held = card.scores.get("validation"), card.calibration.get("held")
    if score is not None:
        count = f"{held} samples" if held else "samples"
        lines.append(f"Of {count} held out of training, {100 * score:.1f} % are classified right.")
    told = ["the number of samples"]
    if card.counts is not None:
        told.append("class counts in bands" if task.tell == "bands" else "class counts")
    told += [f"the scores {', '.join(card.scores)}"] if card.scores else []
    told += [f"the numbers {', '.join(card.calibration)}"] if card.calibration else []
    lines.append(f"Told beside the weights: {'; '.join(told)}.")
    if trained.statistics:
        numbers = [f"{name} {mean:.4g} ({std:.4g})" for name, (mean, std) in
                   trained.statistics.items()]  # fmt: skip
        lines.append(
            "In the file, to standardise inputs: the mean (standard deviation) of each feature of "
            f"your samples: {some(numbers, SHOWN)}. A task with standardise = task leaves them out."
        )
    lines += [f"Note: {note}" for note in trained.notes]
    if trained.path is not None:
        lines.append(f"Member: {trained.path}. What is in it: ostraka verify {trained.path}")
    return lines


def trained_facts(trained: Trained) -> dict[str, Any]:
    """The same as plain values for JSON."""
    card = trained.member.card
    return {
        "file": None if trained.path is None else str(trained.path),
        "name": card.name,
        "task": trained.task.digest,
        "method": trained.task.method,
        "samples": card.size,
        "counts": dict(trained.counts),
        "left_out": dict(trained.left_out),
        "kept_rare": dict(trained.rare),
        "scores": dict(card.scores),
        "held": card.calibration.get("held"),
        "tell": trained.task.tell,
        "statistics": {name: list(pair) for name, pair in trained.statistics.items()},
        "notes": list(trained.notes),
    }


def member_facts(member: Member, path: Path, picture: Picture | None) -> dict[str, Any]:
    """A member as plain values for JSON."""
    counts = member.card.counts
    return {
        "file": str(path),
        **card_facts(member),
        "classes": list(member.model.classes),
        "counts": None if counts is None else list(counts),
        "banded": member.made.banded,
        "unknown_scores": None if picture is None else picture.as_dict(),
    }


def _counted(counts: Mapping[str, int]) -> str:
    return some([f"{name} ({count})" for name, count in counts.items()], SHOWN)


def _say(console: Console, text: str) -> None:
    console.print(text, soft_wrap=True, highlight=False, markup=False)
