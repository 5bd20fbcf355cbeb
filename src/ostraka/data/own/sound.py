"""Recordings: WAV files, as MFCC of one shape.

Channels are averaged, other rates resampled to the form's. Of a long recording the middle is
taken, a short one has silence on both sides; 50 frames, the default, are one second.

WAV files may hold whole numbers of 8, 16, 24 and 32 bits and floats of 32 and 64, at any rate and
with any number of channels. Only the part that is wanted is read: a recording of hours takes no
more memory than one of seconds.

Mel-frequency cepstral coefficients (MFCC) say what it sounds like, frame by frame. A frame has
40 ms (Hann window) and begins 20 ms after the one before. Its power spectrum is summed in 40
triangular bands, equally wide on the mel scale from 20 Hz to 95 % of half the rate; their
logarithm, of at least 1e-6, is turned into coefficients by an orthonormal DCT-II. At 16,000
samples per second: windows of 640 samples, a Fourier transform of 1024, bands up to 7,600 Hz.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import BinaryIO

import numpy as np

from ostraka.data.dataset import Array
from ostraka.data.own.collection import note
from ostraka.data.own.folder import File, each
from ostraka.data.own.form import Asked, Form
from ostraka.data.sources.files import check_memory
from ostraka.errors import ConfigError, DataError

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


WINDOW, HOP = 0.040, 0.020
"""Length of a frame, and from one to the next, in seconds."""

BANDS = 40
LOWEST, HIGHEST = 20.0, 0.95
"""The lowest frequency in Hz, and the highest as a part of half the rate."""

FLOOR = 1e-6
"""Added before the logarithm: silence has one, too."""


def mfcc(sound: Array, rate: int, frames: int, coefficients: int) -> Array:
    """Coefficients [frames, coefficients] of `sound` [samples], of which the middle is taken.

    What is missing of so many frames is silence, the same on both sides.
    """
    hop, window = round(HOP * rate), round(WINDOW * rate)
    signal = _middle(sound, frames * hop + window - hop, frames * hop)
    starts = np.arange(frames)[:, None] * hop + np.arange(window)
    size = transform_size(rate)
    spectrum = np.fft.rfft(signal[starts] * _hann(window), size)
    power = spectrum.real**2 + spectrum.imag**2
    bands = np.log(power @ mel_filters(rate).T + FLOOR)
    return (bands @ cosines(coefficients).T).astype(np.float32)


def samples_of(frames: int, rate: int) -> int:
    """How many samples of sound so many frames stand for."""
    return frames * round(HOP * rate)


def transform_size(rate: int) -> int:
    """Length of the Fourier transform: the power of two that a window fits into."""
    return 1 << (round(WINDOW * rate) - 1).bit_length()


def hertz_to_mel(hertz: Array | float) -> Array:
    """Pitch as people hear it (O'Shaughnessy's formula)."""
    return np.asarray(2595.0 * np.log10(1.0 + np.asarray(hertz) / 700.0))


def mel_to_hertz(mel: Array | float) -> Array:
    """The frequency of a pitch."""
    return np.asarray(700.0 * (10.0 ** (np.asarray(mel) / 2595.0) - 1.0))


@lru_cache(maxsize=8)
def mel_edges(rate: int) -> Array:
    """Where the bands begin, have their peak and end, in Hz: band i from i to i + 2."""
    low, high = hertz_to_mel(LOWEST), hertz_to_mel(HIGHEST * rate / 2)
    return mel_to_hertz(np.linspace(low, high, BANDS + 2))


@lru_cache(maxsize=8)
def mel_filters(rate: int) -> Array:
    """The weight of every frequency in every band [bands, frequencies]: triangles of height 1."""
    edges = mel_edges(rate)
    size = transform_size(rate)
    hertz = np.arange(size // 2 + 1) * rate / size
    rising = (hertz - edges[:-2, None]) / np.diff(edges)[:-1, None]
    falling = (edges[2:, None] - hertz) / np.diff(edges)[1:, None]
    return np.asarray(np.maximum(0.0, np.minimum(rising, falling)))


@lru_cache(maxsize=8)
def cosines(coefficients: int) -> Array:
    """The first rows of the orthonormal DCT-II [coefficients, bands]."""
    k, n = np.arange(coefficients)[:, None], np.arange(BANDS)
    table = np.cos(np.pi / BANDS * (n + 0.5) * k) * np.sqrt(2 / BANDS)
    table[0] /= np.sqrt(2)
    return np.asarray(table)


@lru_cache(maxsize=8)
def _hann(window: int) -> Array:
    return np.asarray(0.5 - 0.5 * np.cos(2 * np.pi * np.arange(window) / window))


def _middle(sound: Array, length: int, most: int) -> Array:
    """`length` samples with the middle of the sound, at most `most` of it, in their middle."""
    cut = max(len(sound) - most, 0)
    kept = sound[cut // 2 : len(sound) - (cut - cut // 2)]
    before = (length - len(kept)) // 2
    return np.pad(kept, (before, length - len(kept) - before))


SHAPE = (1, 50, 16)
"""Where the form has none: one second, sixteen coefficients."""

VERSION = "sound 1"
FINEST = 1000
"""Rates are brought to each other by a fraction whose parts are at most this; finer ones would
take a filter of millions of values for a difference that nobody hears."""

MARGIN = 0.1
"""Seconds read beyond what is needed, so that the filter has something to work on."""


def read(asked: Asked, files: Sequence[File]) -> tuple[Array, list[int], Form, list[str]]:
    """The values of those files that can be read, which these are, the form, and notes."""
    form = asked.form.found("sound", asked.form.shape or SHAPE, str(asked.path))
    _, frames, coefficients = form.shape or SHAPE
    if coefficients > BANDS:
        raise ConfigError(
            f"{coefficients} coefficients are asked for; {BANDS} bands give at most as many"
        )
    check_memory(asked.path, len(files), 4 * frames * coefficients, "ask for fewer frames")
    x = np.empty((len(files), 1, frames, coefficients), np.float32)

    def take(at: int, file: File) -> bool:
        sound, longer = _heard(file, frames, form.rate)
        x[at, 0] = mfcc(sound, form.rate, frames, coefficients)
        return longer

    longer, notes = each(files, take, asked.skip_broken)
    cut = [files[at].name for at, one in enumerate(longer) if one]
    longest = f"longer than {frames * HOP:g} s"
    notes += note(cut, "recording is", "recordings are", longest, "the middle was taken")
    return x, [at for at, one in enumerate(longer) if one is not None], form, notes


def _heard(file: File, frames: int, rate: int) -> tuple[Array, bool]:
    """The middle of a recording at this rate, and whether there is more of it."""
    seconds = samples_of(frames, rate) / rate
    sound, head = read_middle(file, seconds + 2 * MARGIN)
    return resampled(sound, head.rate, rate), head.length > seconds * head.rate * 1.001 + 1


def resampled(sound: Array, was: int, rate: int) -> Array:
    """The same sound with another number of samples per second."""
    if was == rate:
        return sound
    from scipy.signal import resample_poly  # takes long to import

    by = Fraction(rate, was).limit_denominator(FINEST)
    values: Array = resample_poly(sound, by.numerator, by.denominator)
    return values
