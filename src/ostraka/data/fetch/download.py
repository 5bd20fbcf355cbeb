"""One file from the web to the disk: resumed where it was cut, and there only when it is whole.

What has arrived lies in NAME.part, with what the server said of that version of the file (ETag or
Last-Modified) in NAME.part.json. A later attempt asks for the rest of that very version; if the
server has another by now, or does not serve parts, it begins anew. The file gets its name in one
step, once its digest is right.
"""

import hashlib
import json
import os
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from http.client import HTTPResponse
from pathlib import Path
from typing import Any, final

from filelock import FileLock, Timeout

from ostraka.data.fetch.sets import Remote
from ostraka.data.fetch.web import SECONDS, NoSuchPart, Unreachable, ask, reaching
from ostraka.errors import DataError, StoreError, writing

PIECE = 2**16
ATTEMPTS = 5
"""Tries in a row that bring nothing, before it is given up."""

Tell = Callable[[str, int, int | None], None]
"""Called with the file's name, bytes that have arrived, and how many there are (None: unsaid)."""


@final
@dataclass(frozen=True)
class Patience:
    """How long is waited: for any piece, and for less than `bytes` to arrive; between tries."""

    seconds: float = SECONDS
    window: float = 60.0
    bytes: int = 16_384
    pause: float = 1.0


PATIENT = Patience()


def download(url: str, path: Path, file: Remote, tell: Tell, patience: Patience = PATIENT) -> None:
    """Fetch `url` to `path`, which then has the digest that is stated for `file`."""
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(path.with_name(path.name + ".lock"))
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise StoreError(
            f"{path} is being fetched by another process; wait until it is there"
        ) from None
    try:
        part = _Part(path, url, file)
        _whole(part, url, tell, patience)
        part.finish()
    finally:
        Path(lock.lock_file).unlink(missing_ok=True)
        lock.release()


def _whole(part: "_Part", url: str, tell: Tell, patience: Patience) -> None:
    """Try until all of it has arrived; a try that brought much that is new does not count."""
    failed, most = 0, part.size
    while not part.whole():
        try:
            _attempt(part, url, tell, patience)
            return
        except NoSuchPart:
            part.clear()
            failed += 1
        except Unreachable as error:
            failed = 0 if part.size - most >= patience.bytes else failed + 1
            most = max(most, part.size)
            if failed >= ATTEMPTS:
                kept = f" ({part.size:,} bytes are kept: the same command goes on from there)"
                raise Unreachable(f"{error}{kept if part.size else ''}") from error
        if failed:
            time.sleep(patience.pause * 2**failed)


def _attempt(part: "_Part", url: str, tell: Tell, patience: Patience) -> None:
    answer = ask(url, part.wanted(), patience.seconds)
    with answer, reaching(url):
        total = part.begin(answer)
        started, mark = time.monotonic(), part.size
        while piece := answer.read1(PIECE):
            part.add(piece)
            tell(part.path.name, part.size, total)
            if time.monotonic() - started > patience.window:
                if part.size - mark < patience.bytes:
                    raise TimeoutError
                started, mark = time.monotonic(), part.size
        if total is not None and part.size < total:
            raise Unreachable(
                f"{url}: the connection was cut after {part.size:,} of {total:,} bytes"
            )


@final
class _Part:
    """The bytes of one file that have arrived."""

    def __init__(self, path: Path, url: str, file: Remote) -> None:
        self.path, self.url, self.file = path, url, file
        self.place = path.with_name(path.name + ".part")
        self.beside = path.with_name(path.name + ".part.json")

    @property
    def size(self) -> int:
        """Bytes that are there."""
        return self.place.stat().st_size if self.place.is_file() else 0

    def whole(self) -> bool:
        """Whether all has arrived, in an attempt that ended before the file got its name."""
        return self.size > 0 and self.size == self._said().get("total")

    def wanted(self) -> dict[str, str]:
        """What to ask for: the rest, if it is known which version it must be of."""
        version = self._version()
        if not self.size or not version:
            self.clear()
            return {}
        return {"Range": f"bytes={self.size}-", "If-Range": version}

    def begin(self, answer: HTTPResponse) -> int | None:
        """Make ready for what the server sends, at the right place; how many bytes there will be
        in all, if it says so."""
        # what names the version of a file: a strong ETag, else when it was changed; else nothing
        tag = answer.headers.get("ETag", "")
        strong = tag if not tag.startswith("W/") else ""
        version = strong or answer.headers.get("Last-Modified", "")
        if answer.status == 206:
            start, total = _span(answer.headers.get("Content-Range", ""))
            if start != self.size or (version and version != self._version()):
                self.clear()
                raise Unreachable(
                    f"{self.url}: the server sent another part than was asked for; beginning anew"
                )
        else:
            self.clear()
            length = answer.headers.get("Content-Length", "")
            total = int(length) if length.isdecimal() else None
            if answer.headers.get("Content-Type", "").lower().startswith("text/html"):
                raise DataError(
                    f"{self.url} sent a web page in place of the file: an error page, or the login "
                    "page of a network; open the address in a browser, or use another place with "
                    "--mirror"
                )
            with writing(self.beside):
                said = {"url": self.url, "version": version, "total": total}
                self.beside.write_text(json.dumps(said))
        self._check_room(total)
        return total

    def add(self, piece: bytes) -> None:
        """Keep what arrived; the first bytes must be those of such a file."""
        if not self.size and not piece.startswith(self.file.starts[: len(piece)]):
            self.clear()
            raise DataError(
                f"{self.url} did not send the file but something that begins with "
                f"{piece[:40]!r}: an error page, or the login page of a network; open the address "
                "in a browser, or use another place with --mirror"
            )
        with writing(self.place), self.place.open("ab") as out:
            out.write(piece)
        self._check_room(None)

    def finish(self) -> None:
        """Compare the digest; then the file gets its name."""
        with self.place.open("rb") as stored:
            md5 = hashlib.md5(usedforsecurity=False)
            found = hashlib.file_digest(stored, lambda: md5).hexdigest()
        if found != self.file.md5:
            size = self.size
            self.clear()
            raise DataError(
                f"{self.url} sent {size:,} bytes with the MD5 {found}; {self.file.stated_by} "
                f"states {self.file.md5}. It is damaged, or another version: nothing was kept; try "
                "again, or use another place with --mirror"
            )
        with writing(self.path):
            with self.place.open("rb") as stored:
                os.fsync(stored.fileno())
            self.place.replace(self.path)
        self.beside.unlink(missing_ok=True)

    def _version(self) -> str:
        """The version that the part is of; empty if nobody knows."""
        return str(self._said().get("version", ""))

    def _said(self) -> dict[str, Any]:
        """What the server said of it; nothing if the part came from elsewhere."""
        try:
            said = json.loads(self.beside.read_text())
        except (OSError, ValueError):
            return {}
        return said if isinstance(said, dict) and said.get("url") == self.url else {}

    def _check_room(self, total: int | None) -> None:
        most = int(self.file.megabytes * 2e6)
        coming = self.size if total is None else total
        if coming > most:
            self.clear()
            raise DataError(
                f"{self.url} sends {coming:,} bytes or more; the file has about "
                f"{self.file.megabytes:g} MB, so it is another one: use another place with --mirror"
            )
        if total is not None and total - self.size > shutil.disk_usage(self.path.parent).free:
            raise StoreError(
                f"{self.path} needs {total - self.size:,} bytes more than there is room for on its "
                "disk; free some space there, or choose another folder with --to"
            )

    def clear(self) -> None:
        """Forget what has arrived."""
        self.place.unlink(missing_ok=True)
        self.beside.unlink(missing_ok=True)


def _span(text: str) -> tuple[int, int | None]:
    """`bytes 100-199/500` as (100, 500); (-1, None) if it is nothing of the kind."""
    unit, _, rest = text.partition(" ")
    span, _, total = rest.partition("/")
    start = span.partition("-")[0]
    if unit != "bytes" or not start.isdecimal():
        return -1, None
    return int(start), int(total) if total.isdecimal() else None
