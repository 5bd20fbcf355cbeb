"""Data destruction: outliers made from the party's own samples (FedOV; Diao, Li & He, ICLR 2023,
section 3.4).

One operation per sample, drawn by the shares of a mix: the paper's, or a wider one. All random
numbers come from a CPU generator; the results are where the samples are.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Generator, Tensor

from ostraka.core.kind import Kind, check_form
from ostraka.errors import ConfigError, DataError, choices, did_you_mean
from ostraka.objectives import destruction_features as features
from ostraka.objectives import destruction_geometry as geometry
from ostraka.objectives import destruction_ops as ops
from ostraka.objectives import destruction_sound as sound
from ostraka.objectives.destruction_ops import (
    COPY_COLUMNS,
    COPY_ROWS,
    SWAP_COLUMNS,
    SWAP_ROWS,
    Drawn,
    Shape,
)

SMALLEST = 8
"""Images need this height and width: below it halves, quarters and a kernel of 9 lose their
meaning."""


FEATURES: tuple[Kind, ...] = ("table", "sound")
"""Kinds of samples whose last axis holds features."""


@dataclass(frozen=True)
class Operation:
    """One way to destroy samples: `draw(count, shape of one sample, rng)`, then `apply(samples,
    drawn)`.

    `kinds` are the kinds of samples that it suits.
    """

    draw: Callable[[int, Shape, Generator], Drawn]
    apply: Callable[[Tensor, Drawn], Tensor]
    kinds: tuple[Kind, ...] = ("image", "sound")

    def __call__(self, x: Tensor, rng: Generator) -> Tensor:
        """Destroyed copies of the samples `x` [B, ...]."""
        return self.apply(x, self.draw(len(x), tuple(x.shape[1:]), rng))


OPERATIONS: Mapping[str, Operation] = {
    "crop": Operation(ops.draw_crop, ops.apply_crop),
    "blur": Operation(ops.draw_blur, ops.apply_blur),
    "erase": Operation(ops.draw_erase, ops.apply_erase),
    "cut": Operation(ops.draw_cut, ops.apply_cut),
    "paste": Operation(partial(ops.draw_cut, cases=COPY_COLUMNS + COPY_ROWS), ops.apply_cut),
    "swap": Operation(partial(ops.draw_cut, cases=SWAP_COLUMNS + SWAP_ROWS), ops.apply_cut),
    "rotate": Operation(ops.draw_rotate, ops.apply_rotate),
    "cutpaste": Operation(ops.draw_cutpaste, ops.apply_cutpaste),
    "stretch": Operation(geometry.draw_stretch, geometry.apply_stretch),
    "elastic": Operation(geometry.draw_elastic, geometry.apply_elastic),
    "mirror": Operation(geometry.draw_mirror, geometry.apply_mirror),
    "turn": Operation(geometry.draw_turn, geometry.apply_turn),
    "morph": Operation(geometry.draw_morph, geometry.apply_morph),
    "patches": Operation(geometry.draw_patches, geometry.apply_patches),
    "patchswap": Operation(geometry.draw_patchswap, geometry.apply_patchswap),
    "mask": Operation(sound.draw_mask, sound.apply_mask),
    "shift": Operation(sound.draw_shift, sound.apply_shift),
    "bandswap": Operation(sound.draw_bandswap, sound.apply_bandswap, ("sound",)),
    "reverse": Operation(sound.draw_reverse, sound.apply_reverse, ("sound",)),
    "speed": Operation(sound.draw_speed, sound.apply_speed, ("sound",)),
    "exchange": Operation(features.draw_exchange, features.apply_exchange, FEATURES),
    "shuffle": Operation(features.draw_shuffle, features.apply_shuffle, FEATURES),
    "noise": Operation(features.draw_noise, features.apply_noise, FEATURES),
    "mixup": Operation(features.draw_mixup, features.apply_mixup, FEATURES),
    "extrapolate": Operation(features.draw_extrapolate, features.apply_mixup, FEATURES),
    "extreme": Operation(features.draw_extreme, features.apply_extreme, FEATURES),
    "negate": Operation(features.draw_negate, features.apply_negate, FEATURES),
    "permute": Operation(features.draw_permute, features.apply_permute, FEATURES),
}
"""`cut` is `paste` (4 of 6 cases) and `swap` (2 of 6) together, as in the authors' code."""

FEDOV = {"crop": 1 / 7, "blur": 1 / 7, "erase": 1 / 7, "cut": 2 / 7, "rotate": 2 / 7}
WIDER = {
    "stretch": 0.12,
    "elastic": 0.12,
    "mirror": 0.09,
    "morph": 0.09,
    "patches": 0.09,
    "patchswap": 0.09,
}
GEOMETRY = (*WIDER, "turn")

MIXES: Mapping[str, Mapping[str, float]] = {
    "fedov": FEDOV,
    "mixture": {name: share / 2 for name, share in FEDOV.items()} | {"cutpaste": 1 / 2},
    "wide": {name: 0.4 * share for name, share in FEDOV.items()} | WIDER,
    "tables": {"exchange": 1 / 3, "shuffle": 1 / 3, "noise": 1 / 3},
    "audio": {"mask": 1 / 4, "shift": 1 / 4, "paste": 1 / 4, "swap": 1 / 4},
    "wide-tables": {
        "noise": 2 / 9,
        "extreme": 2 / 9,
        "negate": 2 / 9,
        "permute": 2 / 9,
        "shuffle": 1 / 9,
    },
    "wide-audio": {"elastic": 1 / 4, "patchswap": 1 / 4, "permute": 1 / 4, "bandswap": 1 / 4},
}
"""Shares of the operations, together 1; a single operation is also the name of a mix."""


BY_KIND: Mapping[str, Mapping[Kind, str]] = {
    "destruction": {"image": "fedov", "table": "tables", "sound": "fedov"},
    "auto": {"image": "wide", "table": "wide-tables", "sound": "wide-audio"},
}
"""Names that mean another mix for each kind of samples."""


def destroy(
    x: Tensor, rng: Generator, mix: str | Mapping[str, float] = "fedov", kind: Kind = "image"
) -> Tensor:
    """Destroyed copies of the samples `x` [B, ...], by one operation each; `x` stays as it is.

    `mix` names a mix or an operation, or gives shares by name (`shares_of`). What `auto` and
    `destruction` mean depends on the `kind` of the samples (`BY_KIND`).
    """
    if not x.is_floating_point():
        raise DataError(f"destruction takes floating-point samples; these are {x.dtype}")
    shares = check_mix(mix, kind, x.shape[1:])
    names = list(shares)
    if not len(x):
        return x.clone()
    if len(names) == 1:
        return OPERATIONS[names[0]](x, rng)
    out = torch.empty_like(x, memory_format=torch.contiguous_format)
    drawn = draw_operations(len(x), shares, rng)
    for number, name in enumerate(names):
        rows = (drawn == number).nonzero().squeeze(1)
        if len(rows):
            rows_there = rows.to(x.device)
            out.index_copy_(0, rows_there, OPERATIONS[name](x.index_select(0, rows_there), rng))
    return out


def draw_operations(count: int, shares: Mapping[str, float], rng: Generator) -> Tensor:
    """[count]: the number of the operation, in the order of `shares`, for every sample."""
    bounds = torch.tensor(list(shares.values()), dtype=torch.float64).cumsum(0)
    point = torch.rand(count, generator=rng, dtype=torch.float64) * bounds[-1]
    return torch.bucketize(point, bounds[:-1], right=True)


def check_mix(
    mix: str | Mapping[str, float], kind: Kind, shape: Sequence[int]
) -> Mapping[str, float]:
    """The shares of a mix, all of whose operations suit samples of this kind and shape."""
    check_form(kind, shape)
    shares = shares_of(mix, kind)
    for name in shares:
        if kind not in OPERATIONS[name].kinds:
            suited = [other for other in OPERATIONS if kind in OPERATIONS[other].kinds]
            raise DataError(
                f"the operation {name!r} of the outliers {mix!r} is for samples of the kind "
                f"{' or '.join(OPERATIONS[name].kinds)}; these are of the kind {kind}. Use "
                f"outliers=auto, which means {BY_KIND['auto'][kind]!r} for them, or none, or "
                f"operations that suit them: {choices(suited)}"
            )
    if kind != "table" and min(shape[1:]) < SMALLEST:
        raise DataError(
            f"images of {shape[1]}x{shape[2]} are too small to destroy; need {SMALLEST}x{SMALLEST}"
        )
    return shares


def shares_of(mix: str | Mapping[str, float], kind: Kind = "image") -> Mapping[str, float]:
    """The operations of a mix and their shares, or an error that names the allowed ones.

    A mix by hand is a table or text such as `fedov:0.4+stretch:0.3+elastic:0.3`. Its names may be
    mixes as well as operations. Only the proportions of the shares count.
    """
    used: dict[str, float] = {}
    for name, share in _by_hand(mix) if isinstance(mix, str) else mix.items():
        if not 0 <= share < float("inf"):
            raise ConfigError(f"the share of {name!r} is {share}; shares are numbers of 0 or above")
        for operation, part in _named(name, kind).items():
            if share * part > 0:
                used[operation] = used.get(operation, 0.0) + share * part
    if not used:
        raise ConfigError(f"nothing in the mix {mix!r} has a share above 0")
    return used


def _by_hand(text: str) -> list[tuple[str, float]]:
    """`name` alone, or `name:share+name:share` taken apart."""
    if not set(text) & set("+:"):
        return [(text, 1.0)]
    parts = []
    for part in text.split("+"):
        name, _, share = part.partition(":")
        try:
            parts.append((name.strip(), float(share)))
        except ValueError:
            raise ConfigError(
                f"{part.strip()!r} in the mix {text!r} is not NAME:SHARE; write a mix as "
                "fedov:0.4+stretch:0.6, with "
                f"names out of: {choices(_NAMES)}"
            ) from None
    return parts


def _named(name: str, kind: Kind) -> Mapping[str, float]:
    """The shares of a mix or of a single operation."""
    if name in BY_KIND:
        name = BY_KIND[name][kind]
    if name not in MIXES and name not in OPERATIONS:
        raise ConfigError(
            f"unknown destruction {name!r}.{did_you_mean(name, _NAMES)} "
            f"Known: {choices(_NAMES, name)}"
        )
    return MIXES.get(name, {name: 1.0})


_NAMES = (*BY_KIND, *MIXES, *OPERATIONS)
