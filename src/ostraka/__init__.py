"""Ostraka: federated learning under label skew, with the right to answer *unknown*."""

__version__ = "0.1.0"
