"""WAV files: whole numbers of 8, 16, 24 and 32 bits and floats of 32 and 64, any rate, any number
of channels.

Only the part that is wanted is read: a recording of hours takes no more memory than one of seconds.
"""

import struct
from dataclasses import dataclass
from typing import BinaryIO

import numpy as np

from ostraka.data.dataset import Array
from ostraka.data.own.folder import File
from ostraka.errors import DataError

PCM, FLOAT, EXTENSIBLE = 1, 3, 0xFFFE
"""Formats of samples; the last says another one further on."""

OTHERS = {2: "ADPCM", 6: "A-law", 7: "mu-law", 17: "IMA ADPCM", 85: "MP3"}

DEPTHS = {PCM: (8, 16, 24, 32), FLOAT: (32, 64)}
RATES = (1000, 384000)
MOST_CHANNELS = 64

REMEDY = "save it as WAV of whole numbers (PCM) of 16 bits, or remove it"


@dataclass(frozen=True)
class Header:
    """What a WAV file says of itself."""

    form: int
    channels: int
    rate: int
    bits: int
    start: int
    """Where its samples begin."""
    length: int
    """Samples of each channel."""

    @property
    def width(self) -> int:
        """Bytes of one sample of all channels."""
        return self.channels * self.bits // 8


def read_middle(file: File, seconds: float) -> tuple[Array, Header]:
    """The middle of a recording, at most so many seconds, as one channel from -1 to 1."""
    try:
        with open(file.path, "rb") as opened:
            head = _header(file, opened)
            count = min(head.length, int(np.ceil(seconds * head.rate)))
            opened.seek(head.start + (head.length - count) // 2 * head.width)
            raw = opened.read(count * head.width)
    except OSError as error:
        raise DataError(
            f"{file.name} cannot be read: {error.strerror}; give a file that you may read"
        ) from None
    sound = _floats(raw, head).reshape(-1, head.channels).mean(axis=1)
    if not np.isfinite(sound).all() or np.abs(sound).max() > 1e6:
        raise DataError(
            f"{file.name} holds samples that are infinite, NaN or far from -1 to 1; {REMEDY}"
        )
    return sound, head


def _floats(raw: bytes, head: Header) -> Array:
    if head.form == FLOAT:
        return np.frombuffer(raw, f"<f{head.bits // 8}").astype(np.float64)
    if head.bits == 8:  # the only ones without a sign
        return (np.frombuffer(raw, np.uint8).astype(np.float64) - 128) / 128
    if head.bits == 24:  # as the upper three bytes of four
        wide = np.zeros((len(raw) // 3, 4), np.uint8)
        wide[:, 1:] = np.frombuffer(raw, np.uint8).reshape(-1, 3)
        return wide.view("<i4")[:, 0] / 2.0**31
    values: Array = np.frombuffer(raw, f"<i{head.bits // 8}") / 2.0 ** (head.bits - 1)
    return values


def _header(file: File, opened: BinaryIO) -> Header:
    start = opened.read(12)
    if not file.size:
        raise DataError(f"{file.name} is empty (0 bytes); {REMEDY}")
    if start[:4] != b"RIFF" or start[8:] != b"WAVE":
        raise DataError(f"{file.name} is no WAV file: it begins with {start!r}; {REMEDY}")
    form: bytes | None = None
    while True:
        chunk = opened.read(8)
        if len(chunk) < 8:
            missing = "samples" if form else "a description of its samples"
            raise DataError(f"{file.name} is truncated: it has no {missing}; fetch it again")
        name, size = chunk[:4], int.from_bytes(chunk[4:], "little")
        if name == b"data":
            return _described(file, form, opened.tell(), size)
        if name == b"fmt ":
            form = opened.read(min(size, 64))
            opened.seek(size - len(form) + size % 2, 1)
        else:
            opened.seek(size + size % 2, 1)


def _described(file: File, form: bytes | None, start: int, size: int) -> Header:
    if form is None or len(form) < 16:
        raise DataError(f"{file.name} does not say how its samples are stored; {REMEDY}")
    kind, channels, rate, _, _, bits = struct.unpack("<HHIIHH", form[:16])
    if kind == EXTENSIBLE and len(form) >= 26:
        kind = int.from_bytes(form[24:26], "little")
    if bits not in DEPTHS.get(kind, ()):
        what = OTHERS.get(kind, f"format {kind}") if kind not in DEPTHS else f"{bits} bits"
        raise DataError(
            f"{file.name} is stored as {what}; 8, 16, 24 and 32 bits and floats are read: {REMEDY}"
        )
    if not 1 <= channels <= MOST_CHANNELS or not RATES[0] <= rate <= RATES[1]:
        raise DataError(
            f"{file.name} says that it has {channels} channels of {rate} samples per second; 1 to "
            f"{MOST_CHANNELS} of {RATES[0]} to {RATES[1]} are read: {REMEDY}"
        )
    held, width = file.size - start, channels * bits // 8
    if 0 < size < 0xFFFFFFFF and size > held:  # those two: written as a stream, length unknown
        raise DataError(
            f"{file.name} is truncated: {size:,} bytes of samples are announced, {held:,} are "
            "there; fetch it again, or remove it"
        )
    length = (size if 0 < size < 0xFFFFFFFF else held) // width
    if not length:
        raise DataError(f"{file.name} holds no sound; remove it")
    return Header(kind, channels, rate, bits, start, length)
