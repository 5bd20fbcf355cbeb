"""Where data sets are read from, one reader a file. Importing this package registers them all."""

from ostraka.data.sources.find import Found, available, data_dirs, load
from ostraka.registry import import_modules

__all__ = ["Found", "available", "data_dirs", "load"]

import_modules(__name__, __path__)
