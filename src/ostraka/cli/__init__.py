"""The command line: one module per verb, all thin.

`--help`, `--version` and mistakes in the command must not wait for torch. So a verb's module
imports at its top only what loads at once; what it needs in order to act, it imports in the
functions that use it.
"""
