"""Labels, checked before anything trains on them: whole numbers from 0, one for each sample,
without gaps."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ostraka.errors import DataError

Array = NDArray[Any]

RENUMBER = "names, y = numpy.unique(labels, return_inverse=True)"
"""How any labels become numbers from 0."""


def class_names(
    name: str, y_train: Array, y_test: Array, given: Sequence[str], where: str
) -> tuple[str, ...]:
    """The names of the classes: those `given` (in the file `where`), or else "0", "1" and so on.

    Labels that fit no set of classes are refused, with the place where they are.
    """
    parts = {"y_train": y_train, "y_test": y_test}
    for key, y in parts.items():
        _check_kind(f"{name}: {key}", y)
        if y.size and y.min() < 0:
            raise DataError(
                f"{name}: {key} has label {y.min()} at position {int(y.argmin())}; labels are "
                "whole numbers from 0: "
                "renumber them, or remove the sample if this marks a missing label"
            )
    found = np.unique(y_train)
    classes = tuple(given) or tuple(str(c) for c in range(len(found)))
    if given:
        _check_named(name, parts, classes, where)
    elif len(found) and found[-1] != len(found) - 1:
        raise DataError(f"{name}: {_gap(y_train, found)}")
    for label in np.setdiff1d(y_test, found):
        at = int(np.flatnonzero(y_test == label)[0])
        raise DataError(
            f"{name}: y_test has label {label} at position {at}, but no training sample has it "
            f"(they have labels from {found[0]} to {found[-1]}); correct it, or move samples of "
            "that class to the training set"
        )
    return classes


def _check_kind(key: str, y: Array) -> None:
    if y.dtype.hasobject:
        raise DataError(f"{key} holds Python objects; store labels as whole numbers from 0")
    if y.ndim == 2 and y.shape[1] > 1:
        hint = (
            "this looks one-hot: store y.argmax(axis=1)"
            if y.dtype.kind in "iufb" and np.isin(y, (0, 1)).all() and (y.sum(axis=1) == 1).all()
            else "a sample has one label, not several"
        )
        raise DataError(
            f"{key} has shape {list(y.shape)}; give one label for each sample, [N]; {hint}"
        )
    if y.ndim != 1:
        raise DataError(
            f"{key} has shape {list(y.shape)}; give one label for each sample, [N]: store "
            "y.reshape(-1)"
        )
    if y.dtype.kind in "US":
        some = ", ".join(repr(str(label)) for label in np.unique(y)[:3])
        raise DataError(
            f"{key} holds text ({some}, ...); labels are whole numbers from 0. Number them "
            f"({RENUMBER}, training and "
            'test together) and put the names into a JSON file beside the data: {"class_names": '
            "[...]}"
        )
    if y.dtype.kind == "f" and (wrong := ~(np.isfinite(y) & (y == np.floor(y)))).any():
        at = int(wrong.argmax())
        raise DataError(
            f"{key} has label {y[at]} at position {at}; labels are whole numbers from 0"
        )
    if y.dtype.kind not in "iu":
        raise DataError(
            f"{key} is {y.dtype}; labels are stored as whole numbers: store y.astype(numpy.int64)"
        )


def _check_named(name: str, parts: dict[str, Array], classes: Sequence[str], where: str) -> None:
    count = len(classes)
    said = f"{where} lists {count} class names" if where else f"{name} has {count} classes"
    for key, y in parts.items():
        if y.size and y.max() >= count:
            at, used = int(np.flatnonzero(y >= count)[0]), len(np.unique(y))
            raise DataError(
                f"{name}: {key} has label {y[at]} at position {at}, but {said}, for labels 0 to "
                f"{count - 1} ({key} has {used} different labels, up to {y.max()}); "
                + ("list a name for every label, or " if where else "")
                + "correct the labels"
            )
    empty = np.setdiff1d(np.arange(count), parts["y_train"])
    if len(empty):
        listed = ", ".join(f"{c} ({classes[c]})" for c in empty[:5])
        raise DataError(
            f"{name}: no training sample of class "
            f"{listed}{' and others' if len(empty) > 5 else ''}, but {said}; they "
            f"must use every number from 0 to {count - 1}: renumber them, add samples"
            + (" or list fewer names" if where else "")
        )


def _gap(y: Array, found: Array) -> str:
    """What to say of labels that leave a number out: the label above the gap, and where it is."""
    if found[0] > 0 and found[-1] - found[0] == len(found) - 1:
        return (
            f"labels go from {found[0]} to {found[-1]}; they must start at 0: store y_train - "
            f"{found[0]} and y_test - {found[0]}"
        )
    missing = int(np.flatnonzero(found != np.arange(len(found)))[0])
    label = found[missing]
    at = np.flatnonzero(y == label)
    span = f"is {missing}" if label == missing + 1 else f"lies from {missing} to {label - 1}"
    below = f"; the labels below it are {missing} classes, 0 to {missing - 1}" if missing else ""
    return (
        f"y_train has label {label} at position {int(at[0])} ({len(at)} of {len(y)} samples), but "
        f"none {span}{below}. Correct it, or renumber training and test labels together, from 0 "
        f"without gaps: {RENUMBER}"
    )
