"""Recordings of all kinds, and MFCC against known signals and an independent DCT."""

import struct
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.fft import dct

from ostraka.data.own import Form, read
from ostraka.data.own.folder import File
from ostraka.data.own.sound import (
    BANDS,
    FLOOR,
    cosines,
    mel_edges,
    mel_filters,
    mfcc,
    read_middle,
    resampled,
)
from tests.data.own.making import as_bits, tone, wav

SILENCE = np.log(FLOOR) * np.sqrt(BANDS)
"""The first coefficient of silence; all others are 0."""


def bands(values: np.ndarray, rate: int = 16000) -> np.ndarray:
    """Log energies by band, from all coefficients: the DCT is orthonormal."""
    return dct(mfcc(values, rate, 50, BANDS), type=3, norm="ortho", axis=1)


def test_silence_is_finite() -> None:
    found = mfcc(np.zeros(16000), 16000, 50, 16)
    assert found.shape == (50, 16)
    assert found[:, 0] == pytest.approx(SILENCE)
    assert np.abs(found[:, 1:]).max() < 1e-4


def test_the_transform_is_a_dct() -> None:
    values = np.random.default_rng(0).normal(size=BANDS)
    expected = dct(values, type=2, norm="ortho")
    assert cosines(16) @ values == pytest.approx(expected[:16])


def test_filters_are_triangles_of_height_one() -> None:
    filters, edges = mel_filters(16000), mel_edges(16000)
    assert filters.shape == (40, 513)
    assert edges[0] == pytest.approx(20)
    assert edges[-1] == pytest.approx(7600)
    hertz = np.arange(513) * 16000 / 1024
    for band in (5, 20, 39):
        inside = (hertz > edges[band]) & (hertz < edges[band + 2])
        assert (filters[band] > 0).tolist() == inside.tolist()
        assert abs(hertz[filters[band].argmax()] - edges[band + 1]) <= 16000 / 1024
        assert 0.5 < filters[band].max() <= 1
    assert filters[:, 100:440].sum(axis=0) == pytest.approx(1)  # two halves overlap everywhere


@pytest.mark.parametrize("rate", [8000, 16000, 44100])
@pytest.mark.parametrize("hertz", [200, 1000, 3000])
def test_a_tone_lies_in_its_band(hertz: int, rate: int) -> None:
    edges = mel_edges(rate)
    loudest = int(bands(tone(hertz, rate=rate), rate)[25].argmax())
    assert edges[loudest] < hertz < edges[loudest + 2]


def test_twice_as_loud_is_the_log_of_four_more() -> None:
    """Energy is the square: the first coefficient grows by log(4) sqrt(40) where every band has
    some; the others stay."""
    noise = np.random.default_rng(0).normal(size=16000)
    one, two = mfcc(noise, 16000, 50, 16)[25], mfcc(2 * noise, 16000, 50, 16)[25]
    assert two[0] - one[0] == pytest.approx(np.log(4) * np.sqrt(40), rel=1e-5)
    assert two[1:] == pytest.approx(one[1:], abs=1e-4)


def test_one_frame_by_hand() -> None:
    """Frame 10 has its middle at 0.21 s; slowly, with a plain Fourier sum."""
    sound = np.random.default_rng(1).normal(size=16000)
    start = 10 * 320 + 160 - 320
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(640) / 640)
    part = sound[start : start + 640] * window
    turns = np.exp(-2j * np.pi * np.outer(np.arange(513), np.arange(640)) / 1024)
    power = np.abs(turns @ part) ** 2
    expected = dct(np.log(mel_filters(16000) @ power + 1e-6), type=2, norm="ortho")[:16]
    assert mfcc(sound, 16000, 50, 16)[10] == pytest.approx(expected, rel=1e-4)


def test_a_click_in_the_middle_is_in_the_middle() -> None:
    for length in (1601, 16000, 48001):
        sound = np.zeros(length)
        sound[length // 2] = 1
        loud = np.flatnonzero(mfcc(sound, 16000, 50, 1)[:, 0] > SILENCE + 1)
        assert loud.tolist() == [24, 25]


@pytest.mark.parametrize(("bits", "near"), [(8, 0.5), (16, 0.05), (24, 0.01), (32, 0.01)])
def test_depths(folder: Path, bits: int, near: float) -> None:
    noise = np.random.default_rng(0).uniform(-0.9, 0.9, 16000)
    (folder / "a.wav").write_bytes(wav(as_bits(noise, bits), bits=bits))
    found = read(folder / "a.wav")
    assert found.form == Form("sound", (1, 50, 16))
    assert found.samples.view.kind == "sound"
    assert found.samples.x[0, 0].numpy() == pytest.approx(mfcc(noise, 16000, 50, 16), abs=near)


def bands_of(coefficients: torch.Tensor) -> int:
    return int((cosines(16).T @ coefficients.numpy()).argmax())


@pytest.mark.parametrize(("bits", "sub"), [(32, None), (64, None), (32, 3)])
def test_floats(folder: Path, bits: int, sub: int | None) -> None:
    raw = tone(440).astype(f"<f{bits // 8}").tobytes()
    (folder / "a.wav").write_bytes(wav(raw, kind=0xFFFE if sub else 3, bits=bits, sub=sub))
    found = read(folder / "a.wav").samples.x[0, 0]
    assert found.numpy() == pytest.approx(mfcc(tone(440), 16000, 50, 16), abs=1e-2)


def test_channels_are_averaged(folder: Path) -> None:
    both = np.stack([tone(440), -tone(440)], axis=1).reshape(-1)
    (folder / "a.wav").write_bytes(wav(as_bits(both, 16), channels=2))
    assert read(folder / "a.wav").samples.x[0, 0, :, 0].numpy() == pytest.approx(SILENCE)
    same = np.repeat(tone(440), 2)
    (folder / "b.wav").write_bytes(wav(as_bits(same, 16), channels=2))
    (folder / "c.wav").write_bytes(wav(as_bits(tone(440), 16)))
    two, one = read(folder / "b.wav").samples.x, read(folder / "c.wav").samples.x
    assert torch.allclose(two, one)


@pytest.mark.parametrize("rate", [8000, 11025, 22050, 44100, 48000, 15999])
def test_other_rates_sound_the_same(folder: Path, rate: int) -> None:
    (folder / "a.wav").write_bytes(wav(as_bits(tone(440, rate=rate), 16), rate=rate))
    found = read(folder / "a.wav")
    assert found.notes == ()
    strongest = bands_of(found.samples.x[0, 0, 25])
    assert mel_edges(16000)[strongest] < 440 < mel_edges(16000)[strongest + 2]
    assert len(resampled(tone(440, rate=rate), rate, 16000)) == pytest.approx(16000, abs=3)


def test_a_long_recording_gives_its_middle(folder: Path) -> None:
    parts = [tone(300, 2), tone(3000, 2), tone(300, 2)]
    (folder / "a.wav").write_bytes(wav(as_bits(np.concatenate(parts), 16)))
    found = read(folder / "a.wav")
    assert "1 recording is longer than 1 s (a.wav); the middle was taken" in found.notes[0]
    for frame in (0, 25, 49):
        strongest = bands_of(found.samples.x[0, 0, frame])
        assert mel_edges(16000)[strongest] < 3000 < mel_edges(16000)[strongest + 2]
    longer = read(folder / "a.wav", Form("sound", (1, 300, 16)))
    assert (longer.samples.shape, longer.notes) == ((1, 300, 16), ())


def test_a_short_recording_has_silence_around_it(folder: Path) -> None:
    (folder / "a.wav").write_bytes(wav(as_bits(tone(440, 0.2), 16)))
    first = read(folder / "a.wav").samples.x[0, 0, :, 0].numpy()
    assert first[:19] == pytest.approx(SILENCE)
    assert first[31:] == pytest.approx(SILENCE)
    assert (first[21:29] > SILENCE + 10).all()


def test_one_sample_of_sound(folder: Path) -> None:
    (folder / "a.wav").write_bytes(wav(b"\xff\x7f"))
    assert read(folder / "a.wav").samples.x.isfinite().all()


def test_other_chunks_and_a_length_that_was_never_written(folder: Path) -> None:
    plain = wav(as_bits(tone(440), 16))
    (folder / "a.wav").write_bytes(plain)
    expected = read(folder / "a.wav").samples.x
    odd = wav(as_bits(tone(440), 16), before=b"LIST\x03\0\0\0abc\0", announced=0xFFFFFFFF)
    (folder / "b.wav").write_bytes(odd)
    assert torch.equal(read(folder / "b.wav").samples.x, expected)


def test_a_folder_of_recordings(folder: Path) -> None:
    for name, hertz in (("high", 3000), ("low", 300)):
        (folder / name).mkdir()
        (folder / name / "a.wav").write_bytes(wav(as_bits(tone(hertz), 16)))
    (folder / "low" / "b.wav").write_bytes(b"broken")
    found = read(folder, skip_broken=True)
    assert (found.classes, found.samples.labels.tolist()) == (("high", "low"), [0, 1])
    assert "low/b.wav" in found.notes[0]


def test_silence_of_8_bits_is_128(folder: Path) -> None:
    """They alone have no sign: 0 is -1, and 255 lies as far below 1 as all depths end."""
    path = folder / "a.wav"
    path.write_bytes(wav(bytes([0, 128, 192, 255]), bits=8))
    sound, _ = read_middle(File.at(path), 1.0)
    assert sound.tolist() == [-1.0, 0.0, 0.5, 127 / 128]


def test_a_description_of_odd_length_is_filled_up(folder: Path) -> None:
    """A chunk begins at an even byte: after 17 bytes of `fmt ` comes one that nobody counts."""
    whole = wav(np.array([0, 2**14], "<i2").tobytes())
    (at,) = [whole.index(b"fmt ")]
    odd = whole[:at] + b"fmt " + struct.pack("<I", 17) + whole[at + 8 : at + 24] + b"x\0"
    path = folder / "a.wav"
    path.write_bytes(odd + whole[at + 24 :])
    sound, head = read_middle(File.at(path), 1.0)
    assert (sound.tolist(), head.rate) == ([0.0, 0.5], 16000)
