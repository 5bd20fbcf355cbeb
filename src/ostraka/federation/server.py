"""The server of a federation: Flower's SuperLink, its parties' keys, and the run."""

import json
import os
import signal
import ssl
import subprocess
import sys
import threading
import time
import traceback
from contextlib import redirect_stderr, suppress
from pathlib import Path
from secrets import token_hex
from typing import IO, Any
from urllib.error import URLError
from urllib.request import Request, urlopen

from filelock import FileLock, Timeout

from ostraka.engines.base import Outcome
from ostraka.engines.flower import connected
from ostraka.engines.gate import GATED
from ostraka.engines.remote import Expected, say_aloud
from ostraka.errors import ConfigError, OstrakaError, PartyFailed
from ostraka.federation.check import port_problem
from ostraka.federation.plan import plan_of
from ostraka.federation.processes import ended_by_signals, environment, program
from ostraka.federation.project import SERVER_FOLDER, Federation
from ostraka.runs.config import build_engine, write_toml
from ostraka.runs.loop import execute
from ostraka.runs.plan import Plan
from ostraka.runs.record import RunDir
from ostraka.runs.results import Summary
from ostraka.runs.watch import Watch
from ostraka.store import jsonfile
from ostraka.store.files import make_folder, opened_log

START_SECONDS = 180.0
"""How long Flower's server may take to start."""
ASK_SECONDS = 30.0
"""How often Flower is asked whether the run is still there."""
COMMAND_SECONDS = 120.0
"""How long a command of Flower's may take."""
BINDS = ("0.0.0.0", "127.0.0.1")
"""Addresses to listen at; both answer this machine."""
LOCK_SECONDS = 60.0
"""How long the run's process of an earlier server may take to end."""
ATTEMPT = "OSTRAKA_ATTEMPT"
"""What tells an app for which start of the server it works."""
SERVER = "OSTRAKA_SERVER"
"""What tells it which process that is."""
WATCH_SECONDS = 0.5
CONNECTION = "federation"
"""What Flower's configuration calls the server."""
SUPERLINK = "from ostraka.engines.flower import run_superlink; run_superlink({largest!r})"


def run_over(grid: Any, root: Path, watch: Watch | None = None) -> None:
    """What Flower's ServerApp does: the run, or what is left of it, over the grid."""
    federation = Federation.load(root)
    end_with(os.environ.get(SERVER))
    home, ended = RunDir(federation.run), dict[str, Any](done=False, words="ended", code=1)
    # Flower throws away what its apps write: it goes where `serve` looks for it
    with opened_log(federation.said, "a") as said, redirect_stderr(said):
        try:
            with connected(grid, Expected(federation.parties, federation.keys())):
                execute(plan_of(federation), home, watch or Aloud(), resume=home.marks.exists())
            ended = {"done": True}
        except OstrakaError as error:
            ended = {"done": False, "words": str(error), "code": error.exit_code}
            raise
        except Exception as error:
            traceback.print_exc()
            ended["words"] = f"{error!r}; see {federation.said}"
            raise
        finally:
            jsonfile.write_json(outcome_file(federation, os.environ[ATTEMPT]), ended)


class Aloud(Watch):
    """Says on the server's console which party failed, in which round and why."""

    def run_begins(self, plan: Plan, out: Path) -> None:
        """Take down who is who."""
        self.names = plan.parties.names

    def round_begins(self, index: int, rounds: int, parties: int, ready: int) -> None:
        """Take down the round."""
        self.index = index

    def party_ends(self, outcome: Outcome) -> None:
        """Nothing is said of a party that has finished."""
        if outcome.failure is not None:
            who, why = self.names[outcome.party], outcome.failure.reason
            say_aloud(f"{who} failed in round {self.index}: {why}")


def end_with(server: str | None) -> None:
    """End this process soon after that of the server has gone, however it went.

    Flower's app goes on to look for its SuperLink, and would keep the run from the next server.
    """

    def watch(number: int) -> None:
        while alive(number):
            time.sleep(WATCH_SECONDS)
        os._exit(1)

    if server is not None:
        threading.Thread(target=watch, args=(int(server),), daemon=True).start()


def alive(number: int) -> bool:
    """Whether a process of this machine is there."""
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def outcome_file(federation: Federation, attempt: str) -> Path:
    """Where the app says how this attempt ended: one of an earlier server may still be ending."""
    return federation.root / f"server/outcome-{attempt}.json"


def serve(federation: Federation, bind: str = "0.0.0.0") -> Summary:
    """Start the server, let the parties in, run to the end; go on where an earlier one was left."""
    done = RunDir(federation.run).finished() if federation.run.exists() else None
    if done is not None:
        return done
    if bind not in BINDS:
        raise ConfigError(
            f"--bind is {bind}; it can be {' or '.join(BINDS)}: the server's own part is reached "
            "over 127.0.0.1. To keep other networks out, use a firewall"
        )
    problem = port_problem(federation.port, bind)
    if problem:
        raise ConfigError(f"port {federation.port} is not free: {problem}")
    _wait_for_an_earlier_one(federation)
    for old in outcome_file(federation, "").parent.glob("outcome-*.json"):
        old.unlink()
    os.environ[ATTEMPT], os.environ[SERVER] = token_hex(8), str(os.getpid())
    with opened_log(federation.log, "ab") as log, ended_by_signals():
        process = _start(federation, bind, log)
        try:
            _wait_until_up(federation, process)
            _let_in(federation)
            _follow(federation, process, _begin(federation))
        finally:
            _end(process)
    summary = RunDir(federation.run).finished()
    assert summary is not None, "a run that ended well has a summary"
    return summary


def _wait_for_an_earlier_one(federation: Federation) -> None:
    """A server that was killed leaves its run's process, which needs a moment to notice."""
    if not federation.run.exists():
        return
    lock = FileLock(federation.run / "lock")
    try:
        lock.acquire(timeout=LOCK_SECONDS)
    except Timeout:
        raise ConfigError(
            f"another server is at work in {federation.root}; end it, or wait for it"
        ) from None
    lock.release()


def _start(federation: Federation, bind: str, log: IO[bytes]) -> "subprocess.Popen[bytes]":
    make_folder(federation.home)
    for name in (federation.said, federation.state):  # as Flower would write them for all to read
        opened_log(name, "a").close()
    connection = {
        "address": f"127.0.0.1:{federation.port}",
        "root-certificates": str(federation.authority.certificate),
    }
    table = {"superlink": {"default": CONNECTION, CONNECTION: connection}}
    (federation.home / "config.toml").write_text(write_toml(table), encoding="utf-8")
    largest = build_engine(federation.config()).largest
    command = [
        sys.executable, "-c", SUPERLINK.format(largest=float(largest)),
        "--host", bind,
        "--port", str(federation.port),
        "--ssl-certfile", str(federation.certificate),
        "--ssl-keyfile", str(federation.key),
        "--ssl-ca-certfile", str(federation.authority.certificate),
        "--database", str(federation.state),
        "--enable-supernode-auth",
        "--disable-runtime-dependency-installation",
    ]  # fmt: skip
    return subprocess.Popen(
        command, env=_environment(federation), stdout=log, stderr=log, start_new_session=True
    )


def _environment(federation: Federation) -> dict[str, str]:
    more = {SERVER_FOLDER: str(federation.root), "FLWR_HOME": str(federation.home)}
    # who may say for whom he calls: were it more than this machine, all could say that they are it
    return environment({**more, "FORWARDED_ALLOW_IPS": "127.0.0.1"})


def _wait_until_up(federation: Federation, process: "subprocess.Popen[bytes]") -> None:
    """Until it answers, through the gate: without that, it must not stay up."""
    context = ssl.create_default_context(cafile=str(federation.authority.certificate))
    address = f"https://127.0.0.1:{federation.port}/health"
    limit = time.monotonic() + START_SECONDS
    while time.monotonic() < limit:
        if process.poll() is not None:
            raise ConfigError(
                f"Flower's server ended with code {process.returncode}: {_last(federation)}; see "
                f"{federation.log}, and ostraka federation check {federation.root}"
            )
        try:
            with urlopen(Request(address), timeout=5, context=context) as answer:
                if answer.headers.get(GATED[0].decode()) != GATED[1].decode():
                    raise ConfigError(
                        "Flower's server is up without the gate that keeps strangers from "
                        "starting runs: this version of flwr is another than those that were "
                        "tested; install the one in constraints.txt"
                    )
                say_aloud(f"the server is up at port {federation.port}")
                return
        except (URLError, ConnectionError, TimeoutError, ssl.SSLError):
            time.sleep(0.3)
    raise ConfigError(
        f"Flower's server did not answer within {START_SECONDS:g} seconds: {_last(federation)}; "
        f"see {federation.log}"
    )


def _let_in(federation: Federation) -> None:
    """Register the parties' keys; the others are refused."""
    for name in federation.parties:
        said = _flwr(federation, "supernode", "register", str(federation.public_key(name)))
        if said.returncode and "already in use" not in " ".join(
            (said.stdout + said.stderr).split()
        ):
            raise ConfigError(
                f"the key of {name} ({federation.public_key(name)}) could not be registered: "
                f"{(said.stdout + said.stderr).strip()[-300:]}"
            )


def _begin(federation: Federation) -> str:
    """Start the run; the number that Flower gives it."""
    said = _flwr(federation, "run", str(federation.root / "app"), "--format", "json")
    found = _told(said.stdout)
    if said.returncode or "run-id" not in found:
        raise ConfigError(
            f"the run could not be started: {(said.stdout + said.stderr).strip()[-500:]}"
        )
    return str(found["run-id"])


def _told(text: str) -> dict[str, Any]:
    """The JSON object that a command of Flower's wrote; empty: it wrote none."""
    with suppress(ValueError):
        found = json.loads(text[text.index("{") :])
        return found if isinstance(found, dict) else {}
    return {}


def _flwr(federation: Federation, *words: str) -> "subprocess.CompletedProcess[str]":
    """A command of Flower's own, to the server that is up."""
    command = [program("flwr"), *words, CONNECTION]
    try:
        return subprocess.run(
            command,
            env=_environment(federation),
            capture_output=True,
            text=True,
            timeout=COMMAND_SECONDS,
        )
    except subprocess.TimeoutExpired:
        said = f"Flower's server gave no answer within {COMMAND_SECONDS:g} seconds"
        return subprocess.CompletedProcess(command, 124, "", said)


def _follow(federation: Federation, process: "subprocess.Popen[bytes]", number: str) -> None:
    """Until the run has ended; what our part of it says is said here too."""
    said, asked, again = federation.said.stat().st_size, time.monotonic(), _again(federation)
    outcome = outcome_file(federation, os.environ[ATTEMPT])
    while True:
        said = _pass_on(federation.said, said)
        if outcome.exists():
            _pass_on(federation.said, said)
            return _judge(jsonfile.read_json(outcome), again)
        if process.poll() is not None:
            raise PartyFailed(
                f"Flower's server ended with code {process.returncode}; see {federation.log}. "
                f"{again}"
            )
        if time.monotonic() - asked > ASK_SECONDS:
            asked = time.monotonic()
            if _has_ended(federation, number) and not outcome.exists():
                raise PartyFailed(
                    f"the run's process has gone without a word; see {federation.log}. {again}"
                )
        time.sleep(0.5)


def _judge(outcome: dict[str, Any], again: str) -> None:
    if not outcome["done"]:
        words = str(outcome["words"])
        kind = PartyFailed if outcome["code"] == PartyFailed.exit_code else ConfigError
        told = kind is not PartyFailed or "ostraka federation server" in words
        raise kind(words if told else f"{words}. {again}")


def _has_ended(federation: Federation, number: str) -> bool:
    """Whether Flower says that the run is over; no answer now is none."""
    return has_ended(
        _told(_flwr(federation, "list", "--run-id", number, "--format", "json").stdout)
    )


def has_ended(told: dict[str, Any]) -> bool:
    """Whether all runs in a list of Flower's are over; an empty one tells nothing."""
    states = [str(run.get("status")) for run in told.get("runs", [])]
    return bool(states) and all(state.startswith("finished") for state in states)


def _again(federation: Federation) -> str:
    return f"What was finished is kept; go on with: ostraka federation server {federation.root}"


def _pass_on(log: Path, start: int) -> int:
    """Say what our part of the server wrote since; where to go on."""
    with log.open("rb") as file:
        file.seek(start)
        *lines, _ = file.read().split(b"\n")
    for line in lines:
        print(line.decode(errors="replace"), file=sys.stderr, flush=True)
        start += len(line) + 1
    return start


def _last(federation: Federation) -> str:
    """The last line of the log."""
    lines = federation.log.read_text(errors="replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "it said nothing")


def _end(process: "subprocess.Popen[bytes]") -> None:
    """End the server and what it started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
    with suppress(subprocess.TimeoutExpired):
        process.wait(timeout=10)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
