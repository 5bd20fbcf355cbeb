"""`ostraka data get`: public data sets from the web, for machines with a network."""

import argparse
import json
import sys
import time

from ostraka.cli.options import NO_PROGRESS, option, place
from ostraka.errors import ConfigError

NAME = "data"
HELP = "get public data sets from the web"
DESCRIPTION = """\
Get public data sets from their own addresses, check their digests and
read them once. Nothing else in ostraka uses the network.
"""
EXAMPLE = """\
examples:
  ostraka data get mnist --to ~/datasets
  ostraka data get cifar10 svhn --mirror https://mirror.example.org/files
Sets: mnist, fashion-mnist, cifar10, svhn, emnist, usps. What was cut is resumed
by the same command. `ostraka list data` shows what is there. Proxies are taken
from https_proxy and http_proxy.
"""

OPTIONS = (
    option("action", "what to do: get", choices=("get",)),
    option("sets SET", "names of data sets", nargs="+"),
    option("--to DIR", "folder (default: the first of OSTRAKA_DATA, else data)", place),
    option("--mirror URL", "another place on the web, with files of the same names"),
    option("--json", "print one JSON object instead of words"),
    NO_PROGRESS,
)


def act(options: argparse.Namespace) -> int:
    """Get one set after the other."""
    from ostraka.data.fetch import get
    from ostraka.data.fetch.getting import find_set, folder_for

    wanted = [find_set(name) for name in dict.fromkeys(options.sets)]
    folder = folder_for(options.to)
    if folder.exists() and not folder.is_dir():
        raise ConfigError(f"--to is {folder}, a file; give a folder")
    line = _Line(quiet=options.quiet or options.json)
    done = []
    for one in wanted:
        found = get(one, folder, options.mirror, line.tell)
        line.end()
        done.append(found)
        if not options.json:
            what = "fetched" if found.fresh else "is there already"
            print(
                f"{found.read_as} {what}: {found.train:,} + {found.test:,} samples of "
                f"{found.classes} classes in {found.path} ({found.checked})"
            )
    if options.json:
        print(json.dumps({"data": [found.record() for found in done]}))
    else:
        print(f"Use it with --data-dir {folder}, or OSTRAKA_DATA={folder}.")
    return 0


class _Line:
    """How far a file is, as one line that is written over, where somebody can see it."""

    def __init__(self, quiet: bool) -> None:
        self.shown, self.silent = 0.0, quiet or not sys.stderr.isatty()

    def tell(self, name: str, here: int, total: int | None) -> None:
        """Twice a second."""
        if self.silent or time.monotonic() - self.shown < 0.5:
            return
        self.shown = time.monotonic()
        share = f" of {total / 1e6:.1f} MB ({here / total:.0%})" if total else " MB"
        print(f"\r{name}: {here / 1e6:.1f}{share}\x1b[K", end="", file=sys.stderr, flush=True)

    def end(self) -> None:
        """Take the line away."""
        if not self.silent:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
