"""Images: PNG, JPEG, TIFF and BMP, as bytes of one shape.

Rotation that a camera noted (EXIF) is applied. What is transparent is put on white, unless four
channels are asked for. 16 bits become 8 by `Form.white`; colours of 16 bits are reduced by Pillow.
Where the form has a shape, an image becomes grey or coloured as it says and is scaled to it,
bilinearly with antialiasing; one of other proportions is stretched, so that nothing of it is cut.
"""

import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from math import prod

import numpy as np
import PIL
from PIL import Image, ImageOps, UnidentifiedImageError

from ostraka.data.dataset import Array
from ostraka.data.own.collection import note, some
from ostraka.data.own.folder import File, each
from ostraka.data.own.form import Asked, Form
from ostraka.data.sources.files import check_memory
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
        with open(file.path, "rb") as opened:
            start = opened.read(12)
        said = f"is no image, whatever its name says: it begins with {start!r}"
        rather = said if file.size else "is empty (0 bytes)"
        raise DataError(
            f"{file.name} {rather}; what is read: {', '.join(FORMATS)}. Save it as one "
            "of these, or remove it"
        ) from None
    except Exception as error:  # a damaged file leads decoders to raise errors of any type
        raise DataError(
            f"{file.name} is truncated or damaged ({error or type(error).__name__}); fetch it "
            "again, or remove it"
        ) from None


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


VERSION = f"images 1, Pillow {PIL.__version__}"
"""What a cache was made by: other versions may decode other values."""

DARK = 8
"""Images of 16 bits that use less than this part of their range are nearly black as bytes."""


def read(asked: Asked, files: Sequence[File]) -> tuple[Array, list[int], Form, list[str]]:
    """The values of those files that can be read, which these are, the form, and notes."""
    owner = asked.path
    asked.form.check_kind("image", str(owner))
    with strict_decoder():
        shape, said = (asked.form.shape, []) if asked.form.shape else _one_shape(asked, files)
        assert shape is not None
        check_memory(owner, len(files), prod(shape), "ask for a smaller shape")
        x = np.empty((len(files), *shape), np.uint8)

        def take(at: int, file: File) -> Seen:
            x[at], seen = decoded(file, shape, asked.form.white)
            return seen

        seen, broken = each(files, take, asked.skip_broken)
    there = {at: one for at, one in enumerate(seen) if one is not None}
    form = asked.form.found("image", shape, str(owner))
    told = _told(asked, {files[at].name: one for at, one in there.items()})
    return x, list(there), form, [*said, *broken, *told]


def _one_shape(asked: Asked, files: Sequence[File]) -> tuple[tuple[int, ...], list[str]]:
    """The shape that all images have, and what is to be said of it."""
    found, _ = each(files, lambda at, file: natural_shape(file), asked.skip_broken)
    shapes = [shape for shape in found if shape is not None]
    sizes = Counter(f"{height}x{width}" for _, height, width in shapes)
    if len(sizes) > 1:
        told = [f"{count:,} of {size}" for size, count in sizes.most_common()]
        raise DataError(
            f"{asked.path} holds images of {len(sizes)} sizes (height x width: {some(told)}); "
            "say which shape they shall be scaled to: shape = [1, 64, 64] (grey) or [3, 64, 64] "
            "(colours) in the task, or save them in one size"
        )
    colours = sum(channels == 3 for channels, _, _ in shapes)
    said = (
        f"{len(shapes) - colours:,} of {len(shapes):,} images are grey, the others have colours; "
        "all are read as colours"
    )
    return (3 if colours else 1, *shapes[0][1:]), [said] if 0 < colours < len(shapes) else []


def _told(asked: Asked, seen: dict[str, Seen]) -> list[str]:
    """Notes on images that were changed more than one may expect."""
    stretched = [name for name, one in seen.items() if one.stretched]
    several = [name for name, one in seen.items() if one.frames > 1]
    other, pages = "other proportions than the shape", "several pages or frames"
    notes = note(stretched, "image has", "images have", other, "stretched")
    notes += note(several, "file has", "files have", pages, "the first was read")
    brightest, white = max(one.brightest for one in seen.values()), asked.form.white
    if 0 < brightest * DARK < white:
        notes.append(
            f"images of 16 bits reach {brightest} where {white} is white, so that they are nearly "
            f"black as bytes; white = {2 ** brightest.bit_length() - 1} in the form would use "
            "the whole range"
        )
    return notes
