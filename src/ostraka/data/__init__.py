"""Datasets, partitions of them among parties, and augmentation. Importing this package registers all built-in ones."""

from ostraka.data import augmentation, partition_given, partition_rules, rand_augment
from ostraka.data.dataset import Dataset, first_per_class, known_split
from ostraka.data.partition import Partition, describe
from ostraka.data.sources import Found, available, data_dirs, load

__all__ = [
    "Dataset",
    "Found",
    "Partition",
    "augmentation",
    "available",
    "data_dirs",
    "describe",
    "first_per_class",
    "known_split",
    "load",
    "partition_given",
    "partition_rules",
    "rand_augment",
]
