"""What stands before a SuperLink, so that only its own machine may start runs on it."""

from collections.abc import Mapping
from ipaddress import ip_address
from typing import Any, final

OPEN = ("/v1/fleet/",)
"""What parties need of a SuperLink; they prove with their key who they are."""
GATED = (b"x-ostraka-gate", b"1")
"""What every answer through the gate carries, so that its absence is noticed."""


@final
class Gate:
    """Stands before a SuperLink: the parties' part is for all, the rest for this machine alone.

    Flower serves parties and those who start runs at one port, and asks only the parties who they
    are. Without a gate, whoever reaches the port could send code to every party.
    """

    def __init__(self, app: Any) -> None:
        self.app = app

    async def __call__(self, scope: Mapping[str, Any], receive: Any, send: Any) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
        elif scope["type"] == "http" and (_is_open(scope["path"]) or _is_local(scope)):

            async def marked(event: dict[str, Any]) -> None:
                if event["type"] == "http.response.start":
                    event = {**event, "headers": [*event.get("headers", []), GATED]}
                await send(event)

            await self.app(scope, receive, marked)
        elif scope["type"] == "http":
            headers = [(b"content-type", b"text/plain"), GATED]
            await send({"type": "http.response.start", "status": 403, "headers": headers})
            await send({"type": "http.response.body", "body": b"for the server's machine alone\n"})


def _is_open(path: str) -> bool:
    return path.startswith(OPEN) and ".." not in path


def _is_local(scope: Mapping[str, Any]) -> bool:
    host = (scope.get("client") or ("", 0))[0]
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
