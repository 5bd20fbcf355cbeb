"""Readers on small files written here byte by byte, whole and damaged."""

import gzip
import json
import zipfile

import numpy as np
import pytest
import torch
from scipy.io import savemat

from ostraka.data.sources import available, load
from ostraka.data.sources.npz import decode
from ostraka.errors import DataError

RNG = np.random.default_rng(0)


def bytes_of(*shape):
    return RNG.integers(0, 256, shape, dtype=np.uint8)


def write_idx(path, array):
    """As described at MNIST's page: magic number,
    sizes as big-endian 32-bit numbers, values row by row.
    """
    head = bytes([0, 0, 8, array.ndim]) + b"".join(int(n).to_bytes(4, "big") for n in array.shape)
    raw = head + array.tobytes()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(raw) if path.suffix == ".gz" else raw)


def write_mnist(folder, prefix="", end=".gz", first_label=0, test="t10k"):
    x, y = bytes_of(6, 4, 5), np.array([0, 1, 2, 0, 1, 2], np.uint8)
    for part, many in (("train", slice(0, 6)), (test, slice(0, 3))):
        write_idx(folder / f"{prefix}{part}-images-idx3-ubyte{end}", x[many])
        write_idx(
            folder / f"{prefix}{part}-labels-idx1-ubyte{end}", y[many] + np.uint8(first_label)
        )
    return x, y


def write_npz(path, **changed):
    arrays = {
        "x_train": bytes_of(4, 5, 5),
        "y_train": np.array([0, 1, 0, 1], np.uint8),
        "x_test": bytes_of(2, 5, 5),
        "y_test": np.array([0, 1], np.uint8),
    }
    arrays = {k: v for k, v in {**arrays, **changed}.items() if v is not None}
    np.savez(path, **arrays)
    return arrays


def slow_med(left, above, corner):
    """LOCO-I's predictor as its paper writes it."""
    if corner >= max(left, above):
        return min(left, above)
    if corner <= min(left, above):
        return max(left, above)
    return left + above - corner


def slow_pack(images):
    """Residuals [C, N, H, W] of images [N, H, W, C], one pixel at a time."""
    count, height, width, planes = images.shape
    out = np.zeros((planes, count, height, width), np.uint8)
    for n, k in np.ndindex(count, planes):
        plane = images[n, :, :, k].astype(int).tolist()
        if planes == 3 and k != 1:
            green = images[n, :, :, 1].astype(int).tolist()
            plane = [
                [(p - g + 128) % 256 - 128 for p, g in zip(*rows, strict=True)]
                for rows in zip(plane, green, strict=True)
            ]
        for i, j in np.ndindex(height, width):
            left = plane[i][j - 1] if j else 0
            above = plane[i - 1][j] if i else 0
            corner = plane[i - 1][j - 1] if i and j else 0
            out[k, n, i, j] = (plane[i][j] - slow_med(left, above, corner)) % 256
    return out


@pytest.mark.parametrize("planes", [1, 3])
def test_packed_images_come_back_exactly(planes):
    smooth = (
        (np.cumsum(RNG.integers(-9, 10, (5, 6, 7, planes)), axis=1) + 120)
        .clip(0, 255)
        .astype(np.uint8)
    )
    for images in (bytes_of(5, 6, 7, planes), smooth):
        expected = images[..., 0] if planes == 1 else images
        assert np.array_equal(decode("x", slow_pack(images)), expected)


def test_packed_residuals_by_hand():
    """One grey 2x2 image. Residuals 10, 5 / 3, 250.

    (0,0): median(0, 0, 0) + 10 = 10. (0,1): left 10, above 0, corner 0: median(10, 0, 10) = 10, +
    5 = 15. (1,0): left 0, above 10: median(0, 10, 10) = 10, + 3 = 13. (1,1): left 13, above 15,
    corner 10: median(13, 15, 18) = 15, + 250 = 265 = 9 modulo 256.
    """
    assert decode("x", np.array([[[[10, 5], [3, 250]]]], np.uint8)).tolist() == [
        [[10, 15], [13, 9]]
    ]


def test_packed_file(tmp_path):
    images = bytes_of(4, 6, 7, 3)
    packed = {
        "x_train": None,
        "x_test": None,
        "x_train_med": slow_pack(images),
        "x_test_med": slow_pack(images[:2]),
    }
    write_npz(tmp_path / "tiny.packed.npz", **packed)
    found = load("tiny", [tmp_path])
    assert found.info["kind"] == "packed"
    assert torch.equal(found.train.x, torch.from_numpy(images).permute(0, 3, 1, 2))
    write_npz(tmp_path / "bad.packed.npz", **packed | {"x_train_med": bytes_of(4, 6, 7)})
    with pytest.raises(
        DataError, match=r"x_train_med is uint8 \[4, 6, 7\]; packed images are uint8 \[C, N, H, W\]"
    ):
        load("bad", [tmp_path])


def test_npz_with_sidecar_and_column(tmp_path):
    arrays = write_npz(
        tmp_path / "own.npz", speaker_train=np.array([7, 7, 9, 9]), speaker_test=np.array([1, 2])
    )
    (tmp_path / "own.json").write_text(
        json.dumps({"class_names": ["no", "yes"], "licence": "MIT", "source": "here"})
    )
    found = load("own", [tmp_path])
    assert found.classes == ("no", "yes")
    assert found.columns["speaker"].tolist() == [7, 7, 9, 9]
    assert list(found.columns) == ["speaker"]
    assert found.info["licence"] == "MIT"
    assert found.train.x.dtype == torch.uint8
    assert found.train.shape == (1, 5, 5)
    assert torch.allclose(found.train.inputs()[:, 0], torch.from_numpy(arrays["x_train"]) / 255)


def test_colour_images_in_both_layouts(tmp_path):
    last = write_npz(
        tmp_path / "last.npz", x_train=bytes_of(4, 5, 6, 3), x_test=bytes_of(2, 5, 6, 3)
    )
    first = {key: last[key].transpose(0, 3, 1, 2) for key in ("x_train", "x_test")}
    write_npz(tmp_path / "first.npz", **first)
    one, two = load("last", [tmp_path]), load("first", [tmp_path])
    assert one.train.shape == (3, 5, 6)
    assert torch.equal(one.train.x, two.train.x)


def test_features_are_standardised_per_coefficient(tmp_path):
    """Levels 0 and 2 in equal number, scale -3: values differ by 6 about their mean,
    so they become +1 and -1.
    """
    x = np.zeros((4, 2, 2), np.uint8)
    x[:2, :, 0], x[:, :, 1] = 2, 5
    scales = {
        "feature_scale": np.array([-3.0, 1.0], np.float32),
        "feature_offset": np.array([10.0, 4.0], np.float32),
    }
    write_npz(tmp_path / "mfcc.npz", x_train=x, x_test=x[:2], **scales)
    found = load("mfcc", [tmp_path])
    assert found.train.x.dtype == torch.float32
    assert found.train.shape == (1, 2, 2)
    assert torch.allclose(found.train.inputs()[:, 0, 0, 0], torch.tensor([-1.0, -1.0, 1.0, 1.0]))
    # a constant coefficient says nothing
    assert torch.equal(found.train.inputs()[..., 1], torch.zeros(4, 1, 2))
    write_npz(tmp_path / "half.npz", x_train=x, x_test=x[:2], feature_scale=scales["feature_scale"])
    with pytest.raises(
        DataError, match="feature_offset is missing; give one finite float for each of the 2"
    ):
        load("half", [tmp_path])


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"y_test": None}, "has no y_test .*store the arrays x_train, y_train, x_test, y_test"),
        ({"x_train": np.array([[1], "a", None, {}], object)}, "x_train holds Python objects"),
        ({"y_train": np.array([0, 1, 2, 1], object)}, "y_train holds Python objects"),
        ({"x_train": np.zeros((4, 5, 5), np.int64)}, "x_train is int64; store images as uint8"),
        (
            {"x_train": bytes_of(4, 6, 6)},
            r"training samples are uint8 \[6, 6\], test samples uint8 \[5, 5\]",
        ),
        ({"x_train": bytes_of(3, 5, 5)}, "x_train has 3 samples and y_train 4 labels"),
        (
            {"y_train": np.array([0.0, 1, 0, 1])},
            (
                r"y_train is float64; labels are stored as whole numbers: store "
                r"y.astype\(numpy.int64\)"
            ),
        ),
        (
            {"y_train": np.array([0, 1, 0, -1])},
            "y_train has label -1 at position 3; labels are whole numbers from 0: renumber",
        ),
        (
            {"y_train": np.array([0, 2, 0, 2])},
            (
                r"y_train has label 2 at position 1 \(2 of 4 samples\), but none is 1; the labels "
                r"below it are 1 classes"
            ),
        ),
        (
            {"y_test": np.array([0, 3])},
            (
                r"y_test has label 3 at position 1, but no training sample has it \(they have "
                r"labels from 0 to 1\)"
            ),
        ),
        ({"y_train": np.array([[0], [1], [0], [1]])}, r"y_train has shape \[4, 1\]"),
        (
            {"x_train": bytes_of(0, 5, 5), "y_train": np.zeros(0, int)},
            r"shape \[0, 5, 5\]; give at least one sample",
        ),
        ({"speaker_train": np.arange(3)}, "column 'speaker' has 3 values for 4 train samples"),
    ],
)
def test_npz_that_no_method_could_use(tmp_path, changed, message):
    write_npz(tmp_path / "own.npz", **changed)
    with pytest.raises(DataError, match=message):
        load("own", [tmp_path])


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_missing_numbers_name_the_sample(tmp_path, bad):
    x = np.ones((4, 5, 5), np.float32)
    x[2, 1, 1] = bad
    write_npz(tmp_path / "own.npz", x_train=x, x_test=x[:2])
    with pytest.raises(
        DataError, match=rf"x_train has a NaN or infinite value \(first in sample 2: {bad}\)"
    ):
        load("own", [tmp_path])


def test_label_above_the_named_classes(tmp_path):
    write_npz(tmp_path / "own.npz", y_train=np.array([0, 1, 2, 1]))
    (tmp_path / "own.json").write_text('{"class_names": ["no", "yes"]}')
    with pytest.raises(
        DataError,
        match=(
            r"y_train has label 2 at position 2, but .*own.json lists 2 class names, "
            r"for labels 0 to 1 \(y_train has"
        ),
    ):
        load("own", [tmp_path])


def test_damaged_npz(tmp_path):
    write_npz(tmp_path / "whole.npz")
    raw = (tmp_path / "whole.npz").read_bytes()
    inside = bytearray(raw)
    inside[200] ^= 255  # a pixel of the first array: the archive's checksum notices
    damaged = {
        "cut": raw[: len(raw) // 2],
        "text": b"hello there",
        "empty": b"",
        "flipped": bytes(inside),
    }
    for name, content in damaged.items():
        (tmp_path / f"{name}.npz").write_bytes(content)
        with pytest.raises(DataError, match=f"{name}.npz"):
            load(name, [tmp_path])
    (tmp_path / "whole.json").write_text('{"sha256": "00"}')
    with pytest.raises(DataError, match=r"damaged or was changed.*sidecar says 00"):
        load("whole", [tmp_path])
    (tmp_path / "whole.json").write_text("{")
    with pytest.raises(DataError, match="not readable as JSON"):
        load("whole", [tmp_path])


def test_a_zip_of_other_things_is_no_dataset(tmp_path):
    with zipfile.ZipFile(tmp_path / "odd.npz", "w") as archive:
        archive.writestr("readme.txt", "nothing here")
    with pytest.raises(DataError, match="has no x_train"):
        load("odd", [tmp_path])


@pytest.mark.parametrize("end", ["", ".gz"])
def test_idx_upright(tmp_path, end):
    x, y = write_mnist(tmp_path / "mnist", end=end)
    found = load("mnist", [tmp_path])
    assert torch.equal(found.train.x[:, 0], torch.from_numpy(x))
    assert found.train.labels.tolist() == y.tolist()
    assert len(found.test) == 3


def test_idx_emnist_is_transposed_and_starts_at_zero(tmp_path):
    folder, prefix = tmp_path / "gzip", "emnist-letters-"
    x = bytes_of(26, 4, 5)
    for part in ("train", "test"):
        write_idx(folder / f"{prefix}{part}-images-idx3-ubyte.gz", x)
        write_idx(folder / f"{prefix}{part}-labels-idx1-ubyte.gz", np.arange(1, 27, dtype=np.uint8))
    write_mnist(folder, "emnist-digits-", test="test")
    assert {"emnist-letters", "emnist-digits"} <= {found.name for found in available([tmp_path])}
    found = load("emnist-letters", [tmp_path])
    assert found.train.shape == (1, 5, 4)
    assert found.train.x[3, 0, 4, 2] == x[3, 2, 4]
    assert found.train.labels.tolist() == list(range(26))
    assert found.classes[0] + found.classes[25] == "AZ"
    with pytest.raises(DataError, match=r"several datasets .*emnist-digits, emnist-letters"):
        load(str(folder))


def test_idx_as_downloaded_by_other_tools(tmp_path):
    x, _ = write_mnist(tmp_path / "FashionMNIST" / "raw", end="")
    # Fashion-MNIST has ten named classes: give each a sample
    write_more = np.arange(10, dtype=np.uint8)
    write_idx(tmp_path / "FashionMNIST" / "raw" / "train-labels-idx1-ubyte", write_more)
    write_idx(tmp_path / "FashionMNIST" / "raw" / "train-images-idx3-ubyte", bytes_of(10, 4, 5))
    found = load("fmnist", [tmp_path])
    assert found.name == "fashion-mnist"
    assert found.classes[9] == "Ankle boot"
    assert torch.equal(found.test.x[:, 0], torch.from_numpy(x[:3]))


def test_damaged_idx(tmp_path):
    write_mnist(tmp_path / "mnist")
    images = tmp_path / "mnist" / "train-images-idx3-ubyte.gz"
    whole = images.read_bytes()
    plain = gzip.decompress(whole)
    for content in (whole[:-20], b"not gzip at all", b""):
        images.write_bytes(content)
        with pytest.raises(DataError, match=r"truncated or not a gzip file|is not an IDX file"):
            load("mnist", [tmp_path])
    images.write_bytes(gzip.compress(plain[:-1]))
    with pytest.raises(DataError, match=r"has 135 bytes, its header \[6, 4, 5\] asks for 136"):
        load("mnist", [tmp_path])
    images.write_bytes(gzip.compress(bytes([0, 0, 9, 3]) + plain[4:]))
    with pytest.raises(DataError, match="starts with 00000903, not 00000803"):
        load("mnist", [tmp_path])
    images.write_bytes(whole)
    (tmp_path / "mnist" / "t10k-labels-idx1-ubyte.gz").unlink()
    with pytest.raises(DataError, match="has no t10k-labels-idx1-ubyte"):
        load("mnist", [tmp_path])


def write_cifar10(folder):
    folder.mkdir()
    x, y = bytes_of(60, 3, 32, 32), np.arange(60, dtype=np.uint8) % 10
    records = np.concatenate([y[:, None], x.reshape(60, -1)], axis=1)
    for i in range(5):
        (folder / f"data_batch_{i + 1}.bin").write_bytes(records[10 * i : 10 * i + 10].tobytes())
    (folder / "test_batch.bin").write_bytes(records[50:].tobytes())
    return x, y


def test_cifar10(tmp_path):
    x, y = write_cifar10(tmp_path / "cifar-10-batches-bin")
    found = load("cifar10", [tmp_path])
    assert torch.equal(found.train.x, torch.from_numpy(x[:50]))
    assert found.train.labels.tolist() == y[:50].tolist()
    assert torch.equal(found.test.x, torch.from_numpy(x[50:]))
    assert found.classes[0] == "airplane"
    assert (found.train.view.augment, found.test.view.augment) == ("pad-crop-flip", "none")
    batch = tmp_path / "cifar-10-batches-bin" / "data_batch_3.bin"
    batch.write_bytes(batch.read_bytes()[:-1])
    with pytest.raises(
        DataError, match=r"data_batch_3.bin has 30729 bytes, not a multiple of 3073"
    ):
        load("cifar10", [tmp_path])
    batch.unlink()
    with pytest.raises(DataError, match=r"has no data_batch_3.bin; unpack"):
        load("cifar10", [tmp_path])


def test_cifar100_uses_the_fine_label(tmp_path):
    folder = tmp_path / "cifar-100-binary"
    folder.mkdir()
    x, fine = bytes_of(100, 3, 32, 32), np.arange(100, dtype=np.uint8)
    coarse = fine // 5
    records = np.concatenate([coarse[:, None], fine[:, None], x.reshape(100, -1)], axis=1).tobytes()
    (folder / "train.bin").write_bytes(records)
    (folder / "test.bin").write_bytes(records)
    (folder / "fine_label_names.txt").write_text("\n".join(f"thing{c}" for c in range(100)))
    found = load("cifar-100", [tmp_path])
    assert found.train.labels.tolist() == fine.tolist()
    assert found.classes[42] == "thing42"
    assert found.train.view.augment == "pad-crop-flip-rotate"
    red = (x[7, 0, 3, 4] / 255 - 0.50708) / 0.26733
    assert found.test.inputs()[7, 0, 3, 4].item() == pytest.approx(red, abs=1e-5)


def test_pickled_cifar_is_refused_unless_the_binary_one_is_there(tmp_path):
    (tmp_path / "a" / "cifar-10-batches-py").mkdir(parents=True)
    (tmp_path / "a" / "cifar-10-batches-py" / "data_batch_1").write_bytes(b"\x80\x04N.")
    with pytest.raises(
        DataError, match=r"its batches are pickles.*refused; get the binary version"
    ):
        load("cifar10", [tmp_path])
    assert "cifar10" not in {found.name for found in available([tmp_path])}
    write_cifar10(tmp_path / "cifar-10-batches-bin")
    assert len(load("cifar10", [tmp_path]).train) == 50


def test_svhn(tmp_path):
    folder = tmp_path / "SVHN"
    folder.mkdir()
    x, y = bytes_of(20, 32, 32, 3), np.arange(20) % 10 + 1
    for part in ("train", "test"):
        savemat(
            folder / f"{part}_32x32.mat",
            {"X": x.transpose(1, 2, 3, 0), "y": y[:, None].astype(np.uint8)},
        )
    found = load("svhn", [tmp_path])
    assert torch.equal(found.train.x, torch.from_numpy(x).permute(0, 3, 1, 2))
    assert found.train.labels[8:11].tolist() == [9, 0, 1]  # the file says 9, 10, 1
    assert len(load(str(folder / "train_32x32.mat")).test) == 20
    (folder / "test_32x32.mat").write_bytes((folder / "test_32x32.mat").read_bytes()[:500])
    with pytest.raises(DataError, match=r"test_32x32.mat cannot be read"):
        load("svhn", [tmp_path])
    (folder / "test_32x32.mat").unlink()
    with pytest.raises(DataError, match=r"has no test_32x32.mat"):
        load("svhn", [tmp_path])
