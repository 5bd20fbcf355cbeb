"""The import table of the architecture: which layer may import which. Read from the source, functions included."""

import ast
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import ostraka

PACKAGE = Path(ostraka.__file__).parent

EVERYONE = {"errors", "registry"}
"""Any layer may import these."""

MAY_IMPORT: dict[str, set[str]] = {
    "errors": set(),
    "registry": set(),
    "core": set(),
    "contract": {"core"},
    "nets": {"core"},
    "objectives": {"core", "nets"},
    "data": {"core"},
    "evaluation": {"core"},
    "store": {"core"},
    "voting": {"core", "nets"},
    "alignment": {"core", "nets"},
    "methods": {"core", "nets", "objectives", "voting", "alignment"},
    "engines": {"core", "store"},
    "members": {"core", "nets", "objectives", "voting", "data", "store", "evaluation"},
    "market": {"core", "nets", "voting", "store", "evaluation", "members"},
}
"""Layers beside themselves and EVERYONE. Below: layers that may import all but a few."""

MAY_NOT_IMPORT: dict[str, set[str]] = {
    "runs": {"cli", "display", "market", "testing"},
    "display": {"cli", "market", "testing"},
    "testing": {"cli"},
    "cli": set(),
    "__init__": {"cli"},
    "__main__": set(),
}

LIBRARIES: dict[str, set[str]] = {"errors": set(), "registry": set(), "core": {"torch", "numpy"}}
"""Layers that may use no other library than these and the standard one."""

OPTIONAL = {"ray", "flwr", "ot", "fastapi", "starlette", "uvicorn", "httpx", "jinja2"}
"""Libraries of extras: each is imported in one file."""

PRELOADS = "ostraka.engines.warm"
"""Imports whole packages, unnamed, so that workers need not."""


@dataclass(frozen=True)
class Source:
    """One module of the package: its dotted name and its text."""

    name: str
    text: str

    @property
    def layer(self) -> str:
        parts = self.name.split(".")
        return parts[1] if len(parts) > 1 else "__init__"

    def imports(self) -> Iterator[str]:
        """Dotted names of what is imported; `from a import b` gives `a.b`, which may be a module or a name in one."""
        for node in ast.walk(ast.parse(self.text)):
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                module = f"{'.' * node.level}{node.module or ''}"
                yield from (f"{module}.{alias.name}" for alias in node.names)

    def registers_method(self) -> bool:
        """Whether a class in this module is decorated with `METHODS.add(...)`."""
        return any("METHODS.add(" in ast.unparse(d) for d in _decorators(self.text))


def _decorators(text: str) -> Iterator[ast.expr]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ClassDef):
            yield from node.decorator_list


def sources(root: Path) -> list[Source]:
    """All modules under the package folder `root`."""
    found = []
    for path in sorted(root.rglob("*.py")):
        parts = ["ostraka", *path.relative_to(root).with_suffix("").parts]
        found.append(
            Source(".".join(parts[:-1] if parts[-1] == "__init__" else parts), path.read_text())
        )
    return found


def violations(modules: Iterable[Source]) -> list[str]:
    """Every import that the table forbids, as a sentence."""
    modules = list(modules)
    concrete = {m.name for m in modules if m.layer == "methods" and m.registers_method()}
    return [
        problem
        for module in modules
        for name in module.imports()
        for problem in _judge(module, name, concrete)
    ]


def _judge(module: Source, name: str, concrete: set[str]) -> Iterator[str]:
    if name.startswith("."):
        yield f"{module.name} imports {name}: write the full name"
        return
    top = name.split(".")[0]
    if top != "ostraka":
        allowed = LIBRARIES.get(module.layer)
        if allowed is not None and top not in allowed and top not in sys.stdlib_module_names:
            yield f"{module.name} imports {name}: this layer may use {sorted(allowed) or 'the standard library'} only"
        return
    layer = name.split(".")[1] if "." in name else "__init__"
    if module.name == PRELOADS and name in (
        "ostraka.nets",
        "ostraka.objectives",
        "ostraka.methods",
    ):
        return
    if layer not in EVERYONE | {module.layer}:
        if module.layer not in MAY_IMPORT | MAY_NOT_IMPORT:
            yield f"{module.name}: the layer {module.layer} is not in the table"
        elif layer not in MAY_IMPORT.get(
            module.layer, {layer} - MAY_NOT_IMPORT.get(module.layer, set())
        ):
            yield f"{module.name} imports {name}: {module.layer} may not import {layer}"
    if module.layer in ("methods", "runs") and module.name != "ostraka.methods":
        named = [c for c in concrete if name == c or name.startswith(c + ".")]
        yield from (
            f"{module.name} imports the concrete method {c}" for c in named if c != module.name
        )


def optional_uses(modules: Iterable[Source]) -> dict[str, set[str]]:
    """Optional library to the modules that import it."""
    uses: dict[str, set[str]] = {}
    for module in modules:
        for name in module.imports():
            if name.split(".")[0] in OPTIONAL:
                uses.setdefault(name.split(".")[0], set()).add(module.name)
    return uses


def test_the_package_keeps_the_table() -> None:
    modules = sources(PACKAGE)
    assert len(modules) > 50
    assert violations(modules) == []


def test_optional_libraries_are_imported_in_one_file_each() -> None:
    assert {
        library: users
        for library, users in optional_uses(sources(PACKAGE)).items()
        if len(users) > 1
    } == {}


def test_concrete_methods_are_recognised() -> None:
    """The rule on concrete methods rests on this: fedavg registers one, panel does not."""
    found = {m.name for m in sources(PACKAGE) if m.layer == "methods" and m.registers_method()}
    assert {"ostraka.methods.fedavg", "ostraka.methods.solo"} <= found
    assert "ostraka.methods.panel" not in found


METHOD = Source("ostraka.methods.mine", "@final\n@METHODS.add('mine')\nclass Mine: ...")


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("ostraka.core.fit", "from ostraka.nets import mlp", "core may not import nets"),
        (
            "ostraka.core.fit",
            "def f():\n    import ostraka.store.codec",
            "core may not import store",
        ),
        ("ostraka.core.fit", "import scipy.stats", "torch"),
        ("ostraka.registry", "import torch", "standard library"),
        ("ostraka.errors", "from ostraka.core import fit", "errors may not import core"),
        ("ostraka.nets.mlp", "from ostraka import objectives", "nets may not import objectives"),
        ("ostraka.store.desk", "import ostraka.nets", "store may not import nets"),
        (
            "ostraka.voting.sum",
            "from ostraka.data.sources import load",
            "voting may not import data",
        ),
        (
            "ostraka.methods.other",
            "from ostraka.engines.base import Work",
            "methods may not import engines",
        ),
        (
            "ostraka.methods.other",
            "from ostraka.methods.mine import Mine",
            "concrete method ostraka.methods.mine",
        ),
        (
            "ostraka.methods.other",
            "from ostraka.methods import mine",
            "concrete method ostraka.methods.mine",
        ),
        (
            "ostraka.runs.loop",
            "from ostraka.methods.mine import Mine",
            "concrete method ostraka.methods.mine",
        ),
        ("ostraka.engines.pool", "import ostraka.methods", "engines may not import methods"),
        ("ostraka.engines.warm", "import ostraka.methods.mine", "engines may not import methods"),
        (
            "ostraka.members.train",
            "from ostraka.runs.loop import execute",
            "members may not import runs",
        ),
        (
            "ostraka.market.shelf",
            "from ostraka.methods import mine",
            "market may not import methods",
        ),
        (
            "ostraka.runs.loop",
            "from ostraka.display.tables import Table",
            "runs may not import display",
        ),
        (
            "ostraka.display.tables",
            "from ostraka.cli.main import main",
            "display may not import cli",
        ),
        ("ostraka.testing", "from ostraka.cli.main import main", "testing may not import cli"),
        ("ostraka", "from ostraka.cli.main import main", "__init__ may not import cli"),
        ("ostraka.core.fit", "from ostraka import cli", "core may not import cli"),
        ("ostraka.core.fit", "from .net import Net", "write the full name"),
        ("ostraka.helpers.x", "from ostraka.core import fit", "not in the table"),
    ],
)
def test_a_forbidden_import_is_found(name: str, text: str, words: str) -> None:
    found = violations([METHOD, Source(name, text)])
    assert any(words in problem and problem.startswith(name) for problem in found), found


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "ostraka.core.fit",
            "import torch, math\nfrom ostraka.registry import NETS\nfrom ostraka.errors import DataError",
        ),
        ("ostraka.objectives.ce", "from ostraka.nets import mlp"),
        ("ostraka.methods.other", "from ostraka.methods.panel import PanelMethod"),
        ("ostraka.methods", "from ostraka.methods import mine"),
        ("ostraka.engines.warm", "import ostraka.methods\nimport ostraka.nets"),
        ("ostraka.runs.record", "from ostraka.nets import native"),
        ("ostraka.cli.main", "from ostraka.display import tables\nfrom ostraka import testing"),
        ("ostraka.__main__", "from ostraka.cli.main import main"),
    ],
)
def test_an_allowed_import_is_not(name: str, text: str) -> None:
    assert violations([METHOD, Source("ostraka.methods.panel", ""), Source(name, text)]) == []


def test_an_optional_library_in_two_files_is_found() -> None:
    pair = [
        Source("ostraka.engines.ray", "import ray"),
        Source("ostraka.engines.other", "def f():\n  from ray import get"),
    ]
    assert optional_uses(pair) == {"ray": {"ostraka.engines.ray", "ostraka.engines.other"}}
