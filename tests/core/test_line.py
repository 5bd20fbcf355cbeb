"""Settings in one line: what is read, what is written, what is refused."""

from dataclasses import MISSING, dataclass
from typing import Literal

import pytest

from ostraka.core import line
from ostraka.core.augmentation import augmentation
from ostraka.core.settings import Settings, setting
from ostraka.errors import ConfigError


@dataclass(frozen=True)
class Soup(Settings):
    """A first field without a default, and options of all types."""

    pots: int = setting(MISSING, "how many", span="[1, inf)")
    salt: float = setting(0.5, "how much", span="[0, 1]")
    hot: bool = setting(True, "whether")
    name: str = setting("leek", "of what")
    size: Literal["small", "large"] = setting("small", "of a pot")


@pytest.mark.parametrize(
    ("text", "soup"),
    [
        ("2", Soup(2)),
        (" 2 , salt = 1e-1 ", Soup(2, salt=0.1)),
        ("pots=2,hot=False", Soup(2, hot=False)),
        ("3,name=7,size=large", Soup(3, name="7", size="large")),
        ("3,name=a=b", Soup(3, name="a=b")),
    ],
)
def test_read_and_written_again(text: str, soup: Soup) -> None:
    assert line.read(Soup, text, "soup", "POTS") == soup
    written = line.write(soup, "soup", "POTS")
    assert line.read(Soup, written.removeprefix("soup:"), "soup", "POTS") == soup


def test_only_what_differs_is_written() -> None:
    assert line.write(Soup(2), "soup", "POTS") == "soup:2"
    assert line.write(Soup(2, 0.25, hot=False), "soup", "POTS") == "soup:2,salt=0.25,hot=false"
    usage = "soup:POTS[,salt=0.5,hot=true,name=leek,size=small]"
    assert line.usage(Soup, "soup", "POTS") == usage


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"soup lacks its POTS; write it as soup:POTS\[,salt=0.5"),
        ("salt=1", "'pots' has no default"),
        ("0", "'pots' is 0; it must be at least 1"),
        ("many", "'pots' takes a whole number; 'many' was given"),
        ("1,salt=", "'salt' has no value; write it as soup:POTS"),
        ("1,salt=2", "'salt' is 2.0; it must be"),
        ("1,hot=maybe", "'hot' takes true or false; 'maybe' was given"),
        ("1,size=tiny", "'size' is 'tiny'; allowed: small, large"),
        ("1,slat=0", "unknown setting 'slat'. Did you mean 'salt'.*Settings of soup: hot, name"),
    ],
)
def test_mistakes_are_named(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        line.read(Soup, text, "soup", "POTS")


def test_an_augmentation_takes_its_settings_the_same_way() -> None:
    assert augmentation("pad-crop-flip") is augmentation("pad-crop-flip")
    assert augmentation("pad-crop-flip:pad=2") != augmentation("pad-crop-flip")
    with pytest.raises(ConfigError, match=r"unknown augmentation 'pad-crop'. Did you mean"):
        augmentation("pad-crop")
    with pytest.raises(ConfigError, match="'pad' is -1; it must be at least 0"):
        augmentation("pad-crop-flip:pad=-1")
    with pytest.raises(ConfigError, match=r"unknown setting 'pads'. Did you mean 'pad'"):
        augmentation("pad-crop-flip:pads=1")
