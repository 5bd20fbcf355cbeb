"""A member file under the eyes of whoever hands it over, or receives it: the strict reader's checks
one by one, what the member makes of junk, and what leaves the machine.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import torch

from ostraka.core.member import Member
from ostraka.core.predictor import UNKNOWN
from ostraka.errors import OstrakaError
from ostraka.parties.leaving import Leaving, leaving
from ostraka.store.member import STAGES, load_member
from ostraka.voting.probes import EACH, junk_probes

CHECKS: Mapping[str, str] = {
    "path": "a plain file, no link or pipe",
    "header": "within all limits, no hole and no byte too many; no pickle",
    "card": "its hash fits, every field is known and in its range",
    "network": "can be built, and is no larger than the file",
    "tensors": "exactly the network's, unchanged since written, all finite",
    "answers": "finite, and not always the same",
}
"""What each stage of the reader finds in order."""

JUNK = ("uniform noise", "normal noise", "constants")
"""The probes, in the order of `junk_probes`."""


@final
@dataclass(frozen=True)
class Check:
    """One stage of the reader: passed (True), failed (False), or not reached (None)."""

    name: str
    passed: bool | None
    words: str
    """What is in order, or why it is not."""


@final
@dataclass(frozen=True)
class Verdict:
    """What was found of one file."""

    path: Path
    checks: tuple[Check, ...]
    member: Member | None = None
    junk: Mapping[str, float] | None = None
    """Of each kind of probe, the share that the member calls unknown; None: it never does."""
    leaving: tuple[Leaving, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether it is a member in every respect."""
        return self.member is not None

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "file": str(self.path),
            "passed": self.passed,
            "checks": [dict(vars(check)) for check in self.checks],
            "unknown_on_junk": None if self.junk is None else dict(self.junk),
            "leaves": [
                {"what": one.what, "bytes": one.bytes, "reveals": one.reveals}
                for one in self.leaving
            ],
        }


def verify(path: str | Path) -> Verdict:
    """Look at a file as the strict reader does, and at what is in it."""
    path, done = Path(path), list[str]()
    try:
        member = load_member(path, done.append)
    except OstrakaError as error:
        return Verdict(path, _checks(done, str(error)))
    return Verdict(
        path=path,
        checks=_checks(done, ""),
        member=member,
        junk=unknown_on_junk(member),
        leaving=tuple(leaving(member, path.stat().st_size)),
    )


def _checks(done: list[str], reason: str) -> tuple[Check, ...]:
    failed = STAGES[len(done)] if len(done) < len(STAGES) else None
    return tuple(
        Check(
            name,
            True if name in done else False if name == failed else None,
            CHECKS[name] if name in done else reason if name == failed else "not reached",
        )
        for name in STAGES
    )


@torch.no_grad()
def unknown_on_junk(member: Member) -> dict[str, float] | None:
    """Of each kind of junk probe, the share that the member calls unknown; None: its objective
    gives it no such answer.
    """
    if not member.model.objective.refuses:
        return None
    answers = member.predictor().answers(junk_probes(member.model.shape)).open
    shares = (answers == UNKNOWN).float().view(len(JUNK), EACH).mean(dim=1)
    return dict(zip(JUNK, shares.tolist(), strict=True))
