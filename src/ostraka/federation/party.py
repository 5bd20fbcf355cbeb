"""A party of a federation: its own data, and the node that waits for orders."""

import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

from filelock import FileLock, Timeout

from ostraka.core.samples import Samples
from ostraka.engines.brief import Brief
from ostraka.engines.flower import CannotAsk, is_registered
from ostraka.engines.node import Own
from ostraka.engines.remote import say_aloud
from ostraka.errors import ConfigError
from ostraka.federation.certificates import read_private
from ostraka.federation.check import UNKNOWN, reach_problem, shown_problem
from ostraka.federation.processes import ended_by_signals, environment, program
from ostraka.federation.project import PARTY_FOLDER, PartyFolder
from ostraka.federation.terms import agreed_config, check_agreed
from ostraka.store.files import make_folder, sweep

UNKNOWN_SECONDS = 180.0
"""How long a server that is there may take to know a party's key."""
RELEASE_SECONDS = 180.0
"""How long a node is begun again that the server does not take."""
QUICK_SECONDS = 30.0
"""A node that was not taken ends sooner than this."""
POLL_SECONDS = 2.0
SUPERNODE = "from ostraka.engines.flower import run_supernode; run_supernode()"


def own_of(party: PartyFolder) -> Own:
    """The party as it answers letters."""
    make_folder(party.state)
    samples = _share_of(party) if party.share else _own_data(party)
    agreed = partial(check_agreed, party.root / "run.toml")
    return Own(party.party, party.name, samples, party.state, party.device, agreed)


def _share_of(party: PartyFolder) -> Callable[[Brief], Samples]:
    """The party's share of the data that the run names: for those who try it out."""
    from ostraka.runs.plan import make_plan

    def samples(brief: Brief) -> Samples:
        return make_plan(agreed_config(party.root / "run.toml")).parties[party.party].samples

    return samples


def _own_data(party: PartyFolder) -> Callable[[Brief], Samples]:
    """The party's own data, labelled by the names of the task's classes."""
    if not party.data:
        raise ConfigError(
            f"{party.name} has no data yet; start it with: ostraka federation party "
            f"{party.root} --data PATH"
        )
    return lambda brief: read_own(party.data, brief)


def read_own(path: str, brief: Brief) -> Samples:
    """Samples of a folder or file, in the task's shape and units, seen as the brief says."""
    from ostraka.data.own import Form, read

    task = brief.task
    held = read(path, Form(kind=task.kind, shape=task.shape), labelled=True)
    samples = held.for_classes(task.classes).in_unit(brief.view.unit)
    return replace(samples, view=brief.view)


def start(party: PartyFolder, wait: float) -> int:
    """Run the party's node until it is ended, or the server was not reached for `wait` seconds."""
    with _alone(party):
        return _start_alone(party, wait)


@contextmanager
def _alone(party: PartyFolder) -> Iterator[None]:
    """Keep a second process of the same party out: both would write what it keeps."""
    lock = FileLock(party.root / "lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise ConfigError(
            f"{party.name} is at work already in {party.root}; end that process first"
        ) from None
    try:
        sweep(party.state)
        yield
    finally:
        sweep(party.state)
        lock.release()


def _start_alone(party: PartyFolder, wait: float) -> int:
    wait_for_server(party, wait)
    command = [
        sys.executable, "-c", SUPERNODE,
        "--root-certificates", str(party.authority),
        "--auth-supernode-private-key", str(party.key),
        "--superlink", party.server,
        "--max-wait-time", f"{wait:g}",
        "--host", "127.0.0.1",
        "--port", str(free_port()),
    ]  # fmt: skip
    make_folder(party.root / "flower")
    more = {PARTY_FOLDER: str(party.root), "FLWR_HOME": str(party.root / "flower")}
    program("flower-supernode")
    return until_taken(party.name, lambda: _run(command, environment(more)))


def _run(command: Sequence[str], variables: Mapping[str, str]) -> int:
    """Run the node until it ends; its exit code."""
    with ended_by_signals():
        process = subprocess.Popen(command, env=dict(variables))
        try:
            return process.wait()
        finally:
            process.terminate()
            process.wait()


def until_taken(
    name: str,
    run: Callable[[], int],
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> int:
    """Run a node, again and again as long as the server does not take it.

    A party that was killed and comes back at once is refused: for about a minute the server takes
    its former node for present.
    """
    began = clock()
    while True:
        started = clock()
        code = run()
        if code <= 0 or clock() - started > QUICK_SECONDS or clock() - began > RELEASE_SECONDS:
            return code
        say_aloud(
            f"the server did not take {name}'s node; it may take a former one for present, which "
            f"ends within a minute or so. Trying again, up to {RELEASE_SECONDS:g} seconds"
        )
        sleep(2 * POLL_SECONDS)


def wait_for_server(
    party: PartyFolder,
    wait: float,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Until the server is there and knows the party's key; what is wrong is said, and has a limit.

    A server that is there learns its parties' keys in its first seconds.
    """
    began, unknown, said = clock(), 0.0, ""
    while True:
        problem = reach_problem(party.host, party.port)
        if not problem:
            key = read_private(party.key)
            try:
                shown = shown_problem(party)
                known = not shown and is_registered(party.server, party.authority, key)
            except (OSError, CannotAsk) as error:  # it was there a moment ago: it starts, or ends
                shown, known, problem = "", False, f"the server does not answer yet: {error}"
            if shown:
                raise ConfigError(f"the certificate that {party.server} shows: {shown}")
            if known:
                return
            if not problem:
                unknown = unknown or clock()
                problem = UNKNOWN
        over = clock() - began > wait or (unknown and clock() - unknown > UNKNOWN_SECONDS)
        if over:
            raise ConfigError(f"{party.name} cannot join {party.server}: {problem}")
        if problem != said:
            said = problem
            say_aloud(f"waiting for the server, up to {wait:g} seconds: {problem}")
        sleep(POLL_SECONDS)


def free_port() -> int:
    """A port of this machine that nobody uses now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
