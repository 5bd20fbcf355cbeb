"""Own data in runs: found by path and by name, divided, and told of."""

import json
from pathlib import Path

import numpy as np
import pytest

from ostraka.data import load
from ostraka.data.own import in_both, read
from ostraka.data.sources.catalogue import summaries
from ostraka.data.sources.source import Summary
from ostraka.errors import DataError
from tests.data.own.making import as_bits, image, pets, tone, wav


def rows(path: Path, count: int = 40) -> Path:
    lines = [f"{i * 0.5},{'xyz'[i % 3]}\n" for i in range(count)]
    path.write_text("a,class\n" + "".join(lines))
    return path


def test_a_fifth_of_every_class_is_for_testing(folder: Path) -> None:
    for seed in range(10):
        image(folder / "cat" / f"{seed}.png", seed=seed)
        image(folder / "dog" / f"{seed}.png", seed=100 + seed)
    found = load(str(folder))
    assert (found.name, found.kind, found.classes) == ("own", "image", ("cat", "dog"))
    assert found.train.counts(2).tolist() == [8, 8]
    assert found.test.counts(2).tolist() == [2, 2]
    assert not len(in_both(found.test, found.train))
    assert found.train.rows is None
    assert "4 of 20 samples (20% of each class, drawn once)" in found.info["notes"][0]
    assert [row.tolist() for row in load(str(folder)).test.x] == [
        row.tolist() for row in found.test.x
    ]


def test_parts_divide_it(folder: Path) -> None:
    pets(folder / "train")
    image(folder / "test" / "dog" / "new.png", seed=77)
    found = load(str(folder))
    assert (len(found.train), len(found.test), found.test.labels.tolist()) == (4, 1, [1])
    assert found.info["notes"] == []


def test_overlap_of_training_and_test_is_noted(folder: Path) -> None:
    pets(folder / "train")
    image(folder / "test" / "dog" / "same.png", seed=1000)
    image(folder / "test" / "dog" / "new.png", seed=77)
    (note,) = load(str(folder)).info["notes"]
    assert "1 test sample has the same content as a training sample (dog/same.png)" in note


def test_overlap_is_found_after_a_division_too(folder: Path) -> None:
    for number in range(10):
        image(folder / "cat" / f"{number}.png", seed=1)
        image(folder / "dog" / f"{number}.png", seed=2)
    assert "4 test samples have" in load(str(folder)).info["notes"][1]


def test_a_class_of_the_test_that_is_not_trained(folder: Path) -> None:
    pets(folder / "train")
    image(folder / "test" / "cow" / "x.png", seed=77)
    with pytest.raises(DataError, match=r"1 class \(cow\) that the task does not have"):
        load(str(folder))


def test_too_few_to_divide(folder: Path) -> None:
    with pytest.raises(DataError, match=r"4 samples of 2 classes, too few to set 20% of each"):
        load(str(pets(folder)))


def test_a_form_stands_in_the_json_file_beside_it(folder: Path) -> None:
    place = pets(folder / "pets", each=5)
    (place / "cat" / "broken.png").write_text("x")
    image(place / "cat" / "wide.png", (4, 9))
    (folder / "pets.json").write_text(
        json.dumps({"shape": [3, 2, 2], "skip_broken": True, "licence": "mine"})
    )
    found = load(str(place))
    assert found.train.shape == (3, 2, 2)
    assert found.info["licence"] == "mine"
    assert any("broken.png" in note for note in found.info["notes"])
    (folder / "pets.json").write_text('{"shap": 1}')
    with pytest.raises(DataError, match=r"pets.json: unknown setting 'shap'. Did you mean 'shape'"):
        load(str(place))
    (folder / "pets.json").write_text('{"skip_broken": "no"}')
    with pytest.raises(DataError, match=r"true or false"):
        load(str(place))


def test_tables_by_path_and_name(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows(folder / "heart.csv")
    monkeypatch.chdir(folder)
    for found in (load("heart.csv"), load("./heart.csv"), load("heart", [folder])):
        assert (found.name, found.kind, len(found.train), len(found.test)) == (
            "heart", "table", 31, 9,
        )  # fmt: skip
    (folder / "drug.csv").write_text((folder / "heart.csv").read_text().replace("class", "drug"))
    with pytest.raises(DataError, match=r"Name the one with the classes: --label NAME.*drug\.json"):
        load("drug.csv")
    assert load("drug.csv", label="drug").classes == ("x", "y", "z")
    with pytest.raises(DataError, match=r"no column 'drag'.*Did you mean 'drug'"):
        load("drug.csv", label="drag")
    with pytest.raises(DataError, match=r"label is 'drug'.*digits is not a table; leave label"):
        load("digits", label="drug")
    (folder / "drug.json").write_text('{"label": "drug"}')
    assert load("drug.csv").classes == ("x", "y", "z")


def arrays(path: Path, **stored: object) -> Path:
    """20 images of two classes."""
    x = np.random.default_rng(0).integers(0, 256, (20, 4, 4), np.uint8)
    np.savez(path, **(stored or {"x": x, "y": np.arange(20) % 2}))
    return path


def test_arrays_without_a_test_part_are_divided(folder: Path) -> None:
    """As folders and tables are: a fifth of each class, drawn once."""
    path = arrays(folder / "mine.npz")
    found = load(str(path))
    assert (found.kind, found.train.shape, found.classes) == ("image", (1, 4, 4), ("0", "1"))
    assert found.train.counts(2).tolist() == [8, 8]
    assert found.test.counts(2).tolist() == [2, 2]
    assert found.info["notes"] == [
        "mine.npz has no test part: 4 of 20 samples (20% of each class, drawn once) are for "
        "testing; arrays x_train, y_train, x_test and y_test divide it otherwise"
    ]
    assert dict((p.name, s) for p, s in summaries([folder]))["mine"] == Summary((1, 4, 4), 2, 16, 4)
    (folder / "mine.json").write_text('{"class_names": ["cat", "dog"], "licence": "mine"}')
    assert load("mine", [folder]).classes == ("cat", "dog")
    (folder / "mine.json").write_text('{"sha256": "0"}')
    with pytest.raises(DataError, match="damaged or was changed"):
        load(str(path))


def test_arrays_with_half_a_test_part_are_refused(folder: Path) -> None:
    x, y = np.zeros((4, 3)), np.arange(4) % 2
    for stored in ({"x_train": x, "y_train": y, "x_test": x}, {"x": x}, {"x": x, "y_test": y}):
        with pytest.raises(DataError, match=r"store the arrays x_train, .*, or x and y alone"):
            load(str(arrays(folder / "half.npz", **stored)))
    trained = arrays(folder / "train.npz", x_train=np.ones((20, 3)), y_train=np.arange(20) % 2)
    assert (len(load(str(trained)).train), len(load(str(trained)).test)) == (16, 4)


def test_a_folder_with_one_class_is_refused_with_what_was_meant(folder: Path) -> None:
    image(folder / "one" / "cat" / "0.png")
    pets(folder / "north" / "images")
    with pytest.raises(DataError, match=r"one class only \(cat\).*ostraka train .*one --task"):
        load(str(folder / "one"))
    with pytest.raises(DataError, match=r"one class only \(images\).*give .*north/images$"):
        load(str(folder / "north"))
    (folder / "two" / "yes").mkdir(parents=True)
    (folder / "two" / "yes" / "0.wav").write_bytes(wav(as_bits(tone(300), 16)))
    image(folder / "two" / "cat" / "0.png")
    for place in (folder / "north" / "images" / "cat", folder / "two"):
        with pytest.raises(DataError, match="is a folder and not a dataset of a known kind"):
            load(str(place))


def test_a_folder_of_class_folders_is_not_taken_for_a_class_silently(folder: Path) -> None:
    (note,) = read(pets(folder / "images").parent).notes
    assert "are of the class 'images', whose folder holds 2 folders (cat, dog)" in note
    assert note.endswith(f"if these are the classes, give {folder / 'images'}")
    with pytest.raises(DataError, match=r"1 class \(images\).* Note: all samples of"):
        read(folder).for_classes(["cat", "dog"])
    image(folder / "cow" / "0.png", seed=99)
    assert read(folder).notes == (), "two classes, one with folders inside"


def test_patients_inside_one_class_are_one_note(folder: Path) -> None:
    image(folder / "cat" / "tom" / "0.png")
    assert read(folder).notes == ()


def test_a_test_table_is_read_by_the_form_of_the_training_table(folder: Path) -> None:
    rows(folder / "train.csv")
    (folder / "test.csv").write_text("extra,a,class\n1,,x\n")
    found = load(str(folder))
    assert found.test.x.tolist() == [[9.75]]  # the median of the training rows
    assert [note for note in found.info["notes"] if note.startswith("test: ")] == [
        "test: 1 column is not in the form (extra); left out",
        "test: column 'a' is missing in 1 rows; 9.75 stands for it",
    ]


def test_every_kind_is_listed_without_reading_it(folder: Path) -> None:
    pets(folder / "pets" / "train")
    image(folder / "pets" / "test" / "cat" / "x.png", seed=5)
    for name in ("high", "low"):
        for number in range(5):
            place = folder / "tones" / name / f"{number}.wav"
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(wav(as_bits(tone(300), 16)))
    rows(folder / "heart.csv")
    (folder / "bad.csv").write_text("a,b\n1\n")
    found = {place.name: about for place, about in summaries([folder])}
    assert found["pets"] == Summary((1, 4, 4), 2, 4, 1)
    assert found["tones"] == Summary((1, 50, 16), 2, 8, 2)
    assert found["heart"] == Summary((1,), 3, 31, 9)
    assert "line 2: 1 values" in str(found["bad"])
    assert "pets-train" in found


def test_other_sources_go_first(folder: Path) -> None:
    import numpy as np

    x, y = np.zeros((4, 2, 2), np.uint8), np.arange(4) % 2
    np.savez(folder / "heart.npz", x_train=x, y_train=y, x_test=x, y_test=y)
    rows(folder / "heart.csv")
    assert load("heart", [folder]).kind == "image"
    assert load(str(folder / "heart.csv")).kind == "table"
    found = {place.name: place.kind for place, _ in summaries([folder])}
    assert found["heart"] == "npz"
