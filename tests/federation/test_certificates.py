"""What is wrong with a certificate, a clock, a key or a port, in words."""

import socket
import ssl
import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from ostraka.errors import ConfigError, StoreError
from ostraka.federation import check
from ostraka.federation.certificates import (
    Authority,
    hosts_of,
    make_authority,
    make_party_key,
    public_bytes,
    read_certificate,
    read_private,
    same_key,
)
from ostraka.federation.check import (
    certificate_problem,
    check_party,
    check_server,
    clock_problem,
    port_problem,
    private_problem,
    reach_problem,
    shown_problem,
    soon_problem,
)
from ostraka.federation.party import free_port
from ostraka.federation.project import Federation, PartyFolder, create

NOW = datetime.now(UTC)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Federation:
    root = tmp_path_factory.mktemp("made") / "fed"
    run = {"method": "fedov", "data": "digits"}
    return create(root, run, ["north", "east"], "fed.example.org", 18555, share=True)


def problem(made: Federation, host: str = "fed.example.org", days: float = 0.0) -> str:
    authority, own = (
        read_certificate(made.authority.certificate),
        read_certificate(made.certificate),
    )
    return certificate_problem(own, authority, host, NOW + timedelta(days=days))


def test_a_new_certificate_is_well(made: Federation) -> None:
    assert problem(made) == ""
    assert hosts_of(read_certificate(made.certificate)) == [
        "fed.example.org", "localhost", "127.0.0.1"
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("host", "days", "words"),
    [
        ("fed.example.org", 900, "it expired on"),
        ("fed.example.org", -2, "this machine's clock says"),
        ("other.example.org", 0, "it is for fed.example.org, localhost, 127.0.0.1, and the parties "
                                 "call it other.example.org"),
        ("127.0.0.2", 0, "call it 127.0.0.2"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_certificate(
    made: Federation, host: str, days: float, words: str
) -> None:
    assert words in problem(made, host, days)


@pytest.mark.parametrize("host", ["127.0.0.1", "LOCALHOST", "Fed.Example.org"])
def test_names_are_compared_as_names_and_addresses_as_addresses(
    made: Federation, host: str
) -> None:
    assert problem(made, host) == ""


def test_a_certificate_of_another_authority_is_told(made: Federation, tmp_path: Path) -> None:
    other = Authority(tmp_path / "ca.pem", tmp_path / "ca.key")
    make_authority("other", other)
    found = certificate_problem(
        read_certificate(made.certificate), read_certificate(other.certificate), "localhost"
    )
    assert "not signed by the federation's authority (CN=Ostraka federation other)" in found
    assert "CN=Ostraka federation fed" in found


def test_a_certificate_that_ends_soon_is_told(made: Federation) -> None:
    own = read_certificate(made.certificate)
    assert soon_problem(own) == ""
    assert "it expires in 5 days" in soon_problem(own, NOW + timedelta(days=820))


def test_a_certificate_is_renewed_by_the_same_authority(tmp_path: Path) -> None:
    made = create(tmp_path / "fed", {"method": "fedov"}, ["north"])
    before = read_certificate(made.certificate).serial_number
    made.renew()
    assert read_certificate(made.certificate).serial_number != before
    assert problem(made, "localhost") == ""
    assert private_problem(made.key) == ""


@pytest.mark.parametrize(
    ("ahead", "words"),
    [(0, ""), (4, ""), (-290, ""), (6, "6 seconds ahead of"), (-400, "400 seconds behind")],
)
def test_a_clock_may_differ_a_little(ahead: float, words: str) -> None:
    found = clock_problem(NOW + timedelta(seconds=ahead), NOW)
    assert (words in found) if words else found == ""


def test_a_private_key_is_for_nobody_else(made: Federation, tmp_path: Path) -> None:
    private, public = tmp_path / "key", tmp_path / "key.pub"
    assert "is missing" in private_problem(private)
    make_party_key(private, public)
    assert private_problem(private) == ""
    private.chmod(0o640)
    assert f"mode 640); do: chmod 600 {private}" in private_problem(private)
    for path in (made.key, made.authority.key, made.root / "parties/north/key"):
        assert private_problem(path) == "", "as they are made"


def test_the_halves_of_a_key_are_compared(tmp_path: Path) -> None:
    for name in ("a", "b"):
        make_party_key(tmp_path / name, tmp_path / f"{name}.pub")
    assert same_key(tmp_path / "a", tmp_path / "a.pub")
    assert not same_key(tmp_path / "a", tmp_path / "b.pub")
    assert public_bytes(tmp_path / "a.pub").startswith(b"-----BEGIN PUBLIC KEY-----")


def test_what_is_no_key_is_refused(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("hello")
    with pytest.raises(StoreError, match="ssh-keygen -t ecdsa"):
        read_private(tmp_path / "key")
    with pytest.raises(StoreError, match="cannot be read"):
        read_private(tmp_path / "none")


def test_a_port_that_is_taken_is_told() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert "another program has it" in port_problem(port, "127.0.0.1")
        assert reach_problem("127.0.0.1", port) == ""
    assert port_problem(port, "127.0.0.1") == ""
    assert f"nothing listens at port {port}" in reach_problem("127.0.0.1", port)


def test_a_name_that_nobody_has_is_told() -> None:
    assert "is not known here" in reach_problem("no-such-host.invalid", 8443)


def test_a_server_that_does_not_answer_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(address: object, timeout: float) -> None:
        raise TimeoutError

    monkeypatch.setattr(check.socket, "create_connection", never)
    assert "a firewall between here and there" in reach_problem("127.0.0.1", 1)


class Shown:
    """Something that listens, with TLS or without."""

    def __init__(self, context: ssl.SSLContext | None) -> None:
        self.context, self.listener = context, socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self) -> None:
        while True:
            try:
                talk, _ = self.listener.accept()
                if self.context is None:
                    talk.sendall(b"hello\r\n")
                    talk.close()
                else:
                    self.context.wrap_socket(talk, server_side=True).close()
            except OSError:
                if self.listener.fileno() == -1:
                    return


@pytest.fixture
def shown(made: Federation) -> Iterator[Shown]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(made.certificate, made.key)
    server = Shown(context)
    yield server
    server.listener.close()


def party_at(made: Federation, port: int, host: str = "localhost") -> PartyFolder:
    return replace(PartyFolder.load(made.root / "parties/north"), server=f"{host}:{port}")


def test_the_certificate_that_a_server_shows_is_looked_at(
    made: Federation, shown: Shown, tmp_path: Path
) -> None:
    party = party_at(made, shown.port)
    assert shown_problem(party) == ""
    assert "the parties call it 127.0.0.1" not in shown_problem(
        party_at(made, shown.port, "127.0.0.1")
    )
    other = create(tmp_path / "other", {"method": "fedov"}, ["north"])
    elsewhere = replace(party, root=other.root / "parties/north")
    assert "another server answers there" in shown_problem(elsewhere)


def test_what_does_not_speak_tls_is_told(made: Federation) -> None:
    plain = Shown(None)
    try:
        assert "does not speak TLS" in shown_problem(party_at(made, plain.port))
    finally:
        plain.listener.close()


def findings(party: PartyFolder) -> dict[str, str]:
    return {finding.what: finding.problem for finding in check_party(party)}


def test_a_party_is_checked_as_far_as_it_goes(
    made: Federation, shown: Shown, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(check, "is_registered", lambda *given: False)
    monkeypatch.setattr(check, "_clock", lambda party: "")
    found = findings(party_at(made, shown.port))
    wrong = {what: words for what, words in found.items() if words}
    assert list(wrong) == ["the server knows the party's key"]
    assert "the server does not know this party's key" in wrong["the server knows the party's key"]
    closed = free_port()
    found = findings(party_at(made, closed))
    assert list(found)[-1] == f"the way to localhost:{closed}", "nothing behind it can be seen"


def test_a_party_without_data_is_told(made: Federation, tmp_path: Path) -> None:
    party = replace(party_at(made, 1), share=False)
    assert "no data is named" in findings(party)["the party's data"]
    party = replace(party, data=str(tmp_path / "none"))
    assert "there is nothing at" in findings(party)["the party's data"]


def test_a_server_is_checked(tmp_path: Path) -> None:
    run = {"method": "fedov", "data": "digits"}
    made = create(tmp_path / "fed", run, ["north", "east"], port=free_port())
    assert [f.what for f in check_server(made) if f.problem] == []
    (made.root / "run.toml").write_text('method = "fedov"\ndata = "none.npz"\n')
    keys = [made.public_key(name) for name in made.parties]
    keys[1].write_bytes(keys[0].read_bytes())
    made.key.chmod(0o644)
    moved = replace(made, host="new.example.org")
    wrong = {f.what: f.problem for f in check_server(moved) if f.problem}
    assert list(wrong) == [
        "the server's key is there and private",
        "the server's certificate for new.example.org",
        "every party has a key of its own",
        f"the run in {made.root / 'run.toml'} and its data",
    ]
    assert "ostraka federation renew" in wrong["the server's certificate for new.example.org"]
    assert "east and north have the same key" in wrong["every party has a key of its own"]


def test_a_federation_is_written_and_read(made: Federation) -> None:
    assert Federation.load(made.root) == made
    party = PartyFolder.load(made.root / "parties/east")
    assert (party.party, party.name, party.host, party.port, party.share) == (
        1, "east", "fed.example.org", 18555, True
    )  # fmt: skip
    assert made.config().engine.name == "flower"
    assert made.config().parties == 2
    secret = {
        path for path in made.root.rglob("*") if path.is_file() and b"PRIVATE" in path.read_bytes()
    }
    assert {path.name for path in secret} == {"ca.key", "server.key", "key"}
    assert not any("ca.key" in path.name for path in (made.root / "parties").rglob("*"))


@pytest.mark.parametrize(
    ("names", "words"),
    [([], "given: none"), (["a", "a"], "a name of their own"), (["../a"], "no usable name")],
)
def test_parties_need_names(names: list[str], words: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=words):
        create(tmp_path / "fed", {"method": "fedov"}, names)
    assert not (tmp_path / "fed").exists()


def test_a_mistake_in_the_run_is_said_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="sead"):
        create(tmp_path / "fed", {"method": "fedov", "sead": 1}, ["north"])
    assert not (tmp_path / "fed").exists()
    create(tmp_path / "fed", {"method": "fedov"}, ["north"])
    with pytest.raises(ConfigError, match="is not empty"):
        create(tmp_path / "fed", {"method": "fedov"}, ["north"])


def test_a_method_that_pools_all_data_is_no_federation(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="hands all data to one party"):
        create(tmp_path / "fed", {"method": "centralised"}, ["north"])


def test_a_file_that_was_changed_by_hand_is_told(tmp_path: Path) -> None:
    create(tmp_path / "fed", {"method": "fedov"}, ["north"])
    path = tmp_path / "fed/federation.toml"
    path.write_text(path.read_text().replace("port = 8443", "prot = 8443"))
    with pytest.raises(ConfigError, match="port, prot"):
        Federation.load(tmp_path / "fed")
