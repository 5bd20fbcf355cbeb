"""FedOVA in one exchange: how networks of a class are heard together, by hand, and a tiny study."""

import json
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from torch import Tensor

from benchmarks import one_shot_ova_study as study
from benchmarks.one_shot_ova_study import Kept
from ostraka.core.predictor import Predictor, Scores


@dataclass(frozen=True)
class Says(Predictor):
    """The same chances for whatever it is asked, as logits."""

    chances: tuple[float, ...]

    def scores(self, x: Tensor) -> Scores:
        logits = torch.tensor(self.chances).logit().expand(len(x), -1)
        return Scores(logits, torch.zeros(len(x)), 0.5)


@pytest.mark.parametrize(
    ("way", "known"), [("mean", [0.4, 0.6, 0.3, 0.0]), ("max", [0.7, 0.6, 0.3, 0.0])]
)
def test_only_who_holds_a_class_has_a_say(way: str, known: list[float]) -> None:
    """Class 0: 0.1 and 0.7 of both parties; 1 of the first alone, whatever the second would say;
    2 of the second alone; 3 of nobody. Unknown is 1 minus the surest.
    """
    parties = [Says((0.1, 0.6, 0.9, 0.9)), Says((0.7, 0.9, 0.3, 0.9))]
    held = torch.tensor([[True, True, False, False], [True, False, True, False]])
    scores = Kept(parties, held, way).scores(torch.zeros(1, 2))
    assert scores.known[0].tolist() == pytest.approx(known)
    assert scores.unknown.item() == pytest.approx(1 - max(known))


def test_a_tiny_study(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two trainings, three ways each; a second call trains nothing."""
    words = ["--out", str(tmp_path / "s.jsonl"), "--data", "digits", "--known", "8"]
    words += ["--outliers", "none", "wide", "--set", "local.steps=2"]
    study.main(words)
    study.main(words)
    records = [json.loads(line) for line in (tmp_path / "s.jsonl").read_text().splitlines()]
    assert [record["cell"]["outliers"] for record in records] == ["none", "wide"]
    for record in records:
        assert [row["way"] for row in record["figures"]] == list(study.WAYS)
        assert [row["networks"] for row in record["figures"]] == [8, 20, 20]
    assert capsys.readouterr().out.count("| digits | labels:2 | wide | max |") == 2
