"""Names as they are compared, and those that cannot stand for classes."""

import pytest

from ostraka.core.names import ALIKE, class_flaw, letters, look, normal


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("cat", "c\u0430t"),
        ("cat", "ca\u200bt"),
        ("cat", "\uff43at "),
        ("digit 7", "digit\u00a0\u00a07"),
        ("x-ray", "x\u2010ray"),
        ("BETA", "\u0392\u0395\u03a4\u0391"),
        ("caf\u00e9", "cafe\u0301"),
        ("\ufb01sh", "fish"),
    ],
)
def test_names_that_look_the_same(one: str, other: str) -> None:
    assert look(one) == look(other)
    assert class_flaw([one, "else", other]).endswith("which look the same")


@pytest.mark.parametrize(
    ("one", "other"),
    [("cat", "Cat"), ("digit 7", "digit7"), ("digit 1", "digit l"), ("\u043a\u043e\u0442", "kot")],
)
def test_names_that_a_reader_tells_apart(one: str, other: str) -> None:
    assert look(one) != look(other)
    assert class_flaw([one, other]) == ""


def test_spellings_are_one_name_and_other_letters_are_not() -> None:
    assert normal(" \ufb01sh") == normal("fish")
    assert normal("c\u0430t") != normal("cat")
    assert letters("c\u0430t") == "'c\u0430t' (CYRILLIC SMALL LETTER A)"
    assert letters("cat") == "'cat'"


def test_lookalikes_become_plain_signs() -> None:
    assert all(chr(one).isascii() is False for one in ALIKE)
    assert all(chr(to).isascii() for to in ALIKE.values())
