"""Answers of a group: a class or unknown for every sample, how sure, and who said what."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ostraka.core.names import UNKNOWN_NAME
from ostraka.core.predictor import UNKNOWN


@final
@dataclass(frozen=True)
class Voice:
    """What one member said of one sample."""

    member: str
    answer: str
    """What it would answer alone: a class or unknown."""
    nearest: str
    """The class that it takes for the likeliest, also where it would answer unknown."""
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
        """The members that have a say and said the same: to an answer of unknown those that would
        answer so alone, to a class those that take it for the likeliest.
        """
        unknown = self.answer == UNKNOWN_NAME
        return tuple(
            voice.member
            for voice in self.voices
            if voice.weight > 0 and (voice.answer if unknown else voice.nearest) == self.answer
        )

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
class Said:
    """What M members said of B samples, [M, B] each; M is 0 where nobody votes."""

    own: Tensor
    """What each would answer alone, a class or UNKNOWN."""
    nearest: Tensor
    """The class that each takes for the likeliest."""
    sure: Tensor
    """How probable it takes its own answer to be."""
    weight: Tensor
    """Its share of the say in the class that is the likeliest for all together."""

    def of(self, sample: int) -> tuple[list[int], list[int], list[float], list[float]]:
        """What all said of one sample."""
        columns = (self.own, self.nearest, self.sure, self.weight)
        own, nearest, sure, weight = (values[:, sample].tolist() for values in columns)
        return own, nearest, sure, weight


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
    said: Said

    def __len__(self) -> int:
        return len(self.nearest)

    @property
    def numbers(self) -> Tensor:
        """[B]: the answers as class numbers, or UNKNOWN."""
        return torch.where(self.unknown > self.threshold, UNKNOWN, self.nearest)

    @property
    def labels(self) -> NDArray[np.str_]:
        """[B]: the answers as class names, or "unknown"."""
        names = np.array([*self.classes, UNKNOWN_NAME])
        answers: NDArray[np.str_] = names[self.numbers.numpy()]  # UNKNOWN is -1: the last
        return answers

    @property
    def joined(self) -> Tensor:
        """[M, B]: who answered so, as `Explanation.answered_by`."""
        answers = self.numbers
        same = torch.where(
            answers == UNKNOWN, self.said.own == UNKNOWN, self.said.nearest == answers
        )
        return same & (self.said.weight > 0)

    def explanations(self) -> Iterator[Explanation]:
        """The answers one by one, with every member's voice."""
        names, labels = [*self.classes, UNKNOWN_NAME], self.labels
        limit = None if self.threshold == float("inf") else self.threshold
        for i in range(len(self)):
            voices = [
                Voice(member, names[own], names[near], sure, weight)
                for member, own, near, sure, weight in zip(
                    self.members, *self.said.of(i), strict=True
                )
            ]
            yield Explanation(
                answer=str(labels[i]),
                nearest=names[int(self.nearest[i])],
                confidence=float(self.confidence[i]),
                unknown=float(self.unknown[i]),
                threshold=limit,
                voices=tuple(sorted(voices, key=lambda voice: -voice.weight)),
            )


def join_answers(parts: Sequence[Answers], count: int) -> Answers:
    """The first `count` answers of consecutive blocks as one."""
    said = {
        name: torch.cat([getattr(part.said, name) for part in parts], dim=1)[:, :count]
        for name in ("own", "nearest", "sure", "weight")
    }
    return replace(
        parts[0],
        nearest=torch.cat([part.nearest for part in parts])[:count],
        confidence=torch.cat([part.confidence for part in parts])[:count],
        unknown=torch.cat([part.unknown for part in parts])[:count],
        said=Said(**said),
    )
