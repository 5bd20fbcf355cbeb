"""`ostraka audit`: figures as a table and as JSON, and mistakes."""

from pathlib import Path

import numpy as np
import pytest

from ostraka.store.member import save_member
from tests.cli.calling import Ostraka
from tests.parties.test_audit import CLASSES, samples, trained


@pytest.fixture
def folder(ostraka: Ostraka) -> Path:
    held, fresh = samples(80, 1), samples(200, 2)
    for name, one in (("in.npz", held), ("out.npz", fresh)):
        np.savez(name, x=one.x.numpy(), y=one.labels.numpy(), classes=np.array(CLASSES))
    save_member(Path("one.member"), trained(held, 40))
    return Path.cwd()


def test_figures_and_words(ostraka: Ostraka, folder: Path) -> None:
    done = ostraka("audit", "one.member", "--members", "in.npz", "--non-members", "out.npz")
    assert done.code == 0, done.err
    assert "area under the curve (AUC)" in done.out
    assert "50.0 %" in done.out
    assert "80 trained-on samples against 200 others: the file tells who was trained on" in done.out
    assert "guessed" in done.out
    assert all(len(line) <= 80 for line in done.out.splitlines() if not line[:1].isdigit())


def test_json(ostraka: Ostraka, folder: Path) -> None:
    words = ("audit", "one.member", "--members", "in.npz", "--non-members", "out.npz", "--json")
    told = ostraka(*words).json()
    assert told["auc"]["low"] <= told["auc"]["value"] <= told["auc"]["high"]
    assert told["auc"]["value"] > 0.9
    assert (told["members"], told["non_members"]) == (80, 200)
    assert told["told_shares"] == dict.fromkeys(CLASSES, 0.25)
    assert sum(told["guessed_shares"].values()) == pytest.approx(1)
    assert told["claimed"] == {}
    assert told == ostraka(*words).json(), "the same every time"
    assert told != ostraka(*words, "--seed", "1").json()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("gone.member --members in.npz --non-members out.npz", "gone.member"),
        ("one.member --members gone.npz --non-members out.npz", "gone.npz"),
        ("one.member --members in.npz", "--non-members"),
        ("one.member --members in.npz --non-members in.npz", "0 others of the same classes"),
    ],
)
def test_mistakes(ostraka: Ostraka, folder: Path, words: str, message: str) -> None:
    done = ostraka("audit", *words.split())
    assert done.code == 2
    assert message in done.err


def test_other_classes_are_named(ostraka: Ostraka, folder: Path) -> None:
    fresh = samples(40, 3)
    names = np.array(["w", "x", "y", "z"])
    np.savez("far.npz", x=fresh.x.numpy(), y=fresh.labels.numpy(), classes=names)
    done = ostraka("audit", "one.member", "--members", "in.npz", "--non-members", "far.npz")
    assert "has no sample of the member's classes (a, b, c, d); its own are w, x" in done.err
