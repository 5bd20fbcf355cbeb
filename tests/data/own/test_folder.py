"""What lies in a folder: which files are samples, of which class, and what is said of the rest."""

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from ostraka.data.own import Form, read
from ostraka.errors import DataError
from tests.data.own.making import image, pets


def test_what_systems_leave_behind_is_passed_over(folder: Path) -> None:
    pets(folder)
    for junk in (".DS_Store", "cat/._0.png", "__MACOSX/cat/0.png", "cat/Thumbs.db"):
        (folder / junk).parent.mkdir(parents=True, exist_ok=True)
        (folder / junk).write_bytes(b"junk")
    found = read(folder)
    assert (len(found), found.notes) == (4, ())


def test_other_files_are_counted(folder: Path) -> None:
    (pets(folder) / "cat" / "notes.txt").write_text("x")
    (folder / "README").write_text("x")
    found = read(folder)
    assert len(found) == 4
    assert "2 files are no images (README, cat/notes.txt); left out" in found.notes[0]


def test_an_empty_class_is_noted(folder: Path) -> None:
    (pets(folder) / "cow").mkdir()
    found = read(folder)
    assert found.classes == ("cat", "dog")
    assert "1 sub-folder holds no images (cow)" in found.notes[0]


def test_images_beside_the_classes_are_noted(folder: Path) -> None:
    image(pets(folder) / "loose.png", seed=5)
    found = read(folder)
    assert len(found) == 4
    assert "1 image lies beside the folders of the classes (loose.png)" in found.notes[0]
    assert len(read(folder, labelled=False)) == 5


def test_folders_inside_a_class_belong_to_it(folder: Path) -> None:
    image(pets(folder) / "cat" / "2024" / "may" / "x.png", seed=5)
    found = read(folder)
    assert found.counts() == {"cat": 3, "dog": 2}
    assert "cat/2024/may/x.png" in found.items


def test_names_in_any_script_and_spelling(folder: Path) -> None:
    for seed, name in enumerate(("猫", "собака", "caf\u00e9", "cafe\u0301", "قطة")):
        image(folder / name / "x.png", seed=seed)
    found = read(folder)
    assert set(found.classes) == {"猫", "собака", "caf\u00e9", "قطة"}
    assert found.counts()["caf\u00e9"] == 2
    assert "1 names of classes are other spellings of one name" in found.notes[0]
    assert found.for_classes(["cafe\u0301", "قطة", "猫", "собака"]).labels.tolist().count(0) == 2


def test_a_link_inside_is_read_once(folder: Path) -> None:
    pets(folder)
    (folder / "dog" / "twin.png").symlink_to(folder / "dog" / "0.png")
    (folder / "dog" / "again").symlink_to(folder / "dog")
    (folder / "dog" / "gone.png").symlink_to(folder / "dog" / "nowhere.png")
    found = read(folder)
    assert found.counts() == {"cat": 2, "dog": 3}
    assert "1 entry is no file (dog/gone.png)" in found.notes[0]
    assert "1 link leads to a folder inside (dog/again); not followed" in found.notes[1]


def test_the_folder_itself_may_be_a_link(folder: Path) -> None:
    pets(folder)
    (folder.parent / "short").symlink_to(folder)
    assert len(read(folder.parent / "short")) == 4


def test_a_pipe_is_not_opened(folder: Path) -> None:
    os.mkfifo(pets(folder) / "cat" / "pipe.png")
    assert "1 entry is no file (cat/pipe.png); left out" in read(folder).notes[0]


def test_parts_are_no_classes(folder: Path) -> None:
    pets(folder / "Train")
    image(folder / "Test" / "cat" / "x.png", seed=9)
    image(folder / "val" / "cat" / "x.png", seed=8)
    found = read(folder)
    assert (len(found), found.classes) == (4, ("cat", "dog"))
    assert found.notes == ("own has the parts Test, val too, which were not read",)
    assert read(folder, part="train").notes == ()
    assert read(folder, part="test").items == ("cat/x.png",)


def test_classes_may_be_called_like_parts(folder: Path) -> None:
    for name in ("train", "bus"):
        image(folder / name / "x.png")
    assert read(folder).classes == ("bus", "train")


def test_the_same_image_in_two_classes(folder: Path) -> None:
    (pets(folder) / "dog" / "0.png").write_bytes((folder / "cat" / "0.png").read_bytes())
    assert "cat/0.png (cat) = dog/0.png (dog)" in read(folder).notes[0]


def test_the_kind_decides_where_there_are_two(folder: Path) -> None:
    (pets(folder) / "cat" / "purr.wav").write_bytes(b"")
    found = read(folder, Form("image"))
    assert len(found) == 4
    assert "purr.wav" in found.notes[0]


def test_names_that_disturb_a_terminal_are_cleaned(folder: Path) -> None:
    image(folder / "a\x1b[31m.png")
    assert read(folder).items == ("a?[31m.png",)


def test_a_folder_that_may_not_be_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The system's refusal is played, as root may read everything."""
    usual = os.scandir

    def refusing(path: Path) -> Any:
        if Path(path).name == "cat":
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return usual(path)

    pets(folder)
    monkeypatch.setattr(os, "scandir", refusing)
    with pytest.raises(DataError, match="cat cannot be looked into: Permission denied; allow it"):
        read(folder)
