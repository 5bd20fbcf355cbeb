"""What a folder already answers: the figures of a finished run,
if they are those of the same settings and data.
"""

from dataclasses import replace
from pathlib import Path

from ostraka.data.fingerprint import changes
from ostraka.data.partitions.given import FromFile
from ostraka.data.partitions.spec import parse
from ostraka.data.sources import data_dirs
from ostraka.errors import DataError, PartitionError
from ostraka.runs.config import Config, label_of, resolve
from ostraka.runs.record import RunDir
from ostraka.runs.results import Summary
from ostraka.runs.start import find_start, pinned


def finished_answer(home: RunDir, config: Config) -> Summary | None:
    """The summary of a finished run, None if it is not finished.

    Changed data is refused; where it is gone, a note.
    """
    done = home.finished()
    if done is None:
        return None
    start = find_start(config) if config.start_from and not config.start_digest else None
    home.check_same(pinned(resolve(config), start), resume=True)
    notes = [*_check_data(home, config), *_check_division(home, config)]
    return replace(done, notes=(*done.notes, *notes)) if notes else done


def _check_data(home: RunDir, config: Config) -> list[str]:
    notes = []
    for name, was in home.read_marks()["data"].items():
        try:
            found = changes(was, name, data_dirs(config.data_dir), label_of(config, name))
        except DataError as error:  # the figures stand in the run's own record
            notes.append(
                f"{name} can no longer be read, so nobody can say whether it has changed: {error}"
            )
        else:
            home.refuse_changes(name, found)
    return notes


def _check_division(home: RunDir, config: Config) -> list[str]:
    rule = parse(config.partition)
    if not isinstance(rule, FromFile):
        return []
    if not Path(rule.path).expanduser().exists():
        return [f"{rule.path} is gone; the run's own record of its division is {home.partition}"]
    try:
        home.check_division(rule.digest())
    except PartitionError as error:
        raise DataError(
            f"the division of the run in {home.root} can no longer be read: {error}"
        ) from None
    return []
