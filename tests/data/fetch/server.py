"""A web server of our own on the loopback, whose faults are chosen."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Site:
    """Files by path, and what goes wrong with the next answers."""

    files: dict[str, bytes] = field(default_factory=dict)
    etag: str = '"one"'
    modified: str = ""
    ranges: bool = True
    heeds_if_range: bool = True
    cut_after: list[int] = field(default_factory=list)
    """Bytes after which the next connections are cut; used up one by one."""
    status: list[int] = field(default_factory=list)
    """Errors that the next requests get."""
    redirect: dict[str, str] = field(default_factory=dict)
    content_type: str = "application/octet-stream"
    says_length: bool = True
    piece: int = 0
    """With a `pause`: bytes that are sent at once."""
    pause: float = 0.0
    asked: list[tuple[str, str]] = field(default_factory=list)
    """Path and Range of every request."""
    url: str = ""


@contextmanager
def serving(site: Site) -> Iterator[Site]:
    """The site on a free port of 127.0.0.1."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.0"

        def log_message(self, *_: object) -> None:
            """Quiet."""

        def do_GET(self) -> None:
            site.asked.append((self.path, self.headers.get("Range", "")))
            if site.status:
                self.send_error(site.status.pop(0))
            elif self.path in site.redirect:
                self.send_response(302)
                self.send_header("Location", site.redirect[self.path])
                self.end_headers()
            elif self.path not in site.files:
                self.send_error(404)
            else:
                self._send(site.files[self.path])

        def _send(self, body: bytes) -> None:
            start, wanted = 0, self.headers.get("Range", "")
            same = self.headers.get("If-Range") in (site.etag, site.modified)
            if wanted and site.ranges and (same or not site.heeds_if_range):
                start = int(wanted.removeprefix("bytes=").rstrip("-"))
                if start >= len(body):
                    self.send_error(416)
                    return
                self.send_response(206)
                self.send_header("Content-Range", f"bytes {start}-{len(body) - 1}/{len(body)}")
            else:
                self.send_response(200)
            for name, value in (("ETag", site.etag), ("Last-Modified", site.modified)):
                if value:
                    self.send_header(name, value)
            self.send_header("Content-Type", site.content_type)
            if site.says_length:
                self.send_header("Content-Length", str(len(body) - start))
            self.end_headers()
            rest = body[start:]
            if site.cut_after:
                rest = rest[: site.cut_after.pop(0)]
            size = site.piece or len(rest) or 1
            try:
                for place in range(0, len(rest), size):
                    self.wfile.write(rest[place : place + size])
                    time.sleep(site.pause)
            except OSError:
                pass  # the other side has gone

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: object) -> None:
            """A client that goes away is part of the test."""

    server = Server(("127.0.0.1", 0), Handler)
    site.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield site
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
