"""Tables: what columns become, by hand."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from ostraka.data.own import Column, Form, read

WARD = """age,sex,smoker,class
40,f,yes,ill
50,m,no,well
,f,,ill
60,m,maybe,ill
"""


def table(folder: Path, text: str, name: str = "ward.csv") -> Path:
    (folder / name).write_text(text, encoding="utf-8")
    return folder / name


def test_numbers_categories_and_missing_values(folder: Path) -> None:
    """The median of 40, 50 and 60 stands for the age that is missing; no level is 1 for the
    smoker that is."""
    found = read(table(folder, WARD))
    assert found.classes == ("ill", "well")
    assert found.samples.labels.tolist() == [0, 1, 0, 0]
    assert found.form == Form(
        "table",
        (6,),
        "class",
        (
            Column("age", fill=50.0),
            Column("sex", ("f", "m")),
            Column("smoker", ("maybe", "no", "yes")),
        ),
    )
    assert found.samples.x.dtype == torch.float32
    assert found.samples.x.tolist() == [
        [40, 1, 0, 0, 0, 1],
        [50, 0, 1, 0, 1, 0],
        [50, 1, 0, 0, 0, 0],
        [60, 0, 1, 1, 0, 0],
    ]
    assert found.items[2] == "row 3"
    assert found.notes == (
        "the column 'class' of ward.csv is taken for the classes",
        "column 'age' is missing in 1 rows; 50 stands for it",
        "column 'smoker' is missing in 1 rows; encoded as none of its levels",
    )


def test_a_form_is_the_same_for_another_party(folder: Path) -> None:
    form = read(table(folder, WARD)).form
    other = read(table(folder, "smoker,extra,age,sex,class\nyes,1,,x,ill\nno,2,7,f,well\n"), form)
    assert other.form == form
    assert other.samples.x.tolist() == [[50, 0, 0, 0, 0, 1], [7, 1, 0, 0, 1, 0]]
    assert other.notes == (
        "1 column is not in the form (extra); left out",
        "column 'age' is missing in 1 rows; 50 stands for it",
        "column 'sex' has 1 values that the form does not list ('x' 1 times); encoded as none of "
        "its levels",
    )


def test_rows_without_classes_can_be_asked(folder: Path) -> None:
    form = read(table(folder, WARD)).form
    found = read(table(folder, "age,sex,smoker\n1,f,no\n", "new.csv"), form)
    assert not found.labelled
    assert found.notes == ("new.csv has no column 'class' with the classes; read without labels",)
    assert read(folder / "new.csv", form, labelled=False).notes == ()


def test_labels_may_be_left_and_are_no_feature_then(folder: Path) -> None:
    found = read(table(folder, WARD), labelled=False)
    assert (found.labelled, found.form.width) == (False, 6)


def test_numbers_as_classes(folder: Path) -> None:
    found = read(table(folder, "a,grade\n1,10\n2,9.0\n3,9\n"), Form(label="grade"))
    assert found.classes == ("9", "10")


def test_numbers_may_be_a_category(folder: Path) -> None:
    form = Form(columns=(Column("ward", ("1", "2")),))
    found = read(table(folder, "ward,class\n2,a\n1,b\n3,a\n"), form)
    assert found.samples.x.tolist() == [[0, 1], [1, 0], [0, 0]]


def test_quotes_and_separators(folder: Path) -> None:
    text = '"a, b";"c ""d""";class\r\n"1";" x ";"y\nz"\r\n\r\n2;x;"y\nz"\r\n'
    found = read(table(folder, text), Form(label="class"))
    assert found.classes == ("y?z",)
    assert [column.name for column in found.form.columns] == ["a, b", 'c "d"']
    assert found.form.columns[1].levels == ("x",)
    assert found.notes == ("columns of ward.csv are separated by a semicolon",)


def test_tabs_and_a_mark_of_order(folder: Path) -> None:
    (folder / "t.tsv").write_bytes(b"\xef\xbb\xbfa\tlabel\n1\tx\n2\ty\n")
    found = read(folder / "t.tsv")
    assert found.form.columns == (Column("a", fill=1.5),)
    assert found.notes == ("the column 'label' of t.tsv is taken for the classes",)


def test_a_last_line_that_does_not_end(folder: Path) -> None:
    assert "look whether it was cut short" in read(table(folder, "a,label\n1,x")).notes[0]


def test_a_column_that_counts_is_noted(folder: Path) -> None:
    text = "id,label\n" + "".join(f"{i},{'xy'[i % 2]}\n" for i in range(20))
    assert "column 'id' counts the rows (0, 1, ...)" in read(table(folder, text)).notes[1]


def test_levels_in_two_spellings(folder: Path) -> None:
    found = read(table(folder, "a,label\ncaf\u00e9,x\ncafe\u0301,y\n"))
    assert found.form.columns == (Column("a", ("caf\u00e9",)),)


def test_rows_of_two_classes_with_the_same_values_are_noted(folder: Path) -> None:
    found = read(table(folder, "a,label\n1,x\n1,y\n"))
    assert "row 1 (x) = row 2 (y)" in found.notes[-1]


def test_a_folder_of_two_tables(folder: Path) -> None:
    table(folder, "a,label\n1,x\n2,y\n", "train.csv")
    table(folder, "a,label\n3,x\n", "test.csv")
    assert len(read(folder)) == 2
    assert read(folder, part="test").samples.x.tolist() == [[3]]


def test_parquet_is_read_as_text_is(folder: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet

    columns: dict[str, Any] = {
        "age": [40, 50, None, 60],
        "sex": pa.array(["f", "m", "f", "m"]).dictionary_encode(),
        "smoker": ["yes", "no", None, "maybe"],
        "class": ["ill", "well", "ill", "ill"],
    }
    pyarrow.parquet.write_table(pa.table(columns), folder / "ward.parquet")
    text, found = read(table(folder, WARD)), read(folder / "ward.parquet")
    assert found.form == text.form
    assert found.digest == text.digest
    assert found.notes[1:] == text.notes[1:]


def test_types_of_parquet(folder: Path) -> None:
    """A whole number is called as in text; truth values are a category."""
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet

    columns = {
        "a": pa.array([True, False]),
        "b": pa.array([1.5, 2.5], pa.float32()),
        "grade": pa.array([2.0, 10.0]),
    }
    pyarrow.parquet.write_table(pa.table(columns), folder / "t.parquet")
    found = read(folder / "t.parquet", Form(label="grade"))
    assert found.classes == ("2", "10")
    assert found.form.columns == (Column("a", ("False", "True")), Column("b", fill=2.0))
    assert found.samples.x.tolist() == [[0, 1, 1.5], [1, 0, 2.5]]


def test_many_rows_are_quick(folder: Path) -> None:
    values = np.random.default_rng(0).normal(size=(20_000, 5))
    lines = [",".join(f"{v:.4f}" for v in row) + f",{i % 3}" for i, row in enumerate(values)]
    found = read(table(folder, "a,b,c,d,e,label\n" + "\n".join(lines) + "\n"))
    assert np.abs(found.samples.x.numpy() - values).max() < 1e-4
