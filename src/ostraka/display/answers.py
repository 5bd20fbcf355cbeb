"""Answers of a group and what they are worth: tables for terminals, spreadsheets and pages."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from rich.console import Console
from rich.text import Text

from ostraka.core.names import UNKNOWN_NAME
from ostraka.core.predictor import Promise
from ostraka.display.tables import MISSING, Cell, Number, Table
from ostraka.errors import counted, printable
from ostraka.evaluation.evaluate import OPEN_FIGURES
from ostraka.parties.answers import Explanation
from ostraka.parties.verdict import Verdict
from ostraka.runs.promise import NEVER

SHOWN = 40
"""Samples that a terminal lists."""
FORMULA = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""A cell that begins so is taken for a formula by spreadsheets, some of which know wide signs."""


@dataclass(frozen=True)
class Answered:
    """What was answered to every sample, and what has to be said of it."""

    items: tuple[str, ...]
    """What the samples are called."""
    answers: tuple[Explanation, ...]
    members: tuple[str, ...]
    promise: Promise
    notes: tuple[str, ...] = ()
    looked: Mapping[str, Any] = field(default_factory=dict)
    """How many unlabelled samples of what member trust was estimated from; empty: none."""

    @property
    def refused(self) -> int:
        """How many are unknown."""
        return sum(one.answer == UNKNOWN_NAME for one in self.answers)

    def to_json(self, explain: bool) -> dict[str, Any]:
        """Plain values; every member's voice only to `explain`."""
        each = []
        for item, one in zip(self.items, self.answers, strict=True):
            told = one.as_dict()
            if not explain:
                del told["voices"]
            del told["threshold"]
            each.append({"sample": item, **told})
        threshold = self.answers[0].threshold if self.answers else None
        return {
            "answers": each,
            "samples": len(self.answers),
            "refused": self.refused,
            "threshold": threshold,
            "promise": self.promise.as_dict(),
            "members": list(self.members),
            "looked": dict(self.looked),
            "notes": list(self.notes),
        }


def answered_by(one: Explanation) -> tuple[str, ...]:
    """Who gave the answer, as a table shows it; nobody gives a sample the answer unknown."""
    return () if one.answer == UNKNOWN_NAME else one.answered_by


def answers_table(answered: Answered) -> Table:
    """A row for every sample."""
    columns = ("sample", "answer", "nearest", "confidence", "unknown score", "answered by")
    rows: list[tuple[Cell, ...]] = [
        (
            item,
            one.answer,
            one.nearest,
            Number(round(one.confidence, 6), f"{100 * one.confidence:.0f} %"),
            Number(round(one.unknown, 6), f"{one.unknown:.3f}"),
            "; ".join(answered_by(one)),
        )
        for item, one in zip(answered.items, answered.answers, strict=True)
    ]
    return Table(columns, rows)


def voices_table(answered: Answered) -> Table:
    """A row for every sample and member: who said what, with which weight."""
    columns = ("sample", "member", "said", "probability", "weight")
    rows: list[tuple[Cell, ...]] = [
        (
            item,
            voice.member,
            voice.answer,
            Number(round(voice.probability, 6), f"{100 * voice.probability:.0f} %"),
            Number(round(voice.weight, 6), f"{voice.weight:.2f}"),
        )
        for item, one in zip(answered.items, answered.answers, strict=True)
        for voice in one.voices
    ]
    return Table(columns, rows, title="who said what", keys=2)


def show_answers(console: Console, answered: Answered, explain: bool) -> None:
    """The first answers, and in words what is promised."""
    console.print(_for_terminal(answers_table(answered)).head(SHOWN).rich(console.width))
    if explain and answered.members:
        most = SHOWN * len(answered.members)
        console.print(_for_terminal(voices_table(answered)).head(most).rich(console.width))
    count = len(answered.answers)
    _say(console, f"{count:,} samples, {answered.refused:,} of them unknown.")
    _say(console, promised(answered.promise))
    for note in answered.notes:
        _say(console, f"Note: {note}")


def promised(promise: Promise) -> str:
    """What may be expected of the threshold, as a sentence."""
    if promise.rate is None:
        advice = "; or place the line by held-out samples of known classes (--known)"
        advice = "" if promise == NEVER or promise.basis == "hand" else advice
        said = f"Nothing is promised of how often a known sample is called unknown: {promise.why}"
        return f"{said}{advice}."
    basis = {
        "told": "by what the members tell of samples that they were not trained on",
        "held-out": "by the held-out samples that were given",
    }.get(promise.basis, f"by {promise.basis} samples")
    return (
        f"Promised: {100 * promise.rate:g} % of samples of known classes will be called unknown, "
        f"{basis}."
    )


def figures_table(verdict: Verdict) -> Table:
    """The figures of all samples together."""
    found = verdict.to_json()
    rows = [
        ("accuracy, closed", found["accuracy"]),
        ("balanced accuracy", found["balanced_accuracy"]),
    ]
    opened = {**found["open"], "open_balanced_accuracy": found["open_balanced_accuracy"]}
    rows += [(figure.name, opened[key]) for key, figure in OPEN_FIGURES.items()]
    shown = [(words, _percent(value)) for words, value in rows if value is not None]
    counted = f"{found['samples']:,}, {found['unknown_samples']:,} of them of unknown classes"
    return Table(("figure", "value"), [*shown, ("samples", counted), ("ballot", verdict.ballot)])


def classes_table(verdict: Verdict) -> Table:
    """A row for every class that the samples have."""
    rows: list[tuple[Cell, ...]] = [
        (one.name, Number(one.samples, f"{one.samples:,}"), _percent(one.right),
         _percent(one.refused)) for one in verdict.classes
    ]  # fmt: skip
    columns = ("class", "samples", "answered rightly", "called unknown")
    return Table(columns, rows, title="per class")


def members_table(verdict: Verdict) -> Table:
    """A row for every member: its say, and what it would have answered alone."""
    rows: list[tuple[Cell, ...]] = [
        (one.name, _percent(one.say), _percent(one.joined), _percent(one.alone),
         "; ".join(one.unusual)) for one in verdict.members
    ]  # fmt: skip
    columns = ("member", "say", "joined the answer", "right alone", "unusual")
    return Table(columns, rows, title="who answered")


def show_verdict(console: Console, verdict: Verdict) -> None:
    """The figures of a vote."""
    title = f"{counted(len(verdict.members), 'member')} on {verdict.data}"
    tables = [replace(figures_table(verdict), title=title), classes_table(verdict)]
    for table in [*tables, members_table(verdict)] if verdict.members else tables:
        console.print(_for_terminal(table).head(SHOWN).rich(console.width))
    show_choice(console, verdict.selection)
    for line in cautions(verdict):
        _say(console, line)


def cautions(verdict: Verdict) -> list[str]:
    """What has to be said beside the figures: promise, suspects, notes."""
    said = [promised(verdict.answer)]
    said += [f"Most members {what}; the vote makes up for it as far as it can."
             for what in verdict.trust.get("panel", ())]  # fmt: skip
    unusual = [one for one in verdict.members if one.unusual]
    if unusual:
        said.append(f"Whom not to trust: the vote found {len(unusual)} of "
                    f"{counted(len(verdict.members), 'member')} unusual.")  # fmt: skip
        said += [f"  {one.name} {'; '.join(one.unusual)}" for one in unusual[:SHOWN]]
    elif verdict.trust:
        said.append("The vote found no member unusual.")
    return [*said, *(f"Note: {note}" for note in verdict.notes)]


def choice_table(selection: Mapping[str, Any]) -> Table:
    """Every member that could be chosen, whether it was, and why."""
    chosen = set(selection["chosen"])
    rows: list[tuple[Cell, ...]] = [
        (name, "votes" if name in chosen else "", selection["why"][name])
        for name in selection["parties"]
    ]
    return Table(("member", "chosen", "why"), rows, title=f"chosen by {selection['selector']}")


def show_choice(console: Console, selection: Mapping[str, Any]) -> None:
    """Who votes and why; nothing where everybody does."""
    if not selection:
        return
    console.print(_for_terminal(choice_table(selection)).rich(console.width))
    everybody = counted(len(selection["parties"]), "member")
    count = f"{len(selection['chosen'])} of {everybody} vote."
    for line in (count, *(f"Note: {note}" for note in selection["notes"])):
        _say(console, line)


def safe_csv(table: Table) -> str:
    """The table for a spreadsheet: no text that came from a stranger is taken for a formula."""

    def harmless(text: str) -> str:
        shown = printable(text)  # a table may go to a terminal
        return f"'{shown}" if shown.startswith(FORMULA) else shown

    return _each_text(table, harmless).csv()


def _percent(value: float | None) -> Cell:
    return MISSING if value is None else Number(round(value, 4), f"{value:.2f} %")


def _for_terminal(table: Table) -> Table:
    """With unknown in capitals, and without anything that a terminal would obey."""
    return _each_text(
        table, lambda text: UNKNOWN_NAME.upper() if text == UNKNOWN_NAME else printable(text)
    )


def _each_text(table: Table, change: Callable[[str], str]) -> Table:
    rows = [tuple(change(c) if isinstance(c, str) else c for c in row) for row in table.rows]
    return replace(table, rows=rows)


def _say(console: Console, line: str) -> None:
    """A line in which nothing is markup: names in it are strangers'."""
    console.print(Text(printable(line)), soft_wrap=True)
