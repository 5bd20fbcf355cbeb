"""Runs: from a configuration to a finished, resumable run directory, and grids of them."""
