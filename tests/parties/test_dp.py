"""Promises as they are written on the command line."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ostraka.core.private import Private
from ostraka.errors import ConfigError
from ostraka.methods.fedov import GENTLE
from ostraka.methods.panel import PRIVATE
from ostraka.parties.dp import parse
from ostraka.parties.leaving import leaving
from ostraka.parties.task_file import TaskFile, make_task
from ostraka.parties.train import train_party
from ostraka.store import codec


@pytest.mark.parametrize(
    ("text", "promise"),
    [
        ("epsilon=8", Private(8.0)),
        ("8", Private(8.0)),
        ("epsilon=1, delta=1e-6, clip=0.5", Private(1.0, 1e-6, 0.5)),
        ("epsilon=2,counts=0.5", Private(2.0, counts=0.5)),
    ],
)
def test_promises_are_read(text: str, promise: Private) -> None:
    assert parse(text) == promise


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is not NAME=NUMBER. Write epsilon=8"),
        ("much", "is not NAME=NUMBER"),
        ("epsilon=", "'epsilon=' is not NAME=NUMBER"),
        ("epsilon=8,delta", "'delta' is not NAME=NUMBER"),
        ("epsilon=0", "needs an epsilon above 0"),
        ("delta=1e-5", "needs an epsilon above 0"),
        ("epsilon=-1", r"'dp\.epsilon' is -1"),
        ("epsilon=nan", r"'dp\.epsilon' is nan"),
        ("epsilon=8,delta=1", r"'dp\.delta' is 1"),
        ("epsilon=8,sigma=2", r"unknown setting 'dp\.sigma'"),
    ],
)
def test_what_is_none_is_refused(text: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        parse(text)


@pytest.mark.parametrize("name", ["fedov", "fedov-calibrated", "closed-voting-owners", "solo"])
def test_a_ballot_is_no_matter_of_a_partys_promise(name: str) -> None:
    """These ballots want counts, which a promise does not let a party tell."""
    task = make_task(["a", "b"], kind="table", shape=(3,), method=name)
    method = task.build_method(Private(8.0))
    assert (method.dp, task.build_method().dp) == (Private(8.0), Private())
    assert method.local == PRIVATE
    assert task.build_method().local != PRIVATE


def test_what_the_task_says_of_training_goes_before_what_is_usual_with_a_promise() -> None:
    chosen = {"local.epochs": 7, "objective.w_destroyed": 0.5}
    task = make_task(["a", "b"], kind="table", shape=(3,), set=chosen)
    method = task.build_method(Private(8.0))
    assert method.local == replace(PRIVATE, epochs=7)
    assert method.objective == replace(GENTLE, w_destroyed=0.5)
    task = make_task(["a", "b"], kind="table", shape=(3,), set={"recipe": "paper"})
    assert task.build_method(Private(8.0)).local.epochs == 200


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    """Three classes in bytes, of one of which there are four samples."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], [40, 40, 4])
    x = (rng.integers(0, 60, (84, 8, 8)) + 60 * y[:, None, None]).astype(np.uint8)
    np.savez(tmp_path / "own.npz", x=x, y=y, classes=np.array(["a", "b", "c"]))
    return tmp_path / "own.npz"


def small(tmp_path: Path, **values: Any) -> TaskFile:
    quick = {"local.epochs": 1, "objective.w_adversarial": 0.0}
    shape = (1, 8, 8)
    return make_task(["a", "b", "c", "d"], kind="image", shape=shape, set=quick, **values)


def test_a_private_party(rows: Path, tmp_path: Path) -> None:
    pytest.importorskip("opacus")
    task = small(tmp_path)
    made = [
        train_party(rows, task, tmp_path / f"{i}.member", dp=Private(8.0, 1e-4)) for i in range(2)
    ]
    card = made[0].member.card
    assert (card.size, card.counts, card.calibration) == (84, None, {})
    assert card.scores == {"epsilon": 8.0, "delta": 1e-4}
    assert made[0].left_out == {}, "to leave a rare class out would tell of its samples"
    assert made[0].rare == {"c": 4}
    weights = [codec.encode(one.member.params) for one in made]
    assert weights[0] != weights[1], "the seed is another one, and nobody's"
    told = {thing.what: thing.reveals for thing in leaving(made[0].member, 10**6)}
    assert "claims; nobody can check it" in told["scores"]


def test_what_a_promise_cannot_cover_is_refused(rows: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="take the noise away; leave it out"):
        train_party(rows, small(tmp_path), dp=Private(8.0), seed=3)
    table = (np.random.default_rng(0).normal(size=(30, 3)), ["a", "b", "c"] * 10)
    with pytest.raises(ConfigError, match=r"standardise is 'own'.*does not cover them"):
        train_party(table, make_task(data=table), dp=Private(8.0))
