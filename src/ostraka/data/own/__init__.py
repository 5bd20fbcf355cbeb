"""Own data, by path: folders of images and recordings, tables, arrays.

`read` gives a `Collection`: samples, the names of the classes that they are of, and what must be
said of them. A `Form` says what samples must look like, so that those of all parties fit together.
"""

import os
from pathlib import Path

from ostraka.data.own.collection import Collection, in_both
from ostraka.data.own.form import ANYTHING, Asked, Column, Form, Part
from ostraka.data.own.readers import read_asked

__all__ = ["Collection", "Column", "Form", "Part", "in_both", "read"]


def read(
    path: str | Path,
    form: Form = ANYTHING,
    *,
    labelled: bool | None = None,
    part: Part | None = None,
    skip_broken: bool = False,
    cache: bool = True,
) -> Collection:
    """The samples of a folder or a file, as `form` wants them.

    `labelled`: None takes labels where there are some (sub-folders, the label column, y of a .npz
    file), True needs them, False leaves them. Data that is stored in two parts, train and test, is
    read by `part`; None is train, with a note on the other. A file that cannot be read is an error,
    or, with `skip_broken`, left out and counted in a note. One image or recording is a collection
    of one sample without a label.
    """
    place = Path(os.path.expanduser(path))
    return read_asked(Asked(place, form, labelled, part, skip_broken, cache))
