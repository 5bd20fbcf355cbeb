"""`python -m ostraka` is the command `ostraka`."""

import sys


def main() -> int:
    """Run one command; a Ctrl-C while the program loads is no error either."""
    try:
        from ostraka.cli.main import main as command

        return command()
    except KeyboardInterrupt:
        print("ostraka: interrupted", file=sys.stderr)
        return 130


if __name__ == "__main__":  # worker processes import this file again
    sys.exit(main())
