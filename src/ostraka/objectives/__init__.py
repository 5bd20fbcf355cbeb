"""Training objectives. Importing this package registers the built-in ones."""

from ostraka.registry import import_modules

import_modules(__name__, __path__)
