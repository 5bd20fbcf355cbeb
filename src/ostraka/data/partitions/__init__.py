"""Who holds what: rules that divide training samples among parties. Importing registers them."""

from ostraka.registry import import_modules

import_modules(__name__, __path__)
