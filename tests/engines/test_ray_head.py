"""A cluster whose head is lost, by a stand-in for Ray: no cluster is needed."""

import socket
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ostraka.engines import ray as engine
from ostraka.engines.ray import HeadLost, RayEngine
from ostraka.store.desk import Desk
from tests.engines.toy_work import Odd, jobs, work


class Lost(Exception):
    """Ray's word for anything that it lost."""


class Ray:
    """As much of Ray as the engine touches: its tasks never end, or are lost."""

    def __init__(self, head: str, lost: bool) -> None:
        self.head, self.lost, self.down, self.cancelled = head, lost, 0, 0
        self.exceptions = SimpleNamespace(RayError=Lost, RayTaskError=ZeroDivisionError)
        scheduling = SimpleNamespace(NodeAffinitySchedulingStrategy=lambda *_, **__: None)
        self.util = SimpleNamespace(
            scheduling_strategies=scheduling,
            register_serializer=lambda *_, **__: None,
            deregister_serializer=lambda *_: None,
        )
        self.count = 0

    def is_initialized(self) -> bool:
        return False

    def init(self, **_: Any) -> None: ...

    def get_runtime_context(self) -> Any:
        return SimpleNamespace(get_node_id=lambda: "node", gcs_address=self.head)

    def put(self, value: Any) -> Any:
        return value

    def remote(self, **_: Any) -> Any:
        board = SimpleNamespace(take=SimpleNamespace(remote=lambda: "news"))
        made = SimpleNamespace(remote=lambda: board)
        return lambda of: SimpleNamespace(options=lambda **_: made, remote=self._task)

    def _task(self, *_: Any) -> str:
        self.count += 1
        return f"task {self.count}"

    def cluster_resources(self) -> dict[str, float]:
        return {"CPU": 2.0}

    def wait(self, refs: Sequence[Any], **_: Any) -> tuple[list[Any], list[Any]]:
        ended = [ref for ref in refs if self.lost and ref != "news"][:1]
        return ended, []

    def get(self, ref: Any) -> Any:
        raise Lost("The actor died unexpectedly before finishing this task.")

    def cancel(self, ref: Any, force: bool) -> None:
        self.cancelled += 1

    def shutdown(self) -> None:
        self.down += 1


@pytest.fixture
def head() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening


def opened(monkeypatch: pytest.MonkeyPatch, port: int, lost: bool) -> Ray:
    ray = Ray(f"127.0.0.1:{port}", lost)
    monkeypatch.setattr(engine, "the_ray", lambda: ray)
    monkeypatch.setattr(engine, "BETWEEN_SECONDS", 0.0)
    return ray


@pytest.mark.parametrize("lost", [False, True], ids=["nothing arrives", "a worker is lost"])
def test_a_head_that_is_gone_is_named_before_ray_ends_the_process(
    lost: bool, head: socket.socket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No party is blamed, what was under way is not cancelled, and nobody waits for the cluster."""
    port = head.getsockname()[1]
    ray = opened(monkeypatch, port, lost)
    head.close()
    words = rf"head of the Ray cluster at 127\.0\.0\.1:{port} no longer answers .* --resume --out"
    with pytest.raises(HeadLost, match=words) as caught, RayEngine().open(work(Odd())) as crew:
        list(crew.run(jobs(Desk(tmp_path), Odd())))
    assert caught.value.exit_code == 3
    assert (ray.down, ray.cancelled) == (0, 0)


def test_a_worker_that_is_lost_while_the_head_is_there_is_the_failure_of_its_party(
    head: socket.socket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ray = opened(monkeypatch, head.getsockname()[1], lost=True)
    with RayEngine(retries=1).open(work(Odd())) as crew:
        outcomes = list(crew.run(jobs(Desk(tmp_path), Odd())))
    assert len(outcomes) == 4
    assert all("lost 2 times" in str(outcome.failure) for outcome in outcomes)
    assert ray.down == 1
