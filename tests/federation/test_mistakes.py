"""What people do with a federation that cannot work, and what they are told."""

import socket
from pathlib import Path

import pytest

from ostraka.cli.main import main
from ostraka.errors import ConfigError, PartyFailed, StoreError
from ostraka.federation.check import port_problem
from ostraka.federation.project import Federation, PartyFolder, create
from ostraka.federation.server import _environment, _judge, _start, serve
from ostraka.runs.record import RunDir

RUN = {"method": "fedov", "data": "digits"}
pytest.importorskip("cryptography")


@pytest.fixture
def made(tmp_path: Path) -> Federation:
    return create(tmp_path / "fed", RUN, ("north", "east"), port=18611)


@pytest.mark.parametrize("harm", ["missing", "no key"])
def test_a_certificate_that_cannot_be_renewed_stays(harm: str, made: Federation) -> None:
    before = made.certificate.read_bytes(), made.key.read_bytes()
    if harm == "missing":
        made.authority.key.unlink()
    else:
        made.authority.key.write_text("nothing")
    with pytest.raises(StoreError, match=r"ca\.key"):
        made.renew()
    assert (made.certificate.read_bytes(), made.key.read_bytes()) == before


def test_a_renewed_key_is_private_and_nothing_is_left_beside_it(made: Federation) -> None:
    before = made.key.read_bytes()
    (made.key.parent / "new-server.key").write_text("of an attempt that was interrupted")
    made.renew()
    assert made.key.read_bytes() != before
    assert made.key.stat().st_mode & 0o077 == 0
    assert not list(made.key.parent.glob("new-*"))


@pytest.mark.parametrize(
    "host", ["", "https://fed.example.org", "fed.example.org:8443", "two words", "-x", "a/b", "ü"]
)
def test_a_host_is_a_name_or_an_address_alone(host: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"the host is .*; give the name or address alone"):
        create(tmp_path / "fed", RUN, ["north"], host=host)
    assert not (tmp_path / "fed").exists()


@pytest.mark.parametrize("host", ["fed.example.org", "localhost", "192.0.2.7", "2001:db8::7"])
def test_names_and_addresses_are_hosts(host: str, tmp_path: Path) -> None:
    made = create(tmp_path / "fed", RUN, ["north"], host=host)
    assert PartyFolder.load(made.root / "parties/north").host == host


@pytest.mark.parametrize("port", [0, -1, 65536])
def test_a_port_is_one_of_those_that_exist(port: int, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=rf"the port is {port}; give one from 1 to 65535"):
        create(tmp_path / "fed", RUN, ["north"], port=port)


@pytest.mark.parametrize("name", ["../north", "a/b", ".", "..", "/etc", "north\n", "ü", "-n", ""])
def test_a_name_is_no_path(name: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no usable name"):
        create(tmp_path / "fed", RUN, [name])
    assert not (tmp_path / "fed").exists()


def test_the_folder_of_a_party_is_not_that_of_a_server(made: Federation) -> None:
    with pytest.raises(ConfigError, match=r"is the folder of a party.*ostraka federation party"):
        Federation.load(made.root / "parties/north")
    with pytest.raises(ConfigError, match="is not the folder of a party"):
        PartyFolder.load(made.root)
    with pytest.raises(ConfigError, match=r"there is no folder .*nroth"):
        Federation.load(made.root / "parties/nroth")


def test_a_server_listens_where_it_can_reach_itself(made: Federation) -> None:
    with pytest.raises(ConfigError, match=r"--bind is 192\.0\.2\.9; it can be 0\.0\.0\.0 or"):
        serve(made, "192.0.2.9")


def test_an_address_of_another_machine_is_not_called_a_taken_port() -> None:
    assert "192.0.2.9 cannot be listened at" in port_problem(18612, "192.0.2.9")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        assert "another program has it" in port_problem(taken.getsockname()[1], "127.0.0.1")


def test_nobody_else_may_say_for_whom_he_calls(
    made: Federation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What stands before a SuperLink believes the caller's address: none may be made up."""
    monkeypatch.setenv("FORWARDED_ALLOW_IPS", "*")
    assert _environment(made)["FORWARDED_ALLOW_IPS"] == "127.0.0.1"


def test_the_gate_knows_how_large_an_answer_may_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It refuses one before it is stored, from a party that does not look itself."""
    run = {**RUN, "engine": {"name": "flower", "options": {"largest": 250.0}}}
    made, started = create(tmp_path / "fed", run, ["north"]), list[list[str]]()

    def popen(command: list[str], **more: object) -> None:
        started.append(command)

    monkeypatch.setattr("subprocess.Popen", popen)
    with made.log.open("ab") as log:
        _start(made, "127.0.0.1", log)
    assert started[0][2].endswith("run_superlink(250.0)")


def test_data_that_is_not_there_is_told_before_the_server_is_asked(
    made: Federation, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home = made.root / "parties/north"
    code = main(["federation", "party", str(home), "--data", str(tmp_path / "scnas")])
    assert code == 2
    assert "there is nothing at" in capsys.readouterr().err
    assert PartyFolder.load(home).data == "", "a mistake is not kept"


@pytest.mark.parametrize("wait", ["nan", "inf", "-1"])
def test_a_wait_has_an_end(wait: str, made: Federation, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["federation", "party", str(made.root / "parties/north"), f"--wait={wait}"]) == 2
    assert f"--wait is {wait}" in capsys.readouterr().err


def test_a_run_of_a_federation_is_gone_on_with_by_its_server(
    made: Federation, capsys: pytest.CaptureFixture[str]
) -> None:
    """`ostraka run` would look for parties on this machine."""
    home = RunDir(made.run)
    assert home.resume_command() == f"ostraka federation server {made.root}"
    assert 'on_failure = "drop" in ' in home.resume_command(without_failed=True)
    assert main(["run", "--resume", "--out", str(made.run)]) == 2
    assert f"ostraka federation server {made.root}" in capsys.readouterr().err


def test_how_to_go_on_is_said_once() -> None:
    for words in ("north failed", "north failed; go on with: ostraka federation server fed"):
        outcome = {"done": False, "words": words, "code": PartyFailed.exit_code}
        with pytest.raises(PartyFailed) as error:
            _judge(outcome, "Go on with: ostraka federation server fed")
        assert str(error.value).count("ostraka federation server") == 1
