"""Federated methods, one file each. Importing this package registers the built-in ones and their presets."""

from ostraka.methods import (
    centralised,
    closed_voting,
    data_sharing,
    fedavg,
    fedaws,
    feddf,
    fedir,
    fedkt,
    fedma,
    fednova,
    fedov,
    fedpd,
    fedprox,
    fedvc,
    scaffold,
    solo,
)

__all__ = [
    "centralised",
    "closed_voting",
    "data_sharing",
    "fedavg",
    "fedaws",
    "feddf",
    "fedir",
    "fedkt",
    "fedma",
    "fednova",
    "fedov",
    "fedpd",
    "fedprox",
    "fedvc",
    "scaffold",
    "solo",
]
