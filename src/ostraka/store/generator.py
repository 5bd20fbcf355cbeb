"""Generator files: the tensors of a trained generator under their own names, and its card.

One safetensors file; the card is JSON in its metadata: format, shape of an image, latent size,
width, the range of values, the data and its fingerprint, epochs, seed, and the hash of the tensors.
A reader trusts nothing in it: sizes are bounded before anything is built, and every number must be
finite. That names and shapes are those of the network, `nets.generator` sees to.
"""

from collections.abc import Mapping
from dataclasses import replace
from hashlib import sha256
from math import isfinite
from pathlib import Path
from typing import Any

from ostraka.core.generator import TrainedGenerator
from ostraka.core.net import Params
from ostraka.errors import StoreError
from ostraka.store import codec
from ostraka.store.container import opened
from ostraka.store.layout import bytes_of

FORMAT = 1
WEIGHTS = "weights"
MOST_BYTES = 64 * 2**20
"""A file beyond this is no generator of ours: the widest allowed for 32x32 has a quarter of it."""
MOST = {"latent": 1024, "width": 128, "side": 256}


def sha256_of(params: Params) -> str:
    """A hash of tensors: their names, kinds, shapes and values."""
    digest = sha256()
    for name in sorted(params):
        tensor = params[name]
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        digest.update(bytes_of(tensor))
    return digest.hexdigest()


def save_generator(path: Path, generator: TrainedGenerator) -> TrainedGenerator:
    """Write a generator, atomically; returns it with the hash of its tensors."""
    made = replace(generator, sha256=sha256_of(generator.params))
    content = {
        "generator": FORMAT,
        "shape": tuple(made.shape),
        "latent": made.latent,
        "width": made.width,
        "range": (made.low, made.high),
        "about": dict(made.about),
        "sha256": made.sha256,
        WEIGHTS: dict(made.params),
    }
    codec.write_atomically(path, codec.encode(content, bare=WEIGHTS))
    return made


def read_generator(path: str | Path) -> TrainedGenerator:
    """Read a generator; anything else is refused."""
    path = Path(path)
    try:
        size = path.stat().st_size
    except OSError as error:
        raise StoreError(
            f"the generator {path} cannot be read: {error.strerror}; make one with "
            f"ostraka train-generator --data DATA --out {path}"
        ) from None
    if size > MOST_BYTES:
        raise StoreError(f"{path} has {size} bytes; a generator has at most {MOST_BYTES}")
    with opened(path):  # a plain file whose header keeps to the limits; only then is it parsed
        content = codec.load(path)
    if not isinstance(content, dict) or not _whole(content.get("generator")):
        raise StoreError(
            f"{path} holds no generator; ostraka train-generator writes them, a run's "
            "model.safetensors and members/ are something else"
        )
    if content["generator"] != FORMAT:
        raise StoreError(
            f"{path} is a generator of format {content['generator']}; this version reads "
            f"{FORMAT}: update ostraka"
        )
    return _generator(content, path)


def _generator(content: Mapping[str, Any], path: Path) -> TrainedGenerator:
    """A generator of what a file says, once every part of it can be true."""
    shape: Any = content.get("shape")
    span: Any = content.get("range")
    fine = {
        "shape": _shape(shape),
        "latent": _whole(content.get("latent")) and 1 <= content["latent"] <= MOST["latent"],
        "width": _whole(content.get("width")) and 1 <= content["width"] <= MOST["width"],
        "range": isinstance(span, tuple)
        and len(span) == 2
        and all(isinstance(v, int | float) and isfinite(v) for v in span)
        and span[0] < span[1],
        "about": isinstance(content.get("about"), dict),
        WEIGHTS: isinstance(content.get(WEIGHTS), dict),
    }
    wrong = [key for key, holds in fine.items() if not holds]
    if wrong:
        given = "missing" if wrong[0] not in content else repr(content[wrong[0]])[:60]
        raise StoreError(f"{path} is no generator that can be used: its {wrong[0]} is {given}")
    params: Params = content[WEIGHTS]
    unfit = [name for name, tensor in params.items() if not bool(tensor.isfinite().all())]
    if unfit:
        raise StoreError(f"{path} is no generator that can be used: {unfit[0]} is not finite")
    if content.get("sha256") != sha256_of(params):
        raise StoreError(f"{path} was changed: its tensors do not fit the hash on its card")
    return TrainedGenerator(
        shape=tuple(shape),
        latent=content["latent"],
        width=content["width"],
        low=float(span[0]),
        high=float(span[1]),
        params=params,
        about=content["about"],
        sha256=content["sha256"],
    )


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _shape(shape: Any) -> bool:
    """Whether it is that of an image that generators make."""
    return (
        isinstance(shape, tuple)
        and len(shape) == 3
        and all(map(_whole, shape))
        and shape[0] in (1, 3)
        and all(1 <= side <= MOST["side"] for side in shape[1:])
    )
