"""The whole way, as a group goes it: a task, three parties with two of three classes each, their
files, a vote, answers, a student; with folders of images, tables and folders of recordings."""

import csv
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from scipy.io import wavfile

from tests.cli.calling import Ostraka

PARTIES = {"anna": ("a", "b"), "berta": ("b", "c"), "carl": ("c", "a")}
SEEN, STRANGE = ("a", "b", "c"), "z"
RATE = 4000

Make = Callable[[Path, tuple[str, ...], int, int], None]


def images(folder: Path, names: tuple[str, ...], each: int, seed: int) -> None:
    """Bright in one quarter."""
    rng = np.random.default_rng(seed)
    for name in names:
        (folder / name).mkdir(parents=True)
        row, column = divmod("abcz".index(name), 2)
        for i in range(each):
            picture = rng.integers(0, 50, (8, 8)).astype(np.uint8)
            picture[4 * row : 4 * row + 4, 4 * column : 4 * column + 4] += 180
            Image.fromarray(picture).save(folder / name / f"{i}.png")


def tables(folder: Path, names: tuple[str, ...], each: int, seed: int) -> None:
    """Far apart in two columns, with a third that says little."""
    rng = np.random.default_rng(seed)
    folder.mkdir(parents=True)
    places = {"a": (0, 0), "b": (9, 0), "c": (0, 9), "z": (40, 40)}
    with open(folder / "rows.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["height", "weight", "ward", "class"])
        for name in names:
            for _ in range(each):
                x, y = np.array(places[name]) + rng.normal(0, 0.4, 2)
                writer.writerow([f"{x:.3f}", f"{y:.3f}", rng.choice(["east", "west"]), name])


def sounds(folder: Path, names: tuple[str, ...], each: int, seed: int) -> None:
    """Tones of different height; a stranger is noise."""
    rng = np.random.default_rng(seed)
    time = np.arange(RATE // 4) / RATE
    for name in names:
        (folder / name).mkdir(parents=True)
        for i in range(each):
            tone = np.sin(2 * np.pi * {"a": 150, "b": 500, "c": 1500, "z": 0}[name] * time)
            heard = rng.normal(0, 0.3 if name == STRANGE else 0.02, len(time)) + 0.5 * tone
            wavfile.write(folder / name / f"{i}.wav", RATE, (heard * 12000).astype(np.int16))


@pytest.mark.parametrize(
    ("kind", "make"), [("image", images), ("table", tables), ("sound", sounds)]
)
def test_three_parties_walk_the_whole_way(ostraka: Ostraka, kind: str, make: Make) -> None:
    make(Path("like"), SEEN, 20, 0)
    for number, (party, names) in enumerate(PARTIES.items(), 1):
        make(Path(party), names, 30, number)
    make(Path("known"), SEEN, 20, 7)
    make(Path("test"), (*SEEN, STRANGE), 15, 8)
    form = ("--label", "class") if kind == "table" else ()
    short = ("--net", "mlp", "--set", "local.epochs=8", "--set", "local.batch=16")
    like = path("like", kind)
    done = ostraka("task", "init", "--from", like, *form, *short, "--out", "task.toml")
    assert done.code == 0, done.err
    for party in PARTIES:
        made = ostraka("train", path(party, kind), "--task", "task.toml", "-q",
                       "--out", f"group/{party}.member")  # fmt: skip
        assert made.code == 0, made.err
    assert ostraka("verify", "group/anna.member", "group/berta.member").code == 0

    line = ("--task", "task.toml", "--known", path("known", kind))
    vote = ostraka("vote", "group", "--data", path("test", kind), *line, "--json").json()
    assert vote["accuracy"] > 90
    assert vote["auroc"] > 60
    assert vote["unknown_samples"] == 15
    assert vote["known_refused"] < 25, "5 % were promised"
    assert [one["name"] for one in vote["members"]] == list(PARTIES)

    asked = ostraka("predict", "group", "--on", path("test", kind), *line, "--json").json()
    answers = [one["answer"] for one in asked["answers"]]
    assert set(answers) <= {*SEEN, "unknown"}
    assert len(answers) == vote["samples"]
    assert answers.count("unknown") == asked["refused"]

    learn = ("--public", path("known", kind), "--task", "task.toml", "--epochs", "5", "-q")
    student = ostraka("distil", "group", *learn, "--out", "student.member", "--json").json()
    assert student["held"] == 6
    again = ostraka("predict", "student.member", "--on", path("test", kind), *line, "--json")
    assert again.json()["members"] == ["student"]


def path(folder: str, kind: str) -> Path:
    """A folder of own data, or the table in it."""
    return Path(folder) / "rows.csv" if kind == "table" else Path(folder)
