"""Member files whose own names would command a terminal, fake a line or run in a spreadsheet."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ostraka.store.member import save_member
from tests.cli.calling import Ostraka
from tests.parties.voters import samples, save, three

EVIL = "\x1b[2J\u202egnp"
"""Clears the screen, and turns the rest of the line around."""


@pytest.fixture
def ward(ostraka: Ostraka) -> Path:
    """A folder with two members, one of which is called by its file alone, and samples."""
    folder = Path("ward")
    anna, berta, _ = three()
    save(folder, anna)
    save_member(folder / f"{EVIL}.member", replace(berta, card=replace(berta.card, name="")))
    np.savez("new.npz", x=samples())
    return folder


def shown(text: str) -> str:
    """The text, which must hold nothing that a terminal obeys."""
    assert not [letter for letter in text if not letter.isprintable() and letter != "\n"]
    assert "[2J" in text
    return text


def test_no_command_hands_a_file_name_to_the_terminal(ostraka: Ostraka, ward: Path) -> None:
    for verb in ("verify", "show"):
        shown(ostraka(verb, ward / f"{EVIL}.member").out)
    table = shown(ostraka("predict", ward, "--on", "new.npz", "--csv", "--html", "a.html").out)
    assert "\N{REPLACEMENT CHARACTER}[2J" in table
    shown(Path("a.html").read_text())
    (ward / f"again{EVIL}.member").write_bytes((ward / f"{EVIL}.member").read_bytes())
    np.savez("public.npz", x=np.repeat(samples(), 20, axis=0))
    student = ("--public", "public.npz", "--epochs", "1", "--out", "student.member", "--quiet")
    assert "count once" in shown(ostraka("distil", ward, *student, "--ballot", "sum").out)


def test_nor_does_an_error(ostraka: Ostraka, ward: Path) -> None:
    (ward / f"{EVIL}.member").write_bytes(b"PK\x03\x04 and so on")
    assert "is a zip archive" in shown(ostraka("predict", ward, "--on", "new.npz").err)
    assert "is a zip archive" in shown(ostraka("verify", ward / f"{EVIL}.member").out)


def test_wide_signs_are_no_formula_either(ostraka: Ostraka, ward: Path) -> None:
    (ward / f"{EVIL}.member").rename(ward / "\uff1dcmd.member")
    table = ostraka("predict", ward, "--on", "new.npz", "--csv", "--explain").out
    assert "'\uff1dcmd" in table
    assert not any(line.startswith("\uff1d") or ",\uff1d" in line for line in table.splitlines())


def test_a_list_names_the_files_that_were_chosen_or_is_not_written(ostraka: Ostraka) -> None:
    """A line that begins with # would be a comment, a line break would name two other files."""
    save(Path("."), *three())
    Path("anna.member").rename("#anna.member")
    given = ("#anna.member", "berta.member", "carl.member", "--method", "all", "--out", "list.txt")
    ostraka("select", *given)
    assert Path("list.txt").read_text() == "./#anna.member\nberta.member\ncarl.member\n"
    np.savez("new.npz", x=samples())
    answers = ostraka("predict", "list.txt", "--on", "new.npz", "--json").json()
    assert answers["members"] == ["anna", "berta", "carl"]
    Path("#anna.member").rename("berta.member\nx.member")
    given = ("berta.member\nx.member", "carl.member", "--method", "all", "--out", "other.txt")
    assert "cannot stand in a list" in ostraka("select", *given).err
    assert not Path("other.txt").exists()
