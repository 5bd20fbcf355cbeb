"""Only parties, and this machine, get through to a SuperLink."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from ostraka.engines.gate import BODY, GATED, Gate, Look, let_all


def ask(
    path: str,
    host: str | None,
    kind: str = "http",
    pieces: Sequence[bytes] = (b"",),
    look: Look = let_all,
    got: list[bytes] | None = None,
) -> tuple[int | None, list[Any]]:
    """The status and headers that a request gets; None: no answer at all."""
    events: list[dict[str, Any]] = []
    coming = [{"type": "http.request", "body": b, "more_body": True} for b in pieces]
    coming += [{"type": "http.request", "body": b"", "more_body": False}]

    async def receive() -> dict[str, Any]:
        return coming.pop(0) if coming else {"type": "http.disconnect"}

    async def app(scope: Any, receive: Any, send: Any) -> None:
        body, more = b"", got is not None
        while more:
            event = await receive()
            body, more = body + event["body"], event["more_body"]
        if got is not None:
            got.append(body)
        await send({"type": "http.response.start", "status": 200, "headers": [(b"a", b"b")]})
        await send({"type": "http.response.body", "body": b"in"})

    async def send(event: dict[str, Any]) -> None:
        events.append(event)

    scope = {"type": kind, "path": path, "client": None if host is None else (host, 5)}
    asyncio.run(Gate(app, look)(scope, receive, send))
    starts = [event for event in events if event["type"] == "http.response.start"]
    return (starts[0]["status"], starts[0]["headers"]) if starts else (None, [])


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "127.3.2.1"])
def test_this_machine_may_do_everything(host: str) -> None:
    assert ask("/v1/control/start-run", host) == (200, [(b"a", b"b"), GATED])


@pytest.mark.parametrize("host", ["10.0.0.7", "192.168.1.4", "2001:db8::1", "", "localhost", None])
@pytest.mark.parametrize(
    "path",
    ["/v1/control/start-run", "/v1/control/register-node", "/v1/runtime/pull-task-input", "/docs",
     "/v1/fleet/../control/start-run", "/v1/fleetx", "/health"],
)  # fmt: skip
def test_strangers_are_refused(path: str, host: str | None) -> None:
    status, headers = ask(path, host)
    assert status == 403
    assert GATED in headers


def test_parties_get_through_from_everywhere() -> None:
    assert ask("/v1/fleet/pull-messages", "10.0.0.7") == (200, [(b"a", b"b"), GATED])


def test_what_is_no_plain_request_is_left_unanswered() -> None:
    assert ask("/v1/fleet/x", "10.0.0.7", "websocket") == (None, [])


def test_what_a_party_sends_arrives_as_it_was_sent() -> None:
    got: list[bytes] = []
    half = b"x" * (BODY // 2)
    assert ask("/v1/fleet/push-object", "10.0.0.7", pieces=[half, half], got=got)[0] == 200
    assert got == [half + half]


@pytest.mark.parametrize("host", ["10.0.0.7", "127.0.0.1"])
def test_nobody_fills_the_servers_memory(host: str) -> None:
    """Whoever it is: the server asks only when it has read all. The rest is not read."""
    got: list[bytes] = []
    status, headers = ask("/v1/fleet/push-object", host, pieces=[b"x" * 2**20] * 17, got=got)
    assert (status, got) == (413, [])
    assert GATED in headers


def test_a_request_whose_end_never_comes_is_not_passed_on() -> None:
    passed: list[object] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        passed.append(scope)

    async def send(event: dict[str, Any]) -> None: ...

    coming = [{"type": "http.request", "body": b"half", "more_body": True}]

    async def receive() -> dict[str, Any]:
        return coming.pop() if coming else {"type": "http.disconnect"}

    scope = {"type": "http", "path": "/v1/fleet/push-object", "client": ("10.0.0.7", 5)}
    asyncio.run(Gate(app)(scope, receive, send))
    assert passed == []


def test_what_a_party_may_not_say_is_not_passed_on() -> None:
    def look(path: str, body: bytes) -> str:
        return "not that" if body == b"as somebody else" else ""

    got: list[bytes] = []
    for host in ("10.0.0.7", "127.0.0.1"):
        words = [b"as somebody ", b"else"]
        assert ask("/v1/fleet/x", host, pieces=words, look=look, got=got)[0] == 403
    assert got == []
    assert ask("/v1/fleet/x", "10.0.0.7", pieces=[b"as himself"], look=look, got=got)[0] == 200
    assert ask("/v1/control/x", "127.0.0.1", pieces=words, look=look, got=got)[0] == 200
    assert len(got) == 2
