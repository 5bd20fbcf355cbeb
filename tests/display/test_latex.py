"""Tables for LaTeX: structure, escaping, means."""

import re

import pytest

from ostraka.display.formats import escape, latex
from ostraka.display.tables import MISSING, Mean, Number, Table

SMALL = Table(
    ("method", "digits / labels:2", "time"),
    (
        ("fedov_sum & more", Mean(91.234, 0.5, 3, best=True), Number(2, "2.0 s")),
        ("[red]", Mean(90.0, None, 1, mark=" [1]"), MISSING),
        ("*", "failed [2]", MISSING),
    ),
    title="Accuracy (%)",
    notes=("100 % of {it} costs $1 ± 2",),
)


def test_a_table_by_hand() -> None:
    assert latex([SMALL]).splitlines()[2:] == [
        r"\begin{table}",
        r"  \centering",
        r"  \caption{Accuracy (\%)}",
        r"  \begin{tabular}{lrr}",
        r"    \toprule",
        r"    method & digits / labels:2 & time \\",
        r"    \midrule",
        r"    fedov\_sum \& more & $\mathbf{91.23 \pm 0.50}$ & 2.0 s \\",
        r"    {}[red] & $90.00$ [1] & --- \\",
        r"    {}* & failed [2] & --- \\",
        r"    \bottomrule",
        r"  \end{tabular}",
        r"  \par\smallskip{\footnotesize 100 \% of \{it\} costs \$1 $\pm$ 2\par}",
        r"\end{table}",
    ]


@pytest.mark.parametrize("character", "\\&%$#_{}~^<>|")
def test_nothing_special_is_left_alone(character: str) -> None:
    """What remains after the commands are taken away has no character that LaTeX would act on."""
    shown = escape(f"a{character}b")
    assert shown != f"a{character}b"
    assert shown.startswith("a")
    assert shown.endswith("b")
    assert re.sub(r"\\[a-z]+\{\}|\\[&%$#_{}]", "", shown) == "ab"


def test_line_breaks_do_not_break_a_row() -> None:
    assert escape("two\nlines\t here") == "two lines here"
    assert (
        latex([SMALL, SMALL]).count(r"\begin{table}")
        == latex([SMALL, SMALL]).count(r"\end{table}")
        == 2
    )
