"""Shapes and sizes of data sets that are not read, and sources that are broken."""

from importlib.metadata import EntryPoint
from pathlib import Path

import numpy as np
import pytest
from scipy.io import savemat

from ostraka import registry
from ostraka.data.partitions.spec import describe, parse
from ostraka.data.sources import archive, available, load
from ostraka.data.sources.catalogue import summaries
from ostraka.data.sources.source import Source, Summary
from ostraka.errors import ConfigError, DataError, PartitionError
from ostraka.registry import PARTITIONS, SOURCES

BUILT_IN = ["fashion-4k", "digits", "iris", "wine", "breast-cancer", "digits-rows"]


def store(path, x, classes=3, key="x_{}", count=None):
    """As many samples as `count` says (default: the first axis), half of them also for the test."""
    count = count or len(x)
    y, half = np.arange(count) % classes, x[: count // 2] if len(x) == count else x[:, : count // 2]
    np.savez(
        path,
        **{
            key.format("train"): x,
            "y_train": y,
            key.format("test"): half,
            "y_test": y[: count // 2],
        },
    )


def write_idx(path, array):
    head = bytes([0, 0, 8, array.ndim]) + b"".join(int(n).to_bytes(4, "big") for n in array.shape)
    path.write_bytes(head + array.astype(np.uint8).tobytes())


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """One set of every kind; images may not be read."""
    real = archive.array
    monkeypatch.setattr(
        archive, "array", lambda path, key: real(path, key) if key[0] == "y" else pytest.fail(key)
    )
    store(tmp_path / "grey.npz", np.zeros((6, 4, 5), np.uint8))
    store(tmp_path / "colour.npz", np.zeros((6, 4, 5, 3), np.uint8))
    store(tmp_path / "rows.npz", np.zeros((6, 7)))
    store(tmp_path / "small.packed.npz", np.zeros((3, 8, 4, 5), np.uint8), key="x_{}_med", count=8)
    (tmp_path / "mnist").mkdir()
    for part, n in (("train", 9), ("t10k", 4)):
        write_idx(tmp_path / "mnist" / f"{part}-images-idx3-ubyte", np.zeros((n, 4, 5)))
        write_idx(tmp_path / "mnist" / f"{part}-labels-idx1-ubyte", np.arange(n) % 3)
    (tmp_path / "cifar-10-batches-bin").mkdir()
    for name in (*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"):
        (tmp_path / "cifar-10-batches-bin" / f"{name}.bin").write_bytes(bytes(3073 * 2))
    (tmp_path / "SVHN").mkdir()
    for part, n in (("train", 5), ("test", 2)):
        x = np.zeros((32, 32, 3, n), np.uint8)
        savemat(
            tmp_path / "SVHN" / f"{part}_32x32.mat",
            {"X": x, "y": np.ones((n, 1))},
            do_compression=True,
        )
    return tmp_path


def test_every_kind_is_summarised_unread(folder):
    found = {place.name: summary for place, summary in summaries([folder])}
    assert found == {
        "fashion-4k": Summary((1, 28, 28), 10, 4000, 1000),
        "digits": Summary((1, 8, 8), 10, 1442, 355),
        "iris": Summary((4,), 3, 120, 30),
        "wine": Summary((13,), 3, 144, 34),
        "breast-cancer": Summary((30,), 2, 456, 113),
        "digits-rows": Summary((64,), 10, 1442, 355),
        "grey": Summary((1, 4, 5), 3, 6, 3),
        "colour": Summary((3, 4, 5), 3, 6, 3),
        "rows": Summary((7,), 3, 6, 3),
        "small": Summary((3, 4, 5), 3, 8, 4),
        "mnist": Summary((1, 4, 5), 3, 9, 4),
        "cifar10": Summary((3, 32, 32), 10, 10, 2),
        "svhn": Summary((3, 32, 32), 10, 5, 2),
        "hdr-fl": Summary(
            (3, 28, 28), 3, 14, 6
        ),  # mnist and svhn, of which mnist has three classes here
    }


def test_built_in_summaries_are_true():
    for place, summary in summaries([]):
        data = load(place.name, [])
        assert summary == Summary(
            data.train.shape, len(data.classes), len(data.train), len(data.test)
        )


def test_what_cannot_be_peeked_has_a_reason(folder):
    (folder / "junk.npz").write_bytes(b"hello")
    (folder / "empty.npz").write_bytes(b"")
    (folder / "SVHN" / "test_32x32.mat").write_bytes(b"MATLAB 5.0 MAT-file" + bytes(300))
    (folder / "mnist" / "t10k-labels-idx1-ubyte").write_bytes(b"\0\0")
    (folder / "cifar-10-batches-bin" / "test_batch.bin").unlink()
    found = {place.name: summary for place, summary in summaries([folder])}
    assert found["junk"] == "is not an .npz file: it begins with b'hello'"
    assert found["empty"] == "is empty (0 bytes)"
    assert "cannot be read" in found["svhn"]
    assert "is not an IDX file" in found["mnist"]
    assert "cannot be read" in found["cifar10"]
    assert found["hdr-fl"] == "a part of it cannot be read"
    assert found["grey"] == Summary((1, 4, 5), 3, 6, 3)


def failing(path, name=None):
    raise RuntimeError("no such thing")


def test_a_source_that_fails_harms_no_other(tmp_path):
    store(tmp_path / "own.npz", np.zeros((6, 4, 5), np.uint8))
    broken = Source("broken", "fails everywhere", failing, failing)
    silent = Source("silent", "does not tell", failing, builtin=("quiet",))
    loud = Source("loud", "fails when it tells", failing, builtin=("shout",), peek=failing)
    try:
        for source in (broken, silent, loud):
            SOURCES.add(source.kind)(source)
        with pytest.warns(
            UserWarning, match="the source 'broken' failed on .*no such thing.*fix or remove"
        ):
            assert len(load("own", [tmp_path]).train) == 6
        with pytest.warns(UserWarning, match="the source 'broken' failed"):
            found = {place.name: summary for place, summary in summaries([tmp_path])}
        assert found["quiet"] == "its source does not tell"
        assert found["shout"] == "cannot be read: RuntimeError('no such thing')"
        assert found["own"] == Summary((1, 4, 5), 3, 6, 3)
    finally:
        for source in (broken, silent, loud):
            SOURCES.remove(source.kind)


@pytest.fixture
def broken_plugins(monkeypatch):
    """One source and one partition that cannot be imported, one source that is no source."""
    points = [
        EntryPoint("aaa", "no_such_module_at_all:X", "ostraka.sources"),
        EntryPoint("bbb", "decimal:Decimal", "ostraka.sources"),
        EntryPoint("aaa", "no_such_module_at_all:X", "ostraka.partitions"),
    ]
    for kind in (SOURCES, PARTITIONS):
        kind.names()  # with the plug-ins that there really are, to which all goes back
    monkeypatch.setattr(
        registry, "entry_points", lambda group: [p for p in points if p.group == group]
    )
    for kind in (SOURCES, PARTITIONS):
        monkeypatch.setattr(kind, "_plugins", None)
        monkeypatch.setattr(kind, "_items", dict(kind._items))


@pytest.mark.usefixtures("broken_plugins")
@pytest.mark.filterwarnings("ignore:the plug-in source")
def test_a_broken_source_is_passed_over_with_a_warning():
    with pytest.warns(
        UserWarning, match=r"plug-in source 'aaa' \(no_such_module_at_all:X\) cannot be loaded"
    ):
        names = [found.name for found in available([])]
    assert names == BUILT_IN
    with pytest.warns(UserWarning, match=r"plug-in source 'bbb' .*Decimal.* is no Source"):
        assert load("digits", []).name == "digits"
    with (
        pytest.warns(UserWarning, match="aaa"),
        pytest.raises(ConfigError, match=r"source 'aaa' .* cannot be loaded"),
    ):
        load("aaa", [])
    with (
        pytest.warns(UserWarning, match="aaa"),
        pytest.raises(DataError, match="no dataset 'other' was found"),
    ):
        load("other", [])


@pytest.mark.usefixtures("broken_plugins")
def test_a_broken_partition_is_passed_over_with_a_warning():
    with pytest.warns(UserWarning, match=r"plug-in partition 'aaa' .* cannot be loaded"):
        assert "iid" in dict(describe())
    with (
        pytest.warns(UserWarning, match="aaa"),
        pytest.raises(PartitionError, match="Did you mean 'labels'"),
    ):
        parse("label:2")
    assert parse("labels:2").k == 2
    with (
        pytest.warns(UserWarning, match="aaa"),
        pytest.raises(PartitionError, match=r"partition 'aaa' .* cannot"),
    ):
        parse("aaa")


def test_folders_that_are_not_there_are_no_hindrance(tmp_path):
    assert [
        found.name for found in available([tmp_path / "absent", Path("also-absent")])
    ] == BUILT_IN


@pytest.mark.parametrize("name", ["mnist", "MNIST", "fmnist", "usps"])
def test_the_command_that_downloads_a_public_set_is_named(name: str) -> None:
    public = {"MNIST": "mnist", "fmnist": "fashion-mnist"}.get(name, name)
    with pytest.raises(DataError, match=rf"Download it with: ostraka data get {public}\. Put"):
        load(name, [])
    with pytest.raises(DataError) as caught:
        load("mnits", [])
    assert "data get" not in str(caught.value)


def test_the_public_sets_among_missing_domains_are_named() -> None:
    with pytest.raises(DataError, match=r"Download it with: ostraka data get [a-z ]*mnist"):
        load("hdr-fl", [])
