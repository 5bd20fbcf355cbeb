"""The ways in which tables are printed. LaTeX is in the style of booktabs: names are escaped,
means are set as mathematics, the best in bold.
"""

from collections.abc import Callable, Sequence

from ostraka.display.tables import MISSING, Cell, Mean, Number, Table

HEADER = "% needs \\usepackage{booktabs} in the preamble, and UTF-8 (the default)\n"

SPECIAL = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "±": r"$\pm$",
    "—": "---",
    "–": "--",
    "·": r"$\cdot$",
    "…": r"\ldots{}",
}


def latex(tables: Sequence[Table]) -> str:
    """The tables, one after the other, each in a float of its own; notes stand below."""
    return HEADER + "\n" + "\n".join(map(_table, tables))


def escape(text: str) -> str:
    """Text that LaTeX prints as it is; line breaks become spaces."""
    return "".join(SPECIAL.get(character, character) for character in " ".join(text.split()))


def _table(table: Table) -> str:
    numeric = [table.numeric(i) for i in range(len(table.columns))]
    lines = [r"\begin{table}", r"  \centering"]
    lines += [rf"  \caption{{{escape(table.title)}}}"] if table.title else []
    lines += [
        rf"  \begin{{tabular}}{{{''.join('r' if number else 'l' for number in numeric)}}}",
        r"    \toprule",
    ]
    lines += [f"    {_line([escape(column) for column in table.columns])}", r"    \midrule"]
    lines += [f"    {_line([_cell(cell, table.digits) for cell in row])}" for row in table.rows]
    lines += [r"    \bottomrule", r"  \end{tabular}"]
    lines += [rf"  \par\smallskip{{\footnotesize {escape(note)}\par}}" for note in table.notes]
    return "\n".join([*lines, r"\end{table}"]) + "\n"


def _line(cells: Sequence[str]) -> str:
    # a row that begins with a bracket would be taken for the length behind the \\ of the row before
    guard = "{}" if cells[0].startswith(("[", "*")) else ""
    return guard + " & ".join(cells) + r" \\"


def _cell(cell: Cell, digits: int) -> str:
    if isinstance(cell, Mean):
        spread = "" if cell.std is None else rf" \pm {cell.std:.{digits}f}"
        value = f"{cell.mean:.{digits}f}{spread}"
        shown = rf"\mathbf{{{value}}}" if cell.best else value
        return f"${shown}${cell.mark and ' ' + escape(cell.mark)}"
    if isinstance(cell, Number):
        return escape(cell.text)
    return "---" if cell == MISSING else escape(cell)


FORMATS: dict[str, Callable[[Sequence[Table]], str] | None] = {
    "rich": None,
    "markdown": lambda tables: "\n".join(table.markdown() for table in tables),
    "csv": lambda tables: "\n".join(table.csv() for table in tables),
    "latex": latex,
}
"""How tables are printed; rich is for the terminal and depends on its width."""
