"""Images: PNG, JPEG, TIFF and BMP, as bytes of one shape.

Rotation that a camera noted (EXIF) is applied. What is transparent is put on white, unless four
channels are asked for. 16 bits become 8 by `Form.white`; colours of 16 bits are reduced by Pillow.
Where the form has a shape, an image becomes grey or coloured as it says and is scaled to it,
bilinearly with antialiasing; one of other proportions is stretched, so that nothing of it is cut.
"""

from collections import Counter
from collections.abc import Sequence
from math import prod

import numpy as np
import PIL

from ostraka.data.dataset import Array
from ostraka.data.own.collection import listed, some
from ostraka.data.own.decoding import Seen, decoded, natural_shape, strict_decoder
from ostraka.data.own.folder import File, each
from ostraka.data.own.form import Asked, Form
from ostraka.data.sources.files import check_memory
from ostraka.errors import DataError

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
    note = (
        f"{len(shapes) - colours:,} of {len(shapes):,} images are grey, the others have colours; "
        "all are read as colours"
    )
    return (3 if colours else 1, *shapes[0][1:]), [note] if 0 < colours < len(shapes) else []


def _told(asked: Asked, seen: dict[str, Seen]) -> list[str]:
    """Notes on images that were changed more than one may expect."""
    notes = []
    stretched = [name for name, one in seen.items() if one.stretched]
    if stretched:
        notes.append(
            listed(stretched, "image has", "images have", "other proportions than the shape")
            + "; stretched"
        )
    several = [name for name, one in seen.items() if one.frames > 1]
    if several:
        notes.append(
            listed(several, "file has", "files have", "several pages or frames")
            + "; the first was read"
        )
    brightest, white = max(one.brightest for one in seen.values()), asked.form.white
    if 0 < brightest * DARK < white:
        notes.append(
            f"images of 16 bits reach {brightest} where {white} is white, so that they are nearly "
            f"black as bytes; white = {2 ** brightest.bit_length() - 1} in the form would use "
            "the whole range"
        )
    return notes
