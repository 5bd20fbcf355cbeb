"""Data sets, how they are shown to networks, and who holds what.

Readers are in `sources`, divisions in `partitions`, augmentations in `augment`.
"""

from ostraka.data.dataset import Dataset, first_per_class, known_split
from ostraka.data.partitions.divide import Partition, partition
from ostraka.data.partitions.spec import describe
from ostraka.data.sources.find import Found, available, data_dirs, load

__all__ = [
    "Dataset",
    "Found",
    "Partition",
    "available",
    "data_dirs",
    "describe",
    "first_per_class",
    "known_split",
    "load",
    "partition",
]
