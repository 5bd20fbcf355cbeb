"""The variants that a study of outliers trains."""

import pytest

from benchmarks.outlier_study import check_names, variants
from ostraka.errors import ConfigError
from ostraka.objectives.destruction import shares_of


def outliers_of(mix: str, *alone: str) -> dict[str, str]:
    found = list(variants(mix, alone, ["tables"], ["local.epochs=1"]))
    assert all(
        option == "--variant" and rest == ["local.epochs=1"] for option, _, _, *rest in found
    )
    return {name: text.removeprefix("objective.outliers=") for _, name, text, *_ in found}


def test_a_mix_each_operation_alone_and_each_left_out() -> None:
    found = outliers_of("wide-audio", "reverse")
    shares = shares_of("wide-audio")
    assert list(found) == [
        "wide-audio",
        "tables",
        *(f"only {name}" for name in shares),
        "only reverse",
        *(f"without {name}" for name in shares),
    ]
    assert found["only reverse"] == "reverse"
    assert shares_of(found["without elastic"]) == {
        "patchswap": 0.25,
        "permute": 0.25,
        "bandswap": 0.25,
    }


def test_nothing_is_left_out_of_a_single_operation() -> None:
    assert list(outliers_of("noise")) == ["noise", "tables", "only noise"]


def test_names_that_mean_several_mixes_are_refused() -> None:
    check_names(["wide", "noise:1+negate:2"])
    with pytest.raises(ConfigError, match=r"'auto' .* wide-tables for table, wide-audio for sound"):
        check_names(["auto"])
    with pytest.raises(ConfigError, match="Did you mean 'noise'"):
        check_names(["nois"])
