"""Recordings: WAV files, as MFCC of one shape.

Channels are averaged, other rates resampled to the form's. Of a long recording the middle is
taken, a short one has silence on both sides; 50 frames, the default, are one second.
"""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from ostraka.data.dataset import Array
from ostraka.data.own.collection import listed
from ostraka.data.own.folder import File, each
from ostraka.data.own.form import Asked, Form
from ostraka.data.own.mfcc import BANDS, HOP, mfcc, samples_of
from ostraka.data.own.wav import read_middle
from ostraka.data.sources.files import check_memory
from ostraka.errors import ConfigError

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
    if cut:
        longest = f"longer than {frames * HOP:g} s"
        told = listed(cut, "recording is", "recordings are", longest)
        notes.append(f"{told}; the middle was taken")
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
