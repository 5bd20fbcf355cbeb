"""The party's verbs as a new user goes through them: three wards in three folders."""

import json
import signal
from pathlib import Path

import numpy as np
import pytest

import ostraka as package
from ostraka.parties.task_file import load_task
from tests.cli.calling import Ostraka
from tests.parties.wards import folder, pictures

INIT = ("task", "init", "--classes", "bar,cross,dot,frame", "--kind", "image", "--shape", "1,12,12",
        "--net", "mlp", "--set", "local.epochs=2", "--out", "task.toml")  # fmt: skip
WARDS = {"anna": ("bar", "cross"), "bert": ("dot",), "cleo": ("frame", "bar", "dot")}


def test_three_parties_in_three_folders(ostraka: Ostraka) -> None:
    done = ostraka(*INIT)
    assert done.code == 0
    assert "4 classes, image of 1 x 12 x 12, fedov, tells counts" in done.out
    shown = ostraka("task", "show", "task.toml").out
    assert shown == Path("task.toml").read_text()
    for seed, (name, classes) in enumerate(WARDS.items()):
        folder(Path(name), classes, 12, seed)
        made = ostraka("train", name, "--task", "task.toml", "--out", f"{name}.member")
        assert made.code == 0, made.err
        assert f"{4 - len(classes)} of the task's 4 classes are not here" in made.out
        assert "are classified right" in made.out
        assert "Told beside the weights: the number of samples; class counts;" in made.out
        assert "training on" in made.err, "progress goes to standard error"
    checked = ostraka("verify", *(f"{name}.member" for name in WARDS))
    assert checked.code == 0
    assert checked.out.count("a member file") == 3
    assert "FAILED" not in checked.out
    assert "What leaves this machine" in checked.out
    members = package.load_members(".")
    assert [str(member.card) for member in members] == list(WARDS)
    assert [member.card.counts for member in members] == [
        (12, 12, 0, 0), (0, 0, 12, 0), (12, 0, 12, 12),
    ]  # fmt: skip
    assert len({member.made.more["task"] for member in members}) == 1


@pytest.fixture
def trained(ostraka: Ostraka) -> Ostraka:
    """The command line, beside a task and a member."""
    ostraka(*INIT)
    folder(Path("anna"), ("bar", "cross"), 12)
    ostraka("train", "anna", "--task", "task.toml", "--out", "anna.member", "-q")
    return ostraka


def test_everything_as_json(trained: Ostraka) -> None:
    task = trained("task", "show", "task.toml", "--json").json()
    assert task["classes"] == ["bar", "cross", "dot", "frame"]
    made = trained("train", "anna", "--task", "task.toml", "--out", "b.member", "--json")
    facts = made.json()
    assert facts["counts"] == {"bar": 12, "cross": 12}
    assert facts["task"] == load_task("task.toml").digest
    assert facts["file"] == "b.member"
    assert made.err == ""
    verdict = trained("verify", "b.member", "--json").json()
    assert verdict["passed"] is True
    assert verdict["files"][0]["unknown_on_junk"].keys() >= {"uniform noise"}
    shown = trained("show", "b.member", "--json").json()
    assert shown["counts"] == [12, 12, 0, 0]
    assert sum(shown["unknown_scores"]["series"][0]["shares"]) == pytest.approx(1.0)


def test_a_member_is_shown(trained: Ostraka) -> None:
    done = trained("show", "anna.member")
    assert done.code == 0
    assert "can answer unknown   yes" in done.out
    assert "dot     none" in done.out
    assert "Unknown scores of 2 held-out samples" in done.out
    with_data = trained("show", "anna.member", "--data", "anna", "--out", "scores.svg")
    assert "Unknown scores of 24 samples of anna" in with_data.out
    assert "its own classes (24)" in Path("scores.svg").read_text()


def test_a_file_that_fails_has_exit_code_2(trained: Ostraka) -> None:
    data = Path("anna.member").read_bytes()
    Path("bad.member").write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    done = trained("verify", "anna.member", "bad.member")
    assert done.code == 2
    assert "bad.member: NOT a usable member file" in done.out
    assert "anna.member: a member file" in done.out
    facts = trained("verify", "bad.member", "--json")
    assert facts.code == 2
    assert facts.json()["passed"] is False


def test_bands_are_shown_as_bands(ostraka: Ostraka) -> None:
    ostraka(*INIT, "--tell", "bands")
    np.savez("own.npz", x=pictures(("bar", "cross"), 12)[0], y=pictures(("bar", "cross"), 12)[1])
    made = ostraka("train", "own.npz", "--task", "task.toml", "--out", "x.member")
    assert "class counts in bands" in made.out
    shown = ostraka("show", "x.member").out
    assert "bar     10-99" in shown
    assert "frame   <10" in shown


def test_rare_classes_are_named(ostraka: Ostraka) -> None:
    ostraka(*INIT)
    folder(Path("ward"), ("bar", "cross"), 12)
    folder(Path("ward"), ("dot",), 3)
    made = ostraka("train", "ward", "--task", "task.toml", "--out", "x.member")
    assert "may identify people (below 10): dot (3). --keep-rare keeps them." in made.out
    kept = ostraka(
        "train", "ward", "--task", "task.toml", "--out", "x.member", "--replace", "--keep-rare"
    )
    assert "Kept, although so few samples may identify people: dot (3)." in kept.out


def test_ctrl_c_and_on(trained: Ostraka, monkeypatch: pytest.MonkeyPatch) -> None:
    from ostraka.core import fit

    words = ("train", "anna", "--task", "task.toml", "--out", "again.member", "--name", "anna")
    usual, calls = fit._Training._step, []

    def interrupted(self: fit._Training, batch: object) -> object:
        calls.append(1)
        if len(calls) == 1:
            signal.raise_signal(signal.SIGINT)
        return usual(self, batch)  # type: ignore[arg-type]

    monkeypatch.setattr(fit._Training, "_step", interrupted)
    done = trained(*words)
    assert done.code == 130
    assert "the same command goes on where it was" in done.err
    assert trained(*words).code == 0
    assert Path("again.member").read_bytes() == Path("anna.member").read_bytes()


def test_a_task_from_data(ostraka: Ostraka) -> None:
    rows = np.arange(40, dtype=np.float32).reshape(20, 2)
    np.savez("own.npz", x=rows, y=np.repeat(["b", "a"], 10))
    words = ("--from", "own.npz", "--standardise", "task", "--set", "local.epochs=1")
    assert ostraka("task", "init", *words, "--out", "task.toml").code == 0
    task = load_task("task.toml")
    assert (task.classes, task.shape, task.kind) == (("a", "b"), (2,), "table")
    assert task.mean == (19.0, 20.0)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("task init --out x.toml", "a task needs --classes, --kind and --shape, or --from DATA"),
        ("task init --classes a,b --kind image --shape 1,8,8", "say where to write the task"),
        ("task init --classes a,b --kind image --shape 1,8 --out x.toml", "channels x height"),
        ("task init --classes a,a --kind image --shape 1,8,8 --out x.toml", "both called 'a'"),
        ("task init --classes a,b --kind pic --shape 1,8,8 --out x.toml", "invalid choice: 'pic'"),
        ("task init --classes a,b --kind image --shape a,8 --out x.toml", "no shape such as"),
        ("task init --from gone --out x.toml", "gone does not exist"),
        ("task init --classes a --kind table --shape 3 --out task.toml", "is there already"),
        ("task init --classes a --kind table --shape 3 --set net=a --out x.toml", "use --net a"),
        ("task show", "name the task to show"),
        ("task show gone.toml", "the task gone.toml cannot be read"),
        ("train anna --task task.toml", "--out"),
        ("train gone --task task.toml --out x.member", "gone does not exist"),
        ("train anna --task task.toml --out anna.member", "is there already"),
        ("train anna --task anna.member --out x.member", "is not valid TOML"),
        ("train anna --tusk task.toml --out x.member", "Did you mean '--task'?"),
        ("verify", "FILE"),
        ("show gone.member", "there is no folder or file gone.member"),
        ("show task.toml", "task.toml is no safetensors file"),
        ("show anna.member --at 3", "--at is for the folders of runs"),
        ("show anna.member --out x.gif", "a plot is written as"),
        ("show anna --data anna", "--data and --out are for member files"),
    ],
)  # fmt: skip
def test_mistakes_are_told_in_a_line(trained: Ostraka, words: str, message: str) -> None:
    done = trained(*words.split())
    assert done.code == 2
    assert message in done.err
    assert "Traceback" not in done.err


def test_a_member_without_told_numbers_says_so(ostraka: Ostraka) -> None:
    ostraka(*INIT, "--tell", "size", "--set", "ballot=sum")
    folder(Path("anna"), ("bar", "cross"), 12)
    made = ostraka("train", "anna", "--task", "task.toml", "--out", "x.member").out
    assert "Told beside the weights: the number of samples; the scores loss." in made
    shown = ostraka("show", "x.member").out
    assert "tells nothing of held-out samples" in shown
    assert "bar     not told" in shown
    refused = ostraka("show", "x.member", "--out", "x.svg")
    assert refused.code == 2
    assert "give --data" in refused.err
    assert json.loads(ostraka("show", "x.member", "--json").out)["unknown_scores"] is None


def table(path: str, rows: int, wards: str, sick: tuple[str, ...], seed: int) -> None:
    """A CSV file: an age, a ward (a category) and a diagnosis."""
    rng = np.random.default_rng(seed)
    lines = ["age,ward,diagnosis"]
    for i in range(rows):
        kind = sick[i % len(sick)]
        age = rng.normal(30 if kind == "cold" else 70, 5)
        lines.append(f"{age:.1f},{wards[i % len(wards)]},{kind}")
    Path(path).write_text("\n".join(lines) + "\n")


def test_tables_of_parties_with_other_classes_and_categories(ostraka: Ostraka) -> None:
    """The organiser's table says the columns; a party's may have fewer levels and classes."""
    table("organiser.csv", 45, "abc", ("cold", "flu", "gout"), 0)
    words = ("--from", "organiser.csv", "--label", "diagnosis", "--set", "local.epochs=2")
    assert ostraka("task", "init", *words, "--out", "task.toml").code == 0
    task = load_task("task.toml")
    assert task.classes == ("cold", "flu", "gout")
    assert task.shape == (4,)  # age, and one for each ward
    for name, wards, sick in (("anna", "ab", ("cold", "flu")), ("bert", "c", ("gout", "cold"))):
        table(f"{name}.csv", 40, wards, sick, 1)
        made = ostraka("train", f"{name}.csv", "--task", "task.toml", "--out", f"{name}.member")
        assert made.code == 0, made.err
    anna, bert = package.load_members(["anna.member", "bert.member"])
    assert anna.card.counts == (20, 20, 0)
    assert bert.card.counts == (20, 0, 20)
    assert len(anna.model.view.mean) == 4
    assert anna.model.view.mean != bert.model.view.mean, "each by its own samples"
    blind = ostraka("show", "anna.member", "--data", "anna.csv")
    assert blind.code == 2
    assert "does not say which of them it was trained on; give the task" in blind.err
    seen = ostraka("show", "anna.member", "--data", "bert.csv", "--task", "task.toml", "--json")
    own, other = seen.json()["unknown_scores"]["series"]
    assert (own["samples"], other["samples"]) == (20, 20), "of bert's, anna knows the colds"
    left = ostraka("verify", "anna.member", "--json").json()["files"][0]["leaves"]
    (view,) = [one for one in left if one["what"] == "view"]
    assert "mean and the deviation of every column" in view["reveals"]


def test_recordings(ostraka: Ostraka) -> None:
    """Half a second of one tone or another, as WAV files of 8 kHz."""
    import wave

    rng = np.random.default_rng(0)
    for name, tone in (("high", 1500.0), ("low", 300.0)):
        Path("sounds", name).mkdir(parents=True)
        for i in range(12):
            time = np.arange(4000) / 8000
            values = np.sin(2 * np.pi * tone * time) + rng.normal(0, 0.1, len(time))
            with wave.open(f"sounds/{name}/{i}.wav", "wb") as file:
                file.setnchannels(1)
                file.setsampwidth(2)
                file.setframerate(8000)
                file.writeframes((8000 * values).astype("<i2").tobytes())
    words = ("--from", "sounds", "--set", "local.epochs=1", "--net", "mlp")
    assert ostraka("task", "init", *words, "--out", "task.toml").code == 0
    made = ostraka("train", "sounds", "--task", "task.toml", "--out", "x.member", "--json")
    assert made.json()["counts"] == {"high": 12, "low": 12}
    (member,) = package.load_members("x.member")
    assert member.model.view.kind == "sound"
    shown = ostraka("show", "x.member", "--data", "sounds")
    assert "Unknown scores of 24 samples of sounds" in shown.out


def test_broken_images_can_be_left_out(ostraka: Ostraka) -> None:
    assert ostraka(*INIT).code == 0
    folder(Path("anna"), ("bar", "cross"), 12, 0)
    for name in ("bar/x.png", "cross/y.png"):
        (Path("anna") / name).write_text("no image")
    words = ("train", "anna", "--task", "task.toml", "--out", "anna.member")
    refused = ostraka(*words)
    assert refused.code == 2
    assert "2 files (bar/x.png, cross/y.png) cannot be read" in refused.err
    assert ostraka("task", "init", "--from", "anna", "--out", "other.toml").code == 2
    assert ostraka("task", "init", "--from", "anna", "--skip-broken", "--out", "o.toml").code == 0
    made = ostraka(*words, "--skip-broken")
    assert made.code == 0
    assert "2 files (bar/x.png, cross/y.png) could not be read, left out" in made.out


def test_train_lists_the_means_of_columns_that_leave(ostraka: Ostraka) -> None:
    """By hand: 10 and 30, as often, have the mean 20 and the deviation 10; half are "a"."""
    rows = [f"{10 + 20 * (i % 2)},{'ab'[i // 2 % 2]},{'xy'[i % 2]}\n" for i in range(40)]
    Path("own.csv").write_text("age,ward,kind\n" + "".join(rows))
    init = ("task", "init", "--from", "own.csv", "--label", "kind", "--set", "local.epochs=1")
    for way in ("own", "task", "off"):
        assert ostraka(*init, "--standardise", way, "--out", f"{way}.toml").code == 0
        made = ostraka("train", "own.csv", "--task", f"{way}.toml", "--out", f"{way}.member")
        told = "age 20 (10), ward = a 0.5 (0.5), ward = b 0.5 (0.5)." in made.out
        assert told == (way == "own"), made.out
    facts = ostraka("train", "own.csv", "--task", "own.toml", "--out", "b.member", "--json")
    assert json.loads(facts.out)["statistics"]["ward = b"] == [0.5, 0.5]


def test_task_init_says_what_was_found(ostraka: Ostraka) -> None:
    """A folder of class folders is not taken for one class silently; without label columns."""
    folder(Path("north/images"), ("bar", "cross"), 12, 0)
    done = ostraka("task", "init", "--from", "north", "--out", "task.toml")
    assert "Note: all samples of north are of the class 'images'" in done.err
    assert "give north/images" in done.err
