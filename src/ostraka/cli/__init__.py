"""The command line: one module per group of verbs, all thin."""
