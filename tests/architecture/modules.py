"""The modules of the package as text, and what they import: nothing here runs them."""

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import ostraka
from tests.architecture.layers import PRELOADED, PRELOADS

PACKAGE = Path(ostraka.__file__).parent


@dataclass(frozen=True)
class Source:
    """One module of the package: its dotted name and its text."""

    name: str
    text: str

    @property
    def layer(self) -> str:
        return layer_of(self.name)

    def imports(self) -> Iterator[str]:
        """Dotted names of what is imported, in functions too.

        `from a import b` gives `a.b`, which may be a module or a name in one.
        """
        for node in ast.walk(ast.parse(self.text)):
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                module = f"{'.' * node.level}{node.module or ''}"
                yield from (f"{module}.{alias.name}" for alias in node.names)

    def preloads(self, name: str) -> bool:
        """Whether importing `name` here is the preloading of whole packages for workers."""
        return self.name == PRELOADS and name in PRELOADED

    def registers_method(self) -> bool:
        """Whether a class in this module is decorated with `METHODS.add(...)`."""
        return any(
            "METHODS.add(" in ast.unparse(decorator)
            for node in ast.walk(ast.parse(self.text))
            if isinstance(node, ast.ClassDef)
            for decorator in node.decorator_list
        )


def layer_of(name: str) -> str:
    """The layer of a module of the package, or of a name in one."""
    parts = name.split(".")
    return parts[1] if len(parts) > 1 else "__init__"


def sources(root: Path = PACKAGE) -> list[Source]:
    """All modules under the package folder `root`."""
    found = []
    for path in sorted(root.rglob("*.py")):
        parts = ["ostraka", *path.relative_to(root).with_suffix("").parts]
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        found.append(Source(name, path.read_text(encoding="utf-8")))
    return found


def layer_imports(modules: Iterable[Source]) -> dict[str, set[str]]:
    """Which layers each layer imports, as the code is; preloading left out."""
    graph: dict[str, set[str]] = {}
    for module in modules:
        graph.setdefault(module.layer, set())
        for name in module.imports():
            if name.split(".")[0] == "ostraka" and not module.preloads(name):
                graph[module.layer].add(layer_of(name))
    return {
        layer: {other for other in imported if other in graph} - {layer, "__init__"}
        for layer, imported in graph.items()
    }
