"""`ostraka federation`: organisations that train together, each with its own data."""

import argparse
import shlex
import sys
from math import inf
from pathlib import Path

from ostraka.cli.options import SEED, add_run_options, check_local, option, values_from
from ostraka.errors import ConfigError

NAME = "federation"
HELP = "train with other organisations, each with its own data (over Flower)"

EXAMPLE = """\
examples:
  ostraka federation init fed fedov --data scans.npz --party north --party east
  ostraka federation server fed
  ostraka federation party north --data /data/scans
  ostraka federation check fed
  ostraka federation init trial fedavg --data digits --party a --party b --share
"""

DESCRIPTION = """\
Organisations that train together over Flower, each with its own data.

  init    make a federation in the new folder DIR: certificates, keys, the run
  server  start the server of the federation in DIR and run to the end;
          once more: go on where it was left
  party   start the party whose folder DIR is (init made it, in parties/)
  check   say what is wrong with the federation, or the party, in DIR
  renew   make a new certificate for the server of the federation in DIR
"""


def act(options: argparse.Namespace) -> int:
    """Do what was asked for."""
    return ACTS[options.what](options)


def _init(options: argparse.Namespace) -> int:
    from ostraka.federation.project import create

    if options.method is None:
        raise ConfigError(
            "name a method, for example: ostraka federation init fed fedov --party north"
        )
    check_local(options, [options.method])
    values = values_from(options, ("method", "data", "partition", "seed"))
    if options.data is not None and Path(options.data).expanduser().exists():
        # it is read by another process, maybe from another folder
        values["data"] = str(Path(options.data).expanduser().absolute())
    made = create(options.folder, values, options.party, options.host, options.port, options.share)
    root = shlex.quote(str(options.folder))
    print(f"The federation {made.name} is in {options.folder}.")
    print("1. Hand every party its folder, on a way that nobody else can read (it holds its key):")
    for name in made.parties:
        print(f"     {options.folder / 'parties' / name}")
    print("2. Here, look whether all is well, and start the server:")
    print(f"     ostraka federation check {root}")
    print(f"     ostraka federation server {root}")
    print(f"   Parties must reach {made.host} at port {made.port}.")
    print("3. At every party, in any order and at any time:")
    for name in made.parties:
        data = "" if made.share else " --data PATH"
        print(f"     ostraka federation party {name}{data}")
    return 0


def _server(options: argparse.Namespace) -> int:
    from rich.console import Console

    from ostraka.display.summary import show_summary
    from ostraka.federation.project import Federation
    from ostraka.federation.server import serve

    show_summary(Console(), serve(Federation.load(options.folder), options.bind))
    return 0


def _party(options: argparse.Namespace) -> int:
    from dataclasses import replace

    from ostraka.federation.check import private_problem
    from ostraka.federation.party import start
    from ostraka.federation.project import PartyFolder

    if not 0 <= options.wait < inf:
        raise ConfigError(f"--wait is {options.wait:g}; give seconds from 0, such as 3600")
    party = PartyFolder.load(options.folder)
    if options.data is not None:
        party = replace(party, data=str(Path(options.data).expanduser().absolute()))
    if options.device is not None:
        party = replace(party, device=options.device)
    problem = private_problem(party.key)
    if problem:
        raise ConfigError(problem)
    if not party.share and not party.data:
        raise ConfigError(
            f"{party.name} has no data yet: ostraka federation party {options.folder} --data PATH"
        )
    if not party.share and not Path(party.data).exists():
        raise ConfigError(
            f"there is nothing at {party.data}, the data of {party.name}; give the folder or file "
            f"with: ostraka federation party {options.folder} --data PATH"
        )
    party.save()
    code = start(party, options.wait)
    if code not in (0, -15):
        raise ConfigError(
            f"the party's node ended with code {code}; what is wrong says: ostraka federation "
            f"check {options.folder}"
        )
    return 0


def _check(options: argparse.Namespace) -> int:
    from ostraka.federation.check import check_party, check_server
    from ostraka.federation.project import Federation, PartyFolder

    if (options.folder / "party.toml").exists():
        findings = check_party(PartyFolder.load(options.folder))
    else:
        findings = check_server(Federation.load(options.folder))
    wrong = 0
    for finding in findings:
        print(f"{'WRONG' if finding.problem else 'ok   '}  {finding.what}")
        if finding.problem:
            wrong += 1
            print(f"       {finding.problem}")
        sys.stdout.flush()
    return 2 if wrong else 0


def _renew(options: argparse.Namespace) -> int:
    from ostraka.federation.project import Federation

    Federation.load(options.folder).renew()
    print("The server has a new certificate; the parties need nothing. Start the server again.")
    return 0


ACTS = {"init": _init, "server": _server, "party": _party, "check": _check, "renew": _renew}

OPTIONS = (
    option("what", "what to do", choices=tuple(ACTS)),
    option("folder DIR", "of the federation or the party", Path),
    option("method METHOD", "init: method or preset", nargs="?"),
    option(
        "--data D", "init: the server's data, for the classes and the test; party: its own data"
    ),
    option("--party NAME", "init: a party; repeatable", action="append", default=[]),
    option("--host H", "init: the server's name", default="localhost"),
    option("--port P", "init: its port", int, default=8443),
    option("--share", "init: to try it out, every party has its share of --data (see --partition)"),
    option("--partition P", "init --share: how data is divided"),
    option("--bind IP", "server: the address to listen at", default="0.0.0.0"),
    option(
        "--wait S",
        "party: seconds without the server after which it ends; default: a day",
        float,
        default=86400.0,
    ),
    SEED,
    add_run_options,
)
