"""The folder of a federation: what its server has, and the folder that each party is handed.

federation.toml   name, host, port, parties
run.toml          what is trained, as a configuration of `ostraka run`
authority/        the federation's own authority; its key signs and is for the server alone
server/           the server's certificate and key, Flower's state, logs
app/              the Flower project, which names ostraka's apps
parties/NAME/     what the party NAME gets: its key, the authority's certificate, party.toml
run/              the folder of the run
"""

import re
import shutil
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from ostraka import __version__
from ostraka.errors import ConfigError, writing
from ostraka.federation.certificates import (
    Authority,
    library,
    make_authority,
    make_party_key,
    make_server,
    public_bytes,
)
from ostraka.federation.terms import refuse_promises
from ostraka.runs.config import Config, build_method, make, read_toml, write_toml
from ostraka.store.files import make_folder

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,31}")
HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,252})|[0-9A-Fa-f:]*:[0-9A-Fa-f:.]*")
"""A name, or an address of either kind."""
PORT = 8443
SERVER_FOLDER = "OSTRAKA_FEDERATION"
PARTY_FOLDER = "OSTRAKA_PARTY"
"""Where the apps find their folder: Flower hands its environment on to them."""


@final
@dataclass(frozen=True)
class Federation:
    """A federation as its server has it."""

    root: Path
    name: str
    host: str
    port: int
    parties: tuple[str, ...]
    share: bool = False
    """Whether every party has its share of the run's data, to try it out; else its own data."""

    @classmethod
    def load(cls, root: Path) -> "Federation":
        """The federation in a folder."""
        path = root / "federation.toml"
        if (root / "party.toml").exists() and not path.exists():
            raise ConfigError(
                f"{root} is the folder of a party, not of a federation; start the party with: "
                f"ostraka federation party {root}, the server with the folder that init made"
            )
        if not root.exists():
            raise ConfigError(f"there is no folder {root}; is its name spelt right?")
        if not path.exists():
            raise ConfigError(
                f"{root} is not the folder of a federation: {path.name} is missing; make one with "
                f"ostraka federation init {root} METHOD --party NAME --party NAME"
            )
        held = _read(path, {"name": str, "host": str, "port": int, "parties": list, "share": bool})
        names = tuple(str(name) for name in held["parties"])
        check_names(names)
        host, port = held["host"], held["port"]
        check_address(host, port)
        return cls(root.absolute(), held["name"], host, port, names, held["share"])

    @property
    def authority(self) -> Authority:
        """Who signs the server's certificate."""
        return Authority(self.root / "authority/ca.pem", self.root / "authority/ca.key")

    @property
    def certificate(self) -> Path:
        """The server's certificate."""
        return self.root / "server/server.pem"

    @property
    def key(self) -> Path:
        """Its private key."""
        return self.root / "server/server.key"

    @property
    def home(self) -> Path:
        """Where Flower keeps what is the server's."""
        return self.root / "server/flower"

    @property
    def log(self) -> Path:
        """What Flower's processes write."""
        return self.root / "server/log.txt"

    @property
    def state(self) -> Path:
        """What Flower's server stores: messages, and who has joined."""
        return self.root / "server/state.db"

    @property
    def said(self) -> Path:
        """What the run says."""
        return self.root / "server/said.txt"

    @property
    def run(self) -> Path:
        """The folder of the run."""
        return self.root / "run"

    def config(self) -> Config:
        """What is trained, over Flower."""
        values = read_toml(self.root / "run.toml")
        engine = values.get("engine", {})
        options = engine.get("options", {}) if isinstance(engine, Mapping) else {}
        return make({**values, "engine": {"name": "flower", "options": options}})

    def public_key(self, party: str) -> Path:
        """The public key of a party; it may bring one of its own."""
        return self.root / "parties" / party / "key.pub"

    def keys(self) -> dict[bytes, int]:
        """The party that each public key belongs to."""
        found: dict[bytes, int] = {}
        for number, name in enumerate(self.parties):
            key = public_bytes(self.public_key(name))
            if key in found:
                raise ConfigError(
                    f"{name} and {self.parties[found[key]]} have the same key; each party needs "
                    "one of its own"
                )
            found[key] = number
        return found

    def renew(self) -> None:
        """A new certificate for the server, by the same authority: the parties need nothing."""
        made = [path.with_name(f"new-{path.name}") for path in (self.certificate, self.key)]
        for path in made:  # of an attempt that was interrupted
            path.unlink(missing_ok=True)
        # the old ones stay until the new ones are there
        make_server([self.host], self.authority, *made)
        for new, old in zip(made, (self.certificate, self.key), strict=True):
            with writing(old):
                new.replace(old)


@final
@dataclass(frozen=True)
class PartyFolder:
    """What a party has."""

    root: Path
    federation: str
    party: int
    name: str
    server: str
    share: bool = False
    data: str = ""
    """Its own data: a folder or a file."""
    device: str = "cpu"

    @classmethod
    def load(cls, root: Path) -> "PartyFolder":
        """The party whose folder this is."""
        path = root / "party.toml"
        if not path.exists():
            raise ConfigError(
                f"{root} is not the folder of a party: {path.name} is missing; the server's "
                "federation folder has one for each party, in parties/"
            )
        kinds = {"federation": str, "party": int, "name": str, "server": str, "share": bool,
                 "data": str, "device": str}  # fmt: skip
        held = _read(path, kinds)
        address = str(held["server"])
        if not address.rpartition(":")[2].isdigit():
            raise ConfigError(f"server is {address!r} in {path}; give HOST:PORT")
        return cls(root.absolute(), **held)

    def save(self) -> None:
        """Write what is known of the party."""
        values = {name: value for name, value in vars(self).items() if name != "root"}
        with writing(self.root / "party.toml"):
            (self.root / "party.toml").write_text(write_toml(values), encoding="utf-8")

    @property
    def host(self) -> str:
        """The server's name or address."""
        return self.server.rpartition(":")[0].strip("[]")

    @property
    def port(self) -> int:
        """The server's port."""
        return int(self.server.rpartition(":")[2])

    @property
    def authority(self) -> Path:
        """The certificate of the federation's authority."""
        return self.root / "ca.pem"

    @property
    def key(self) -> Path:
        """The party's private key, for nobody else."""
        return self.root / "key"

    @property
    def state(self) -> Path:
        """What the party keeps between rounds, and half-finished training."""
        return self.root / "state"


def check_names(names: Sequence[str]) -> None:
    """Refuse parties without a usable name of their own."""
    for name in names:
        if not NAME.fullmatch(name):
            raise ConfigError(
                f"the party {name!r} has no usable name: letters, digits, _ and -, at most 32"
            )
    if len(set(names)) != len(names) or not names:
        raise ConfigError(
            f"a federation needs parties with a name of their own each; given: "
            f"{', '.join(names) or 'none'}"
        )


def check_address(host: str, port: int) -> None:
    """Refuse what parties could not reach a server by."""
    if not HOST.fullmatch(host):
        raise ConfigError(
            f"the host is {host!r}; give the name or address alone by which parties reach the "
            "server, such as fed.example.org or 192.0.2.7 (its port is --port)"
        )
    if not 1 <= port <= 65535:
        raise ConfigError(f"the port is {port}; give one from 1 to 65535, such as {PORT}")


def refuse_local_test(config: Config) -> None:
    """Where parties have their own data, the server has nothing of theirs to be judged by."""
    if config.local_test:
        raise ConfigError(
            f"local_test is {config.local_test:g}, a share of what the parties are given, but in a "
            "federation they have their own data, which the server never sees: leave it out (the "
            "test samples of the server's data are the test), or try it out with --share"
        )


def create(
    root: Path,
    config: Mapping[str, Any],
    parties: Sequence[str],
    host: str = "localhost",
    port: int = PORT,
    share: bool = False,
) -> Federation:
    """Write a new federation: run, project, authority, certificate, and a folder for each party."""
    check_names(parties)
    check_address(host, port)
    library()
    if root.exists() and any(root.iterdir()):
        raise ConfigError(f"{root} is not empty; give the folder of a new federation")
    values = {**config, "parties": len(parties)}
    # a mistake in it is said before anything is written
    method = build_method(make(values))
    refuse_promises(method)
    if method.pooled:
        raise ConfigError(
            f"{values.get('method')} hands all data to one party, which a federation never does; "
            "choose another method"
        )
    if not share:
        refuse_local_test(make(values))
    made = Federation(root.absolute(), root.absolute().name, host, port, tuple(parties), share)
    with writing(root):
        make_folder(root / "app", private=False)
        _write(root / "federation.toml", {**_values(made), "parties": list(parties)})
        _write(root / "run.toml", values)
        _write(root / "app/pyproject.toml", _project())
    make_authority(made.name, made.authority)
    make_server([host], made.authority, made.certificate, made.key)
    address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    for number, name in enumerate(parties):
        folder = root / "parties" / name
        make_party_key(folder / "key", folder / "key.pub")
        shutil.copy(made.authority.certificate, folder / "ca.pem")
        shutil.copy(root / "run.toml", folder / "run.toml")
        PartyFolder(folder, made.name, number, name, address, share).save()
    return made


def _values(made: Federation) -> dict[str, Any]:
    return {name: value for name, value in vars(made).items() if name != "root"}


def _project() -> dict[str, Any]:
    """The Flower project: no code of its own, it names ostraka's apps."""
    apps = {
        "serverapp": "ostraka.federation.apps:server",
        "clientapp": "ostraka.federation.apps:client",
    }
    return {
        "project": {
            "name": "ostraka-federation",
            "version": "1.0.0",
            "description": f"A federation of Ostraka {__version__}",
            "license": "MIT",
            "dependencies": [],
        },
        "tool": {"flwr": {"app": {"publisher": "ostraka", "components": apps, "config": {}}}},
    }


def _read(path: Path, kinds: Mapping[str, type]) -> dict[str, Any]:
    """The values of a file that must have exactly these, of these types."""
    try:
        held = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path} cannot be read: {error}") from None
    wrong = [key for key, kind in kinds.items() if type(held.get(key)) is not kind]
    wrong += held.keys() - kinds.keys()
    if wrong:
        raise ConfigError(
            f"{path} is not as it was written: see {', '.join(wrong)}; bring the old one back"
        )
    return held


def _write(path: Path, values: Mapping[str, Any]) -> None:
    path.write_text(write_toml(values), encoding="utf-8")
