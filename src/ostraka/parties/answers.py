"""Answers of a group: a class or unknown for every sample, how sure, and who said what."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ostraka.core.predictor import UNKNOWN

UNKNOWN_NAME = "unknown"
"""The answer to a sample of no class that the group knows."""


@final
@dataclass(frozen=True)
class Voice:
    """What one member said of one sample."""

    member: str
    answer: str
    """What it would answer alone: a class or unknown."""
    probability: float
    """How probable it takes that to be, 0 to 1."""
    weight: float
    """Its share of the say in the nearest class, 0 to 1; all members together have 1."""


@final
@dataclass(frozen=True)
class Explanation:
    """The answer to one sample, and how it came about."""

    answer: str
    """A class, or unknown."""
    nearest: str
    """The likeliest class, also where the answer is unknown."""
    confidence: float
    """The share of the vote that this class has among all classes, 0 to 1."""
    unknown: float
    """How unknown the sample seems; above the threshold the answer is unknown."""
    threshold: float | None
    """None: the group never answers unknown."""
    voices: tuple[Voice, ...]
    """Every member's, the one with most say first; empty where no members voted."""

    @property
    def answered_by(self) -> tuple[str, ...]:
        """The members that have a say and would answer the same alone."""
        return tuple(v.member for v in self.voices if v.weight > 0 and v.answer == self.answer)

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        said = [dict(vars(voice)) for voice in self.voices]
        return {**vars(self), "answered_by": list(self.answered_by), "voices": said}

    def __str__(self) -> str:
        head = f"{self.answer} (nearest {self.nearest}, {100 * self.confidence:.0f} % of the vote)"
        lines = [
            f"  {v.member}: {v.answer}, {100 * v.probability:.0f} %, weight {v.weight:.2f}"
            for v in self.voices
        ]
        return "\n".join([head, *lines])


@final
@dataclass(frozen=True, eq=False)
class Answers:
    """The answers to B samples, as arrays; `explanations` says the same one by one."""

    classes: tuple[str, ...]
    members: tuple[str, ...]
    nearest: Tensor
    """[B]: the likeliest class."""
    confidence: Tensor
    """[B]: the share of the vote that it has."""
    unknown: Tensor
    """[B]: how unknown the sample seems."""
    threshold: float
    own: Tensor
    """[M, B]: what each member would answer alone, a class or UNKNOWN."""
    sure: Tensor
    """[M, B]: how probable it takes that to be."""
    weight: Tensor
    """[M, B]: its share of the say in the nearest class."""

    def __len__(self) -> int:
        return len(self.nearest)

    @property
    def numbers(self) -> Tensor:
        """[B]: the answers as class numbers, or UNKNOWN."""
        return torch.where(self.unknown > self.threshold, UNKNOWN, self.nearest)

    @property
    def labels(self) -> NDArray[np.str_]:
        """[B]: the answers as class names, or "unknown"."""
        return np.array([*self.classes, UNKNOWN_NAME])[self.numbers.numpy()]

    @property
    def joined(self) -> Tensor:
        """[M, B]: whether a member that has a say would answer the same alone."""
        return (self.own == self.numbers) & (self.weight > 0)

    def explanations(self) -> Iterator[Explanation]:
        """The answers one by one, with every member's voice."""
        names, labels = [*self.classes, UNKNOWN_NAME], self.labels
        limit = None if self.threshold == float("inf") else self.threshold
        for i in range(len(self)):
            told = zip(self.members, self.own[:, i].tolist(), self.sure[:, i].tolist(),
                       self.weight[:, i].tolist(), strict=True)  # fmt: skip
            voices = [Voice(name, names[own], sure, weight) for name, own, sure, weight in told]
            yield Explanation(
                answer=str(labels[i]),
                nearest=names[int(self.nearest[i])],
                confidence=float(self.confidence[i]),
                unknown=float(self.unknown[i]),
                threshold=limit,
                voices=tuple(sorted(voices, key=lambda voice: -voice.weight)),
            )


def join_answers(parts: Sequence[Answers]) -> Answers:
    """Answers to consecutive chunks as one."""
    along = {"nearest": 0, "confidence": 0, "unknown": 0, "own": 1, "sure": 1, "weight": 1}
    whole = {name: torch.cat([getattr(p, name) for p in parts], dim) for name, dim in along.items()}
    return replace(parts[0], **whole)
