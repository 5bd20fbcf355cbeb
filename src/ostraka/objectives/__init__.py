"""Training objectives. Importing this package registers the built-in ones."""

from ostraka.objectives import cross_entropy

__all__ = ["cross_entropy"]
