"""The ways in which tables are printed."""

from collections.abc import Callable, Sequence

from ostraka.display.latex import latex
from ostraka.display.tables import Table

FORMATS: dict[str, Callable[[Sequence[Table]], str] | None] = {
    "rich": None,
    "markdown": lambda tables: "\n".join(table.markdown() for table in tables),
    "csv": lambda tables: "\n".join(table.csv() for table in tables),
    "latex": latex,
}
"""How tables are printed; rich is for the terminal and depends on its width."""
