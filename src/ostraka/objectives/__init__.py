"""Training objectives. Importing this package registers the built-in ones."""

from ostraka.objectives import cross_entropy, open_voting, proser

__all__ = ["cross_entropy", "open_voting", "proser"]
