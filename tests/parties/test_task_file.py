"""Task files: what is written is read, and whatever does not fit is refused by name."""

import tomllib
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ostraka.data.own import Column, Form
from ostraka.errors import ConfigError
from ostraka.parties.task_file import TaskFile, load_task, make_task, save_task, task_text
from ostraka.parties.task_text import entry
from tests.parties.wards import CLASSES, short_task


@pytest.mark.parametrize(
    "task",
    [
        short_task(),
        short_task(tell="bands", rare=0, unknown_rate=0.1, augment="pad-crop-flip"),
        short_task(method="closed-voting", net="mlp", set={"recipe": "paper"}),
        short_task(standardise="task", mean=[0.5], std=[0.25]),
        short_task(net={"name": "mlp", "options": {"hidden": [8, 8]}}),
        make_task(["ja", "nein", 'wer "weiß"?', "日本"], kind="sound", shape=(1, 20, 13)),
    ],
)
def test_what_is_written_is_read(task: TaskFile, tmp_path: Path) -> None:
    save_task(tmp_path / "task.toml", task)
    again = load_task(tmp_path / "task.toml")
    assert again == task
    assert again.digest == task.digest
    assert again.build_method() == task.build_method()


def test_every_line_is_explained() -> None:
    lines = task_text(short_task(standardise="task", mean=[0.5], std=[0.25])).splitlines()
    for spec in fields(TaskFile):
        place = next(
            i
            for i, line in enumerate(lines)
            if line.startswith((f"{spec.name} =", f"[{spec.name}"))
        )
        assert lines[place - 1].startswith("# "), spec.name
    assert max(map(len, lines)) <= 100


def test_a_table_says_its_columns_and_its_shape_follows(tmp_path: Path) -> None:
    form = Form("table", None, "sick", (Column("age"), Column("ward", ("a", "b", "c"))))
    text = (
        'classes = ["no", "yes"]\n[form]\nkind = "table"\nlabel = "sick"\n'
        'columns = ["age", { name = "ward", levels = ["a", "b", "c"] }]\n'
    )
    (tmp_path / "task.toml").write_text(text)
    task = load_task(tmp_path / "task.toml")
    assert task.shape == (4,)
    assert task.form.columns == form.columns
    assert task.form.label == "sick"
    assert task.recipe.name == "mlp"
    save_task(tmp_path / "again.toml", task)
    assert load_task(tmp_path / "again.toml") == task


def test_a_task_from_data_takes_what_it_finds() -> None:
    x = np.arange(24, dtype=np.float32).reshape(6, 4)
    task = make_task(data=(x, ["b", "a", "b", "a", "b", "b"]), standardise="task")
    assert task.classes == ("a", "b")
    assert (task.kind, task.shape) == ("table", (4,))
    assert task.mean == (10.0, 11.0, 12.0, 13.0)  # 0, 4, ... 20 and what follows
    assert task.std[0] == pytest.approx(46.6667**0.5, rel=1e-4)  # mean of 100, 36, 4, 4, 36, 100
    more = make_task(["a", "b", "c"], data=(x, ["b", "a", "b", "a", "b", "b"]))
    assert more.classes == ("a", "b", "c")
    assert more.mean == ()


def test_tasks_that_differ_have_other_digests() -> None:
    tasks = [short_task(), short_task(rare=9), short_task(tell="bands"), short_task(method="solo")]
    assert len({task.digest for task in tasks}) == len(tasks)


GOOD = task_text(short_task())
BROKEN: list[tuple[str, str, str]] = [
    ("classes =", "clases =", "unknown setting 'clases'. Did you mean 'classes'?"),
    ('"bar", ', '"dot", ', "are both called 'dot'"),
    ('"bar"', '"a\\nb"', "control character"),
    ('"bar"', '" bar"', "cannot be printed"),
    ('"bar"', f'"{"b" * 201}"', "more than 200 characters"),
    ('"bar", "cross", "dot", "frame"', "", "there are 0 classes"),
    ('classes = ["bar"', 'classes = [1, "bar"', "'classes' takes text; 1 was given"),
    ('method = "fedov"', 'method = "fedovv"', "unknown method 'fedovv'. Did you mean 'fedov'?"),
    ('method = "fedov"', 'method = "fedavg"', "makes one model of all parties"),
    ('tell = "counts"', 'tell = "band"', "'tell' is 'band'; allowed: size, counts, bands"),
    ("rare = 10", "rare = -1", "'rare' is -1"),
    ("unknown_rate = 0.05", "unknown_rate = 1.0", "'unknown_rate' is 1"),
    ('standardise = "own"', 'standardise = "task"', "it takes 1 of each here"),
    ('standardise = "own"', 'mean = [0.5]\nstd = [1.0]', "it takes 0 of each here"),
    (
        'standardise = "own"',
        'standardise = "task"\nmean = [0.5]\nstd = [0.0]',
        "deviations are above 0",
    ),
    ('augment = "none"', 'augment = "flop"', "augment"),
    ('kind = "image"', 'kind = "picture"', "the kind is 'picture'"),
    ('kind = "image"\n', "", "needs a kind and a shape"),
    ("shape = [1, 12, 12]", "shape = [12, 12]", "channels x height x width"),
    ("shape = [1, 12, 12]", "shape = [1, 9000, 9000]", "at most 4,194,304"),
    ("[form]", "[from]", "unknown setting 'from'. Did you mean 'form'?"),
    ('name = "mlp"', 'name = "mpl"', "Did you mean 'mlp'?"),
    ('name = "mlp"', 'name = "simple-cnn"', "simple-cnn"),
    ("[net.options]", "[net.options]\nwidth = 3", "unknown setting 'net.width'"),
    ("epochs = 2", "epoch = 2", "Did you mean 'epochs'?"),
    ("epochs = 2", "epochs = 0", "'local.epochs' is 0"),
    ("[set.local]", '[set]\ntell = "size"\n[set.local]', "'tell' is a setting of the task itself"),
    ("format = 1", "format = 2", "its format is 2; this version reads 1"),
    ("format = 1", "format = ", "is not valid TOML"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "words"), BROKEN)
def test_what_does_not_fit_is_refused_by_name(
    old: str, new: str, words: str, tmp_path: Path
) -> None:
    assert old in GOOD
    path = tmp_path / "task.toml"
    path.write_text(GOOD.replace(old, new, 1))
    with pytest.raises(ConfigError) as error:
        load_task(path)
    assert words in str(error.value)
    assert str(path) in str(error.value)


def test_a_path_that_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"is a folder; give the file, such as .*task\.toml"):
        load_task(tmp_path)
    with pytest.raises(ConfigError, match=r"gone\.toml cannot be read"):
        load_task(tmp_path / "gone.toml")
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match="not UTF-8"):
        load_task(tmp_path / "bytes.toml")


def test_a_task_needs_classes_kind_and_shape() -> None:
    with pytest.raises(ConfigError, match="a task needs the names of its classes"):
        make_task(CLASSES, kind="image")


@pytest.mark.parametrize(
    "value",
    [
        {"a": 1, "b": [1, 2.5, 1e-5], "c": {"d": "x", "e": {"f": True}}},
        {"only": {"deep": {"er": 'say "so"\\ \u007f ü'}}},
        {"list": [{"name": "a b", "levels": ["x", "y"]}, {"name": "n"}], "long": ["word"] * 40},
        {"strange key": {"x y": 1}, "none": None},
        {},
    ],
)
def test_toml_is_what_was_meant(value: dict[str, Any]) -> None:
    meant = {key: item for key, item in value.items() if item is not None}
    assert tomllib.loads(entry("top", value)).get("top", {}) == meant


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("Unknown", "has a class called 'Unknown', which is the answer to samples of no class"),
        ("unkn\u043ewn", "has a class called"),
        ("d\u043et", r"classes 'dot' and 'd.t' \(CYRILLIC SMALL LETTER O\), which look the same"),
        ("do\uff54", "which look the same"),
    ],
)
def test_classes_that_could_be_taken_for_others_are_refused(name: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        make_task([*CLASSES, name], kind="image", shape=(1, 8, 8))


def test_the_unit_is_the_usual_one_of_the_kind_and_is_written() -> None:
    assert "unit = 255.0" in task_text(short_task())
    assert short_task().takes == "image [1, 12, 12], values from 0 to 255"
    rows = make_task(["a", "b"], kind="table", shape=(3,))
    assert (rows.unit, rows.takes) == (1.0, "table [3], values as they are")
    assert rows.digest != make_task(["a", "b"], kind="table", shape=(4,)).digest
    assert short_task(unit=16).view().scale == 1 / 16
    assert short_task(unit=16).digest != short_task().digest
    with pytest.raises(ConfigError, match="unit is 16, and samples are of the kind table, whose"):
        make_task(["a", "b"], kind="table", shape=(3,), unit=16)
