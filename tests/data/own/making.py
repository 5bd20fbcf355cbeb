"""Files of all kinds, whole and broken, made by hand."""

import struct
import zlib
from pathlib import Path

import numpy as np
from PIL import Image

from ostraka.data.dataset import Array


def image(path: Path, size: tuple[int, int] = (4, 4), seed: int = 0, colours: bool = False) -> Path:
    """Noise; `size` is height and width."""
    path.parent.mkdir(parents=True, exist_ok=True)
    shape = (*size, 3) if colours else size
    pixels = np.random.default_rng(seed).integers(0, 256, shape, np.uint8)
    Image.fromarray(pixels).save(path)
    return path


def pets(folder: Path, each: int = 2, size: tuple[int, int] = (4, 4)) -> Path:
    """Two classes of images."""
    for seed in range(each):
        image(folder / "cat" / f"{seed}.png", size, seed)
        image(folder / "dog" / f"{seed}.png", size, 1000 + seed)
    return folder


def png(width: int, height: int, bits: int = 8, body: bytes = b"") -> bytes:
    """A PNG that says it is of this size, whatever its body holds."""

    def chunk(name: bytes, content: bytes) -> bytes:
        check = zlib.crc32(name + content)
        return struct.pack(">I", len(content)) + name + content + struct.pack(">I", check)

    head = struct.pack(">IIBBBBB", width, height, bits, 0, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + chunk(b"IDAT", zlib.compress(body))
        + chunk(b"IEND", b"")
    )


def bmp(width: int, height: int) -> bytes:
    """The header of a BMP of this size, and nothing behind it."""
    return (
        b"BM"
        + struct.pack("<IHHI", 54, 0, 0, 54)
        + struct.pack("<IiiHHIIiiII", 40, width, height, 1, 24, 0, 0, 2835, 2835, 0, 0)
    )


def wav(
    samples: bytes,
    *,
    kind: int = 1,
    channels: int = 1,
    rate: int = 16000,
    bits: int = 16,
    announced: int | None = None,
    before: bytes = b"",
    sub: int | None = None,
) -> bytes:
    """A WAV file by hand; `announced` bytes of samples, `before` them other chunks."""
    width = channels * bits // 8
    form = struct.pack("<HHIIHH", kind, channels, rate, rate * width, width, bits)
    if sub is not None:
        form += struct.pack("<HHI", 22, bits, 0) + struct.pack("<H", sub) + bytes(14)
    size = len(samples) if announced is None else announced
    chunks = b"fmt " + struct.pack("<I", len(form)) + form + before
    body = b"WAVE" + chunks + b"data" + struct.pack("<I", size) + samples
    return b"RIFF" + struct.pack("<I", len(body) & 0xFFFFFFFF) + body


def tone(hertz: float, seconds: float = 1.0, rate: int = 16000, loud: float = 0.5) -> Array:
    """A sine from -1 to 1."""
    values: Array = loud * np.sin(2 * np.pi * hertz * np.arange(round(seconds * rate)) / rate)
    return values


def as_bits(values: Array, bits: int) -> bytes:
    """Samples from -1 to 1 as whole numbers of so many bits."""
    if bits == 8:
        return (values * 127 + 128).round().astype(np.uint8).tobytes()
    whole = (values * (2 ** (bits - 1) - 1)).round().astype("<i4")
    if bits == 24:
        return whole.view(np.uint8).reshape(-1, 4)[:, :3].tobytes()
    return whole.astype(f"<i{bits // 8}").tobytes()
