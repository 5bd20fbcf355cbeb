"""Parties that did not finish: what is kept of it, what is said,
and whether the run may go on without them.
"""

from collections.abc import Mapping, Sequence

from ostraka.engines.base import Failure
from ostraka.errors import PartyFailed, StoreError, writing
from ostraka.runs.config import Config
from ostraka.runs.record import RunDir
from ostraka.store.files import opened_log

SHOWN = 5
"""Failures that a message names."""


def report_failures(
    config: Config, home: RunDir, failures: Sequence[Failure], names: Mapping[int, str]
) -> None:
    """Return if the run goes on without the failed parties, otherwise raise what there is to say.

    `names` are those of all parties that were asked.
    """
    asked, log = len(names), _keep(home, failures, names)
    named = "; ".join(f"{names[f.party]}: {f.reason.rstrip('.')}" for f in failures[:SHOWN])
    named += f" (and {len(failures) - SHOWN} more)" if len(failures) > SHOWN else ""
    # no fault of the party: nobody is dropped for a full disk
    if any(failure.storage for failure in failures):
        raise StoreError(
            f"the work of {len(failures)} of {asked} parties could not be stored: {named}. What "
            f"was finished is kept; go on with: {home.resume_command()}"
        )
    drops, left = config.on_failure == "drop", asked - len(failures)
    if drops and left >= config.min_parties:
        return
    again = any(failure.final for failure in failures)
    fix = (
        "begin a new run with other settings"
        if again
        else f"fix the cause and go on with: {home.resume_command()}"
    )
    others = not drops and left >= 1
    without = f", or go on without: {home.resume_command(without_failed=True)}" if others else ""
    few = f"; at least {config.min_parties} must finish" if drops and left else ""
    raise PartyFailed(
        f"{len(failures)} of {asked} parties failed{few}: "
        f"{named}. {log}The others' work is kept; {fix}{without}"
    )


def _keep(home: RunDir, failures: Sequence[Failure], names: Mapping[int, str]) -> str:
    """Write the failures down; where they can be read, or why not."""
    log = home.root / "failures.log"
    try:
        with writing(log), opened_log(log, "a") as file:
            file.writelines(f"{names[f.party]}: {f.reason}\n{f.details}\n" for f in failures)
    except StoreError as error:  # must not hide the failures themselves
        return f"({error}) "
    return f"Details: {log}. "
