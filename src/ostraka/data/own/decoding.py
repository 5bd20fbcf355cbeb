"""One image file as bytes of a shape: channels x height x width."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError

from ostraka.data.dataset import Array
from ostraka.data.own.folder import File
from ostraka.errors import DataError

FORMATS = ("PNG", "JPEG", "TIFF", "BMP")

MOST_PIXELS = 80_000_000
"""Of one image; a larger one is refused before it is unpacked."""

FEW_PIXELS, DENSEST = 1_000_000, 20_000
"""An image of more pixels than the first has at most so many for each byte of its file: a blank
page of a fax has 9,000."""

WIDE = ("I", "I;16", "I;16L", "I;16B", "I;16N")
GREY = ("1", "L", "LA", "La", *WIDE)
"""Modes of images with 16 bits, and of grey ones."""

PLAIN = ("1", "L", "P", "PA", "LA", "La", "RGB", "RGBA", "RGBa", "RGBX", "CMYK", "YCbCr", "HSV")
"""Modes of 8 bits that can be brought to grey or colours."""

MODES = {1: "L", 3: "RGB", 4: "RGBA"}
"""By the number of channels."""

ORIENTATION, TURNED = 0x0112, (5, 6, 7, 8)
"""A tag of EXIF, and those of its values that swap height and width."""

SPARE = 2
"""How many times finer than needed a JPEG is decoded at least, if it is that fine."""

STRETCHED = 0.02
"""How much the proportions of an image may differ without being told."""


@dataclass(frozen=True)
class Seen:
    """What is to be told of one image."""

    stretched: bool = False
    frames: int = 1
    brightest: int = 0
    """The highest value of one with 16 bits; 0: it has 8."""


@contextmanager
def strict_decoder() -> Iterator[None]:
    """Pillow's warning of a huge image is an error; others, on odd notes in a file, say nothing."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", Image.DecompressionBombWarning)
        yield


def natural_shape(file: File) -> tuple[int, int, int]:
    """The shape that an image has by itself, by its header."""
    with _opened(file) as image:
        width, height = image.size
        if image.getexif().get(ORIENTATION) in TURNED:
            width, height = height, width
        return (1 if image.mode in GREY else 3, height, width)


def decoded(file: File, shape: tuple[int, ...], white: int) -> tuple[Array, Seen]:
    """The bytes of an image in this shape, and what is to be told of it."""
    channels, height, width = shape
    with _opened(file) as image:
        frames = int(getattr(image, "n_frames", 1))
        finest = SPARE * max(height, width)
        image.draft(None, (finest, finest))  # a JPEG is decoded no finer than needed
        upright = ImageOps.exif_transpose(image)
        image_of_bytes, brightest = _as_bytes(file, upright, white)
        plain = _in_mode(image_of_bytes, MODES[channels])
        across, down = plain.size
        stretched = abs(across * height / (down * width) - 1) > STRETCHED
        if (across, down) != (width, height):
            plain = plain.resize((width, height), Image.Resampling.BILINEAR)
        values = np.asarray(plain)
    planes = values[None] if channels == 1 else values.transpose(2, 0, 1)
    return planes, Seen(stretched, frames, brightest)


@contextmanager
def _opened(file: File) -> Iterator[Image.Image]:
    """An image whose header was looked at; whatever goes wrong with it is a DataError."""
    try:
        with Image.open(file.path, formats=FORMATS) as image:
            across, down = image.size
            if across * down > MOST_PIXELS:
                raise Image.DecompressionBombError
            if across * down > max(FEW_PIXELS, DENSEST * file.size):
                raise DataError(
                    f"{file.name} says that it has {across} x {down} pixels, but only "
                    f"{file.size:,} bytes; it is damaged: fetch it again, or remove it"
                )
            yield image
    except DataError:
        raise
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        raise DataError(
            f"{file.name} is larger than {MOST_PIXELS // 10**6} million pixels; it was not "
            "unpacked. Make it smaller, or remove it"
        ) from None
    except UnidentifiedImageError:
        raise DataError(
            f"{file.name} {_is_rather(file)}; what is read: {', '.join(FORMATS)}. Save it as one "
            "of these, or remove it"
        ) from None
    except Exception as error:  # a damaged file leads decoders to raise errors of any type
        raise DataError(
            f"{file.name} is truncated or damaged ({error or type(error).__name__}); fetch it "
            "again, or remove it"
        ) from None


def _is_rather(file: File) -> str:
    """What a file is that has the name of an image only."""
    if not file.size:
        return "is empty (0 bytes)"
    with open(file.path, "rb") as opened:
        start = opened.read(12)
    return f"is no image, whatever its name says: it begins with {start!r}"


def _as_bytes(file: File, image: Image.Image, white: int) -> tuple[Image.Image, int]:
    """An image of 8 bits, and the highest value if it had 16."""
    if image.mode in PLAIN:
        return image, 0
    if image.mode not in WIDE:
        raise DataError(
            f"{file.name} is stored as {image.mode!r}, whose values cannot be brought to 0 to 255 "
            "without knowing their range; save it as grey or RGB of 8 or 16 bits"
        )
    values = np.asarray(image)
    low, high = int(values.min()), int(values.max())
    if low < 0 or high > 65535:
        raise DataError(
            f"{file.name} has values from {low} to {high}; 16 bits go from 0 to 65535: shift or "
            "scale them, and save it again"
        )
    return Image.fromarray(_bytes_by(white)[values]), high


@lru_cache(maxsize=4)
def _bytes_by(white: int) -> Array:
    """The byte that each value of 16 bits becomes, rounded."""
    values = np.arange(65536).clip(max=white)
    return ((values * 510 + white) // (2 * white)).astype(np.uint8)


def _in_mode(image: Image.Image, mode: str) -> Image.Image:
    """Grey, colours, or colours with transparency; what is transparent lies on white otherwise."""
    if image.has_transparency_data and mode != "RGBA":
        clear = image.convert("RGBA")
        ground = Image.new("RGBA", clear.size, "white")
        image = Image.alpha_composite(ground, clear).convert("RGB")
    if image.mode not in ("1", "L", "RGB", "RGBA"):
        image = image.convert("RGBA" if image.has_transparency_data else "RGB")
    return image if image.mode == mode else image.convert(mode)
