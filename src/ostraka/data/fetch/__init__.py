"""Public data sets from their own addresses, for machines with a network."""

from ostraka.data.fetch.getting import Got, get
from ostraka.data.fetch.sets import SETS, PublicSet, Remote

__all__ = ["SETS", "Got", "PublicSet", "Remote", "get"]
