"""`python -m ostraka` is the command `ostraka`."""

import sys

from ostraka.cli.main import main

if __name__ == "__main__":  # worker processes import this file again
    sys.exit(main())
