"""The confusion matrix of a stored run: read, shown, drawn."""

from pathlib import Path
from typing import Any

import pytest

from ostraka.display.confusion import (
    confusion_blocks,
    confusion_table,
    draw_confusion,
    stored_confusion,
    worst_pairs,
)
from ostraka.display.mosaic import ASCII
from ostraka.errors import StoreError
from ostraka.runs.results import Summary

FOUND = {"per_class": {"ant": 75.0, "bee": None}, "confusion": [[3, 1, 0], [0, 0, 0], [1, 0, 1]]}


def summary(found: dict[str, Any]) -> Summary:
    """A summary with these figures."""
    place = {"method": "fedov", "data": "ants", "partition": "iid", "parties": 2, "seed": 0}
    return Summary.from_json({**place, "rounds": 1, "accuracy": None, **found})


SUMMARY = summary(FOUND)


def test_percent_of_each_true_class_by_hand() -> None:
    """Ants: 3 of 4 right. No bees. One of two unknown samples is taken for an ant."""
    found = stored_confusion(SUMMARY)
    assert found.names == ("ant", "bee", "unknown")
    assert found.percent.tolist() == [[75, 25, 0], [0, 0, 0], [50, 0, 50]]
    table = confusion_table(found)
    assert table.columns == ("true class", "0", "1", "2")
    assert [[row[0], *(cell.text for cell in row[1:])] for row in table.rows] == [  # type: ignore[union-attr]
        ["0 ant", "75", "25", "·"],
        ["1 bee", "·", "·", "·"],
        ["2 unknown", "50", "·", "50"],
    ]
    shown = confusion_blocks(found, 40, ASCII)
    assert shown is not None
    assert [line.plain for line in shown[:4]] == [
        "          0 1 2 ",
        "0 ant     ##**. ",
        "1 bee     . . . ",
        "2 unknown ##. ##",
    ]
    assert confusion_blocks(found, 8, ASCII) is None


def test_the_most_frequent_mistakes() -> None:
    found = worst_pairs(
        stored_confusion(summary({"per_class": {"a": 0, "b": 0}, "confusion": [[5, 1], [3, 0]]}))
    )
    assert [row[:2] for row in found.rows] == [("b", "a"), ("a", "b")]
    assert found.records()[0] == {
        "true class": "b",
        "answer": "a",
        "samples": 3,
        "% of the class": 100,
    }


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"confusion": None}, "damaged"),
        ({"confusion": [[1, 2], [3]]}, "the confusion matrix of mine is damaged"),
        ({"confusion": [[1]]}, "damaged"),
        ({"confusion": 3}, "'confusion' of the summary is 3"),
        ({"per_class": None}, "damaged"),
        ({"confusion": [[1, 0.5], [1, 2]]}, "damaged"),
        ({"confusion": [[1, -1], [1, 2]]}, "damaged"),
    ],
)
def test_what_is_no_matrix_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(StoreError, match=message):
        stored_confusion(summary(FOUND | change), "mine")


def test_the_drawing_names_classes_and_writes_shares(tmp_path: Path) -> None:
    path = tmp_path / "confusion.svg"
    draw_confusion(stored_confusion(SUMMARY), path, "fedov on ants")
    text = path.read_text()
    for expected in (
        "ant",
        "bee",
        "unknown",
        ">75<",
        ">25<",
        "true class",
        "answer",
        "fedov on ants",
    ):
        assert expected in text, expected
    many = [f"class {k}" for k in range(100)]
    matrix = [[int(i == j) for j in many] for i in many]
    found = {"per_class": dict.fromkeys(many), "confusion": matrix}
    draw_confusion(stored_confusion(summary(found)), path)
    text = path.read_text()
    assert "one in 5 of 100 is named" in text
    assert text.count(">100<") == 1  # no numbers within, one on the colour bar
