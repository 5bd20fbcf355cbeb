"""Curves of accuracy over rounds."""

from pathlib import Path

import pytest

from ostraka.display.curves import Curve, accuracy_curve, accuracy_curves, mean_and_std
from ostraka.errors import ConfigError, DataError


def test_mean_and_sample_deviation_by_hand() -> None:
    """Round 1: 10 and 14, mean 12, deviation sqrt(8); round 2: 20 twice."""
    mean, std = mean_and_std(Curve("a", [1, 2], [[10, 20], [14, 20]]))
    assert mean.tolist() == [12, 20]
    assert std is not None
    assert std.tolist() == pytest.approx([8**0.5, 0])


def test_one_seed_has_no_band(tmp_path: Path) -> None:
    assert mean_and_std(Curve("a", [1, 2], [[10, 20]]))[1] is None
    one, two = tmp_path / "one.svg", tmp_path / "two.svg"
    accuracy_curve([Curve("a", [1, 2], [[10, 20]])], one)
    accuracy_curve([Curve("a", [1, 2], [[10, 20], [14, 22]])], two)
    assert "PolyCollection" not in one.read_text()
    assert "PolyCollection" in two.read_text()


def test_drawing_names_its_curves(tmp_path: Path) -> None:
    path = tmp_path / "curve.svg"
    accuracy_curve(
        [Curve("fedavg", [1, 5], [[10, 20]]), Curve("fedprox", [1, 5], [[12, 25]])],
        path,
        "Ten parties",
    )
    text = path.read_text()
    for expected in ("fedavg", "fedprox", "Ten parties", "accuracy (%)", "round"):
        assert expected in text
    accuracy_curve([Curve("fedavg", [1], [[10]])], tmp_path / "curve.png")
    assert (tmp_path / "curve.png").read_bytes().startswith(b"\x89PNG")


def test_what_cannot_be_drawn_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"curve 'a' has 2 points but seeds with \[1, 2\] values"):
        mean_and_std(Curve("a", [1, 2], [[10, 20], [10]]))
    with pytest.raises(DataError, match="seeds with no values"):
        mean_and_std(Curve("a", [1], []))
    with pytest.raises(DataError, match="nothing to draw"):
        accuracy_curve([], tmp_path / "x.svg")
    with pytest.raises(ConfigError, match=r"'x\.jpg'"):
        accuracy_curve([Curve("a", [1], [[1]])], tmp_path / "x.jpg")


def drawn(tmp_path: Path, **options: bool) -> str:
    """Ten rounds, one exchange, and a reference, of two seeds each, in a panel.

    The last two in another.
    """
    many = Curve("many", [10**6 * i for i in range(1, 11)], [range(10, 20), range(12, 22)])
    once, pooled = (
        Curve("once", [3e4], [[30.0], [32.0]]),
        Curve("pooled", [0], [[80.0], [82.0]], reference=True),
    )
    accuracy_curves(
        {"left": [many, once, pooled], "right": [once, pooled]}, tmp_path / "p.svg", **options
    )
    return (tmp_path / "p.svg").read_text()


def test_panels_markers_and_references(tmp_path: Path) -> None:
    """One band for what has several points.

    One exchange has a bar (LineCollection) in each panel and legend.
    """
    text = drawn(tmp_path)
    assert all(word in text for word in ("left", "right", "many", "once", "pooled"))
    assert text.count('id="axes_') == 2
    assert (text.count("PolyCollection"), text.count('id="LineCollection_')) == (1, 4)


def test_bytes_are_read_as_such(tmp_path: Path) -> None:
    """From 30 kB to 10 MB: powers of ten. From 30 to 31 kB: plain steps."""
    text = drawn(tmp_path, in_bytes=True)
    assert all(f">{tick}<" in text for tick in ("100 kB", "1 MB", "10 MB"))
    narrow = tmp_path / "narrow.svg"
    accuracy_curves({"": [Curve("a", [3e4, 3.1e4], [[1, 2]])]}, narrow, in_bytes=True)
    assert ">30.2 kB<" in narrow.read_text()


def test_seconds_may_be_fractions(tmp_path: Path) -> None:
    """From 0.6 to 1.8 of them: not the one tick at 1."""
    panel = [Curve("a", [0.6], [[90.0]]), Curve("b", [1.8], [[95.0]])]
    accuracy_curves({"": panel}, tmp_path / "x.svg", xlabel="seconds")
    text = (tmp_path / "x.svg").read_text()
    assert ">0.60<" in text
    assert ">1.80<" in text


def test_a_round_is_never_a_fraction(tmp_path: Path) -> None:
    """One point, or a reference alone: a single tick."""
    for curve in (Curve("fedov", [1], [[50]]), Curve("centralised", [1], [[50]], reference=True)):
        accuracy_curve([curve], tmp_path / "one.svg")
        text = (tmp_path / "one.svg").read_text()
        assert ">1<" in text
        assert ">1.0" not in text
        assert ">0.9" not in text


def test_many_or_long_names_stand_once_below_the_panels(tmp_path: Path) -> None:
    def named(count: int, long: str = "") -> str:
        curves = [Curve(f"method {i}{long}", [1, 2], [[i, i]]) for i in range(count)]
        accuracy_curves({"left": curves, "right": curves}, tmp_path / "x.svg")
        return (tmp_path / "x.svg").read_text()

    assert named(6).count(">method 5<") == 2
    assert named(7).count(">method 5<") == 1
    assert named(2, long=" with a rate of 0.001").count(">method 1 with a rate of 0.001<") == 2
    assert (
        named(2, long=" with a rate of 0.001 and more").count(
            ">method 1 with a rate of 0.001 and more<"
        )
        == 1
    )
