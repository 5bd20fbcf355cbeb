"""What is wrong with a federation, in words: certificates, clocks, keys, ports.

Every check gives a finding: what was looked at, and, if it is not well, what to do.
"""

import errno
import socket
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http.client import HTTPSConnection
from ipaddress import ip_address
from pathlib import Path
from typing import Any, final

from ostraka.engines.flower import is_registered
from ostraka.errors import OstrakaError
from ostraka.federation.certificates import (
    hosts_of,
    issued_by,
    library,
    public_bytes,
    read_certificate,
    read_private,
    same_key,
)
from ostraka.federation.plan import plan_of
from ostraka.federation.project import Federation, PartyFolder

SECONDS = 10.0
"""How long a connection may take."""
SOON_DAYS = 30
"""A certificate that ends within this time is told of."""
AHEAD, BEHIND = 5.0, 300.0
"""Seconds that a party's clock may differ: the server takes what was signed within them."""
UNKNOWN = (
    "the server does not know this party's key; give its owner your key.pub, for the party's "
    "folder in parties/ there, and let the server be started again"
)


@final
@dataclass(frozen=True)
class Finding:
    """One thing that was looked at."""

    what: str
    problem: str = ""
    """What is wrong, and what to do; empty: nothing."""


def check_server(federation: Federation) -> Iterator[Finding]:
    """Everything that a server needs before it is started."""
    root, certificate = federation.root, federation.certificate
    yield _file_finding("the server's key", federation.key)
    yield _file_finding("the authority's key", federation.authority.key)
    try:
        authority, own = (
            read_certificate(path) for path in (federation.authority.certificate, certificate)
        )
        problem = certificate_problem(own, authority, federation.host) or soon_problem(own)
    except OstrakaError as error:
        problem = str(error)
    if problem:
        problem += f". A new one: ostraka federation renew {root}"
    yield Finding(f"the server's certificate for {federation.host}", problem)
    for name in federation.parties:
        yield Finding(f"the public key of {name}", _public_problem(federation.public_key(name)))
    try:
        federation.keys()
        yield Finding("every party has a key of its own")
    except OstrakaError as error:
        yield Finding("every party has a key of its own", str(error))
    yield Finding(f"port {federation.port} is free", port_problem(federation.port))
    try:
        plan_of(federation)
        yield Finding(f"the run in {root / 'run.toml'} and its data")
    except OstrakaError as error:
        yield Finding(f"the run in {root / 'run.toml'} and its data", str(error))


def check_party(party: PartyFolder) -> Iterator[Finding]:
    """Everything that a party needs, the way to its server included."""
    yield _file_finding("the party's key", party.key)
    yield Finding("the halves of the party's key", _halves_problem(party))
    if not party.share:
        there = bool(party.data) and Path(party.data).expanduser().exists()
        words = f"there is nothing at {party.data!r}" if party.data else "no data is named"
        advice = f"ostraka federation party {party.root} --data PATH"
        yield Finding("the party's data", "" if there else f"{words}; start with: {advice}")
    problem = reach_problem(party.host, party.port)
    yield Finding(f"the way to {party.server}", problem)
    if problem:
        return
    try:
        problem = shown_problem(party)
    except (OSError, OstrakaError) as error:
        problem = f"it cannot be looked at: {error}"
    yield Finding(f"the certificate that {party.server} shows", problem)
    if problem:
        return
    yield Finding("this machine's clock", _clock(party))
    try:
        known = is_registered(party.server, party.authority, read_private(party.key))
        problem = "" if known else UNKNOWN
    except OstrakaError as error:
        problem = str(error)
    yield Finding("the server knows the party's key", problem)


def certificate_problem(
    certificate: Any, authority: Any, host: str, now: datetime | None = None
) -> str:
    """What is wrong with a server's certificate; empty: nothing."""
    now = now or datetime.now(UTC)
    begins, ends = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    if now < begins:
        return (
            f"it holds from {begins:%Y-%m-%d %H:%M} UTC on, and this machine's clock says "
            f"{now:%Y-%m-%d %H:%M}: set the clock"
        )
    if now > ends:
        return f"it expired on {ends:%Y-%m-%d}, and it is {now:%Y-%m-%d} here"
    if not issued_by(certificate, authority):
        return (
            f"it was not signed by the federation's authority ({_common(authority)}) but by "
            f"{_issuer(certificate)}: another server answers there, or ca.pem is of another "
            "federation"
        )
    named = hosts_of(certificate)
    if not any(_matches(host, name) for name in named):
        return f"it is for {', '.join(named) or 'nobody'}, and the parties call it {host}"
    if not authority.not_valid_before_utc <= now <= authority.not_valid_after_utc:
        return f"the authority's own certificate ended on {authority.not_valid_after_utc:%Y-%m-%d}"
    return ""


def soon_problem(certificate: Any, now: datetime | None = None) -> str:
    """Whether a certificate that still holds must be renewed; empty: not yet."""
    left = certificate.not_valid_after_utc - (now or datetime.now(UTC))
    return (
        f"it expires in {left.days} days; make a new one in time" if left.days < SOON_DAYS else ""
    )


def shown_problem(party: PartyFolder) -> str:
    """What is wrong with the certificate that the server shows."""
    anyone = ssl.create_default_context()
    anyone.check_hostname, anyone.verify_mode = False, ssl.CERT_NONE  # to look at it, no more
    address = (party.host, party.port)
    try:
        with socket.create_connection(address, SECONDS) as plain:  # noqa: SIM117
            with anyone.wrap_socket(plain, server_hostname=party.host) as secured:
                shown = secured.getpeercert(binary_form=True)
    except ssl.SSLError as error:
        return f"what answers there does not speak TLS ({error.reason}); is it the right port?"
    certificate = library().load_der_x509_certificate(shown)
    return certificate_problem(certificate, read_certificate(party.authority), party.host)


def port_problem(port: int, bind: str = "0.0.0.0") -> str:
    """Why a server cannot have a port; empty: it can."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((bind, port))
        except PermissionError:
            return f"this user may not open it; take one above 1023, such as {port + 8000}"
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                return f"{bind} cannot be listened at: {error.strerror or error}"
            return (
                "another program has it (or this federation's server, if it runs); end that, or "
                "change port in federation.toml and in every party.toml"
            )
    return ""


def reach_problem(host: str, port: int) -> str:
    """Why a server cannot be reached; empty: it can."""
    try:
        socket.create_connection((host, port), SECONDS).close()
    except socket.gaierror:
        return f"the name {host} is not known here; is it spelt right in party.toml?"
    except ConnectionRefusedError:
        return f"{host} is there, but nothing listens at port {port}: is the server started?"
    except TimeoutError:
        return (
            f"{host} did not answer at port {port} within {SECONDS:g} seconds: a firewall between "
            "here and there may hold it back"
        )
    except OSError as error:
        return f"{host} cannot be reached: {error.strerror or error}"
    return ""


def clock_problem(here: datetime, there: datetime) -> str:
    """Whether this clock is too far from the server's; empty: it is not."""
    ahead = (here - there).total_seconds()
    if -BEHIND < ahead < AHEAD:
        return ""
    way = "ahead of" if ahead > 0 else "behind"
    return (
        f"it is {abs(ahead):.0f} seconds {way} the server's, which takes at most {AHEAD:g} seconds "
        f"ahead and {BEHIND:g} behind: let both follow a time server (timedatectl set-ntp true)"
    )


def private_problem(path: Path) -> str:
    """Whether a private key is there and for nobody else; empty: it is."""
    if not path.exists():
        return f"{path} is missing; bring it back"
    mode = path.stat().st_mode & 0o777
    if mode & 0o077:
        return f"{path} can be read by others (mode {mode:03o}); do: chmod 600 {path}"
    return ""


def _clock(party: PartyFolder) -> str:
    """The server tells its time with every answer, a refusal too."""
    context = ssl.create_default_context(cafile=str(party.authority))
    connection = HTTPSConnection(party.host, party.port, timeout=SECONDS, context=context)
    try:
        connection.request("GET", "/health")
        date = connection.getresponse().headers.get("date")
    except OSError as error:
        return f"the server's time cannot be asked: {error}"
    finally:
        connection.close()
    if date is None:
        return "the server does not tell its time"
    return clock_problem(datetime.now(UTC), parsedate_to_datetime(date))


def _file_finding(what: str, path: Path) -> Finding:
    return Finding(f"{what} is there and private", private_problem(path))


def _halves_problem(party: PartyFolder) -> str:
    try:
        fits = same_key(party.key, party.root / "key.pub")
    except OstrakaError as error:
        return str(error)
    return "" if fits else (
        "key.pub is not of key: make it anew with ssh-keygen -y -f key > key.pub, and give it to "
        "the server's owner"
    )  # fmt: skip


def _public_problem(path: Path) -> str:
    try:
        public_bytes(path)
    except OstrakaError as error:
        return str(error)
    return ""


def _matches(host: str, name: str) -> bool:
    try:
        return ip_address(host) == ip_address(name)
    except ValueError:
        return host.lower() == name.lower()


def _common(certificate: Any) -> str:
    return str(certificate.subject.rfc4514_string())


def _issuer(certificate: Any) -> str:
    return str(certificate.issuer.rfc4514_string())
