"""Only parties, and this machine, get through to a SuperLink."""

import asyncio
from typing import Any

import pytest

from ostraka.engines.gate import GATED, Gate


def ask(path: str, host: str | None, kind: str = "http") -> tuple[int | None, list[Any]]:
    """The status and headers that a request gets; None: no answer at all."""
    events: list[dict[str, Any]] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"a", b"b")]})
        await send({"type": "http.response.body", "body": b"in"})

    async def send(event: dict[str, Any]) -> None:
        events.append(event)

    scope = {"type": kind, "path": path, "client": None if host is None else (host, 5)}
    asyncio.run(Gate(app)(scope, None, send))
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
