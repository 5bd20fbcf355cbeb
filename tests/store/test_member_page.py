"""docs/member-file.md: what it says is what the reader does, and its program writes a member."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from ostraka.store import container, member_card, outline
from ostraka.store.member import load_member
from tests.docs.pages import ROOT, blocks, tables

PAGE = ROOT / "docs" / "member-file.md"
PROGRAM = next(block.text for block in blocks(PAGE) if block.language == "python")


@pytest.fixture
def written(tmp_path: Path) -> Path:
    """The file that the page's program writes, where nothing of ours can be imported."""
    bare = {"PATH": "", "PYTHONPATH": str(Path(np.__file__).parents[1])}
    script = "import sys; sys.modules['ostraka'] = sys.modules['torch'] = None\n" + PROGRAM
    subprocess.run([sys.executable, "-c", script], cwd=tmp_path, env=bare, check=True)
    return tmp_path / "st-anna.safetensors"


def test_its_program_needs_numpy_and_the_standard_library_alone() -> None:
    modules = set(re.findall(r"^(?:import|from) (\w+)", PROGRAM, re.M))
    assert modules == {"hashlib", "json", "struct", "numpy"}


def test_what_its_program_writes_is_read(written: Path) -> None:
    """And answers as numpy does: argmax of W2 relu(W1 x + 0) + 0, x standardised."""
    member = load_member(written)
    assert member.card.counts == (100, 10, 1000)
    assert (member.card.size, str(member.card), member.made.banded) == (1240, "St. Anna", True)
    assert member.made.more == {"contact": "research@st-anna.example"}
    rng = np.random.default_rng(0)
    first, last = rng.normal(size=(4, 2)), rng.normal(size=(3, 4))
    rows = np.random.default_rng(1).normal([37.0, 80.0], [1.0, 20.0], (50, 2)).astype("float32")
    inputs = (rows - [36.8, 80.0]) / [0.7, 12.0]
    expected = (np.maximum(inputs @ first.T, 0) @ last.T).argmax(axis=1)
    assert member.predictor().predict(rows).tolist() == expected.tolist()


def test_its_fields_are_the_cards() -> None:
    table = tables(PAGE)["field"]
    needed = [name for name, need, _ in table if need == "yes"]
    optional = [name for name, need, _ in table if need == "no"]
    assert sorted(needed) == sorted(member_card.NEEDED)
    assert sorted(optional) == sorted(member_card.OPTIONAL)


def test_its_limits_are_the_readers() -> None:
    text = " ".join(PAGE.read_text(encoding="utf-8").split())
    assert (container.HEADER, container.LARGEST) == (2**20, 2**30)
    assert (outline.OPERATIONS, outline.ACTIVATIONS) == (2**33, 2**26)
    for limit in (
        f"at most 1 MiB, {container.TENSORS:,} tensors and three levels",
        f"at most {container.NAME} printable characters",
        f"1 to {member_card.CLASSES:,}, no two that",
        f"at most {member_card.SAMPLE:,} values",
        f"texts of at most {member_card.TEXT} printable characters ({member_card.LONG_TEXT:,} in",
        f"at most {member_card.MANY} texts",
        f"at most {outline.OPTIONS:,} values up to {outline.OPTION:,}",
    ):
        assert limit in text
