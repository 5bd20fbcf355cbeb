"""Random changes of training samples, one family a file. Importing this package registers them."""

from ostraka.registry import import_modules

import_modules(__name__, __path__)
