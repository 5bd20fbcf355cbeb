"""Forms: what they take, what they refuse, and their plain values."""

import pytest

from ostraka.data.own import Column, Form
from ostraka.errors import ConfigError, DataError


def test_plain_values_make_an_equal_form() -> None:
    form = Form(
        "table", label="drug", columns=(Column("age", fill=40.5), Column("sex", ("f", "m")))
    )
    assert form.values() == {
        "kind": "table",
        "label": "drug",
        "columns": [{"name": "age", "fill": 40.5}, {"name": "sex", "levels": ["f", "m"]}],
    }
    assert Form.of(form.values()) == form
    assert form.width == 3


def test_a_column_may_be_its_name_alone() -> None:
    assert Form.of({"columns": ["age"]}).columns == (Column("age"),)


def test_what_says_nothing_is_not_written() -> None:
    assert Form().values() == {}
    assert Form("image", (1, 8, 8)).values() == {"kind": "image", "shape": [1, 8, 8]}


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"kind": "imag"}, "Did you mean 'image'"),
        ({"shap": [1, 2, 2]}, "Did you mean 'shape'"),
        ({"shape": [0, 2]}, "at least 1"),
        ({"shape": []}, "at least 1"),
        ({"shape": [3, 100000, 100000]}, "at most"),
        ({"kind": "image", "shape": [28, 28]}, "channels x height x width"),
        ({"kind": "image", "shape": [28, 28, 1]}, "given first"),
        ({"kind": "sound", "shape": [2, 50, 16]}, "1 x frames x coefficients"),
        ({"kind": "image", "label": "y"}, "only tables"),
        ({"columns": "age"}, "list of columns"),
        ({"columns": [3]}, "a column is its name"),
        ({"columns": ["age", "age"]}, "both called 'age'"),
        ({"columns": [{"name": "age", "level": []}]}, "Did you mean 'levels'"),
        ({"columns": [{"name": "a", "levels": ["x", "x"]}]}, "both called 'x'"),
        ({"columns": [{"name": "a", "levels": ["x"], "fill": 1}]}, "columns of numbers only"),
        ({"columns": [{"name": "a", "fill": float("inf")}]}, "finite|from"),
        ({"columns": ["age"], "label": "age"}, "the label, too"),
        ({"columns": ["age"], "shape": [2]}, "make 1 features"),
        ({"rate": 10}, "1000 to 384000"),
        ({"white": 0}, "1 to 65535"),
    ],
)
def test_a_form_that_cannot_be_is_refused(values: dict[str, object], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        Form.of(values)


def test_what_is_found_completes_a_form_or_is_refused() -> None:
    assert Form().found("image", (1, 2, 3), "x") == Form("image", (1, 2, 3))
    with pytest.raises(DataError, match="kind image; table is asked for"):
        Form("table").found("image", (1, 2, 3), "x")
    with pytest.raises(DataError, match="1x2x3; 1x3x3 is asked for"):
        Form("image", (1, 3, 3)).found("image", (1, 2, 3), "x")
