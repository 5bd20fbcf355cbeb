"""Letters in Flower's own records and messages; no process is started. See also
tests/federation/test_deployment.py."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from ostraka.engines.brief import brief_of
from ostraka.engines.flower import CRASHED, FlowerLine, client_app, improper, letter_of, records_of
from ostraka.engines.letters import Letter, Node
from ostraka.engines.node import Kept
from ostraka.registry import METHODS
from ostraka.store import codec
from tests.engines.toy_line import own
from tests.engines.toy_work import Odd, work

flwr = pytest.importorskip("flwr")
pytestmark = pytest.mark.engines


@pytest.fixture(autouse=True)
def odd_is_a_method() -> Iterator[None]:
    from flwr.supercore.task_identity import TaskIdentity

    METHODS.add("odd")(Odd)
    TaskIdentity.run_id, TaskIdentity.node_id, TaskIdentity.task_id = 7, 1, 3
    yield
    METHODS.remove("odd")


def order(index: int, **more: Any) -> Letter:
    method = Odd(keeps=True, **more)
    facts = {"party": 1, "round": index, "seed": str(2**64 - 1), "run": "ab12"}
    message = codec.encode(method.init(work(method).task, 5))
    return Letter(9, "order", facts, {"brief": brief_of(work(method)), "message": message})


def travelled(records: Any) -> Any:
    """Records as they arrive: divided into objects, and put together again."""
    from flwr.supercore.inflatable.inflatable_object import get_all_nested_objects
    from flwr.supercore.inflatable.inflatable_utils import inflate_object_from_contents

    pieces = {name: held.deflate() for name, held in get_all_nested_objects(records).items()}
    assert max(map(len, pieces.values())) < 6 * 2**20, "nothing travels in one large piece"
    return inflate_object_from_contents(records.object_id, pieces)


def test_a_letter_arrives_as_it_was_sent_however_large() -> None:
    data = bytes(range(256)) * 48_000  # 12 MB: more than two of Flower's pieces
    sent = replace(order(2), parts={"report": data, "small": b"x"}, error="why")
    got = letter_of(travelled(records_of(sent)), 9, "order", "n")
    assert got == replace(sent, answers="n")


def context() -> Any:
    from flwr.app import Context, RecordDict

    return Context(run_id=7, node_id=9, node_config={}, state=RecordDict(), run_config={})


def asked(app: Any, letter: Letter, held: Any, kind: str = "train") -> Letter:
    from flwr.app import Message

    message = Message(travelled(records_of(letter)), 9, kind, ttl=60.0)
    message.metadata.__dict__["_message_id"] = f"order {letter.facts.get('round')}"
    reply = app(message, held)
    return letter_of(travelled(reply.content), 9, letter.about)


def test_an_app_carries_out_orders_and_remembers_in_its_context() -> None:
    app, held = client_app(lambda settings: own(1)), context()
    for index in (1, 2, 3):
        told = asked(app, order(index), held)
        assert set(told.parts) == {"report"}, told
    kept = Kept.of(bytes(held.state["memory"]["value"].data))
    assert {i: codec.decode(data)["times"] for i, data in kept.rounds.items()} == {2: 2, 3: 3}


def test_an_app_tells_who_it_is_and_why_it_cannot() -> None:
    who = Letter(9, "party", parts={"brief": order(1).parts["brief"]})
    told = asked(client_app(lambda settings: own(1)), who, context(), "query")
    assert told.facts == {"party": 1, "name": "east", "size": 9}

    def broken(settings: Any) -> Any:
        raise ZeroDivisionError("a slip")

    assert "a slip" in asked(client_app(broken), who, context(), "query").error


class Grid:
    """A grid whose nodes have answered already."""

    def __init__(self) -> None:
        self.pushed: list[Any] = []
        self.replies: list[Any] = []
        self.broken: dict[str, Exception] = {}
        """What is raised when a reply is pulled, by its letter."""

    def get_nodes(self) -> list[Any]:
        from flwr.proto.node_pb2 import NodeInfo

        return [NodeInfo(node_id=9, public_key=b"k", last_activated_at="noon")]

    def push_messages(self, messages: list[Any]) -> list[str]:
        self.pushed += messages
        return [f"m{len(self.pushed)}"]

    def pull_messages(self, names: list[str]) -> list[Any]:
        (name,) = names
        if name in self.broken:
            raise self.broken[name]
        return [told for told in self.replies if told.metadata.reply_to_message_id == name]


def reply(source: int, error: bool, answers: str = "m1", code: int = 5) -> Any:
    from flwr.app import Error, Metadata
    from flwr.app.message import make_message

    metadata = Metadata(
        run_id=7, message_id="r", src_node_id=source, dst_node_id=1, reply_to_message_id=answers,
        group_id="", created_at=1.0, ttl=9.0, message_type="train",
    )  # fmt: skip
    if error:
        return make_message(metadata=metadata, error=Error(code, "gone"))
    return make_message(metadata=metadata, content=records_of(Letter(9, "order", {"seconds": 1.0})))


def test_a_line_sends_and_fetches_over_a_grid() -> None:
    grid = Grid()
    line = FlowerLine(grid)
    assert line.nodes() == [Node(9, b"k", "noon")]
    assert line.send(order(3), 50.0) == "m1"
    (sent,) = grid.pushed
    assert (sent.metadata.dst_node_id, sent.metadata.message_type, sent.metadata.ttl) == (
        9, "train", 50.0
    )  # fmt: skip
    assert sent.metadata.group_id == "3"
    assert list(line.fetch([])) == []
    grid.replies = [reply(9, error=False)]
    assert list(line.fetch(["m1"])) == [Letter(9, "order", {"seconds": 1.0}, answers="m1")]


@pytest.mark.parametrize(("source", "code", "lost"), [(1, 5, True), (9, 5, False), (9, 8, True)])
def test_what_the_server_says_of_a_letter_is_that_it_was_lost(
    source: int, code: int, lost: bool
) -> None:
    """An error of the node itself is its failure, but for a process that was killed."""
    from flwr.common.constant import ErrorCode

    assert CRASHED == ErrorCode.CLIENT_APP_CRASHED
    grid = Grid()
    line = FlowerLine(grid)
    line.send(order(3), 50.0)
    grid.replies = [reply(source, error=True, code=code)]
    (told,) = line.fetch(["m1"])
    assert (told.node, told.error, told.lost) == (9, "gone", lost)


def test_an_answer_that_is_no_letter_is_the_failure_of_its_node() -> None:
    from flwr.app import RecordDict

    grid = Grid()
    line = FlowerLine(grid)
    line.send(order(3), 50.0)
    strange = reply(9, error=False)
    strange.content = RecordDict({})
    grid.replies = [strange]
    (told,) = line.fetch(["m1"])
    assert (told.node, told.lost, told.answers) == (9, False, "m1")
    assert "not a letter of Ostraka" in told.error


def test_an_answer_that_cannot_be_put_together_takes_no_other_with_it() -> None:
    """Flower puts answers together when they are pulled, and a hostile party wrote this one."""
    grid = Grid()
    line = FlowerLine(grid)
    for index in (3, 3):
        line.send(order(index), 50.0)
    grid.broken["m1"] = KeyError("no such child")
    grid.replies = [reply(8, error=False, answers="m2")]
    first, second = line.fetch(["m1", "m2"])
    assert (first.node, first.answers, first.lost) == (9, "m1", False)
    assert "cannot be put together" in first.error
    assert (second.node, second.answers, second.error) == (8, "m2", "")


def test_a_way_to_the_server_that_is_broken_is_no_fault_of_a_party() -> None:
    grid = Grid()
    line = FlowerLine(grid)
    line.send(order(3), 50.0)
    grid.broken["m1"] = ConnectionError("down")
    with pytest.raises(ConnectionError):
        list(line.fetch(["m1"]))


def pushed(source: int = 9, node: int = 9, answers: str = "m1", pieces: int = 3) -> bytes:
    """What a party's node sends to hand over an answer."""
    from flwr.proto.fleet_pb2 import PushMessagesRequest
    from flwr.proto.message_pb2 import Message, Metadata, ObjectTree
    from flwr.proto.node_pb2 import Node as FlowerNode

    about = Metadata(run_id=7, src_node_id=source, dst_node_id=1, reply_to_message_id=answers)
    tree = ObjectTree(object_id="a", children=[ObjectTree(object_id="b")] * (pieces - 1))
    request = PushMessagesRequest(
        node=FlowerNode(node_id=node),
        messages_list=[Message(metadata=about)],
        message_object_trees=[tree],
    )
    data: bytes = request.SerializeToString()
    return data


PUSH = "/v1/fleet/push-messages"


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (pushed(), ""),
        (pushed(source=8), "in its own name"),
        (pushed(source=1, answers=""), "answers only"),
        (pushed(answers=""), "answers only"),
        (pushed(pieces=205), ""),  # 1 GB, and what is around it
        (pushed(pieces=215), "at most 1000 MB"),
        (b"\xff\xff", "no message"),
    ],
)
def test_a_party_writes_answers_in_its_own_name(body: bytes, words: str) -> None:
    """Flower itself would take an order that a party wrote as the server."""
    said = improper(PUSH, body, 1000.0)
    assert (words in said) if words else not said
    assert improper("/v1/fleet/push-object", body, 1000.0) == ""
