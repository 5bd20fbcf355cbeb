"""A party trains on its own data: the same work as in a run, a file that repeats to the bit, and
nothing told that was not agreed.
"""

import signal
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from ostraka.core.predictor import UNKNOWN
from ostraka.core.samples import Samples
from ostraka.data.dataset import PIXELS
from ostraka.data.own import Form, read
from ostraka.data.own.arrays import held
from ostraka.errors import ConfigError, DataError, Interrupted
from ostraka.parties.ensemble import Ensemble
from ostraka.parties.task_file import make_task
from ostraka.parties.train import train_party
from ostraka.runs.api import load_run, run_config
from ostraka.runs.config import make
from ostraka.store.member import encode_member, load_member
from tests.parties.wards import CLASSES, SHORT, SIDE, folder, pictures, short_task


def test_a_party_with_two_of_four_classes(tmp_path: Path) -> None:
    ward = folder(tmp_path / "ward", ("cross", "dot"), 20)
    trained = train_party(ward, short_task(), tmp_path / "st-anna.member", name="St. Anna")
    member = load_member(tmp_path / "st-anna.member")
    assert member.model.classes == CLASSES
    assert member.card.counts == (0, 20, 20, 0)
    assert member.card.size == 40
    assert member.card.name == "St. Anna"
    assert member.card.calibration["held"] == 4  # a tenth of each class
    assert 0 <= member.card.scores["validation"] <= 1
    assert member.made.method == "fedov"
    assert member.made.task == short_task().digest
    assert trained.counts == {"cross": 20, "dot": 20}
    assert not trained.left_out
    assert not (tmp_path / "st-anna.member.progress").exists()


def test_it_is_the_work_of_a_party_in_a_run(tmp_path: Path) -> None:
    """One party that holds everything, in a run and by itself: the same weights and card."""
    x, y = pictures(CLASSES, 15)
    numbers = np.array([CLASSES.index(name) for name in y])
    (tmp_path / "own.json").write_text('{"class_names": ["bar", "cross", "dot", "frame"]}')
    np.savez(tmp_path / "own.npz", x_train=x, y_train=numbers, x_test=x[:4], y_test=numbers[:4])
    values = {"data": str(tmp_path / "own.npz"), "partition": "iid", "parties": 1, "seed": 5}
    config = make({"method": "fedov", "net": "mlp", "engine": "serial", "set": SHORT, **values})
    run_config(config, tmp_path / "run", False, None)
    (theirs,) = load_run(tmp_path / "run").members()
    mine = train_party((x, y), short_task(), seed=5).member
    assert theirs.params.keys() == mine.params.keys()
    assert all(torch.equal(theirs.params[name], mine.params[name]) for name in mine.params)
    assert replace(mine.card, name=theirs.card.name) == theirs.card
    assert mine.model == theirs.model


def test_the_same_again_is_the_same_file(tmp_path: Path) -> None:
    data = pictures(CLASSES[:2], 15)
    files = [tmp_path / name / "x.member" for name in "abc"]
    for seed, file in zip((0, 0, 1), files, strict=True):
        train_party(data, short_task(), file, seed=seed)
    first, second, other = (file.read_bytes() for file in files)
    assert first == second
    assert first != other
    in_memory = train_party(data, short_task(), name="x").member
    assert encode_member(in_memory) == first


@pytest.mark.parametrize("at", [1, 3, 6])
def test_interrupted_and_begun_again_is_the_same_file(at: int, tmp_path: Path) -> None:
    """Ctrl-C comes in the middle of a training; what was done until then is not done again."""
    data = pictures(CLASSES[:3], 20)
    task = short_task(set={"local.epochs": 8, "local.batch": 16})
    train_party(data, task, tmp_path / "straight.member", name="x")
    steps: list[float] = []

    def press(done: float, loss: float | None) -> None:
        steps.append(done)
        if len(steps) == at:
            signal.raise_signal(signal.SIGINT)

    halted = tmp_path / "halted.member"
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(Interrupted, match="the same command goes on"):
        train_party(data, task, halted, name="x", tell=press)
    assert signal.getsignal(signal.SIGINT) is before
    assert not halted.exists()
    assert (tmp_path / "halted.member.progress").is_dir()
    assert len(steps) == at, "it stops at once"
    rest: list[float] = []
    train_party(data, task, halted, name="x", tell=lambda done, loss: rest.append(done))
    assert len(rest) == 8 - at, "finished epochs are not repeated"
    assert halted.read_bytes() == (tmp_path / "straight.member").read_bytes()
    assert not (tmp_path / "halted.member.progress").exists()


def test_half_finished_training_of_something_else_is_refused(tmp_path: Path) -> None:
    data, out = pictures(CLASSES[:2], 15), tmp_path / "x.member"

    def press(done: float, loss: float | None) -> None:
        signal.raise_signal(signal.SIGINT)

    with pytest.raises(Interrupted):
        train_party(data, short_task(), out, tell=press)
    for other in (
        {"seed": 3},
        {"task": short_task(rare=5)},
        {"data": pictures(CLASSES[:2], 15, seed=9)},
    ):
        given = {"data": data, "task": short_task(), "out": out, **other}
        with pytest.raises(ConfigError, match="half-finished training with other data"):
            train_party(**given)  # type: ignore[arg-type]
    train_party(data, short_task(), out)


def test_a_file_that_somebody_else_laid_there_meanwhile_is_not_replaced(tmp_path: Path) -> None:
    """Beside half-finished training a file may be its own; one that is not stays as it is."""
    data, out = pictures(CLASSES[:2], 15), tmp_path / "x.member"

    def press(done: float, loss: float | None) -> None:
        signal.raise_signal(signal.SIGINT)

    with pytest.raises(Interrupted):
        train_party(data, short_task(), out, tell=press)
    out.write_bytes(b"another")
    with pytest.raises(ConfigError, match=r"x\.member is there already"):
        train_party(data, short_task(), out)
    assert out.read_bytes() == b"another"
    assert (tmp_path / "x.member.progress").is_dir(), "what was trained is not lost"
    out.unlink()
    train_party(data, short_task(), out)
    assert [path.name for path in tmp_path.iterdir()] == ["x.member"]


def test_a_finished_file_is_not_trained_again_and_not_taken_for_anothers(tmp_path: Path) -> None:
    """As a kill leaves it before it was tidied up: the file, and the note of what it is."""
    data, out = pictures(CLASSES[:2], 15), tmp_path / "x.member"
    first = train_party(data, short_task(), out)
    with pytest.raises(ConfigError, match="there already"):
        train_party(data, short_task(), out)
    made = out.read_bytes()

    def killed() -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("ostraka.parties.train.tidy", lambda path: None)
            train_party(data, short_task(), out, replace_file=True)

    killed()
    steps: list[float] = []
    again = train_party(data, short_task(), out, tell=lambda done, loss: steps.append(done))
    assert (steps, again.counts, out.read_bytes()) == ([], first.counts, made)
    assert [path.name for path in tmp_path.iterdir()] == ["x.member"]
    killed()
    with pytest.raises(ConfigError, match="there already"):
        train_party(data, short_task(), out, name="somebody else")
    assert out.read_bytes() == made


def test_without_a_file_ctrl_c_keeps_nothing() -> None:
    def press(done: float, loss: float | None) -> None:
        signal.raise_signal(signal.SIGINT)

    with pytest.raises(Interrupted, match="nothing is kept"):
        train_party(pictures(CLASSES[:2], 15), short_task(), tell=press)


def unequal(counts: dict[str, int]) -> tuple[np.ndarray, np.ndarray]:
    parts = [pictures((name,), count) for name, count in counts.items()]
    x, y = zip(*parts, strict=True)
    return np.concatenate(x), np.concatenate(y)


def test_rare_classes_are_left_out_unless_they_are_kept(tmp_path: Path) -> None:
    data = unequal({"bar": 15, "cross": 9, "dot": 10, "frame": 1})
    left = train_party(data, short_task())
    assert left.left_out == {"cross": 9, "frame": 1}
    assert left.member.card.counts == (15, 0, 10, 0)
    assert left.member.card.size == 25
    kept = train_party(data, short_task(), keep_rare=True)
    assert kept.rare == {"cross": 9, "frame": 1}
    assert kept.left_out == {}
    assert kept.member.card.counts == (15, 9, 10, 1)
    assert train_party(data, short_task(rare=0)).member.card.counts == (15, 9, 10, 1)
    with pytest.raises(DataError, match="every class has so few samples"):
        train_party(unequal({"bar": 3, "dot": 9}), short_task())


def test_left_out_samples_leave_no_trace() -> None:
    """As if they had never been there."""
    with_rare = train_party(unequal({"bar": 15, "dot": 12, "frame": 2}), short_task(), name="x")
    never = train_party(unequal({"bar": 15, "dot": 12}), short_task(), name="x")
    assert encode_member(with_rare.member) == encode_member(never.member)


@pytest.mark.parametrize(
    ("tell", "counts", "curves"),
    [("counts", (15, 0, 12, 0), True), ("bands", (10, 0, 10, 0), True),
     ("statistics", (15, 0, 12, 0), True), ("size", None, False)],
)  # fmt: skip
def test_no_more_is_told_than_was_agreed(
    tell: str, counts: tuple[int, ...] | None, curves: bool, tmp_path: Path
) -> None:
    chosen = {**SHORT, "ballot": "sum"}
    task = short_task(tell=tell, set=chosen)
    data = unequal({"bar": 15, "dot": 12})
    member = train_party(data, task, tmp_path / "x.member").member
    assert member.card.counts == counts
    assert train_party(data, task).member.card.counts == counts, "not even in memory"
    assert member.made.banded == (tell == "bands")
    assert ("refusals" in member.card.calibration) == curves
    assert ("typicality" in member.card.calibration) == (tell == "statistics")
    assert ("validation" in member.card.scores) == curves
    text = (tmp_path / "x.member").read_bytes()[:3000].decode("latin1")
    assert (r"\"bands\": [\"10-99\", \"<10\", \"10-99\", \"<10\"]" in text) == (tell == "bands")
    if tell == "bands":
        assert "counts" not in text


ROWS = np.random.default_rng(0).normal(5.0, 3.0, (40, 2)).astype(np.float32)
NAMES = np.repeat(["a", "b"], 20)


def test_own_statistics_are_carried_the_tasks_are_taken() -> None:
    def view(**values: object) -> tuple[tuple[float, ...], tuple[float, ...]]:
        short = {"local.epochs": 1}
        task = make_task(["a", "b"], kind="table", shape=(2,), set=short, **values)  # type: ignore[arg-type]
        seen = train_party((ROWS, NAMES), task).member.model.view
        return seen.mean, seen.std

    mean, std = view()
    assert mean == pytest.approx(ROWS.mean(axis=0), rel=1e-5)
    assert std == pytest.approx(ROWS.std(axis=0), rel=1e-5)
    assert view(standardise="off") == ((), ())
    agreed = view(standardise="task", mean=[1.0, 2.0], std=[3.0, 4.0])
    assert agreed == ((1.0, 2.0), (3.0, 4.0))


def test_without_a_task_the_classes_found_are_all(tmp_path: Path) -> None:
    np.savez(tmp_path / "own.npz", x=ROWS, y=NAMES)
    trained = train_party(tmp_path / "own.npz", out=tmp_path / "x.member")
    assert trained.member.model.classes == ("a", "b")
    assert trained.member.card.name == "x"
    collected = read(tmp_path / "own.npz")
    assert train_party(collected, trained.task, name="x").member.card == trained.member.card


def test_it_learns_its_classes_and_refuses_the_others() -> None:
    task = short_task(set={"local.epochs": 40, "local.batch": 16}, net="mlp")
    member = train_party(pictures(("bar", "frame"), 60), task).member
    assert member.card.scores["validation"] > 0.9
    x, y = pictures(("bar", "frame", "dot"), 40, seed=1)
    answers = member.predictor().predict(x).numpy()
    known = y != "dot"
    right = answers == np.array([CLASSES.index(name) for name in y])
    assert right[known].mean() > 0.8
    assert (answers[~known] == UNKNOWN).mean() > 0.5


def test_a_shared_start_is_the_same_for_all_parties() -> None:
    """Without a step, a member is what it began with."""
    data = pictures(CLASSES[:2], 12)

    def first(start: str, seed: int) -> torch.Tensor:
        task = short_task(set={"local.steps": 0, "start": start})
        return next(iter(train_party(data, task, seed=seed).member.params.values()))

    assert torch.equal(first("shared", 1), first("shared", 2))
    assert not torch.equal(first("own", 1), first("own", 2))


def test_a_secret_seed_where_noise_protects(tmp_path: Path) -> None:
    """Two members of the same data differ, and nobody can give the seed."""
    chosen = {**SHORT, "ballot": "sum", "objective": "cross-entropy", "dp.epsilon": 5.0}
    task = short_task(set={**chosen, "local.epochs": 1})
    data = pictures(CLASSES[:2], 15)
    with pytest.raises(ConfigError, match="could take the noise away"):
        train_party(data, task, seed=0)
    first, second = (train_party(data, task, tmp_path / f"{n}.member").member for n in "ab")
    name = next(iter(first.params))
    assert not torch.equal(first.params[name], second.params[name])
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["a.member", "b.member"]


def test_broken_requests(tmp_path: Path) -> None:
    data, out = pictures(CLASSES[:2], 15), tmp_path / "x.member"
    out.write_text("mine")
    cases = [
        ((data, short_task(), out), {}, ConfigError, "is there already"),
        ((data, short_task(), tmp_path), {}, ConfigError, "is a folder; give a file"),
        ((data, short_task()), {"name": "a\nb"}, ConfigError, "printable characters"),
        ((data, short_task()), {"name": "a" * 201}, ConfigError, "at most 200"),
        ((data, tmp_path / "no.toml"), {}, ConfigError, "no.toml cannot be read"),
        ((tmp_path / "gone",), {}, DataError, "does not exist"),
        (((data[0], ["x"] * 30), short_task()), {}, DataError, "that the task does not have"),
        (((data[0][:, :8], data[1]), short_task()), {}, DataError, "12"),
        ((3, short_task()), {}, DataError, "a int was given as data"),
        (((data[0] / 255, data[1]), short_task()), {}, DataError, "images are kept as bytes"),
    ]
    for given, more, error, words in cases:
        with pytest.raises(error, match=words):
            train_party(*given, **more)  # type: ignore[arg-type]
    assert out.read_text() == "mine"
    train_party(data, short_task(), out, replace_file=True)
    assert load_member(out).model.shape == (1, SIDE, SIDE)


def test_samples_of_another_form_are_refused() -> None:
    with pytest.raises(ConfigError, match="the task wants image"):
        train_party(held(ROWS, NAMES, Form()), short_task())


def test_the_tasks_unit_is_that_of_the_member() -> None:
    """Bytes of 0 to 255 are brought to 0 to 16 before they are trained on, and shown as 0 to 1."""
    x, y = pictures(("bar", "dot"), 12)
    member = train_party((x, y), short_task(unit=16), name="north").member
    assert member.model.takes == "image [1, 12, 12], values from 0 to 16"
    assert member.model.view.apply(torch.full((1, 1, 12, 12), 16.0)).max() == 1
    stored = Samples(torch.from_numpy(x).unsqueeze(1), view=PIXELS)
    taken = Ensemble([member], "sum").taken(stored)
    assert taken.stored().max() == pytest.approx(220 * 16 / 255)
    usual = train_party((x, y), short_task(), name="south").member
    for name, values in member.params.items():  # the same samples, up to the last bits
        torch.testing.assert_close(values, usual.params[name], rtol=1e-2, atol=1e-3)
