"""Domains: data sets joined by size, channels and levels, the named list,
and N samples of each class and domain.
"""

import json

import numpy as np
import pytest
import torch

from ostraka.data.dataset import first_per_class, known_split
from ostraka.data.domains import first_of_each, positions
from ostraka.data.sources import available, load
from ostraka.errors import DataError, PartitionError
from ostraka.runs.config import make
from ostraka.runs.division import divide
from ostraka.runs.plan import make_plan

DIGITS = ("mnist", "svhn", "usps", "synthdigits", "mnist-m")


def write(folder, name, train, test=None, shape=(8, 8), names=("a", "b", "c"), seed=0):
    """Random images with these labels; the name is that of the file."""
    rng = np.random.default_rng(seed)
    test = test or [0, 1, 2, 2]
    arrays = {}
    for part, labels in (("train", train), ("test", test)):
        arrays[f"x_{part}"] = rng.integers(0, 256, (len(labels), *shape), np.uint8)
        arrays[f"y_{part}"] = np.array(labels)
    np.savez(folder / f"{name}.npz", **arrays)
    (folder / f"{name}.json").write_text(json.dumps({"class_names": list(names)}))
    return arrays


@pytest.fixture
def two(tmp_path):
    """A grey set of 8x8 and a colour set of 28x28, with unequal counts of the classes."""
    grey = write(tmp_path, "grey", [0, 1, 2, 0, 1, 0], shape=(8, 8), seed=1)
    colour = write(tmp_path, "colour", [2, 1, 0, 0, 2], [0, 2, 1], shape=(28, 28, 3), seed=2)
    return tmp_path, grey, colour


def test_parts_keep_their_rows_labels_and_names(two):
    folder, grey, colour = two
    found = load("domains:grey+colour", [folder])
    assert found.train.x.shape == (11, 3, 28, 28)
    assert found.train.x.dtype == torch.uint8
    assert found.train.labels.tolist() == [*grey["y_train"], *colour["y_train"]]
    assert found.test.labels.tolist() == [*grey["y_test"], *colour["y_test"]]
    assert found.columns["domain"].tolist() == ["grey"] * 6 + ["colour"] * 5
    assert found.test_columns["domain"].tolist() == ["grey"] * 4 + ["colour"] * 3
    # 28x28 in colour is what was asked for: untouched
    assert np.array_equal(found.train.x[6:].numpy(), colour["x_train"].transpose(0, 3, 1, 2))
    assert found.info["notes"] == []


def test_grey_becomes_three_equal_channels_and_is_resized(two):
    """Against bilinear interpolation written out: output pixel i looks at
    (i + 0.5) * 8 / 28 - 0.5 of the input.
    """
    folder, grey, _ = two
    found = load("domains:grey+colour", [folder]).train.x[:6].numpy()
    assert np.array_equal(found[:, 0], found[:, 1])
    assert np.array_equal(found[:, 0], found[:, 2])
    at = np.clip((np.arange(28) + 0.5) * 8 / 28 - 0.5, 0, 7)
    low, part = np.floor(at).astype(int), at - np.floor(at)
    high = np.minimum(low + 1, 7)
    x = grey["x_train"].astype(float)
    rows = x[:, low] * (1 - part)[:, None] + x[:, high] * part[:, None]
    both = rows[:, :, low] * (1 - part) + rows[:, :, high] * part
    assert np.abs(found[:, 0] - both).max() <= 0.501


def test_shrinking_is_antialiased(tmp_path):
    """16 columns 0 255 255 0 0 255 255 0 ... at a quarter of the size.

    Plain bilinear interpolation looks at columns 1 and 2 only and makes all white. A triangle four
    times as wide gives the distances 0.5, 1.5, 2.5, 3.5 to either side the weights 7, 5, 3, 1 of
    32, white at the first and last: 1/2.
    """
    write(tmp_path, "one", [0, 1, 2])
    stripes = np.zeros((3, 16, 16), np.uint8)
    stripes[:, :, 1::4] = stripes[:, :, 2::4] = 255
    np.savez(
        tmp_path / "two.npz",
        x_train=stripes,
        y_train=np.arange(3),
        x_test=stripes,
        y_test=np.arange(3),
    )
    (tmp_path / "two.json").write_text(json.dumps({"class_names": ["a", "b", "c"]}))
    shrunk = load("domains:one+two,size=4", [tmp_path]).train.x
    assert shrunk.shape == (6, 1, 4, 4)
    assert (shrunk[3:, :, :, 1:3].float() - 127.5).abs().max() <= 1


def test_inputs_run_from_minus_one_to_one_whatever_the_levels(tmp_path):
    """Scikit-learn's digits have 17 levels: their white is 255 here, and +1 for the network."""
    write(tmp_path, "other", list(range(10)), list(range(10)), names=[str(c) for c in range(10)])
    found = load("domains:digits+other,size=8", [tmp_path])
    digits = load("digits", [])
    assert torch.equal(
        found.train.x[: len(digits.train)], (digits.train.x.float() * 255 / 16).round().byte()
    )
    inputs = found.train.inputs(slice(0, 100))
    assert (inputs.min(), inputs.max()) == (-1.0, 1.0)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("domains:grey", r"lists 1 data sets; write two or more, as domains:A\+B"),
        ("domains:grey+", "lists 1 data sets"),
        ("domains:grey+grey", "two domains are called grey"),
        ("domains:grey+colour,size=x", "'size=x' is not size=N"),
        ("domains:grey+colour,width=3", "'width=3' is not size=N"),
        ("domains:grey+absent", "no dataset 'absent' was found"),
        ("domains:grey+digits", "grey has 3 classes and digits 10"),
        (
            "domains:grey+named",
            "class 1 is 'b' in grey and 'bee' in named, class 2 is 'c' in grey and 'd' in named",
        ),
        (
            "domains:grey+rows",
            (
                r"the samples of rows are torch.float32 \[4\] of the kind table; "
                r"a domain must be images in bytes"
            ),
        ),
    ],
)
def test_what_does_not_fit_together_is_refused(two, spec, message):
    folder = two[0]
    write(folder, "named", [0, 1, 2], names=("a", "bee", "d"))
    rows = np.zeros((3, 4), np.float32)
    np.savez(
        folder / "rows.npz", x_train=rows, y_train=np.arange(3), x_test=rows, y_test=np.arange(3)
    )
    with pytest.raises(DataError, match=message):
        load(spec, [folder])


def test_domains_of_paths(two):
    folder = two[0]
    found = load(f"domains:{folder}/grey.npz+{folder}/colour.npz")
    assert set(found.columns["domain"]) == {"grey", "colour"}


def test_hdr_fl_uses_what_is_there_and_says_so(tmp_path):
    names = [str(c) for c in range(10)]
    with pytest.raises(DataError) as caught:
        load("hdr-fl", [tmp_path])
    for text in (
        "at least two",
        "train_32x32.mat",
        "usps.npz",
        f"Looked in: {tmp_path}",
        "--data-dir or OSTRAKA_DATA",
    ):
        assert text in str(caught.value)
    write(tmp_path, "usps", list(range(10)), names=names, shape=(16, 16))
    with pytest.raises(DataError, match=r"found: usps\. "):
        load("hdr-fl", [tmp_path])
    assert "hdr-fl" not in {found.name for found in available([tmp_path])}
    write(tmp_path, "synthdigits-like", list(range(10)), names=names, shape=(32, 32, 3))
    found = load("HDR_FL", [tmp_path])
    assert found.train.shape == (3, 28, 28)
    assert list(positions(found.train, found.columns["domain"])) == ["synthdigits-like", "usps"]
    assert found.info["notes"] == [
        (
            "hdr-fl here is 2 of its 5 domains (usps, synthdigits-like); "
            "not found: mnist, svhn, mnist-m"
        ),
        "synthdigits-like is a look-alike of SynthDigits, not the original data",
    ]
    [listed] = [place for place in available([tmp_path]) if place.name == "hdr-fl"]
    assert listed.parts == ("usps", "synthdigits-like")
    for name in DIGITS:
        write(tmp_path, name, list(range(10)), names=names)
    whole = load("hdr-fl", [tmp_path])
    assert whole.info["notes"] == []
    assert set(whole.columns["domain"]) == set(DIGITS)
    with pytest.raises(DataError, match="hdr-fl is itself made of domains"):
        load("domains:digits+hdr-fl", [tmp_path])


def test_so_many_of_each_class_and_domain(two):
    """Two of each: grey has a at 0, 3 (5 is the third), b at 1, 4, c at 2 only; colour, from row 6,
    has c at 6, 10, b at 7 only, a at 8, 9. Per class alone it would be 0, 1, 2, 3, 4, 6.
    """
    data = load("domains:grey+colour", [two[0]])
    rows, notes = first_of_each(data, 2)
    assert rows.tolist() == [0, 1, 2, 3, 4, 6, 7, 8, 9, 10]
    assert first_per_class(data.train, 2, 3).tolist() == [0, 1, 2, 3, 4, 6]
    assert notes == [
        "colour has fewer than 2 training samples of some classes (b: 1)",
        "grey has fewer than 2 training samples of some classes (c: 1)",
    ]
    assert first_of_each(data, 1)[0].tolist() == [0, 1, 2, 6, 7, 8]
    assert first_of_each(data, 1)[1] == []
    known = known_split(data, [2, 0])
    assert first_of_each(known, 1)[0].tolist() == [0, 2, 6, 8]
    for n in (0, 4):
        with pytest.raises(
            DataError,
            match=f"{n} training samples per class and domain were asked for; give 1 to 3",
        ):
            first_of_each(data, n)


def config(folder, **more):
    return make(
        {"data": "domains:grey+colour", "data_dir": str(folder), "partition": "domain", **more}
    )


def test_a_party_for_each_domain(two):
    division = divide(config(two[0], train_per_class=1, known=2))
    assert division.partition.names == ("colour", "grey")
    assert [rows.tolist() for rows in division.partition.parties] == [[7, 8], [0, 1]]
    assert division.counts.tolist() == [[1, 1], [1, 1]]
    assert divide(config(two[0], train_per_class=2)).notes[0].startswith("colour has fewer")
    assert len(divide(config(two[0], partition="iid", parties=3)).partition) == 3
    with pytest.raises(PartitionError, match="has no column 'domain'"):
        divide(make({"data": "digits", "partition": "domain"}))


def test_a_plan_knows_the_domains_of_its_test_and_of_its_parties(two):
    """The test is grey a b c c, then colour a c b; half of each domain is public,
    so 2 grey and 2 colour ones stay.
    """
    plan = make_plan(config(two[0], known=2, net={"name": "mlp"}))
    assert {name: index.tolist() for name, index in plan.test.domains.items()} == {
        "colour": [4, 5, 6],
        "grey": [0, 1, 2, 3],
    }
    assert plan.mix[plan.partition.names.index("grey")].tolist() == [[0, 0], [3, 2]]
    assert plan.mix[plan.partition.names.index("colour")].tolist() == [[2, 1], [0, 0]]
    halved = make_plan(config(two[0], known=2, public="half-test", net={"name": "mlp"}))
    assert {name: index.tolist() for name, index in halved.test.domains.items()} == {
        "colour": [0, 1],
        "grey": [2, 3],
    }
    assert halved.test.samples.rows is not None
    assert halved.test.samples.rows.tolist() == [5, 6, 2, 3]
    assert halved.task.commons.public is not None
    assert halved.task.commons.public.rows.tolist() == [4, 0, 1]


def test_columns_of_a_file_make_domains_too(tmp_path):
    x = np.zeros((4, 5, 5), np.uint8)
    y = np.array([0, 1, 0, 1])
    where = {
        "domain_train": np.array(["n", "s", "n", "s"]),
        "domain_test": np.array(["s", "s", "n", "n"]),
    }
    np.savez(tmp_path / "own.npz", x_train=x, y_train=y, x_test=x, y_test=y, **where)
    plan = make_plan(make({"data": str(tmp_path / "own.npz"), "partition": "domain"}))
    assert {name: index.tolist() for name, index in plan.test.domains.items()} == {
        "n": [2, 3],
        "s": [0, 1],
    }
    where = {"domain_train": np.array([7, 7, 9, 9]), "domain_test": np.array([9, 7, 9, 9])}
    np.savez(tmp_path / "numbered.npz", x_train=x, y_train=y, x_test=x, y_test=y, **where)
    plan = make_plan(make({"data": str(tmp_path / "numbered.npz"), "partition": "domain"}))
    assert plan.mix[plan.partition.names.index("9")].tolist() == [[0, 0], [1, 1]]
    np.savez(
        tmp_path / "short.npz",
        x_train=x,
        y_train=y,
        x_test=x,
        y_test=y,
        domain_test=np.array(["n"]),
    )
    with pytest.raises(DataError, match="column 'domain' has 1 values for 4 test samples"):
        load(str(tmp_path / "short.npz"))
