"""JSON files of a run that somebody changed."""

from pathlib import Path

import pytest

from ostraka.errors import StoreError
from ostraka.store import jsonfile


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", "-1e999"])
@pytest.mark.parametrize("text", ['{"digest": "x", "accuracy": %s}', '{"digest": "x", "a": [%s]}'])
def test_what_is_not_a_number_is_named_and_not_hashed(
    tmp_path: Path, number: str, text: str
) -> None:
    path = tmp_path / "summary.json"
    path.write_text(text % number)
    for read in (jsonfile.read_json, jsonfile.read_signed):
        with pytest.raises(StoreError, match=r"summary\.json is not valid JSON: .*make it anew"):
            read(path)


def test_what_nests_without_end_is_no_json(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    path.write_text("[" * 200_000)
    with pytest.raises(StoreError, match=r"run\.json is not valid JSON"):
        jsonfile.read_signed(path)


def test_what_was_written_is_read(tmp_path: Path) -> None:
    """Numbers that other programs would round stay what they are: a seed may have 62 bits."""
    path, said = tmp_path / "run.json", {"seed": 2**62 + 1, "share": 0.1, "names": ["\u00e9"]}
    written = jsonfile.write_signed(path, said)
    assert jsonfile.read_signed(path) == written
    assert {key: written[key] for key in said} == said
