"""Training objectives. Importing this package registers the built-in ones."""

from ostraka.objectives import arpl, cross_entropy, dias, open_voting, openmax, proser, rpl, ssb

__all__ = ["arpl", "cross_entropy", "dias", "open_voting", "openmax", "proser", "rpl", "ssb"]
