"""The two apps that the Flower project of a federation names: one at the server, one at a party.

Flower loads them from here, at the server and at every party: the project carries no code.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ostraka.engines.flower import client_app, server_app
from ostraka.engines.node import Own
from ostraka.errors import ConfigError
from ostraka.federation.project import PARTY_FOLDER, SERVER_FOLDER, PartyFolder


def serve(grid: Any) -> None:
    """Run the federation's round loop over Flower's grid."""
    from ostraka.federation.server import run_over

    run_over(grid, _folder(SERVER_FOLDER, "server"))


def own(settings: Mapping[str, Any]) -> Own:
    """The party that this machine is."""
    from ostraka.federation.party import own_of

    return own_of(PartyFolder.load(_folder(PARTY_FOLDER, "party DIR")))


def _folder(variable: str, verb: str) -> Path:
    if variable not in os.environ:
        raise ConfigError(f"{variable} is not set; start this with: ostraka federation {verb}")
    return Path(os.environ[variable])


server = server_app(serve)
client = client_app(own)
