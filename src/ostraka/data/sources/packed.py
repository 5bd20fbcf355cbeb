"""Packed images: residuals of the lossless MED predictor (LOCO-I, the predictor of JPEG-LS).

A packed array is [C, N, H, W] uint8. With a the pixel to the left, b the one above and c the one
above left (0 outside the image), the prediction is the median of a, b and a + b - c; a residual is
pixel minus prediction modulo 256. Of three colour planes, red and blue are stored as their
difference from green, as signed bytes.
"""

import numpy as np

from ostraka.data.dataset import Array
from ostraka.errors import DataError

BLOCK = 2048
"""Images decoded at once: the three rows in use then stay in the processor's cache."""


def decode(name: str, residuals: Array) -> Array:
    """Images [N, H, W] (one plane) or [N, H, W, C] from residuals [C, N, H, W]; `name` is for the
    error message."""
    if residuals.ndim != 4 or residuals.dtype != np.uint8:
        raise DataError(
            f"{name} is {residuals.dtype} {list(residuals.shape)}; packed images are uint8 [C, N, "
            "H, W]"
        )
    planes, count, height, width = residuals.shape
    images = np.empty((count, height, width, planes), np.uint8)
    for start in range(0, count, BLOCK):
        part = residuals[:, start : start + BLOCK]
        images[start : start + BLOCK] = _colours(
            [_plane(part[k], planes == 3 and k != 1) for k in range(planes)]
        )
    return images[..., 0] if planes == 1 else images


def _plane(residuals: Array, signed: bool) -> Array:
    """One plane [n, H, W] as [H, W, n] int16: pixels depend on their neighbours, so only images run
    in parallel."""
    count, height, width = residuals.shape
    steps = np.ascontiguousarray(residuals.transpose(1, 2, 0)).astype(np.int16)
    plane = np.zeros((height + 1, width + 1, count), np.int16)
    wrapped = np.int8 if signed else np.uint8
    for i in range(1, height + 1):
        for j in range(1, width + 1):
            left, above = plane[i, j - 1], plane[i - 1, j]
            low, high = np.minimum(left, above), np.maximum(left, above)
            # The median of three: a + b - c held between the smaller and the larger of a and b.
            guess = np.minimum(np.maximum(left + above - plane[i - 1, j - 1], low), high)
            plane[i, j] = (guess + steps[i - 1, j - 1]).astype(wrapped)
    return plane[1:, 1:]


def _colours(planes: list[Array]) -> Array:
    """Planes [H, W, n] as images [n, H, W, C], the green difference undone."""
    if len(planes) == 3:
        red, green, blue = planes
        planes = [red + green, green, blue + green]
    return np.stack([plane.astype(np.uint8) for plane in planes], axis=-1).transpose(2, 0, 1, 3)
