"""`ostraka`: the entry point of the command line."""

import argparse
import codecs
import io
import os
import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from typing import Any, NoReturn, TextIO

from ostraka import __version__
from ostraka.cli import completion
from ostraka.core.synonyms import ours
from ostraka.errors import ConfigError, OstrakaError, did_you_mean, printable
from ostraka.runs.config import SHORT

_VERBS = """run compare show partition figure train_generator task train verify select vote predict
distil federation audit data listing doctor demo completion"""

VERBS = tuple(import_module(f"ostraka.cli.{name}") for name in _VERBS.split())

EXIT_CODES = """\
exit codes:
  0    done
  1    an error inside ostraka, with a traceback: please report it
  2    something in the command, a setting or the data must be fixed
  3    a party or a grid cell failed; the others' work is kept
  130  interrupted; the run can be resumed
"""

PLAIN = dict(
    zip(
        "—–±×…·→░▒▓",
        "--~x..>-+*",
        strict=True,
    )
)
"""What is written for a character that the stream's encoding lacks;
boxes and blocks have one for all of them. Each is one character, so columns stay where they are.
"""

BOXES, BLOCKS = ("\u2500", "\u257f"), ("\u2580", "\u259f")


class Parser(argparse.ArgumentParser):
    """Tells a mistake in one line, and where to read more; help keeps its line breaks."""

    def __init__(self, **given: Any) -> None:
        super().__init__(formatter_class=argparse.RawDescriptionHelpFormatter, **given)

    def error(self, message: str) -> NoReturn:
        """Leave with the exit code of a mistake."""
        for kind, words in (
            ("int", "takes a whole number; given:"),
            ("float", "takes a number; given:"),
        ):
            message = message.replace(f"invalid {kind} value:", words)
        self.exit(2, f"{self.prog}: {message}; see {self.prog} --help\n")

    def exit(self, status: int = 0, message: str | None = None) -> NoReturn:
        """Leave, once the help is written, or its reader has gone away."""
        sys.stdout.flush()
        super().exit(status, message)


def parser() -> argparse.ArgumentParser:
    """The whole command line."""
    top = Parser(
        prog="ostraka",
        description="Federated learning under label skew, with the right to answer unknown.",
        epilog=EXIT_CODES,
    )
    top.add_argument("--version", action="version", version=f"ostraka {__version__}")
    verbs = top.add_subparsers(dest="verb", metavar="VERB", required=True)
    for module in VERBS:
        own = verbs.add_parser(
            module.NAME, help=module.HELP, description=module.DESCRIPTION, epilog=module.EXAMPLE
        )
        for add in module.OPTIONS:
            add(own)
        own.set_defaults(act=module.act)
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit code."""
    plain_where_needed()
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        options = parse(words)
        options.words = words
        with warnings.catch_warnings():
            warnings.showwarning = _warn
            code: int = options.act(options)
        sys.stdout.flush()  # here, where a reader that went away is no error
        return code
    except OstrakaError as error:
        _say(str(error))
        return error.exit_code
    except KeyboardInterrupt:
        _say("interrupted")
        return 130
    except BrokenPipeError:
        leave_unread(sys.stdout)  # the reader of our output went away, as `| head` does
        return 0
    except OSError as error:  # whatever the system refused and nobody had better words for
        leave_unread(sys.stdout)  # a full disk behind it would fail once more at the end of Python
        named = f"{error.filename}: " if error.filename else ""
        _say(f"{named}{error.strerror or error}; nothing that was finished is lost")
        return 2


def parse(words: Sequence[str]) -> argparse.Namespace:
    """The options that the words of a command mean.

    What no verb knows is refused with the nearest that it does.
    """
    names = [module.NAME for module in VERBS]
    top = parser()
    if words[:1] == ["help"]:
        words = [*words[1:2], "--help"]
    if not words:
        top.print_help(sys.stderr)
        raise ConfigError("name a verb, for example: ostraka demo")
    if words[0].startswith("-") and not words[0].startswith(("-h", "--h", "--v")):
        raise ConfigError(
            f"options stand behind the verb: ostraka VERB {words[0]} ... Verbs: {', '.join(names)}"
        )
    if not words[0].startswith("-") and words[0] not in names:
        hint = did_you_mean(words[0], names)
        raise ConfigError(
            f"unknown verb {words[0]!r}.{hint} Verbs: {', '.join(names)}. See ostraka --help"
        )
    options, unknown = top.parse_known_args(words)
    if unknown:
        own = completion.verb_parsers(top)[options.verb]
        known = [option for action in own._actions for option in action.option_strings]
        given = unknown[0].partition("=")[0]
        kind = "has no option" if given.startswith("-") else "does not take"
        raise ConfigError(
            f"{own.prog} {kind} {given!r}.{_meant(given, known, own.prog)} See "
            f"{own.prog} --help for all it takes"
        )
    return options


def _meant(given: str, known: Sequence[str], verb: str) -> str:
    """Which of the known options is meant: what other libraries call so, or else the nearest."""
    name, _, value = ours(given).partition("=")
    short = {dotted: option for option, dotted in SHORT.items()}
    option = "--" + short.get(name, name).replace("_", "-")
    if name == "method" and verb.endswith(("run", "compare")):
        return f" Give it without a name: {verb} METHOD."
    if name and option in known:
        return f" Did you mean {f'{option} {value}'.strip()!r}?"
    if name and "--set" in known and "--config" in known:
        return f" Did you mean '--set {name}=VALUE'?"
    return did_you_mean(given, known)


def _warn(message: Warning | str, *_: object, **__: object) -> None:
    """A warning as one line, without the place in the code where it came up."""
    _say(f"warning: {message}")


def _say(text: str) -> None:
    """To standard error; names in it may be strangers', and a terminal obeys none."""
    print(f"ostraka: {printable(text, keep=chr(10))}", file=sys.stderr)


def plain_where_needed() -> None:
    """Let standard output and error replace what they cannot encode.

    One that the caller has closed takes anything.
    """
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115  (it serves until the end)
    codecs.register_error("ostraka-plain", _replace)
    encoding = "ascii" if locale_name() in ("C", "POSIX") else None
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding=encoding, errors="ostraka-plain")


def locale_name() -> str:
    """The locale of characters that the user chose; empty if none, which Python takes for UTF-8."""
    return next(
        (value for name in ("LC_ALL", "LC_CTYPE", "LANG") if (value := os.environ.get(name))), ""
    )


def leave_unread(stream: TextIO) -> None:
    """Forget what is for a pipe whose reader is gone, so that the end of Python does not try."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def _replace(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(map(_plain, error.object[error.start : error.end])), error.end


def _plain(character: str) -> str:
    if character in PLAIN:
        return PLAIN[character]
    if BOXES[0] <= character <= BOXES[1]:
        return "-"
    return "#" if BLOCKS[0] <= character <= BLOCKS[1] else "?"


if __name__ == "__main__":
    sys.exit(main())
