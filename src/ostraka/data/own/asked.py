"""What is asked of a reader of own data."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ostraka.data.own.form import Form

Part = Literal["train", "test"]
"""Of data that is stored in two parts."""


@dataclass(frozen=True)
class Asked:
    """A path, and how it shall be read.

    `part`: None is train, and says so where there are others.
    `labelled`: None takes labels where there are some, True needs them, False leaves them.
    `skip_broken`: leave out files that cannot be read, with a counted note, instead of an error.
    """

    path: Path
    form: Form = Form()
    labelled: bool | None = None
    part: Part | None = None
    skip_broken: bool = False
    cache: bool = True

    @property
    def which(self) -> Part:
        """The part that is read."""
        return self.part or "train"
