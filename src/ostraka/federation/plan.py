"""The plan of a federation, whose parties most often have their own data.

Then the server's data says what the classes and a sample are, and what the result is judged by;
nobody is given any of it to train on. How much each party holds is what it tells when it joins.
"""

from dataclasses import replace

import numpy as np

from ostraka.data.partitions.divide import Partition
from ostraka.errors import NeedError
from ostraka.federation.project import Federation, refuse_local_test
from ostraka.runs.config import Config, build_method
from ostraka.runs.division import Division, divide
from ostraka.runs.plan import Plan, make_plan
from ostraka.runs.record import RunDir

OWN = "own"
"""What stands for a division that nobody made."""


def plan_of(federation: Federation) -> Plan:
    """What is run: with the parties' own data, or with shares of the run's."""
    config = federation.config()
    if not federation.share:
        return plan_for_own_data(config, federation.parties)
    home = RunDir(federation.run)
    return make_plan(config, home if home.marks.exists() else None)


def plan_for_own_data(config: Config, names: tuple[str, ...]) -> Plan:
    """A plan without a division."""
    refuse_local_test(config)
    if build_method(config).needs.prior:
        raise NeedError(
            f"the method {config.method} needs the label shares of all parties together, which "
            "nobody knows where they have their own data; choose another method"
        )
    plan = make_plan(config, division=_undivided(config, names))
    return replace(plan, config=replace(plan.config, partition=OWN))


def _undivided(config: Config, names: tuple[str, ...]) -> Division:
    """The server's data, of which no party has any."""
    whole = divide(replace(config, partition="iid", parties=1))
    nobody = tuple(np.zeros(0, dtype=np.int64) for _ in names)
    counts = np.zeros((len(names), len(whole.data.classes)), dtype=np.int64)
    empty = Partition(OWN, nobody, names, config.seed, partial=True)
    return replace(whole, partition=empty, counts=counts)
