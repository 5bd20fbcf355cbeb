"""A figure to draw on and a file to put it in. Matplotlib is imported when something is drawn, not before."""

from pathlib import Path
from typing import TYPE_CHECKING

from ostraka.errors import ConfigError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SUFFIXES = (".svg", ".png")


def new_figure(width: float, height: float) -> "Figure":
    """An empty figure of this many inches. No pyplot: no window, no global state, safe in any thread."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ConfigError("plots need matplotlib; install it with: pip install matplotlib") from error
    return Figure(figsize=(width, height), layout="constrained")


def check_suffix(path: Path) -> None:
    """Refuse a file name that says neither SVG nor PNG; called before the drawing is made."""
    if path.suffix.lower() not in SUFFIXES:
        raise ConfigError(f"a plot is written as {' or '.join(SUFFIXES)}, but the file is called {path.name!r}")


def save(figure: "Figure", path: Path) -> None:
    """Write the figure as its suffix says; the same figure gives the same bytes."""
    from matplotlib import rc_context

    path.parent.mkdir(parents=True, exist_ok=True)
    svg = path.suffix.lower() == ".svg"
    # text stays text (searchable, small); no date and no random ids, so that a repeated run changes no file
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "ostraka"}):
        figure.savefig(path, dpi=150, metadata={"Date": None} if svg else None)
