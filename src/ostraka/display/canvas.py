"""A figure to draw on and a file to put it in.

Matplotlib is imported when something is drawn, not before.
"""

import io
import os
from pathlib import Path
from typing import TYPE_CHECKING

from ostraka.errors import ConfigError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SUFFIXES = (".svg", ".png", ".pdf")

FORMATS = ".svg, .png or .pdf"
"""The suffixes in words."""

UNDATED: dict[str, dict[str, None]] = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
"""What is taken out of a file, so that a repeated run changes none."""


def new_figure(width: float, height: float) -> "Figure":
    """An empty figure of this many inches.

    No pyplot: no window, no global state, safe in any thread.
    """
    from matplotlib.figure import Figure  # here: it takes long to load

    return Figure(figsize=(width, height), layout="constrained")


def check_suffix(path: Path) -> None:
    """Refuse a file name that says no format, and a folder; called before the drawing is made."""
    if os.path.isdir(path):  # unlike Path.is_dir it takes any name, however long
        raise ConfigError(
            f"{path} is a folder; give the name of a file in it, such as {path / 'figure.svg'}"
        )
    if path.suffix.lower() not in SUFFIXES:
        raise ConfigError(f"a plot is written as {FORMATS}, but the file is called {path.name!r}")


def save(figure: "Figure", path: Path) -> None:
    """Write the figure in one step, as its suffix says; the same figure gives the same bytes.

    A missing folder is made. An error leaves an older picture whole, and no empty one.
    """
    from matplotlib import rc_context
    from matplotlib.text import Text

    from ostraka.store.codec import write_atomically  # with torch: when something is drawn

    suffix, content = path.suffix.lower(), io.BytesIO()
    # text stays text (searchable, small); no date and no random ids,
    # so that a repeated run changes no file
    # a $ is a $: names are strangers' or a party's own, and no formulas
    for text in figure.findobj(Text):
        text.set_parse_math(False)
    drawn = {"svg.fonttype": "none", "svg.hashsalt": "ostraka", "text.parse_math": False}
    with rc_context(drawn):  # type: ignore[arg-type]
        figure.savefig(content, format=suffix[1:], dpi=150, metadata=UNDATED.get(suffix))
    write_atomically(path, content.getvalue())
