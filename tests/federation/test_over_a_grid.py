"""The two apps of a federation, in one process: the server's over a grid whose nodes are the
parties' app itself. Files, keys, data and memories are real; there is no network."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ostraka
from ostraka.federation.certificates import public_bytes
from ostraka.federation.project import PARTY_FOLDER, Federation, PartyFolder, create
from ostraka.federation.server import ATTEMPT, outcome_file, run_over
from ostraka.runs.config import make
from ostraka.runs.plan import make_plan
from ostraka.runs.record import load_state
from ostraka.store import codec, jsonfile

pytest.importorskip("flwr")
pytestmark = pytest.mark.engines

NAMES = ("north", "east", "south")


class Grid:
    """Every message is answered by the app of the party that it went to, in a new context: as a
    node does that was started again after each of them."""

    def __init__(self, federation: Federation, down_after: int = 10**9) -> None:
        self.federation, self.down_after = federation, down_after
        self.replies: dict[str, Any] = {}
        self.sent = 0

    def get_nodes(self) -> list[Any]:
        from flwr.proto.node_pb2 import NodeInfo

        keys = [public_bytes(self.federation.public_key(name)) for name in NAMES]
        # in another order than the parties': who is who is told by their keys
        nodes = enumerate(reversed(list(enumerate(keys))))
        return [NodeInfo(node_id=100 + i, public_key=key, last_activated_at="noon")
                for i, (_, key) in nodes]  # fmt: skip

    def push_messages(self, messages: list[Any]) -> list[str]:
        from flwr.app import Context, RecordDict

        from ostraka.federation.apps import client

        (message,) = messages
        self.sent += message.metadata.message_type == "train"
        if self.sent > self.down_after:
            raise ConnectionError("the server is down")
        node = message.metadata.dst_node_id
        name = NAMES[len(NAMES) - 1 - (node - 100)]
        os.environ[PARTY_FOLDER] = str(self.federation.root / "parties" / name)
        called = f"message {len(self.replies)}-{self.sent}-{node}"
        message.metadata.__dict__["_message_id"] = called
        held = Context(run_id=7, node_id=node, node_config={}, state=RecordDict(), run_config={})
        self.replies[called] = client(message, held)
        return [called]

    def pull_messages(self, names: list[str]) -> list[Any]:
        return [self.replies.pop(name) for name in names if name in self.replies]


@pytest.fixture(autouse=True)
def in_an_app(monkeypatch: pytest.MonkeyPatch) -> None:
    from flwr.supercore.task_identity import TaskIdentity

    TaskIdentity.run_id, TaskIdentity.node_id, TaskIdentity.task_id = 7, 1, 3
    monkeypatch.setenv(PARTY_FOLDER, "")
    monkeypatch.setenv(ATTEMPT, "one")


def state(folder: Path) -> bytes:
    return codec.encode(load_state(folder)[1])


def test_memories_survive_and_fit_a_server_that_went_back(tmp_path: Path) -> None:
    """SCAFFOLD: the server goes down in the third round, when one of three has answered."""
    run = {"method": "scaffold", "data": "digits", "partition": "labels:4", "net": "mlp",
           "set": {"local": {"epochs": 1}, "rounds": 4}}  # fmt: skip
    made = create(tmp_path / "fed", run, NAMES, share=True)
    with pytest.raises(ConnectionError):
        run_over(Grid(made, down_after=7), made.root)
    ended = jsonfile.read_json(outcome_file(made, "one"))
    assert (ended["done"], ended["code"]) == (False, 1)
    assert "the server is down" in ended["words"]
    run_over(Grid(made), made.root)
    assert jsonfile.read_json(outcome_file(made, "one")) == {"done": True}
    here = ostraka.run(**run, parties=3, engine="serial", out=tmp_path / "here")  # type: ignore[arg-type]
    assert state(made.run) == state(here.folder)
    assert all((made.root / "parties" / name / "state/memory.safetensors").exists()
               for name in NAMES)  # fmt: skip
    assert not list((made.run / "work").rglob("memory/*")), "the server has no memories"


def test_parties_with_their_own_files_train_on_them(tmp_path: Path) -> None:
    """The same samples, as files of the parties' own, give the models of one process."""
    values = {"method": "closed-voting", "data": "digits", "partition": "labels:4",
              "set": {"local": {"epochs": 1}}}  # fmt: skip
    plan = make_plan(make({**values, "parties": 3}))
    made = create(tmp_path / "fed", {**values, "standardise": "off"}, NAMES)
    for party, name in zip(plan.parties, NAMES, strict=True):
        classes = np.array(plan.task.classes)
        x, y = party.samples.stored().numpy(), party.samples.labels.numpy()
        held = np.unique(y)
        path = tmp_path / f"{name}.npz"
        np.savez(path, x=x, y=np.searchsorted(held, y), classes=classes[held])
        folder = PartyFolder.load(made.root / "parties" / name)
        PartyFolder(**{**vars(folder), "data": str(path)}).save()
    run_over(Grid(made), made.root)
    there = ostraka.load_run(made.run)
    assert there.summary.partition == "own"
    assert there.summary.accuracy is not None
    assert [member.card.size for member in there.members()] == [
        len(party.samples) for party in plan.parties
    ]
