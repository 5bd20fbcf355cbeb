"""A test set from the parties' own samples: who gives how many, and that nobody trains on them."""

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from ostraka.core.predictor import UNKNOWN
from ostraka.core.samples import Samples
from ostraka.data.local_test import draw, join, judged_by
from ostraka.data.partitions.divide import Partition
from ostraka.data.sources import load
from ostraka.errors import ConfigError, DataError, Interrupted
from ostraka.federation.plan import plan_for_own_data, plan_of
from ostraka.federation.project import create
from ostraka.runs.api import load_run, run_config
from ostraka.runs.commons import public_and_test
from ostraka.runs.config import make
from ostraka.runs.division import Division, divide
from ostraka.runs.grid import Grid, cell_folder, run_grid
from ostraka.runs.loop import execute
from ostraka.runs.plan import make_plan
from ostraka.runs.record import RunDir, load_state
from ostraka.runs.watch import Watch

TRAIN, TEST = 12, 8
"""Samples of the small data below: row r has the value r, and test rows go on where training rows
end."""

RUN: dict[str, Any] = {
    "data": "digits",
    "train_per_class": 20,
    "partition": "iid",
    "parties": 3,
    "local_test": 0.2,
    "engine": "serial",
    "net": {"name": "mlp", "options": {"hidden": [8]}},
    "set": {"local": {"epochs": 1}},
}


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def store(classes: int = 2, **more: Any) -> None:
    rows = np.arange(TRAIN + TEST, dtype=np.float32)[:, None]
    x, y = np.concatenate([rows, rows], axis=1), np.arange(TRAIN + TEST) % classes
    np.savez("small.npz", x_train=x[:TRAIN], y_train=y[:TRAIN],
             x_test=x[TRAIN:], y_test=y[TRAIN:], **more)  # fmt: skip


def small(**values: Any) -> Division:
    given = {"data": "./small.npz", "partition": "iid", "parties": 2, "local_test": 0.2}
    return divide(make({**given, **values}))


def rows_of(division: Division) -> tuple[list[int], list[int]]:
    """Rows that are trained on, and rows of the test, both ascending."""
    trained = np.sort(np.concatenate(division.partition.parties)).tolist()
    return trained, sorted(division.data.test.row_numbers.tolist())


def test_sizes_by_hand() -> None:
    """20 samples, two parties with ten each: a share of 0.2 is two of each, 0.3 three."""
    store()
    for share, given in ((0.2, 2), (0.3, 3), (0.5, 5)):
        found = small(local_test=share)
        assert [len(rows) for rows in found.partition.tests] == [given, given]
        assert [len(rows) for rows in found.partition.parties] == [10 - given, 10 - given]
        assert found.counts.sum() == 20 - 2 * given
        assert len(found.data.test) == 2 * given


def test_training_and_test_are_apart_and_together_everything() -> None:
    store()
    found = small()
    trained, tested = rows_of(found)
    assert not set(trained) & set(tested)
    assert sorted(trained + tested) == list(range(TRAIN + TEST))
    assert sorted(found.data.train.row_numbers.tolist()) == trained
    assert any(row >= TRAIN for row in trained)  # the data's own test samples were divided


def test_samples_keep_their_values_and_labels() -> None:
    """The row's number is the sample's value, its parity the label."""
    store()
    found = small(standardise="off")
    for samples in (found.data.train, found.data.test):
        assert samples.stored()[:, 0].tolist() == samples.row_numbers.tolist()
        assert torch.equal(samples.labels, samples.row_numbers % 2)
    assert found.data.classes == load("./small.npz").classes


def test_each_party_gives_of_its_own() -> None:
    """What is drawn of a party is what it would hold without a draw."""
    store()
    found = small().partition
    for rows, test, given in zip(found.parties, found.tests, found.given, strict=True):
        assert len(test) == 2
        assert sorted([*rows, *test]) == given.tolist()
    assert [len(given) for given in found.given] == [10, 10]


def test_the_division_is_that_of_all_samples() -> None:
    """Who is given what does not depend on the share that is drawn later."""
    store()
    one, other = small(local_test=0.2).partition, small(local_test=0.4).partition
    assert [rows.tolist() for rows in one.given] == [rows.tolist() for rows in other.given]


def test_small_parties() -> None:
    """0.2 of two samples rounds to none, of three to one; one sample always stays."""
    sizes = (1, 2, 3, 10)
    ends = np.cumsum((0, *sizes))
    parties = tuple(np.arange(a, b) for a, b in pairwise(ends))
    whole = Partition("iid", parties, ("a", "b", "c", "d"), 0)
    assert [len(rows) for rows in draw(whole, 0.2, 0).tests] == [0, 0, 1, 2]
    assert [len(rows) for rows in draw(whole, 0.99, 0).parties] == [1, 1, 1, 1]


def test_nothing_to_test_on_is_refused() -> None:
    store()
    with pytest.raises(DataError, match=r"local_test is 0.01, and no party .* largest has 10"):
        small(local_test=0.01)


def test_parties_draw_independently() -> None:
    """Two parties with as many rows do not give the same places of them."""
    parties = tuple(np.arange(100) + 100 * party for party in range(2))
    drawn = draw(Partition("iid", parties, ("a", "b"), 0), 0.2, 0).tests
    assert (drawn[0] + 100).tolist() != drawn[1].tolist()


def test_the_seed_decides() -> None:
    parties = (np.arange(100),)
    whole = Partition("iid", parties, ("a",), 0)
    one, same, other = (draw(whole, 0.2, seed).tests[0].tolist() for seed in (3, 3, 4))
    assert one == same != other
    store()
    first, again = small(seed=1), small(seed=1)
    assert first.data.test.row_numbers.tolist() == again.data.test.row_numbers.tolist()


def test_the_seed_draws_from_a_division_that_is_given(tmp_path: Path) -> None:
    """Of ten rows each, five; and which of the ten, lowest first, is where in the test."""
    store()
    held = [list(range(10)), list(range(10, 20))]
    (tmp_path / "mine.json").write_text(json.dumps({"parties": held}))
    given: dict[str, Any] = {"partition": "file:mine.json", "parties": None, "local_test": 0.5}
    one, other = (small(**given, seed=seed) for seed in (3, 4))
    for mine, theirs in zip(one.partition.tests, other.partition.tests, strict=True):
        assert mine.tolist() != theirs.tolist()
    places = [found.data.test.row_numbers.argsort().tolist() for found in (one, other)]
    assert places[0] != places[1]


def test_the_hash_of_a_division_is_of_what_was_given() -> None:
    """Whatever share is drawn from it."""
    store()
    one, other = small(local_test=0.2).partition, small(local_test=0.4).partition
    assert one.digest == other.digest == replace(one, parties=one.given, tests=()).digest


@pytest.mark.parametrize("partition", ["iid", "labels:2", "dirichlet:0.5"])
def test_without_it_nothing_changes(partition: str) -> None:
    """The data's own sides, whole, and a division of the training rows alone."""
    values = {"data": "digits", "partition": partition, "seed": 5}
    found, own = divide(make(values)), load("digits")
    assert found.partition.tests == ()
    assert found.partition.given is found.partition.parties
    assert torch.equal(found.data.test.x, own.test.x)
    assert found.data.test.rows is None
    assert torch.equal(found.data.train.x, own.train.x)
    assert found.data.train.rows is None
    assert sorted(np.concatenate(found.partition.parties)) == list(range(len(own.train)))
    assert found.notes == divide(make({**values, "local_test": 0.0})).notes == ()


def test_unknown_classes_are_in_the_test_alone() -> None:
    """Three classes, two known: of rows 2, 5, 8, ... those of the data's own test are unknown."""
    store(classes=3)
    found = small(known=2)
    trained, tested = rows_of(found)
    assert all(row % 3 < 2 for row in trained)
    strangers = [row for row in range(TRAIN, TRAIN + TEST) if row % 3 == 2]
    assert [row for row in tested if row % 3 == 2] == strangers == [14, 17]
    known = [row for row in range(TRAIN + TEST) if row % 3 < 2]
    assert sorted(trained + [row for row in tested if row % 3 < 2]) == known
    unknown = found.data.test.labels == UNKNOWN
    assert sorted(found.data.test.row_numbers[unknown].tolist()) == strangers
    assert any("2 of unknown classes" in note for note in found.notes)


def test_half_of_it_may_be_public() -> None:
    """Both halves hold unknown samples: the order of the test is random."""
    config = make({"data": "digits", "local_test": 0.2, "known": 6, "public": "half-test"})
    division = divide(config)
    public, exam = public_and_test(config, division.data)
    assert public is not None
    assert public.y is None
    halves = [set(part.row_numbers.tolist()) for part in (public, exam.samples)]
    assert not halves[0] & halves[1]
    assert halves[0] | halves[1] == set(rows_of(division)[1])
    known = (exam.samples.labels != UNKNOWN).double().mean()
    whole = (division.data.test.labels != UNKNOWN).double().mean()
    assert abs(known - whole) < 0.1


def test_public_samples_are_not_those_of_the_test() -> None:
    config = make({"data": "digits", "local_test": 0.2, "public": "digits"})
    with pytest.raises(DataError, match=r"some of them are the test; give other public samples"):
        public_and_test(config, divide(config).data)


def test_validation_and_shared_samples_are_held_back_first() -> None:
    """Of 20: two for validation, two shared, and of the eight of each party two (1.6)."""
    store()
    found = small(validation=0.1, shared=0.1)
    assert found.held is not None
    assert found.shared is not None
    apart = [found.held.samples, found.shared, found.data.test]
    sets = [set(part.row_numbers.tolist()) for part in apart] + [set(rows_of(found)[0])]
    assert [len(part) for part in sets] == [2, 2, 4, 12]
    assert set().union(*sets) == set(range(20))


def test_standardised_by_what_is_trained_on() -> None:
    store()
    found = small(standardise="on")
    trained = torch.tensor(rows_of(found)[0], dtype=torch.float64)
    assert found.data.test.view.mean[0] == pytest.approx(trained.mean().item())
    assert found.data.train.view.mean == found.data.test.view.mean


def test_test_samples_are_never_augmented() -> None:
    found = divide(make({"data": "digits", "local_test": 0.2, "augment": "pad-crop-flip"}))
    assert found.data.train.view.augment == "pad-crop-flip"
    assert found.data.test.view.augment == "none"
    data = load("digits")  # or where the data itself says how they are changed
    own = replace(data.train, view=replace(data.train.view, augment="pad-crop-flip"))
    joined = join(replace(data, train=own))[0]
    assert (joined.train.view.augment, joined.test.view.augment) == ("pad-crop-flip", "none")


def test_seventy_ten_twenty() -> None:
    """Of 100 samples of one class 20 are the test, and an eighth of the other 80 is held out."""
    whole = Partition("iid", (np.arange(100),), ("a",), 0)
    left = torch.as_tensor(draw(whole, 0.2, 0).parties[0])
    samples = Samples(torch.zeros(100, 1), torch.zeros(100, dtype=torch.int64), left)
    assert [len(part) for part in samples.split(0.125, 0)] == [70, 10]


def test_columns_are_joined() -> None:
    """Rows below ten are of the ward a: ten each, of which two are tested on, by domain too."""
    marks = np.where(np.arange(TRAIN + TEST) < 10, "a", "b")
    store(domain_train=marks[:TRAIN], domain_test=marks[TRAIN:])
    for partition in ("domain", "by:domain"):
        found = small(partition=partition, parties=None)
        assert [rows.tolist() for rows in found.partition.given] == [
            list(range(10)),
            list(range(10, 20)),
        ]
    exam = public_and_test(make({}), found.data)[1]
    assert {name: len(index) for name, index in exam.domains.items()} == {"a": 2, "b": 2}
    rows = exam.samples.row_numbers
    assert (rows[exam.domains["a"]] < 10).all()
    assert (rows[exam.domains["b"]] >= 10).all()


def test_a_column_of_training_samples_alone() -> None:
    store(ward_train=np.arange(TRAIN) % 2)
    with pytest.raises(DataError, match=r"column 'ward' for its training samples alone"):
        small(partition="by:ward", parties=None)
    assert any("'ward' was left out" in note for note in small().notes)


def test_samples_that_are_stored_unlike_are_refused() -> None:
    data = load("digits")
    other = replace(data.test, x=data.test.x.float())
    with pytest.raises(DataError, match="store both alike, or leave local_test out"):
        join(replace(data, test=other))
    scaled = replace(data.test, view=replace(data.test.view, scale=0.5))
    with pytest.raises(DataError, match="in other units"):
        join(replace(data, test=scaled))
    with pytest.raises(DataError, match="samples without labels"):
        join(replace(data, test=data.test.unlabelled()))


def test_samples_of_no_class_and_rows_that_are_left_out() -> None:
    """Training rows 0, 2, 4 and 6 of twelve, test rows 12 to 19, of which 13 is of no class."""
    store()
    data = load("./small.npz")
    labels = data.test.labels.clone()
    labels[1] = UNKNOWN
    some = replace(data, train=data.train.take(torch.tensor([0, 2, 4, 6])),
                   test=replace(data.test, y=labels))  # fmt: skip
    joined = join(some)[0]
    assert joined.train.row_numbers.tolist() == [0, 2, 4, 6, 12, 14, 15, 16, 17, 18, 19]
    assert joined.test.row_numbers.tolist() == list(range(12, 20))
    judged = judged_by(joined, [np.array([2, 16])], 0)
    assert sorted(judged.test.row_numbers.tolist()) == [2, 13, 16]
    assert judged.train.row_numbers.tolist() == [0, 4, 6, 12, 14, 15, 17, 18, 19]


@pytest.mark.parametrize("share", [-0.1, 1.0, 1.5])
def test_a_share_is_below_one(share: float) -> None:
    with pytest.raises(ConfigError, match=rf"'local_test' is {share}; .*at least 0 and below 1"):
        make({"local_test": share})


def test_a_saved_division_is_read_again(tmp_path: Path) -> None:
    """A file holds what each party was given; the same seed draws the same test from it."""
    store()
    found = small()
    found.partition.save(tmp_path / "mine.json")
    held = json.loads((tmp_path / "mine.json").read_text())
    assert sorted(row for rows in held["parties"] for row in rows) == list(range(20))
    again = small(partition=f"file:{tmp_path / 'mine.json'}", parties=None)
    assert rows_of(again) == rows_of(found)
    assert again.partition.digest == found.partition.digest


def test_the_plan_tests_and_trains_apart() -> None:
    for method in ("closed-voting", "centralised"):
        plan = make_plan(make({**RUN, "method": method}))
        trained = {int(row) for party in plan.parties for row in party.samples.row_numbers}
        tested = set(plan.test.samples.row_numbers.tolist())
        assert (len(trained), len(tested)) == (161, 39)  # 13 of 67, 67 and 66
        assert not trained & tested


class Stop(Watch):
    """Ends a run after its first round."""

    def evaluated(self, index: int, accuracy: float | None) -> None:
        raise KeyboardInterrupt


def test_a_run_is_resumed_and_loaded(tmp_path: Path) -> None:
    """Stopped and resumed, from its own record, it ends as one that was never stopped."""
    values = {**RUN, "method": "fedavg", "set": {"local": {"epochs": 1}, "rounds": 2}}
    whole = execute(make_plan(make(values)), RunDir(tmp_path / "whole"))
    home = RunDir(tmp_path / "cut")
    with pytest.raises(Interrupted):
        execute(make_plan(make(values)), home, watch=Stop())
    config = home.stored_config()
    assert config.local_test == 0.2
    begun = make_plan(config, home)
    assert set(begun.test.samples.row_numbers.tolist()) == set(
        make_plan(make(values)).test.samples.row_numbers.tolist()
    )
    done = execute(begun, home, resume=True)
    assert done.accuracy == whole.accuracy
    states = [load_state(tmp_path / name)[1] for name in ("whole", "cut")]
    assert all(torch.equal(states[0][name], states[1][name]) for name in states[0])
    loaded = load_run(tmp_path / "cut")
    assert loaded.summary.accuracy == whole.accuracy
    assert any("parties' own samples" in note for note in loaded.summary.notes)
    with pytest.raises(ConfigError, match="local_test"):
        run_config(replace(make(values), local_test=0.3), tmp_path / "cut", True, None)


def test_members_of_another_share_are_not_taken(tmp_path: Path) -> None:
    """A grid's members are kept by what they were trained on, which the share decides: of the same
    share three members are taken, of another three more are trained."""
    kept = []
    for number, share in enumerate((0.2, 0.2, 0.3, 0.0)):
        values = {**RUN, "method": "closed-voting", "local_test": share}
        execute(make_plan(make(values)), RunDir(tmp_path / str(number)), shelf=tmp_path / "shelf")
        kept.append(sum(path.is_file() for path in (tmp_path / "shelf").rglob("*")))
    assert kept == [3, 3, 6, 9]


def test_a_grid_scores_all_cells_on_the_same_test(tmp_path: Path) -> None:
    base = {key: value for key, value in RUN.items() if key not in ("data", "partition")}
    methods = ("closed-voting", "closed-voting:ballot=plurality", "centralised")
    grid = Grid(methods=methods, data=("digits",), partitions=("iid",), seeds=(0,), base=base,
                per_method={})  # fmt: skip
    records = run_grid(grid, tmp_path / "grid")
    plans = [make_plan(cell) for cell in grid.cells()]
    assert len(records) == 3
    assert len({tuple(plan.test.samples.row_numbers.tolist()) for plan in plans}) == 1
    other = replace(grid, base={**base, "local_test": 0.3})
    names = [cell_folder(one, tmp_path).name for g in (grid, other) for one in g.cells()]
    assert len(set(names)) == 6


def test_a_start_that_has_learnt_the_test_is_refused(tmp_path: Path) -> None:
    start = {**RUN, "method": "fedavg"}
    execute(make_plan(make(start)), RunDir(tmp_path / "start"))
    after = {**start, "method": "fedprox", "start_from": str(tmp_path / "start")}
    make_plan(make(after))
    for changed in (
        {"local_test": 0.0},
        {"local_test": 0.3},
        {"seed": 1},
        {"partition": "labels:4"},
        {"parties": 4},
        {"shared": 0.1},
    ):
        [name] = changed
        with pytest.raises(ConfigError, match=rf"learnt from this run's test .*differs in {name};"):
            make_plan(make({**after, **changed}))
    execute(make_plan(make({**start, "local_test": 0.0})), RunDir(tmp_path / "all"))
    with pytest.raises(ConfigError, match=r"learnt from this run's test .*differs in local_test;"):
        make_plan(make({**after, "start_from": str(tmp_path / "all")}))


@pytest.mark.parametrize("share", [False, True])
def test_a_federation_has_none_unless_it_is_tried_out(tmp_path: Path, share: bool) -> None:
    """Parties with their own data are not divided; with shares of the run's they are."""
    pytest.importorskip("cryptography")
    values = {**RUN, "method": "fedavg"}
    if share:
        made = create(tmp_path / "fed", values, ["north", "south"], share=True)
        plan = plan_of(made)
        assert [len(rows) for rows in plan.partition.tests] == [20, 20]
        return
    with pytest.raises(ConfigError, match=r"local_test is 0.2, .*they have their own data"):
        create(tmp_path / "fed", values, ["north", "south"])
    assert not (tmp_path / "fed").exists()
    with pytest.raises(ConfigError, match="or try it out with --share"):
        plan_for_own_data(make(values), ("north", "south"))
