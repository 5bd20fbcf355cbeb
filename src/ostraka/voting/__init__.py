"""Voting: members, ballots and the ensembles that answer. Importing this package registers the built-in ballots."""

from ostraka.voting import ballots, calibrated, guarded

__all__ = ["ballots", "calibrated", "guarded"]
