"""Whole data sets from a mirror: archives, bounds, and the reader's word in the end."""

import bz2
import gzip
import hashlib
import io
import json
import tarfile
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.io import savemat

from ostraka.data.fetch import SETS, PublicSet, get, unpack
from ostraka.data.fetch.download import Patience
from ostraka.data.fetch.getting import find_set, folder_for
from ostraka.data.fetch.unpack import SPLITS, unpack_cifar, unpack_emnist, unpack_usps
from ostraka.data.sources import load
from ostraka.errors import ConfigError, DataError, StoreError
from tests.cli.calling import Ostraka
from tests.cli.conftest import ostraka as ostraka
from tests.data.fetch.server import Site, serving

QUICK = Patience(seconds=1.0, pause=0.0)
RNG = np.random.default_rng(0)


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.delenv("OSTRAKA_DATA", raising=False)
    with serving(Site()) as there:
        yield there


def idx(values: np.ndarray) -> bytes:
    sizes = b"".join(n.to_bytes(4, "big") for n in values.shape)
    return gzip.compress(bytes([0, 0, 8, values.ndim]) + sizes + values.tobytes())


def small(name: str, site: Site, files: dict[str, bytes], train: int, test: int) -> PublicSet:
    """The listed set, with these files on the site and their digests."""
    site.files.update({f"/{file}": body for file, body in files.items()})
    listed = SETS[name]
    remotes = tuple(
        replace(
            one,
            folders=(site.url,),
            md5=hashlib.md5(files[one.name], usedforsecurity=False).hexdigest(),
            megabytes=1.0,
        )
        for one in listed.files
    )
    return replace(listed, files=remotes, train=train, test=test)


def images(count: int, first: int = 0) -> tuple[np.ndarray, np.ndarray]:
    return (
        RNG.integers(0, 256, (count, 28, 28), dtype=np.uint8),
        (np.arange(count) % 10 + first).astype(np.uint8),
    )


def mnist(site: Site, name: str = "mnist") -> PublicSet:
    (x, y), (u, v) = images(20), images(10)
    names = [file.name for file in SETS[name].files]
    return small(name, site, dict(zip(names, map(idx, (x, y, u, v)), strict=True)), 20, 10)


@pytest.mark.parametrize("name", ["mnist", "fashion-mnist"])
def test_four_files_become_a_data_set(site: Site, tmp_path: Path, name: str) -> None:
    got = get(mnist(site, name), tmp_path, patience=QUICK)
    assert (got.fresh, got.train, got.test, got.classes) == (True, 20, 10, 10)
    assert "MD5 of every file as torchvision's source" in got.checked
    assert len(load(name, [tmp_path]).train) == 20
    assert sorted(p.name for p in tmp_path.rglob("*") if p.is_file()) == sorted(
        file.name for file in SETS[name].files
    )


def test_what_is_there_is_read_and_not_fetched_again(site: Site, tmp_path: Path) -> None:
    wanted = mnist(site)
    get(wanted, tmp_path, patience=QUICK)
    site.asked.clear()
    assert get(wanted, tmp_path, patience=QUICK).checked == "found there, and read once"
    assert site.asked == []
    missing = tmp_path / "mnist" / wanted.files[2].name
    missing.unlink()
    get(wanted, tmp_path, patience=QUICK)
    assert [path for path, _ in site.asked] == [f"/{missing.name}"]


def test_a_set_of_another_size_is_refused(site: Site, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"has 20 training and 10 test.*has 60,000 and 10"):
        get(replace(mnist(site), train=60_000), tmp_path, patience=QUICK)


def test_the_next_place_is_tried_and_a_mirror_stands_for_all(site: Site, tmp_path: Path) -> None:
    wanted = mnist(site)
    dead = f"{site.url}/gone"
    twice = replace(wanted, files=tuple(replace(f, folders=(dead, site.url)) for f in wanted.files))
    assert get(twice, tmp_path / "a", patience=QUICK).fresh
    lost = replace(wanted, files=tuple(replace(f, folders=(dead, dead)) for f in wanted.files))
    with pytest.raises(DataError, match=r"not there.* \| .*not there"):
        get(lost, tmp_path / "b", patience=QUICK)
    site.files |= {f"/pub/{name[1:]}": body for name, body in site.files.items()}
    site.asked.clear()
    assert get(lost, tmp_path / "b", f"{site.url}/pub/", patience=QUICK).fresh
    assert all(path.startswith("/pub/") for path, _ in site.asked)
    with pytest.raises(DataError, match="only addresses that begin with http"):
        get(lost, tmp_path / "c", "file:///srv/mirror", patience=QUICK)


def test_svhn(site: Site, tmp_path: Path) -> None:
    files = {}
    for name, count in (("train_32x32.mat", 10), ("test_32x32.mat", 10)):
        out = io.BytesIO()
        x = RNG.integers(0, 256, (32, 32, 3, count), dtype=np.uint8)
        savemat(out, {"X": x, "y": np.arange(1, count + 1)[:, None]})
        files[name] = out.getvalue()
    assert get(small("svhn", site, files, 10, 10), tmp_path, patience=QUICK).classes == 10


def tar_of(entries: dict[str, bytes], *more: tarfile.TarInfo) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        for info in more:
            tar.addfile(info)
        for name, body in entries.items():
            info = tarfile.TarInfo(name)
            info.size = len(body)
            tar.addfile(info, io.BytesIO(body))
    return out.getvalue()


def cifar_files(records: int = 10) -> dict[str, bytes]:
    def batch() -> bytes:
        return b"".join(bytes([i % 10]) + bytes([i]) * 3072 for i in range(records))

    names = [*(f"data_batch_{i}.bin" for i in range(1, 6)), "test_batch.bin"]
    found = {f"cifar-10-batches-bin/{name}": batch() for name in names}
    classes = "\n".join("abcdefghij") + "\n"
    return {"cifar-10-batches-bin/batches.meta.txt": classes.encode(), **found}


def test_cifar_is_unpacked_and_nothing_but_its_files(site: Site, tmp_path: Path) -> None:
    link = tarfile.TarInfo("cifar-10-batches-bin/data_batch_1.bin")
    link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
    evil = {"../evil.txt": b"x", "/tmp/evil.txt": b"x", "cifar-10-batches-bin/readme.html": b"x"}
    body = tar_of({**evil, **cifar_files()}, link)
    got = get(
        small("cifar10", site, {"cifar-10-binary.tar.gz": body}, 50, 10),
        tmp_path / "in" / "data",
        patience=QUICK,
    )
    assert (got.train, got.test) == (50, 10)
    files = sorted(p.name for p in (tmp_path / "in").rglob("*") if not p.is_dir())
    assert files == sorted(name.rpartition("/")[2] for name in cifar_files())
    assert not any(p.is_symlink() for p in tmp_path.rglob("*"))
    assert load("cifar10", [tmp_path / "in" / "data"]).classes == tuple("abcdefghij")


def test_archives_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, out = tmp_path / "c.tar.gz", tmp_path / "out"
    path.write_bytes(tar_of(cifar_files(records=10)))
    monkeypatch.setattr(unpack, "BATCH", 9 * 3073)
    with pytest.raises(DataError, match="more than 27,657 bytes"):
        unpack_cifar([path], out)
    assert not list(out.rglob("*.bin"))
    monkeypatch.setattr(unpack, "LARGEST", 1000)
    with pytest.raises(DataError, match="has no such thing"):
        unpack_cifar([path], out)
    monkeypatch.undo()
    path.write_bytes(tar_of({f"x{i}": b"" for i in range(101)}))
    with pytest.raises(DataError, match="as file 101"):
        unpack_cifar([path], out)
    path.write_bytes(tar_of(dict(list(cifar_files().items())[:4])))
    with pytest.raises(DataError, match="has no cifar-10-batches-bin/data_batch_4"):
        unpack_cifar([path], out)
    path.write_bytes(tar_of(cifar_files())[:500])
    with pytest.raises(DataError, match="cannot be unpacked"):
        unpack_cifar([path], out)


def zip_of(entries: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, body in entries.items():
            packed.writestr(name, body)
    return out.getvalue()


def emnist_files() -> dict[str, bytes]:
    files = {}
    for split in SPLITS:
        for part, count in (("train", 52), ("test", 26)):
            y = (np.arange(count) % (26 if split == "letters" else 10)).astype(np.uint8)
            x = np.zeros((count, 28, 28), np.uint8)
            x[:, 3, 7] = 200  # lies on its side
            start = f"gzip/emnist-{split}-{part}"
            files[f"{start}-images-idx3-ubyte.gz"] = idx(x)
            files[f"{start}-labels-idx1-ubyte.gz"] = idx(y + (split == "letters"))
    return files


def test_emnist_is_unpacked_and_turned_upright(site: Site, tmp_path: Path) -> None:
    body = zip_of({"../evil": b"x", "gzip/emnist-mnist-test-images-idx3-ubyte.gz": b"x",
                   **emnist_files()})  # fmt: skip
    wanted = small("emnist", site, {"gzip.zip": body}, 52, 26)
    got = get(wanted, tmp_path / "data", patience=QUICK)
    assert (got.read_as, got.classes) == ("emnist-letters", 26)
    letters = load("emnist-letters", [tmp_path / "data"])
    assert letters.train.x[0, 0, 7, 3] == 200
    assert len(list((tmp_path / "data" / "emnist").iterdir())) == 12
    assert not (tmp_path / "evil").exists()
    assert not get(wanted, tmp_path / "data", patience=QUICK).fresh


def test_a_bad_zip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "e.zip"
    files = emnist_files()
    files.popitem()
    path.write_bytes(zip_of(files))
    with pytest.raises(DataError, match=r"has no gzip/emnist-balanced-test-labels"):
        unpack_emnist([path], tmp_path / "out")
    path.write_bytes(b"PK\x03\x04 and nothing")
    with pytest.raises(DataError, match="cannot be unpacked"):
        unpack_emnist([path], tmp_path / "out")
    bomb = emnist_files()
    bomb["gzip/emnist-letters-train-images-idx3-ubyte.gz"] = bytes(3_000_000)
    path.write_bytes(zip_of(bomb))
    monkeypatch.setattr(unpack, "LARGEST", 2_000_000)
    with pytest.raises(DataError, match="more than 2,000,000 bytes"):
        unpack_emnist([path], tmp_path / "out")


def usps_text(count: int) -> str:
    lines = []
    for row in range(count):
        values = ["-1"] * 256
        values[17], values[18], values[19] = "1", "0", "-0.5"
        lines.append(f"{row % 10 + 1} " + " ".join(f"{i + 1}:{v}" for i, v in enumerate(values)))
    return "\n".join(lines) + "\n"


def test_usps_by_hand(site: Site, tmp_path: Path) -> None:
    """Label 1 is the digit 0; -1, -0.5, 0, 1 become 0, 63, 127, 255 (rounded down, as torchvision
    has it); pixel 18 is in the second row."""
    files = {
        name: bz2.compress(usps_text(n).encode())
        for name, n in (("usps.bz2", 20), ("usps.t.bz2", 10))
    }
    got = get(small("usps", site, files, 20, 10), tmp_path, patience=QUICK)
    assert got.train == 20
    found = load("usps", [tmp_path])
    assert found.classes == tuple("0123456789")
    assert found.train.labels[:3].tolist() == [0, 1, 2]
    assert found.train.x[0, 0, 1, :5].tolist() == [0, 255, 127, 63, 0]
    assert sorted(p.name for p in tmp_path.rglob("*") if p.is_file()) == ["usps.json", "usps.npz"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("1 1:0.5 2:0.5\n", "line 1 is not a label and the numbers 1 to 256"),
        (usps_text(2).replace("256:", "257:"), "line 1 is not"),
        (usps_text(1).replace("18:1 ", "18:one "), "line 1 is not"),
        (usps_text(1).replace("18:1 ", "18:7 "), "values from -1 to 1"),
        ("11" + usps_text(1)[1:], "labels go from 1 to 10"),
        ("", "labels go from"),
    ],
)
def test_bad_text(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "usps.bz2"
    path.write_bytes(bz2.compress(text.encode()))
    with pytest.raises(DataError, match=words):
        unpack_usps([path, path], tmp_path)


def test_text_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "usps.bz2"
    path.write_bytes(bz2.compress(b"1 " * 1000))
    monkeypatch.setattr(unpack, "TEXT", 1000)
    with pytest.raises(DataError, match="more than 1,000 bytes of text"):
        unpack_usps([path, path], tmp_path)
    path.write_bytes(bz2.compress(b"1 " * 1000)[:20])
    with pytest.raises(DataError, match="cannot be unpacked"):
        unpack_usps([path, path], tmp_path)


def test_half_unpacked_is_unpacked_again(site: Site, tmp_path: Path) -> None:
    body = tar_of(cifar_files())
    wanted = small("cifar10", site, {"cifar-10-binary.tar.gz": body}, 50, 10)
    (tmp_path / "cifar-10-batches-bin").mkdir()
    (tmp_path / "cifar-10-batches-bin" / "data_batch_1.bin").write_bytes(bytes(3073))
    archive = tmp_path / ".fetched" / "cifar10" / "cifar-10-binary.tar.gz"
    archive.parent.mkdir(parents=True)
    archive.write_bytes(body)
    assert get(wanted, tmp_path, patience=QUICK).train == 50
    assert site.asked == []


def test_every_listed_set_says_where_it_is_from_and_its_digests() -> None:
    assert set(SETS) == {"mnist", "fashion-mnist", "cifar10", "svhn", "emnist", "usps"}
    for one in SETS.values():
        for file in one.files:
            assert len(bytes.fromhex(file.md5)) == 16
            assert all(place.startswith(("http://", "https://")) for place in file.folders)
            assert file.stated_by


def test_where_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OSTRAKA_DATA", "/one:/two")
    assert folder_for(None) == Path("/one")
    assert folder_for(Path("here")) == Path("here")
    monkeypatch.delenv("OSTRAKA_DATA")
    assert folder_for(None) == Path("data")
    with pytest.raises(ConfigError, match="Did you mean 'mnist'"):
        find_set("mnits")


def test_the_verb(site: Site, ostraka: Ostraka, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ostraka.data.fetch.getting.SETS", {"mnist": mnist(site)})
    done = ostraka("data", "get", "mnist", "--to", "here", "--mirror", site.url)
    assert done.code == 0, done.err
    assert "mnist fetched: 20 + 10 samples of 10 classes in here/mnist" in done.out
    assert "--data-dir here" in done.out
    [told] = ostraka("data", "get", "mnist", "--to", "here", "--json").json()["data"]
    assert told == {
        "name": "mnist", "read_as": "mnist", "path": "here/mnist", "fresh": False,
        "shape": [1, 28, 28], "classes": 10, "train": 20, "test": 10,
        "checked": "found there, and read once",
    }  # fmt: skip
    assert json.loads(ostraka("list", "data", "--data-dir", "here", "--json").out)
    assert ostraka("data", "get", "cifar11").code == 2
    failed = ostraka("data", "get", "mnist", "--to", "there", "--mirror", f"{site.url}/no")
    assert (failed.code, "it is not there" in failed.err) == (2, True)
    Path("file").write_text("x")
    assert "give a folder" in ostraka("data", "get", "mnist", "--to", "file").err


def test_a_folder_that_cannot_be_written(site: Site, tmp_path: Path) -> None:
    (tmp_path / "f").write_text("x")
    with pytest.raises(StoreError, match="cannot be written"):
        get(mnist(site), tmp_path / "f" / "sub", patience=QUICK)
