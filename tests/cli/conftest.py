"""Fixtures of the command line's tests."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from ostraka.cli.main import main
from ostraka.registry import METHODS
from tests.cli.calling import Fragile, Ostraka, Result


@pytest.fixture
def ostraka(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Ostraka:
    """The command line in this process, in an empty folder, 80 columns wide,
    without any data folder.
    """
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.delenv("OSTRAKA_DATA", raising=False)

    def call(*words: str) -> Result:
        capsys.readouterr()
        try:
            code = main([str(word) for word in words])
        except SystemExit as leave:  # argparse leaves this way
            code = int(leave.code or 0)
        shown = capsys.readouterr()
        return Result(code, shown.out, shown.err)

    return call


@pytest.fixture
def fragile() -> Iterator[str]:
    """The name of a method that fails at party 1."""
    METHODS.add("fragile")(Fragile)
    yield "fragile"
    METHODS.remove("fragile")
