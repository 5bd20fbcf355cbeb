"""Voting: members, ballots and the ensembles that answer.

Importing this package registers the built-in ballots.
"""

from ostraka.registry import import_modules

import_modules(__name__, __path__)
