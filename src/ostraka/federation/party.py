"""A party of a federation: its own data, and the node that waits for orders."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from ostraka.core.samples import Samples
from ostraka.engines.brief import Brief
from ostraka.engines.flower import ENVIRONMENT
from ostraka.engines.node import Own
from ostraka.errors import ConfigError
from ostraka.federation.project import PARTY_FOLDER, PartyFolder


def own_of(party: PartyFolder) -> Own:
    """The party as it answers letters."""
    party.state.mkdir(mode=0o700, exist_ok=True)
    samples = _share_of(party) if party.share else _own_data(party)
    return Own(party.party, party.name, samples, party.state, party.device)


def _share_of(party: PartyFolder) -> Callable[[Brief], Samples]:
    """The party's share of the data that the run names: for those who try it out."""
    from ostraka.runs.config import make, read_toml
    from ostraka.runs.plan import make_plan

    def samples(brief: Brief) -> Samples:
        config = make({**read_toml(party.root / "run.toml"), "engine": "serial"})
        return make_plan(config).parties[party.party].samples

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
    samples, seen = held.for_classes(task.classes), brief.view
    if samples.view.scale != seen.scale:  # stored in other units: bytes here, floats there
        factor = samples.view.scale / seen.scale
        samples = replace(samples, x=(samples.x.double() * factor).float())
    return replace(samples, view=seen)


def start(party: PartyFolder, wait: float) -> int:
    """Run the party's node until it is ended, or the server was not reached for `wait` seconds."""
    command = [
        _program("flower-supernode"),
        "--root-certificates", str(party.authority),
        "--auth-supernode-private-key", str(party.key),
        "--superlink", party.server,
        "--max-wait-time", f"{wait:g}",
        "--host", "127.0.0.1",
        "--port", str(free_port()),
    ]  # fmt: skip
    more = {PARTY_FOLDER: str(party.root), "FLWR_HOME": str(party.root / "flower")}
    return follow(subprocess.Popen(command, env=environment(more)))


def follow(process: "subprocess.Popen[bytes]") -> int:
    """Wait for a process; what ends us ends it."""

    def end(number: int, frame: object) -> None:
        process.send_signal(signal.SIGTERM)

    before = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        return process.wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def environment(more: dict[str, str]) -> dict[str, str]:
    """This environment, without what Flower would do unasked; its programs find each other."""
    programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    return {**os.environ, **ENVIRONMENT, "PATH": programs, **more}


def _program(name: str) -> str:
    found = Path(sys.executable).parent / name
    if not found.exists():
        raise ConfigError(
            f"{name} is not installed beside {sys.executable}: pip install 'ostraka[flower]'"
        )
    return str(found)


def free_port() -> int:
    """A port of this machine that nobody uses now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
