"""One file over a bad line: resumed, never glued of two versions, and there only when whole."""

import errno
import hashlib
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from filelock import FileLock

from ostraka.data.fetch import download as module
from ostraka.data.fetch.download import Patience, download
from ostraka.data.fetch.sets import GZIP, Remote
from ostraka.data.fetch.web import Unreachable, _Redirects, check_address
from ostraka.errors import DataError, StoreError
from tests.data.fetch.server import Site, serving

BODY = GZIP + bytes(range(256)) * 400
OTHER = GZIP + bytes(reversed(range(256))) * 400
QUICK = Patience(seconds=0.4, window=0.3, bytes=1000, pause=0.0)


def remote(body: bytes = BODY) -> Remote:
    md5 = hashlib.md5(body, usedforsecurity=False).hexdigest()
    return Remote("f.gz", (), md5, GZIP, 0.2, "the test")


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with serving(Site(files={"/f.gz": BODY})) as there:
        yield there


def fetch(site: Site, folder: Path, file: Remote | None = None, patience: Patience = QUICK) -> Path:
    path = folder / "f.gz"
    download(f"{site.url}/f.gz", path, file or remote(), lambda *_: None, patience)
    return path


def left(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_file_arrives_whole_and_nothing_else_stays(site: Site, tmp_path: Path) -> None:
    assert fetch(site, tmp_path).read_bytes() == BODY
    assert left(tmp_path) == ["f.gz"]
    assert site.asked == [("/f.gz", "")]


def test_progress_is_told(site: Site, tmp_path: Path) -> None:
    told: list[tuple[str, int, int | None]] = []
    download(f"{site.url}/f.gz", tmp_path / "f.gz", remote(), lambda *t: told.append(t), QUICK)
    assert told[-1] == ("f.gz", len(BODY), len(BODY))


@pytest.mark.parametrize("version", ["etag", "modified"])
def test_a_cut_connection_is_resumed_where_it_was(site: Site, tmp_path: Path, version: str) -> None:
    if version == "modified":
        site.etag, site.modified = 'W/"weak"', "Wed, 18 Nov 2026 08:00:00 GMT"
    site.cut_after = [5000, 7000]
    assert fetch(site, tmp_path).read_bytes() == BODY
    assert [wanted for _, wanted in site.asked] == ["", "bytes=5000-", "bytes=12000-"]


def test_a_later_command_goes_on(site: Site, tmp_path: Path) -> None:
    site.cut_after = [9000] + [0] * 20
    with pytest.raises(Unreachable, match=r"cut after 9,000.*the same command goes on from there"):
        fetch(site, tmp_path)
    assert left(tmp_path) == ["f.gz.part", "f.gz.part.json"]
    site.cut_after, site.asked = [], []
    assert fetch(site, tmp_path).read_bytes() == BODY
    assert site.asked == [("/f.gz", "bytes=9000-")]


def test_all_that_has_arrived_is_not_asked_for_again(site: Site, tmp_path: Path) -> None:
    """Killed after the last byte and before the file got its name."""
    (tmp_path / "f.gz.part").write_bytes(BODY)
    said = {"url": f"{site.url}/f.gz", "version": '"one"', "total": len(BODY)}
    (tmp_path / "f.gz.part.json").write_text(json.dumps(said))
    assert fetch(site, tmp_path).read_bytes() == BODY
    assert site.asked == []


def test_a_part_that_is_too_long_begins_anew(site: Site, tmp_path: Path) -> None:
    """The server has no such part (416)."""
    (tmp_path / "f.gz.part").write_bytes(BODY + b"more")
    said = {"url": f"{site.url}/f.gz", "version": '"one"', "total": None}
    (tmp_path / "f.gz.part.json").write_text(json.dumps(said))
    assert fetch(site, tmp_path).read_bytes() == BODY
    assert [wanted for _, wanted in site.asked] == [f"bytes={len(BODY) + 4}-", ""]


@pytest.mark.parametrize("heeds", [True, False])
def test_a_file_that_changed_in_between_is_not_glued(
    site: Site, tmp_path: Path, heeds: bool
) -> None:
    """With If-Range the server sends all of the new one; one that ignores it is noticed by ETag."""
    site.cut_after = [9000] + [0] * 20
    with pytest.raises(Unreachable):
        fetch(site, tmp_path)
    site.cut_after, site.etag, site.heeds_if_range = [], '"two"', heeds
    site.files["/f.gz"] = OTHER
    assert fetch(site, tmp_path, remote(OTHER)).read_bytes() == OTHER


def test_a_server_that_ignores_ranges_sends_it_all_again(site: Site, tmp_path: Path) -> None:
    site.ranges, site.cut_after = False, [5000]
    assert fetch(site, tmp_path).read_bytes() == BODY


def test_a_part_from_another_place_or_without_a_version_is_not_used(
    site: Site, tmp_path: Path
) -> None:
    (tmp_path / "f.gz.part").write_bytes(GZIP + b"x" * 98)
    said = {"url": "https://elsewhere/f.gz", "version": '"one"', "total": 900}
    (tmp_path / "f.gz.part.json").write_text(json.dumps(said))
    assert fetch(site, tmp_path).read_bytes() == BODY
    (tmp_path / "f.gz").unlink()
    (tmp_path / "f.gz.part").write_bytes(GZIP + b"x" * 98)
    (tmp_path / "f.gz.part.json").write_text("{ not json")
    assert fetch(site, tmp_path).read_bytes() == BODY
    assert {wanted for _, wanted in site.asked} == {""}


def test_without_etag_and_date_nothing_is_resumed(site: Site, tmp_path: Path) -> None:
    site.etag, site.cut_after = "", [5000]
    assert fetch(site, tmp_path).read_bytes() == BODY
    assert [wanted for _, wanted in site.asked] == ["", ""]


def test_a_short_body_without_a_length_is_noticed(site: Site, tmp_path: Path) -> None:
    site.says_length, site.cut_after = False, [5000]
    with pytest.raises(DataError, match=r"sent 5,000 bytes with the MD5 .*the test states"):
        fetch(site, tmp_path)
    assert left(tmp_path) == []


def test_a_wrong_file_is_not_kept(site: Site, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"MD5 .*nothing was kept.*--mirror"):
        fetch(site, tmp_path, remote(OTHER))
    assert left(tmp_path) == []


def test_a_file_that_is_too_large_is_stopped(site: Site, tmp_path: Path) -> None:
    site.files["/f.gz"] = GZIP + bytes(500_000)
    with pytest.raises(DataError, match=r"sends 500,002 bytes or more; the file has about 0\.2 MB"):
        fetch(site, tmp_path)
    site.says_length = False
    with pytest.raises(DataError, match="bytes or more"):
        fetch(site, tmp_path)
    assert left(tmp_path) == []


@pytest.mark.parametrize("kind", ["text/html; charset=utf-8", "application/octet-stream"])
def test_an_error_page_in_place_of_the_data(site: Site, tmp_path: Path, kind: str) -> None:
    site.files["/f.gz"], site.content_type = b"<!doctype html><h1>Log in</h1>", kind
    with pytest.raises(DataError, match="login page of a network"):
        fetch(site, tmp_path)
    assert left(tmp_path) == []


@pytest.mark.parametrize(("status", "words"), [(404, "it is not there"), (403, "access is")])
def test_an_error_of_the_server(site: Site, tmp_path: Path, status: int, words: str) -> None:
    site.status = [status]
    with pytest.raises(DataError, match=rf"{words}.*status {status}.*--mirror URL"):
        fetch(site, tmp_path)
    assert len(site.asked) == 1, "it is not asked again"


def test_a_busy_server_is_asked_again_and_given_up_in_the_end(site: Site, tmp_path: Path) -> None:
    site.status = [503, 429]
    assert fetch(site, tmp_path).read_bytes() == BODY
    (tmp_path / "f.gz").unlink()
    site.status, site.asked = [503] * 50, []
    with pytest.raises(Unreachable, match="busy or broken"):
        fetch(site, tmp_path)
    assert len(site.asked) == module.ATTEMPTS


def test_a_server_that_sends_nothing_is_not_waited_for(site: Site, tmp_path: Path) -> None:
    site.piece, site.pause = 10_000, 1.0
    with pytest.raises(Unreachable, match="sent nothing for too long"):
        fetch(site, tmp_path, patience=Patience(0.05, 5.0, 10**9, 0.0))


def test_a_server_that_drips_is_not_waited_for(site: Site, tmp_path: Path) -> None:
    """Each piece is in time, but 100 bytes in 0.02 seconds are too few."""
    site.piece, site.pause = 100, 0.02
    with pytest.raises(Unreachable, match="sent nothing for too long"):
        fetch(site, tmp_path, patience=Patience(1.0, 0.1, 10**6, 0.0))


def test_no_server_and_no_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with serving(Site()) as gone:
        pass
    with pytest.raises(Unreachable, match=r"connection failed.*refused"):
        fetch(gone, tmp_path)
    gone.url = "http://no-such-host.invalid"
    with pytest.raises(Unreachable, match=r"the host was not found.*is there a network"):
        fetch(gone, tmp_path)


def test_redirects_are_followed_on_the_web_alone(site: Site, tmp_path: Path) -> None:
    site.redirect = {"/f.gz": f"{site.url}/there.gz"}
    site.files = {"/there.gz": BODY}
    assert fetch(site, tmp_path).read_bytes() == BODY
    for target in ("file:///etc/passwd", "ftp://host/f", "data:,x"):
        (tmp_path / "f.gz").unlink(missing_ok=True)
        site.redirect = {"/f.gz": target}
        with pytest.raises(DataError, match="that begin with http"):
            fetch(site, tmp_path)
    site.redirect = {"/f.gz": f"{site.url}/f.gz"}
    with pytest.raises(DataError, match="leads in a circle"):
        fetch(site, tmp_path)


def test_no_way_from_https_to_http() -> None:
    from email.message import Message
    from io import BytesIO
    from urllib.request import Request

    follow, safe = _Redirects(), Request("https://a.org/f")
    with pytest.raises(DataError, match=r"from https to 'http://b\.org/f'"):
        follow.redirect_request(safe, BytesIO(), 302, "", Message(), "http://b.org/f")
    for start, end in (("https", "https"), ("http", "https"), ("http", "http")):
        request = Request(f"{start}://a.org/f")
        found = follow.redirect_request(request, BytesIO(), 302, "", Message(), f"{end}://b.org/f")
        assert found is not None


@pytest.mark.parametrize("url", ["file:///etc/passwd", "ftp://h/f", "http://", "h/f", "http://a b"])
def test_other_addresses_are_refused(url: str) -> None:
    with pytest.raises(DataError, match="only addresses that begin with http"):
        check_address(url)


def test_a_proxy_of_the_environment_is_asked(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A proxy gets the whole address as the path."""
    monkeypatch.setenv("http_proxy", site.url)
    monkeypatch.setenv("no_proxy", "")
    site.files = {"http://far.example/f.gz": BODY}
    far = Site(url="http://far.example")
    assert fetch(far, tmp_path).read_bytes() == BODY


def test_a_full_disk(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=1000))
    with pytest.raises(StoreError, match="more than there is room for"):
        fetch(site, tmp_path)
    monkeypatch.undo()

    def full(self: Path, *_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(module.json, "dumps", lambda *_: full(tmp_path))
    with pytest.raises(StoreError, match="free some space there"):
        fetch(site, tmp_path)


def test_two_at_once_do_not_write_the_same_file(site: Site, tmp_path: Path) -> None:
    with (
        FileLock(tmp_path / "f.gz.lock"),
        pytest.raises(StoreError, match="being fetched by another process"),
    ):
        fetch(site, tmp_path)
