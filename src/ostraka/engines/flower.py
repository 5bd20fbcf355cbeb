"""Flower as the carrier: orders and answers of our codec in Flower's records, over its grid.

All that we know of Flower is in this file; with which options its programs are started is in
`federation.server` and `federation.party`. In a federation the grid is that of a SuperLink, and
parties are SuperNodes; elsewhere (`--engine flower`) it is Flower's own simulation on this machine.

Facts (flwr 1.41, 1.42): arrays travel in chunks of 5 MB and configuration values in one piece, so
what may be large is an array. A fresh process is started for every message. A SuperNode keeps the
state of a context in memory only, and for one run: a party that must remember has a folder. A
message that was delivered is not delivered again when its node died with it. Whoever reaches a
SuperLink's port may start runs, and a node may write in any other's name, but for the `Gate`.
"""

import ctypes
import os
import signal
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from queue import Empty, Queue
from typing import Any, final

from ostraka.core.samples import Samples
from ostraka.engines.base import Work
from ostraka.engines.brief import Brief
from ostraka.engines.gate import Gate
from ostraka.engines.letters import About, Letter, Line, Node
from ostraka.engines.node import Own, answer
from ostraka.engines.remote import Expected, Remote
from ostraka.engines.shares import load_parties, save_parties
from ostraka.errors import ConfigError, NeedError, OstrakaError
from ostraka.registry import ENGINES
from ostraka.store import codec

ENVIRONMENT = {
    "FLWR_TELEMETRY_ENABLED": "0",
    "FLWR_DISABLE_RUNTIME_DEPENDENCY_INSTALLATION": "1",
    "FLWR_DISABLE_UPDATE_CHECK": "1",
    "RAY_USAGE_STATS_ENABLED": "0",
}
"""Nothing is reported to the makers of Flower, or of Ray, on which its simulation runs, and nothing
installed while a federation runs."""

TYPES: Mapping[About, str] = {"party": "query", "order": "train"}
"""Flower's types of message."""
SERVER = 1
"""The number under which a SuperLink itself answers: a letter was lost, or the node it went to."""
PIECE = 5.24288
"""Megabytes of the pieces in which Flower sends arrays."""
SPARE = 16
"""Pieces of a message that hold no part of a large array: records, names, the message itself."""
CRASHED = 8
"""A node's error when its process for the message was killed, as for want of memory."""
START_SECONDS = 120.0
"""How long a simulation may take to start."""
MEMORY = "memory"
"""The name of what a party keeps."""


@final
class FlowerLine(Line):
    """Letters as messages of a Flower grid."""

    def __init__(self, grid: Any) -> None:
        self.grid = grid
        self.went_to: dict[str, tuple[int, About]] = {}

    def nodes(self) -> Sequence[Node]:
        """The SuperNodes that are online."""
        return [
            Node(info.node_id, info.public_key, info.last_activated_at)
            for info in self.grid.get_nodes()
        ]

    def send(self, letter: Letter, seconds: float) -> str:
        """Push one message, so that not all letters of a round lie in memory."""
        from flwr.app import Message

        group = str(letter.facts.get("round", ""))
        message = Message(
            records_of(letter), letter.node, TYPES[letter.about], ttl=seconds, group_id=group
        )
        (name,) = [*self.grid.push_messages([message]), ""][:1]
        if name:
            self.went_to[name] = letter.node, letter.about
        return str(name)

    def fetch(self, names: Collection[str]) -> Iterator[Letter]:
        """Pull the replies that have come, each by itself.

        Large ones then never lie in memory together, and one that cannot be put together, as a
        hostile party may write it, takes no other with it.
        """
        import httpx

        for name in names:
            try:
                pulled = list(self.grid.pull_messages([name]))
            except (httpx.HTTPError, OSError):  # of the way to the SuperLink, not of the reply
                raise
            except Exception as error:
                node, about = self.went_to[name]
                wrong = f"its answer cannot be put together ({error!r})"
                yield Letter(node, about, answers=name, error=wrong)
                continue
            for message in pulled:
                yield self._letter(message)

    def _letter(self, message: Any) -> Letter:
        name, source = message.metadata.reply_to_message_id, message.metadata.src_node_id
        node, about = self.went_to.get(name, (source, "order"))
        if not message.has_error():
            try:
                return letter_of(message.content, source, about, name)
            except (KeyError, TypeError, ValueError, AttributeError) as error:
                # of a party that is not ours: its own failure, and nobody else's
                wrong = f"its answer is not a letter of Ostraka ({error!r})"
                return Letter(source, about, answers=name, error=wrong)
        if source == SERVER or message.error.code == CRASHED:
            return Letter(node, about, answers=name, error=message.error.reason, lost=True)
        return Letter(source, about, answers=name, error=message.error.reason or "it failed")


def records_of(letter: Letter) -> Any:
    """A letter as Flower's records: what may be large as arrays, which Flower divides."""
    from flwr.app import Array, ArrayRecord, ConfigRecord, RecordDict

    parts = {
        key: Array("uint8", (len(data),), "ostraka.bytes", data)
        for key, data in letter.parts.items()
    }
    facts = {**letter.facts, **({"error": letter.error} if letter.error else {})}
    return RecordDict({"facts": ConfigRecord(facts), "parts": ArrayRecord(parts)})


def letter_of(records: Any, node: int, about: About, answers: str = "") -> Letter:
    """The letter that `records_of` was given."""
    facts = dict(records["facts"])
    error = str(facts.pop("error", ""))
    parts = {key: bytes(array.data) for key, array in records["parts"].items()}
    return Letter(node, about, facts, parts, answers, error)


def server_app(main: Callable[[Any], None]) -> Any:
    """A ServerApp that calls `main` with Flower's grid."""
    from flwr.serverapp import ServerApp

    app = ServerApp()

    def serve(grid: Any, context: Any) -> None:
        main(grid)

    app.main()(serve)
    return app


def client_app(own: Callable[[Mapping[str, Any]], Own]) -> Any:
    """A ClientApp that answers letters for the party that `own` makes of the node's settings."""
    from flwr.app import Message
    from flwr.clientapp import ClientApp

    app = ClientApp()

    def reply(message: Any, context: Any, about: About) -> Any:
        letter = letter_of(message.content, context.node_id, about)
        try:
            me = own(context.node_config)
            told, kept = answer(letter, me, remembered(context.state, me))
            remember(context.state, me, kept)
        except Exception as error:  # the server is told, whatever it is; here it is all written
            traceback.print_exc()
            words = str(error) if isinstance(error, OstrakaError) else repr(error)
            told = Letter(context.node_id, about, error=words)
        return Message(records_of(told), reply_to=message)

    def carry_out_order(message: Any, context: Any) -> Any:
        return reply(message, context, "order")

    def tell_who_i_am(message: Any, context: Any) -> Any:
        return reply(message, context, "party")

    app.train()(carry_out_order)
    app.query()(tell_who_i_am)
    return app


def remembered(state: Any, own: Own) -> bytes | None:
    """A party's memories: from its folder, or, where it has none, from the context's state."""
    if own.folder is not None:
        path = own.folder / f"{MEMORY}.safetensors"
        return codec.read_bytes(path) if path.exists() else None
    return bytes(state[MEMORY]["value"].data) if MEMORY in state else None


def remember(state: Any, own: Own, kept: bytes | None) -> None:
    """Keep a party's memories there."""
    if kept is None:
        return
    if own.folder is not None:
        codec.write_atomically(own.folder / f"{MEMORY}.safetensors", kept, private=True)
        return
    from flwr.app import Array, ArrayRecord

    array = Array("uint8", (len(kept),), "ostraka.bytes", kept)
    state[MEMORY] = ArrayRecord({"value": array})


@dataclass(frozen=True)
class Connection:
    """A grid that is open, and who is expected at its other ends."""

    grid: Any
    expected: Expected


_connections: list[Connection] = []
"""The one that this process runs in; Flower hands it to its ServerApp, not to who asks for it."""


@contextmanager
def connected(grid: Any, expected: Expected) -> Iterator[None]:
    """Runs that are started in here with the engine `flower` go over this grid."""
    _connections.append(Connection(grid, expected))
    try:
        yield
    finally:
        _connections.pop()


@final
@ENGINES.add("flower")
@dataclass(frozen=True)
class Flower(Remote):
    """Parties are nodes of a Flower federation, or of its simulation on this machine."""

    @contextmanager
    def line(self, work: Work) -> Iterator[Line]:
        """The grid that this process was given; else that of a simulation."""
        if _connections:
            yield FlowerLine(_connections[-1].grid)
            return
        with simulated(work) as grid:
            yield FlowerLine(grid)

    def expected(self, work: Work) -> Expected:
        """The federation's parties; nodes of a simulation are believed who they are."""
        if _connections:
            return _connections[-1].expected
        return Expected([ref.name for ref in work.parties.roster()])


@contextmanager
def simulated(work: Work) -> Iterator[Any]:
    """The grid of Flower's simulation, with one virtual node for each party."""
    os.environ.update(ENVIRONMENT)
    missing = [name for name in ("flwr", "ray") if find_spec(name) is None]
    if missing:
        raise NeedError(
            f"Flower's simulation needs {' and '.join(missing)}, which is not installed: pip "
            "install 'flwr[simulation]'; or use another engine: --engine pool"
        )
    from flwr.simulation import run_simulation

    grids, ended = Queue[Any](), threading.Event()

    def hand_out(grid: Any) -> None:
        grids.put(grid)
        ended.wait()

    with tempfile.TemporaryDirectory(prefix="ostraka-flower-") as folder:
        save_parties(Path(folder), work.parties)
        app = client_app(VirtualNode(folder, work.device))
        given = (server_app(hand_out), app, len(work.parties))
        thread = threading.Thread(target=run_simulation, args=given, daemon=True)
        thread.start()
        try:
            yield grids.get(timeout=START_SECONDS)
        except Empty:
            raise NeedError(
                f"Flower's simulation did not start within {START_SECONDS:g} seconds; what it "
                "wrote says why. Use another engine: --engine pool"
            ) from None
        finally:
            ended.set()
            thread.join(timeout=START_SECONDS)


@final
@dataclass(frozen=True)
class VirtualNode:
    """A node of a simulation: it holds the share of a party that has its number."""

    folder: str
    device: str

    def __call__(self, settings: Mapping[str, Any]) -> Own:
        """The party whose number Flower gave the node."""
        party = load_parties(self.folder)[int(settings["partition-id"])]

        def samples(brief: Brief) -> Samples:
            return party.samples

        return Own(party.id, party.ref.name, samples, device=self.device)


def run_superlink(largest: float) -> None:
    """Flower's own `flower-superlink` behind the gate; `largest`: megabytes of an answer."""
    import uvicorn
    from flwr.superlink.cli.flower_superlink import flower_superlink

    end_with_parent()
    usual = uvicorn.run

    def look(path: str, body: bytes) -> str:
        return improper(path, body, largest)

    def gated(app: Any, **more: Any) -> None:
        usual(Gate(app, look), **more)

    uvicorn.run = gated
    flower_superlink()


def improper(path: str, body: bytes, largest: float) -> str:
    """Why a party may not send this; empty: it may.

    Flower asks which node sends a message, and takes whatever the message says of its sender: a
    party could write orders as the server, and answers as another party.
    """
    from flwr.proto.fleet_pb2 import PushMessagesRequest
    from flwr.supercore.inflatable.inflatable_object import iterate_object_tree
    from google.protobuf.message import DecodeError

    if path != "/v1/fleet/push-messages":
        return ""
    try:
        request = PushMessagesRequest.FromString(body)
    except DecodeError:
        return "this is no message"
    for message in request.messages_list:
        about = message.metadata
        if about.src_node_id != request.node.node_id or not about.reply_to_message_id:
            return "a party writes answers only, and in its own name"
    pieces = sum(1 for tree in request.message_object_trees for _ in iterate_object_tree(tree))
    if pieces * PIECE > largest + SPARE * PIECE:
        return f"an answer has at most {largest:g} MB"
    return ""


def run_supernode() -> None:
    """Flower's own command `flower-supernode`."""
    from flwr.supernode.cli.flower_supernode import flower_supernode

    end_with_parent()
    flower_supernode()


def end_with_parent() -> None:
    """Let this process be ended when the one that started it is gone, however it went (Linux)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG


class CannotAsk(ConfigError):
    """The server was there, and gave no answer: it may come."""


def is_registered(address: str, authority: Path, private_key: Any) -> bool:
    """Whether a SuperLink knows the key; nothing changes there.

    It is asked to let the node in with an impossible interval, and looks for the key first.
    """
    os.environ.update(ENVIRONMENT)  # this process may be anybody's
    import httpx
    from flwr.proto.fleet_pb2 import ActivateNodeRequest
    from flwr.supercore.error import ApiErrorCode, FlowerError
    from flwr.supercore.primitives.asymmetric import public_key_to_bytes
    from flwr.supernode.fleet_http_client import FleetHttpClient
    from flwr.supernode.node_auth_http_interceptor import NodeAuthHttpInterceptor

    public = private_key.public_key()
    signed = [NodeAuthHttpInterceptor(private_key, public)]
    request = ActivateNodeRequest(public_key=public_key_to_bytes(public), heartbeat_interval=0)
    try:
        with FleetHttpClient.from_server_address(
            address, False, authority.read_bytes(), interceptors=signed
        ) as client:
            client.ActivateNode(request)
    except httpx.HTTPStatusError as error:
        told = FlowerError.from_json(error.response.text)
        return told is not None and told.code == ApiErrorCode.FLEET_INVALID_HEARTBEAT_INTERVAL
    except httpx.HTTPError as error:
        raise CannotAsk(f"the server cannot be asked: {error}") from None
    return True
