"""Matching the hidden units of several networks by optimal transport, layer by layer."""
