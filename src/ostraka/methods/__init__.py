"""Federated methods, one file each.

Importing this package registers the built-in ones and their presets.
"""

from ostraka.registry import import_modules

import_modules(__name__, __path__)
