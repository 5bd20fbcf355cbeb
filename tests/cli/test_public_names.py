"""`import ostraka` is light, and `ostraka.run` does what the command does."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import ostraka as package
from ostraka.errors import ConfigError
from ostraka.runs.config import identity, resolve
from ostraka.runs.record import load_state
from tests.cli.calling import ONE_EPOCH, TINY, Ostraka


def test_import_does_not_load_torch() -> None:
    script = (
        "import sys, ostraka; dir(ostraka); sys.exit('torch' in "
        "sys.modules or 'numpy' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False, timeout=60).returncode == 0


def test_completion_shows_public_names_and_no_imports() -> None:
    shown = {name for name in dir(package) if not name.startswith("_")}
    assert set(package.__all__) <= shown
    assert not shown & {"Any", "TYPE_CHECKING", "import_module"}


def test_run_from_python_equals_the_command(ostraka: Ostraka) -> None:
    shown = ostraka("run", "fedavg", *TINY, *ONE_EPOCH, "--json", "--out", "a").json()
    values: dict[str, Any] = {
        "data": "digits",
        "parties": 3,
        "partition": "iid",
        "train_per_class": 6,
        "engine": "serial",
    }
    result = package.run("fedavg", **values, set={"local": {"epochs": 1}}, out="b")
    assert result.summary.accuracy == shown["accuracy"]
    assert Path("a/model.safetensors").read_bytes() == Path("b/model.safetensors").read_bytes()
    assert package.load_run("b") == result
    config, state = load_state(Path("b"))
    given = package.make_config({"method": "fedavg", **values, "set": {"local": {"epochs": 1}}})
    assert identity(config) == identity(resolve(given))
    assert all(tensor.isfinite().all() for tensor in state.values())
    with pytest.raises(ConfigError, match="holds a finished run"):
        package.run("fedavg", **values, out="b")
    with pytest.raises(ConfigError, match="Did you mean 'parties'"):
        package.run("fedavg", partys=3, out="c")
