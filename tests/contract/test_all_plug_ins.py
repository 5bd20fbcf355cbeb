"""Every built-in objective, net, source, partition and ballot keeps the
contract that plug-ins are checked for.
"""

import gzip
import json
import wave
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from ostraka.core import settings
from ostraka.data.partitions.spec import parse
from ostraka.registry import BALLOTS, NETS, OBJECTIVES, PARTITIONS, SELECTORS, SOURCES
from ostraka.testing import (
    check_ballot,
    check_net,
    check_objective,
    check_partition,
    check_selector,
    check_source,
)


@pytest.mark.parametrize("name", OBJECTIVES.names())
def test_every_objective_keeps_the_contract(name: str) -> None:
    check_objective(OBJECTIVES.get(name)())


VARIANTS: list[tuple[str, dict[str, Any]]] = [
    ("calibrated", {"public": "mix", "doubt": "own", "typicality": "off"}),
    ("calibrated", {"public": "probe", "typicality": "on"}),
    ("plurality", {"voice": "size"}),
    ("plurality", {"ties": "lot", "lot": 3}),
    ("sum", {"doubt": "mean"}),
    ("top-k", {"k": 1, "doubt": "product"}),
]


@pytest.mark.parametrize(("name", "values"), [*((name, {}) for name in BALLOTS.names()), *VARIANTS])
def test_every_ballot_keeps_the_contract(name: str, values: dict[str, Any]) -> None:
    check_ballot(settings.build(BALLOTS.get(name), values))


CHOICES: list[tuple[str, dict[str, Any]]] = [
    ("dedes", {"recipe": "tmlr", "size_by": "votes"}),
    ("dedes", {"size": 3, "reduction": "pca"}),
    ("dedes", {"size": 3, "representation": "answers", "reduction": "kernel-pca"}),
    ("rs", {"draw": 3}),
]


@pytest.mark.parametrize(
    ("name", "values"), [*((name, {}) for name in SELECTORS.names()), *CHOICES]
)
def test_every_selector_keeps_the_contract(name: str, values: dict[str, Any]) -> None:
    check_selector(settings.build(SELECTORS.get(name), values))


NET_CASES: list[tuple[str, tuple[int, ...], dict[str, Any]]] = [
    ("mlp", (7,), {"hidden": [9, 5]}),
    ("simple-cnn", (1, 16, 16), {}),
    ("simple-cnn", (3, 9, 8), {"padding": "same"}),
    ("lenet5", (1, 28, 28), {}),
    ("lenet5", (3, 32, 32), {"norm": "batch"}),
    ("lenet5", (1, 28, 28), {"norm": "group"}),
    ("vgg9", (3, 9, 16), {}),
    ("vgg11", (1, 32, 33), {}),
    ("fedova-cnn", (2, 9, 12), {"hidden": 7}),
    ("fedova-cnn", (1, 28, 28), {"hidden": 0}),
    ("kws-cnn", (1, 5, 9), {}),
    ("conv4", (3, 16, 20), {"width": 3}),
    ("digits", (1, 8, 12), {"width": 0.05}),
    ("wideresnet", (3, 8, 9), {"depth": 10}),
    ("resnet50", (3, 8, 9), {"width": 2}),
    ("resnet18", (1, 8, 8), {"width": 4}),
    ("resnet", (2, 9, 8), {"width": 4}),
    ("resnet", (2, 9, 8), {"width": 4, "norm": "group"}),
    ("densenet121", (1, 8, 8), {"growth": 1}),
    ("densenet", (3, 8, 9), {"depth": 10, "growth": 4, "norm": "group"}),
    ("dla", (3, 8, 9), {"width": 1}),
    ("dla-small", (1, 9, 8), {"norm": "group"}),
]


@pytest.mark.parametrize(("name", "shape", "options"), NET_CASES)
def test_every_net_keeps_the_contract(
    name: str, shape: tuple[int, ...], options: dict[str, Any]
) -> None:
    check_net(NETS.get(name), shape, **options)


def test_no_net_is_left_out() -> None:
    assert {name for name, _, _ in NET_CASES} == set(NETS.names())


SPECS: dict[str, str] = {
    "labels": "labels:2",
    "dirichlet": "dirichlet:0.5,min_size=2",
    "party-dirichlet": "party-dirichlet:0.3",
    "shards": "shards:2",
    "iid": "iid",
    "iid-quantity": "iid-quantity:2",
    "by": "by:ward",
    "domain": "domain",
    "file": "file:mine.json",
}
"""A spec of every rule; the parties are six, or as many as the data says."""


@pytest.mark.parametrize("name", PARTITIONS.names())
def test_every_partition_keeps_the_contract(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = np.arange(390)
    Path("mine.json").write_text(
        json.dumps({"parties": [rows[:200].tolist(), rows[200:].tolist()], "partial": True})
    )
    wards = rows % 4
    rule = parse(SPECS.get(name, name))
    parties = {"by": 4, "domain": 4, "file": 2}.get(name, 6)
    check_partition(rule, parties, columns={"ward": wards, "domain": wards})


def write_npz(folder: Path, end: str = ".npz") -> Path:
    arrays = {
        f"{axis}_{part}": values
        for part in ("train", "test")
        for axis, values in sample_arrays().items()
    }
    np.savez_compressed(folder / f"set{end}", **arrays)
    (folder / "set.json").write_text(json.dumps({"class_names": ["a", "b", "c"]}))
    return folder / f"set{end}"


def sample_arrays() -> dict[str, Any]:
    x = np.random.default_rng(0).integers(0, 256, (9, 8, 8), np.uint8)
    return {"x": x, "y": np.arange(9) % 3}


def write_packed(folder: Path) -> Path:
    return write_npz(folder, ".packed.npz")


def write_idx(folder: Path) -> Path:
    path = folder / "sketches"
    path.mkdir()
    for part, end in (("train", ".gz"), ("t10k", "")):
        for what, values in (
            ("images-idx3", sample_arrays()["x"]),
            ("labels-idx1", sample_arrays()["y"]),
        ):
            head = bytes([0, 0, 8, values.ndim]) + b"".join(
                n.to_bytes(4, "big") for n in values.shape
            )
            raw = head + values.astype(np.uint8).tobytes()
            (path / f"{part}-{what}-ubyte{end}").write_bytes(
                gzip.compress(raw, mtime=0) if end else raw
            )
    return path


def write_cifar(folder: Path) -> Path:
    path = folder / "cifar-10-batches-bin"
    path.mkdir()
    rng = np.random.default_rng(0)
    for name in (*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"):
        records = rng.integers(0, 256, (10, 3073), np.uint8)
        records[:, 0] = np.arange(10)
        (path / f"{name}.bin").write_bytes(records.tobytes())
    return path


def write_pickled_cifar(folder: Path) -> Path:
    path = folder / "cifar-10-batches-py"
    path.mkdir()
    (path / "data_batch_1").write_bytes(b"\x80\x04.")
    return path


def write_svhn(folder: Path) -> Path:
    from scipy.io import savemat

    path = folder / "svhn"
    path.mkdir()
    x = np.random.default_rng(0).integers(0, 256, (32, 32, 3, 10), np.uint8)
    for part in ("train", "test"):
        savemat(path / f"{part}_32x32.mat", {"X": x, "y": np.arange(1, 11)[:, None]})
    return path


def write_images(folder: Path) -> Path:
    rng = np.random.default_rng(0)
    for part, name in product(("train", "test"), ("cat", "dog")):
        place = folder / "pets" / part / name
        place.mkdir(parents=True)
        for number in range(2):
            pixels = rng.integers(0, 256, (8, 8, 3), np.uint8)
            Image.fromarray(pixels).save(place / f"{number}.png")
    return folder / "pets"


def write_sounds(folder: Path) -> Path:
    for name, number in product(("high", "low"), range(5)):
        place = folder / "tones" / name
        place.mkdir(parents=True, exist_ok=True)
        tone = np.sin(np.arange(800) * (1.0 if name == "high" else 0.1) + number)
        with wave.open(str(place / f"{number}.wav"), "wb") as file:
            file.setparams((1, 2, 8000, len(tone), "NONE", ""))
            file.writeframes((tone * 2**14).astype("<i2").tobytes())
    return folder / "tones"


def write_table(folder: Path) -> Path:
    """As Parquet: of a text that was cut short nobody can tell."""
    import pyarrow.parquet

    rows = range(30)
    table = {
        "age": list(rows),
        "ward": ["north" if row % 2 else "south" for row in rows],
        "class": ["ill" if row % 3 else "well" for row in rows],
    }
    pyarrow.parquet.write_table(pyarrow.table(table), folder / "ward.parquet")
    return folder / "ward.parquet"


EXAMPLES: dict[str, Callable[[Path], Path] | None] = {
    "bundled": None,
    "digits": None,
    "library": None,
    "npz": write_npz,
    "packed": write_packed,
    "idx": write_idx,
    "cifar": write_cifar,
    "cifar-pickled": write_pickled_cifar,
    "svhn": write_svhn,
    "image-folder": write_images,
    "sound-folder": write_sounds,
    "table": write_table,
}


@pytest.mark.parametrize("name", SOURCES.names())
def test_every_source_keeps_the_contract(name: str, tmp_path: Path) -> None:
    write = EXAMPLES[name]
    check_source(SOURCES.get(name), write and write(tmp_path))
