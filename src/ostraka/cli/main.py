"""`ostraka`: the entry point of the command line."""

import argparse
import sys
import warnings
from collections.abc import Sequence

from ostraka import __version__
from ostraka.cli import compare, demo, doctor, figure, listing, partition, run
from ostraka.engines.memory import keep_freed_memory
from ostraka.errors import OstrakaError, did_you_mean

VERBS = (run, compare, partition, figure, listing, doctor, demo)

EXIT_CODES = """\
exit codes:
  0    done
  1    an error inside ostraka, with a traceback: please report it
  2    something in the command, a setting or the data must be mended
  3    a party or a grid cell failed; the others' work is kept
  130  interrupted; the run can be resumed
"""


def parser() -> argparse.ArgumentParser:
    """The whole command line."""
    top = argparse.ArgumentParser(
        prog="ostraka",
        description="Federated learning under label skew, with the right to answer unknown.",
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action="version", version=f"ostraka {__version__}")
    verbs = top.add_subparsers(dest="verb", metavar="VERB", required=True)
    for module in VERBS:
        module.add_to(verbs)
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    names = [module.NAME for module in VERBS]
    try:
        if words and not words[0].startswith("-") and words[0] not in names:
            hint = did_you_mean(words[0], names)
            raise OstrakaError(f"unknown verb {words[0]!r}.{hint} Verbs: {', '.join(names)}. See ostraka --help")
        options = parser().parse_args(words)
        options.words = words
        keep_freed_memory()  # votes and evaluation run in this process
        with warnings.catch_warnings():
            warnings.showwarning = _warn
            code: int = options.act(options)
        return code
    except OstrakaError as error:
        print(f"ostraka: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("ostraka: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        sys.stderr.close()  # the reader of our output went away, as `| head` does
        return 0


def _warn(message: Warning | str, *_: object, **__: object) -> None:
    """A warning as one line, without the place in the code where it came up."""
    print(f"ostraka: warning: {message}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
