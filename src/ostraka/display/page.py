"""Results as one HTML page that stands alone: nothing is loaded, nothing runs, and names that came
with strangers' files are text and nothing else.
"""

import base64
import io
from collections.abc import Iterable, Sequence
from html import escape as escaped
from pathlib import Path

import numpy as np
from torch import Tensor

from ostraka import __version__
from ostraka.core.kind import Kind
from ostraka.core.names import UNKNOWN_NAME
from ostraka.display.answers import (
    Answered,
    answered_by,
    cautions,
    choice_table,
    classes_table,
    figures_table,
    members_table,
    promised,
)
from ostraka.display.tables import Cell, Table
from ostraka.errors import counted, printable
from ostraka.parties.answers import Explanation
from ostraka.parties.verdict import Verdict
from ostraka.store.codec import write_atomically

MOST_ROWS = 2000
"""Samples that a page lists."""
MOST_PICTURES = 300
"""Images that a page shows."""
UNKNOWN = '<span class="odd">UNKNOWN</span>'
"""How the answer unknown is shown."""
SIDE = 48
"""Pixels of a picture's longer side on the page."""

STYLE = """\
:root{color-scheme:light dark;--line:#d5d9e0;--soft:#f3f5f8;--ink:#1b2430;--dim:#5b6675;
--bar:#3b6fb6;--odd:#b4531a;--paper:#fff}
@media (prefers-color-scheme:dark){:root{--line:#3a4351;--soft:#222a35;--ink:#e6eaf0;--dim:#9aa6b5;
--bar:#6fa0e0;--odd:#f0a068;--paper:#171d25}}
body{font:15px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--paper);margin:0 auto;
max-width:70rem;padding:1.5rem}
h1{font-size:1.5rem;margin:0 0 .2rem}h2{font-size:1.1rem;margin:2rem 0 .5rem}
p{margin:.3rem 0}.dim{color:var(--dim)}.odd{color:var(--odd);font-weight:600}
.wide{overflow-x:auto}table{border-collapse:collapse}
th,td{padding:.3rem .8rem .3rem 0;border-bottom:1px solid var(--line);text-align:left;
vertical-align:middle;overflow-wrap:anywhere;max-width:24rem}
th{color:var(--dim);font-weight:600;white-space:nowrap}
td.n,th.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
.tiles{display:flex;flex-wrap:wrap;gap:.8rem;margin:1rem 0}
.tile{background:var(--soft);border-radius:.5rem;padding:.6rem 1rem;min-width:8rem}
.tile b{display:block;font-size:1.4rem}.bar{display:inline-block;width:6rem;height:.6rem;
background:var(--soft);border-radius:.3rem;vertical-align:middle;margin-right:.5rem}
.bar i{display:block;height:100%;background:var(--bar);border-radius:.3rem}
img{image-rendering:pixelated;display:block}ul{padding-left:1.2rem}
details summary{cursor:pointer;color:var(--dim)}details td,details th{font-size:.9em}
"""
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
"""What a browser may load for the page: its own style, and pictures that are in it."""


def write_page(path: Path, page: str) -> None:
    """Write a page, in one step."""
    write_atomically(path, page.encode())


def verdict_page(verdict: Verdict) -> str:
    """The figures of a vote."""
    opened = verdict.evaluation.open
    tiles = {
        "accuracy, closed": verdict.evaluation.accuracy,
        "AUROC of unknown": opened.auroc,
        "known called unknown": opened.known_refused,
        "unknown called unknown": opened.unknown_refused,
    }
    parts = [
        _tiles({name: f"{value:.1f} %" for name, value in tiles.items() if value is not None}),
        *(_paragraph(line.strip()) for line in cautions(verdict)),
        _section("Per class", classes_table(verdict)),
        _section("Who answered", members_table(verdict)) if verdict.members else "",
        _section("Who was chosen", choice_table(verdict.selection)) if verdict.selection else "",
        _section("All figures", figures_table(verdict)),
    ]
    return _page(f"Vote on {verdict.data}", parts)


def pictures_in(count: int, kind: Kind) -> int:
    """How many of so many samples a page of answers shows."""
    return min(count, MOST_PICTURES) if kind == "image" else 0


def pictured(count: int) -> str:
    """What has to be said of a page with pictures before anybody sends it."""
    return f"This page shows {counted(count, 'sample')} as pictures: whoever has it sees them."


def answers_page(answered: Answered, data: str, stored: Tensor, kind: Kind) -> str:
    """The answers, one below the other, with who said what."""
    count, refused = len(answered.answers), answered.refused
    tiles = {"samples": f"{count:,}", "answered": f"{count - refused:,}", "unknown": f"{refused:,}"}
    head = ("", "sample", "answer", "confidence", "answered by", "who said what")
    pictures = _pictures(stored[: pictures_in(len(stored), kind)])
    rows = []
    for i, (item, one) in enumerate(zip(answered.items, answered.answers, strict=True)):
        if i == MOST_ROWS:
            break
        rows.append(_answer(item, one, pictures[i] if i < len(pictures) else ""))
    left = count - len(rows)
    more = [f"{left:,} more samples are not listed; --csv gives all of them."] if left else []
    heads = "".join(f"<th>{escape(name)}</th>" for name in head)
    listed = f'<div class="wide"><table><tr>{heads}</tr>{"".join(rows)}</table></div>'
    notes = [promised(answered.promise), *(f"Note: {note}" for note in answered.notes), *more]
    notes = [pictured(len(pictures)), *notes] if pictures else notes
    return _page(f"Answers to {data}", [_tiles(tiles), *map(_paragraph, notes), listed])


def _answer(item: str, one: Explanation, picture: str) -> str:
    """A row of the page."""
    answer, sure = escape(one.answer), _bar(one.confidence)
    if one.answer == UNKNOWN_NAME:
        answer = UNKNOWN
        near = f"nearest: {one.nearest} ({100 * one.confidence:.0f} %)"
        sure = f'<span class="dim">{escape(near)}</span>'
    voices = [
        (v.member, v.answer, f"{100 * v.probability:.0f} %", f"{v.weight:.2f}") for v in one.voices
    ]
    said = ""
    if voices:
        inner = Table(("member", "said", "probability", "weight"), voices)
        count = counted(len(voices), "member")
        said = f"<details><summary>{count}</summary>{_table(inner)}</details>"
    cells = [picture, escape(item), answer, sure, escape(", ".join(answered_by(one))), said]
    return f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"


def _bar(share: float) -> str:
    width = round(100 * min(1.0, max(0.0, share)))
    return f'<span class="bar"><i style="width:{width}%"></i></span>{width} %'


def _tiles(figures: dict[str, str]) -> str:
    each = (
        f'<div class="tile"><b>{escape(value)}</b><span class="dim">{escape(name)}</span></div>'
        for name, value in figures.items()
    )
    return f'<div class="tiles">{"".join(each)}</div>'


def _section(title: str, table: Table) -> str:
    return f"<h2>{escape(title)}</h2>{_table(table)}"


def _paragraph(line: str) -> str:
    return f"<p>{escape(line)}</p>"


def _table(table: Table) -> str:
    numeric = [table.numeric(i) for i in range(len(table.columns))]

    def cells(tag: str, texts: Iterable[str]) -> str:
        marked = zip(texts, numeric, strict=True)
        return "".join(
            f'<{tag} class="n">{t}</{tag}>' if n else f"<{tag}>{t}</{tag}>" for t, n in marked
        )

    def shown(cell: Cell) -> str:
        return UNKNOWN if cell == UNKNOWN_NAME else escape(table.text(cell))

    head = cells("th", map(escape, table.columns))
    rows = "".join(f"<tr>{cells('td', map(shown, row))}</tr>" for row in table.rows)
    return f'<div class="wide"><table><tr>{head}</tr>{rows}</table></div>'


def _pictures(stored: Tensor) -> list[str]:
    """Images [B, C, H, W] as pictures inside the page, the least value black."""
    from PIL import Image

    if not len(stored):
        return []
    values = stored.double().numpy()
    low, high = float(values.min()), float(values.max())
    scaled = (values - low) * (255 / (high - low) if high > low else 0.0)
    made = []
    for one in np.round(scaled).astype(np.uint8):
        shown = one[0] if len(one) == 1 else np.moveaxis(one[:3], 0, 2)
        file = io.BytesIO()
        Image.fromarray(shown).save(file, "PNG")
        data = base64.b64encode(file.getvalue()).decode()
        height, width = (max(1, round(SIDE * s / max(shown.shape[:2]))) for s in shown.shape[:2])
        made.append(
            f'<img alt="" width="{width}" height="{height}" src="data:image/png;base64,{data}">'
        )
    return made


def _page(title: str, parts: Sequence[str]) -> str:
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        '<meta name="viewport" content="width=device-width,initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{STYLE}</style></head>\n"
        f'<body><h1>{escape(title)}</h1><p class="dim">ostraka {escape(__version__)}</p>\n'
        + "\n".join(part for part in parts if part)
        + "\n</body></html>\n"
    )


def escape(text: str) -> str:
    """Text that a browser shows and does not obey, nor turns around."""
    return escaped(printable(text, keep="\n"))
