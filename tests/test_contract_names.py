"""One roof for authors: every name is there, is documented,
and is all that the page on methods needs.
"""

import re
from pathlib import Path

from ostraka import contract

ROOT = Path(__file__).parent.parent


def test_all_names_are_there_and_nothing_else() -> None:
    shown = {name for name in vars(contract) if not name.startswith("_")}
    assert shown == set(contract.__all__)


def test_the_page_on_methods_needs_nothing_from_inside() -> None:
    """What it imports of ostraka is public: the contract, an objective by name, and the check."""
    page = (ROOT / "docs" / "adding-a-method.md").read_text(encoding="utf-8")
    homes = set(re.findall(r"^from (ostraka[\w.]*) import", page, flags=re.M))
    assert homes == {"ostraka.contract", "ostraka.objectives.cross_entropy", "ostraka.testing"}
