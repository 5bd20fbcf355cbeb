"""The layers of the package, in one place: what each holds and what it may import.

`test_imports.py` holds every module to this table, `draw.py` writes it into docs/architecture.md.
"""

from collections.abc import Collection
from dataclasses import dataclass

EVERYONE = {"errors", "registry"}
"""Any layer may import these."""


@dataclass(frozen=True)
class Layer:
    """A folder (or module) of the package.

    It may import itself, EVERYONE and either the layers of `only` or, where `only` is None, all but
    those of `but`. `libraries`: no others than these and the standard one; None: any.
    """

    name: str
    holds: str
    only: frozenset[str] | None = None
    but: frozenset[str] = frozenset()
    libraries: frozenset[str] | None = None

    def may_import(self, other: str) -> bool:
        """Whether this layer may import the layer `other`."""
        if other in EVERYONE | {self.name}:
            return True
        return other in self.only if self.only is not None else other not in self.but

    def words(self, there: Collection[str]) -> str:
        """What it may import of the layers that are there, for people."""
        listed = self.but if self.only is None else self.only
        named = ", ".join(f"`{name}`" for name in sorted(listed) if name in there)
        if self.only is None:
            return f"all but {named}" if named else "all"
        return named or ", ".join(sorted(self.libraries or ())) or "the standard library"


def _only(name: str, holds: str, *layers: str, libraries: set[str] | None = None) -> Layer:
    allowed = None if libraries is None else frozenset(libraries)
    return Layer(name, holds, only=frozenset(layers), libraries=allowed)


def _but(name: str, holds: str, *layers: str) -> Layer:
    return Layer(name, holds, but=frozenset(layers))


TABLE = (
    _only("errors", "errors and their words", libraries=set()),
    _only("registry", "names, plug-ins, suggestions", libraries=set()),
    _only("core", "the contract, `fit`, seeds, settings", libraries={"torch", "numpy"}),
    _only("contract", "the names that authors of methods use, in one module", "core"),
    _only("nets", "networks", "core"),
    _only("objectives", "losses, and how a network then answers", "core", "nets"),
    _only("data", "data sets and who holds what", "core"),
    _only("evaluation", "figures", "core"),
    _only("store", "files: tensors and JSON, a run in progress", "core"),
    _only("voting", "members, ballots, ensembles", "core", "nets"),
    _only("alignment", "matching hidden units of several networks", "core", "nets"),
    _only(
        "methods",
        "one file each; none imports another",
        "contract",
        "core",
        "nets",
        "objectives",
        "voting",
        "alignment",
    ),
    _only("engines", "ways to run parties", "core", "store"),
    _only(
        "members",
        "members that are trained and kept outside runs",
        "core",
        "nets",
        "objectives",
        "voting",
        "data",
        "store",
        "evaluation",
    ),
    _only(
        "market",
        "members on offer",
        "core",
        "nets",
        "voting",
        "store",
        "evaluation",
        "members",
    ),
    _but(
        "runs",
        "configuration, plan, loop, grids",
        "cli",
        "display",
        "federation",
        "market",
        "parties",
        "testing",
    ),
    _but("parties", "own data to members, members to answers", "cli", "display", "testing"),
    _but(
        "federation",
        "organisations that train together: certificates, keys, server, parties",
        "cli",
        "display",
        "testing",
    ),
    _but("display", "tables, plots", "cli", "market", "testing"),
    _but("api", "what scripts and notebooks call", "cli", "testing"),
    _but("testing", "contract checks for authors of plug-ins", "cli"),
    _but("cli", "one module per verb, which imports what takes long when it acts"),
    _but("__init__", "the public names, loaded on first use", "cli"),
    _but("__main__", "the command `ostraka`"),
)

LAYERS = {layer.name: layer for layer in TABLE}

OPTIONAL = {
    "ray",
    "flwr",
    "ot",
    "opacus",
    "pyarrow",
    "fastapi",
    "starlette",
    "uvicorn",
    "httpx",
    "jinja2",
}
"""Libraries of extras: each is imported in one file."""

PRELOADS = "ostraka.engines.warm"
"""Imports whole packages, unnamed, so that workers need not."""

PRELOADED = {"ostraka.nets", "ostraka.objectives", "ostraka.methods"}
"""These."""
