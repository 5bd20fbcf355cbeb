"""`ostraka train-generator`, and `ostraka run fedos` with what it made."""

from pathlib import Path

import pytest

from ostraka.runs import generator_training
from tests.cli.calling import ONE_EPOCH, TINY, Ostraka

QUICK = (
    "--data",
    "digits",
    "--images",
    "64",
    "--batch",
    "32",
    "--width",
    "1",
    "--judge-width",
    "2",
)


def test_train_and_use(ostraka: Ostraka) -> None:
    done = ostraka("train-generator", *QUICK, "--epochs", "2", "--out", "g.safetensors")
    assert done.code == 0, done.err
    assert "epoch 2/2: discriminator" in done.err
    assert done.out.startswith("Generator: g.safetensors (")
    assert Path("g.png").read_bytes().startswith(b"\x89PNG")
    ran = ostraka(
        "run", "fedos", *TINY, *ONE_EPOCH, "--set", "objective.generator=g.safetensors", "--json"
    )
    assert ran.code == 0, ran.err
    assert ran.json()["method"] == "fedos"
    again = ostraka("train-generator", *QUICK, "--epochs", "2", "--out", "g.safetensors")
    assert again.out.startswith("There already: g.safetensors (")
    assert "epoch" not in again.err
    other = ostraka("train-generator", *QUICK, "--epochs", "3", "--out", "g.safetensors")
    assert other.code == 2
    assert "g.safetensors is there already, and is not what this training would write" in other.err


def test_it_runs_at_once(ostraka: Ostraka) -> None:
    done = ostraka("run", "fedos", *TINY, *ONE_EPOCH)
    assert done.code == 0, done.err
    assert "makes images of 1x28x28; they are resized to 1x8x8" in done.out


def test_ctrl_c_and_the_same_command_again(
    ostraka: Ostraka, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("train-generator", *QUICK, "--epochs", "2", "--out", "g.safetensors", "-q")
    with monkeypatch.context() as patch:
        patch.setattr(generator_training._Training, "_one_step", _interrupt)
        stopped = ostraka(*words)
    assert stopped.code == 130
    assert "nothing was saved" in stopped.err
    assert "the same command begins anew" in stopped.err
    assert not Path("g.safetensors").exists()
    assert ostraka(*words).code == 0


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--out", "g.safetensors", "--picture", "g.txt"), ".svg, .png or .pdf"),
        (("--out", "g.png"), "would both be g.png"),
        (("--out", "a/../g.pdf", "--picture", "g.pdf"), "would both be g.pdf"),
        (("--out", "g.safetensors", "--data", "digitz"), "digits"),
        (("--out", "g.safetensors", "--epochs", "0"), "epochs"),
        ((), "--out"),
    ],
)
def test_mistakes(ostraka: Ostraka, words: tuple[str, ...], message: str) -> None:
    done = ostraka("train-generator", *words)
    assert done.code == 2
    assert message in done.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--at", "0"), "not a list of rounds"),
        (("--at", "x"), "not a list of rounds"),
        (("--relative-to", "50"), "and --at"),
        (("--at", "1", "--relative-to", "0"), "above 0"),
    ],
)
def test_rounds_to_show_that_cannot_be(
    ostraka: Ostraka, words: tuple[str, ...], message: str
) -> None:
    Path("runs/x").mkdir(parents=True)
    done = ostraka("show", "runs/x", *words)
    assert done.code == 2
    assert message in done.err
