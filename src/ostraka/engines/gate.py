"""What stands before a SuperLink: only its own machine may start runs on it, and parties write
answers of a bounded size in their own name."""

from collections.abc import Callable, Mapping
from ipaddress import ip_address
from typing import Any, final

OPEN = ("/v1/fleet/",)
"""What parties need of a SuperLink; they prove with their key who they are."""
GATED = (b"x-ostraka-gate", b"1")
"""What every answer through the gate carries, so that its absence is noticed."""
BODY = 16 * 2**20
"""Bytes that a party may send at once: what is large travels in pieces of a third of it."""

Look = Callable[[str, bytes], str]
"""Called with the path and the content of a party's request: why it is refused; empty: it is
not."""


def let_all(path: str, body: bytes) -> str:
    """A Look that refuses nothing."""
    return ""


@final
class Gate:
    """Stands before a SuperLink: the parties' part is for all, the rest for this machine alone.

    Flower serves parties and those who start runs at one port, and asks only the parties who they
    are. Without a gate, whoever reaches the port could send code to every party, and fill the
    server's memory before he is asked who he is.
    """

    def __init__(self, app: Any, look: Look = let_all) -> None:
        self.app, self.look = app, look

    async def __call__(self, scope: Mapping[str, Any], receive: Any, send: Any) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
        elif scope["type"] == "http" and _is_open(scope["path"]):
            await self._look_into(scope, receive, send)
        elif scope["type"] == "http" and _is_local(scope):
            await self.app(scope, receive, _marked(send))
        elif scope["type"] == "http":
            await _refuse(send, 403, "for the server's machine alone")

    async def _look_into(self, scope: Mapping[str, Any], receive: Any, send: Any) -> None:
        """Pass a party's request on, if it is small and says nothing that a party may not."""
        body = await _whole(receive)
        problem = "" if body is None else self.look(scope["path"], body)
        if body is None:
            await _refuse(send, 413, f"not all of it came, or more than {BODY} bytes")
        elif problem:
            await _refuse(send, 403, problem)
        else:
            await self.app(scope, _again(body, receive), _marked(send))


async def _whole(receive: Any) -> bytes | None:
    """A request's content; None: it is too large, and the rest of it is not read, or its end never
    came."""
    body, more = bytearray(), True
    while more:
        event = await receive()
        body += event.get("body", b"")
        if len(body) > BODY or event["type"] != "http.request":
            return None
        more = event.get("more_body", False)
    return bytes(body)


def _again(body: bytes, receive: Any) -> Any:
    """What gives a content that was read already, and then what comes after it."""
    events = [{"type": "http.request", "body": body, "more_body": False}]

    async def give() -> Any:
        return events.pop() if events else await receive()

    return give


def _marked(send: Any) -> Any:
    async def marked(event: dict[str, Any]) -> None:
        if event["type"] == "http.response.start":
            event = {**event, "headers": [*event.get("headers", []), GATED]}
        await send(event)

    return marked


async def _refuse(send: Any, status: int, words: str) -> None:
    headers = [(b"content-type", b"text/plain"), GATED]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": f"{words}\n".encode()})


def _is_open(path: str) -> bool:
    return path.startswith(OPEN) and ".." not in path


def _is_local(scope: Mapping[str, Any]) -> bool:
    host = (scope.get("client") or ("", 0))[0]
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
