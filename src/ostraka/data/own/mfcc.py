"""Mel-frequency cepstral coefficients (MFCC): what a recording sounds like, frame by frame.

A frame has 40 ms (Hann window) and begins 20 ms after the one before. Its power spectrum is summed
in 40 triangular bands, equally wide on the mel scale from 20 Hz to 95 % of half the rate; their
logarithm, of at least 1e-6, is turned into coefficients by an orthonormal DCT-II. At 16,000
samples per second: windows of 640 samples, a Fourier transform of 1024, bands up to 7,600 Hz.
"""

from functools import lru_cache

import numpy as np

from ostraka.data.dataset import Array

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
