"""The drawing of FedPD's masks, and the verb that makes it."""

import re
from pathlib import Path

import pytest
import torch

from ostraka.alignment.masks import record
from ostraka.cli.main import main
from ostraka.core.net import chain
from ostraka.display.masks import LAYERS, chosen, draw_masks
from ostraka.errors import ConfigError

CODES = {
    "a.weight": torch.tensor([[1, 2, 3, 0]] * 3, dtype=torch.uint8),
    "b.weight": torch.tensor([[3, 3, 3]] * 2, dtype=torch.uint8),
}
OTHER = {
    "a.weight": torch.tensor([[1, 3, 3, 3]] * 3, dtype=torch.uint8),
    "b.weight": CODES["b.weight"] * 0,
}


def test_the_drawing_tells_shares_agreement_and_every_layer(tmp_path: Path) -> None:
    """Close of layer a: {0, 2} and {0, 1, 2, 3} agree on 2 of 4.

    Open: {1, 2} and {1, 2, 3} on 2 of 3.
    """
    kept = record(chain("a", "b"), [3, 8], [CODES, OTHER])
    draw_masks(kept, tmp_path / "masks.svg", party=8)
    text = (tmp_path / "masks.svg").read_text()
    for words in (
        "party 8, a: its weights",
        "neither 0%",
        "closed set only 25%",
        "open set only 0%",
        "shared 75%",
    ):
        assert words in text
    assert "a, closed set, two parties agree on 50%" in text
    assert "a, open set, two parties agree on 67%" in text
    assert "b, closed set, two parties agree on 0%" in text
    draw_masks(kept, tmp_path / "other.svg", party=3)
    assert "neither 25%" in (tmp_path / "other.svg").read_text()
    draw_masks(record(chain("a", "b"), [0], [CODES]), tmp_path / "one.svg")
    assert "agree" not in (tmp_path / "one.svg").read_text()


def test_many_layers_are_thinned_out() -> None:
    names = [str(i) for i in range(16)]
    assert chosen(names[:4]) == names[:4]
    assert chosen(names) == ["0", "3", "6", "9", "12", "15"]
    assert len(chosen(names)) == LAYERS


def test_mistakes_are_named(tmp_path: Path) -> None:
    kept = record(chain("a", "b"), [3, 8], [CODES, OTHER])
    with pytest.raises(ConfigError, match="parties that did: 3, 8"):
        draw_masks(kept, tmp_path / "masks.svg", party=0)
    with pytest.raises(ConfigError, match="svg"):
        draw_masks(kept, tmp_path / "masks.gif", party=3)


def test_the_verb_draws_a_run_of_fedpd_and_refuses_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    small = [
        "--data",
        "digits",
        "--partition",
        "iid",
        "--parties",
        "2",
        "--train-per-class",
        "10",
        "--engine",
        "serial",
    ]
    for name in ("fedpd", "fedavg-proser", "fedavg"):
        assert (
            main(
                [
                    "run",
                    name,
                    *small,
                    "--set",
                    "local.epochs=1",
                    "--json",
                    "--out",
                    str(tmp_path / name),
                ]
            )
            == 0
        )
    out = tmp_path / "masks.png"
    assert (
        main(
            ["figure", "masks", "--run", str(tmp_path / "fedpd"), "--party", "1", "--out", str(out)]
        )
        == 0
    )
    assert out.read_bytes().startswith(b"\x89PNG")
    for name in ("fedavg-proser", "fedavg"):
        assert main(["figure", "masks", "--run", str(tmp_path / name), "--out", str(out)]) == 2
        assert "send no masks; take one of fedpd" in capsys.readouterr().err
    assert main(["figure", "masks", "--out", str(out)]) == 2


def test_a_hundred_parties_make_no_endless_picture(tmp_path: Path) -> None:
    """Two layers of at most 2.4 + 0.35 inches below the first:
    some numbers are left out, and no more than fit.
    """
    draw_masks(record(chain("a", "b"), list(range(100)), [CODES] * 100), tmp_path / "m.svg")
    text = (tmp_path / "m.svg").read_text()
    height = float(re.findall(r'height="([0-9.]+)pt"', text)[0]) / 72
    assert height <= 2.6 + 2 * 2.75 + 0.5 + 0.01
    assert ">99<" not in text
