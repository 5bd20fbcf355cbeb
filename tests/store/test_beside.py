"""Values whose tensors lie in other files, and values that are read once and copied."""

from pathlib import Path
from typing import Any

import pytest
import torch

from ostraka.errors import DamagedFile, StoreError
from ostraka.store import codec
from ostraka.store.container import TensorHash
from ostraka.store.layout import bytes_of, file_of, header_of

SEAL = {"what": "final state", "run": "ab12"}


def write_tensors(path: Path, tensors: dict[str, torch.Tensor]) -> str:
    header, digest = header_of(tensors), TensorHash()
    for name in header:
        digest.add(name, bytes_of(tensors[name]))
    codec.write_atomically(path, file_of(header, {}, [bytes_of(tensors[name]) for name in header]))
    return digest.hexdigest()


def written(folder: Path) -> dict[str, Any]:
    """A value of two parts, whose weights lie in a file each, and a tensor of its own."""
    parts = [{"w": torch.arange(100.0) + i, "b": torch.ones(2) * i} for i in range(2)]
    files = []
    for i, part in enumerate(parts):
        path = f"members/p{i}.safetensors"
        sha256 = write_tensors(folder / path, part)
        files.append((path, sha256, part))
    value = {"parts": parts, "own": torch.full((3,), 7.0), "again": parts[0]["w"]}
    codec.save(folder / "model", value, SEAL, beside=codec.Beside.of(files))
    return value


def test_tensors_beside_are_named_and_not_repeated(tmp_path: Path) -> None:
    value = written(tmp_path)
    data = (tmp_path / "model").read_bytes()
    assert torch.arange(100.0).numpy().tobytes() not in data
    assert torch.full((3,), 7.0).numpy().tobytes() in data
    again = codec.load(tmp_path / "model", SEAL)
    assert codec.encode(again) == codec.encode(value)
    (tmp_path / "moved").mkdir()
    for name in ("members", "model"):
        (tmp_path / name).rename(tmp_path / "moved" / name)
    assert codec.encode(codec.load(tmp_path / "moved" / "model", SEAL)) == codec.encode(value)


def test_a_file_beside_that_is_gone_or_another_is_named(tmp_path: Path) -> None:
    written(tmp_path)
    file = tmp_path / "members" / "p1.safetensors"
    write_tensors(file, {"w": torch.zeros(100), "b": torch.zeros(2)})
    with pytest.raises(DamagedFile, match=r"p1\.safetensors are not those that .*model was writt"):
        codec.load(tmp_path / "model", SEAL)
    file.write_bytes(b"")
    with pytest.raises(DamagedFile, match=r"p1\.safetensors"):
        codec.load(tmp_path / "model", SEAL)
    file.unlink()
    with pytest.raises(StoreError, match=r"p1\.safetensors' cannot be read"):
        codec.load(tmp_path / "model", SEAL)


@pytest.mark.parametrize("path", ["../secret", "/etc/passwd", "a/../../b"])
def test_only_files_of_the_folder_are_read(tmp_path: Path, path: str) -> None:
    beside = codec.Beside({path: "0" * 32}, {})
    codec.save(tmp_path / "model", [1], beside=beside)
    with pytest.raises(StoreError, match="is not in its folder"):
        codec.load(tmp_path / "model")


def test_copies_of_an_opened_value_share_nothing() -> None:
    data = codec.encode({"w": torch.zeros(3), "n": [1]})
    opened = codec.Opened.of(data)
    first = opened.copy()
    first["w"].add_(1)
    first["n"].append(2)
    assert codec.encode(opened.copy()) == data


@pytest.mark.parametrize("durable", [True, False])
def test_only_durable_files_are_synced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, durable: bool
) -> None:
    synced: list[int] = []
    monkeypatch.setattr("os.fsync", synced.append)
    codec.save(tmp_path / "new" / "x", [1], durable=durable)
    assert len(synced) == int(durable)
    assert codec.load(tmp_path / "new" / "x") == [1]
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["x"]
