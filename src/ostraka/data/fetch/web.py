"""Asking a web server: which addresses are followed, how long is waited, what failures mean.

Proxies are those of the environment (http_proxy, https_proxy, no_proxy). Only http and https are
spoken: an address that leads to file:, ftp: or from https to http is refused.
"""

import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPException, HTTPResponse
from typing import IO, Any, cast, final
from urllib import request as web
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit

from ostraka.errors import DataError

SECONDS = 30.0
"""How long a connection, and every piece of an answer, is waited for."""


class Unreachable(DataError):
    """The server could not be reached, or broke off; it may be worth another try."""


@final
class NoSuchPart(Unreachable):
    """The server does not have the part of the file that was asked for."""


@final
class _Redirects(web.HTTPRedirectHandler):
    """Follows to http and https, and never from https to http."""

    max_redirections = 5

    def redirect_request(
        self, req: web.Request, fp: IO[bytes], code: int, msg: str, headers: Any, newurl: str
    ) -> web.Request | None:
        """The next request, if it may be made."""
        check_address(newurl, f"{req.full_url} leads to {newurl!r:.200}")
        if urlsplit(req.full_url).scheme == "https" and urlsplit(newurl).scheme != "https":
            raise DataError(
                f"{req.full_url} leads from https to {newurl!r:.200}, where anybody on the way "
                "could change the data; use another place with --mirror https://..."
            )
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def check_address(url: str, what: str = "") -> None:
    """Refuse everything but http and https with a host."""
    try:
        parts = urlsplit(url)
        host = parts.hostname
    except ValueError:
        parts, host = urlsplit(""), None
    if parts.scheme not in ("http", "https") or not host or any(c.isspace() for c in url):
        raise DataError(
            f"{what or repr(url)}: only addresses that begin with http:// or https:// and name a "
            "host are followed; give such a one with --mirror"
        )


def ask(url: str, headers: dict[str, str], seconds: float = SECONDS) -> HTTPResponse:
    """The server's answer, whose body is not read yet."""
    check_address(url)
    usual = {"User-Agent": "ostraka", "Accept-Encoding": "identity"}
    opener = web.OpenerDirector()  # of the web alone: no files, no ftp, no data: addresses
    for handler in (
        web.ProxyHandler(), web.UnknownHandler(), web.HTTPHandler(), web.HTTPSHandler(),
        web.HTTPDefaultErrorHandler(), _Redirects(), web.HTTPErrorProcessor(),
    ):  # fmt: skip
        opener.add_handler(handler)
    with reaching(url):
        request = web.Request(url, headers={**usual, **headers})
        return cast(HTTPResponse, opener.open(request, timeout=seconds))


@contextmanager
def reaching(url: str) -> Iterator[None]:
    """`with reaching(url):` turns what a network does into errors with a remedy."""
    try:
        yield
    except HTTPError as error:
        error.close()
        raise _refused(url, error.code) from error
    except (OSError, HTTPException) as caught:
        inner = caught.reason if isinstance(caught, URLError) else None
        cause = inner if isinstance(inner, BaseException) else caught
        if isinstance(cause, socket.gaierror):
            raise Unreachable(
                f"{url}: the host was not found ({cause.strerror}); is there a network? A "
                "proxy is taken from https_proxy and http_proxy; on a machine without a network, "
                "copy the files there and name their folder with --data-dir"
            ) from cause
        if isinstance(cause, ssl.SSLError):
            raise DataError(
                f"{url}: no secure connection ({cause.reason or cause}); check the clock and "
                "the certificates of this machine, or use another place with --mirror"
            ) from cause
        if isinstance(cause, TimeoutError):
            raise Unreachable(
                f"{url}: the server sent nothing for too long; try again later, or use "
                "another place with --mirror"
            ) from cause
        if isinstance(cause, URLError | HTTPException | ConnectionError):
            raise Unreachable(
                f"{url}: the connection failed ({cause or type(cause).__name__}); try again, "
                "or use another place with --mirror"
            ) from cause
        raise


def _refused(url: str, code: int) -> DataError:
    if code == 416:
        return NoSuchPart(f"{url}: the server does not have the part that was asked for")
    if 300 <= code < 400:
        return DataError(
            f"{url}: it leads in a circle or away from the web (status {code}); only addresses "
            "that begin with http:// or https:// are followed: use another place with --mirror"
        )
    if code in (429, 500, 502, 503, 504):
        return Unreachable(
            f"{url}: the server is busy or broken (status {code}); try again later, or use another "
            "place with --mirror"
        )
    why = {404: "it is not there", 410: "it is gone", 403: "access is refused"}.get(code, "refused")
    return DataError(f"{url}: {why} (status {code}); use another place with --mirror URL")
