"""Contract checks for authors of plug-ins, each one line in the plug-in's own tests:

    check_method(MyMethod())       check_objective(MyObjective())    check_net(MyNet)
    check_partition(MyRule())      check_ballot(MyBallot())          check_source(MY_SOURCE, path)
    check_selector(MySelector())     check_strange_reports(MyMethod())

Each runs the `CHECKS` of its module (`methods`, `objectives`, `nets`, ...), which can be called one
by one too. What breaks the contract raises `ContractBroken`, an AssertionError that says what was
expected, what the plug-in did, and what to do. See docs/adding-a-method.md and docs/plug-ins.md.
"""

from ostraka.testing.ballots import check_ballot
from ostraka.testing.expect import ContractBroken, difference
from ostraka.testing.methods import check_method, check_strange_reports
from ostraka.testing.nets import check_net
from ostraka.testing.objectives import check_objective
from ostraka.testing.partitions import check_partition
from ostraka.testing.selectors import check_selector
from ostraka.testing.sources import check_source

__all__ = [
    "ContractBroken",
    "check_ballot",
    "check_method",
    "check_net",
    "check_objective",
    "check_partition",
    "check_selector",
    "check_source",
    "check_strange_reports",
    "difference",
]
