"""The import table of the architecture: which layer may import which.

Read from the source, functions included.
"""

import sys
from collections.abc import Iterable, Iterator

import pytest

from tests.architecture.layers import LAYERS, OPTIONAL
from tests.architecture.modules import Source, layer_of, sources


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
    layer, own = layer_of(name), LAYERS.get(module.layer)
    if own is None:
        yield f"{module.name}: the layer {module.layer} is not in the table"
        return
    top = name.split(".")[0]
    if top != "ostraka":
        allowed = own.libraries
        if allowed is not None and top not in allowed and top not in sys.stdlib_module_names:
            words = sorted(allowed) or "the standard library"
            yield f"{module.name} imports {name}: this layer may use {words} only"
        return
    if module.preloads(name):
        return
    if not own.may_import(layer):
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
    modules = sources()
    assert len(modules) > 50
    assert violations(modules) == []


def test_optional_libraries_are_imported_in_one_file_each() -> None:
    assert {
        library: users for library, users in optional_uses(sources()).items() if len(users) > 1
    } == {}


def test_concrete_methods_are_recognised() -> None:
    """The rule on concrete methods rests on this: fedavg registers one, panel does not."""
    found = {m.name for m in sources() if m.layer == "methods" and m.registers_method()}
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
            (
                "import torch, math\n"
                "from ostraka.registry import NETS\n"
                "from ostraka.errors import DataError"
            ),
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
