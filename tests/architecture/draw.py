"""Draws the layers into docs/architecture.md, as the code's own imports have them.

    python -m tests.architecture.draw     # or: make architecture

Between the two marks of the page stand the table of `layers.py` and, below it, the graph of what is
really imported. A test fails when the page is not what this would write.
"""

from collections.abc import Mapping
from pathlib import Path

from tests.architecture.layers import EVERYONE, TABLE
from tests.architecture.modules import layer_imports, sources

PAGE = Path(__file__).parents[2] / "docs" / "architecture.md"
BEGIN, END = "<!-- layers, drawn by make architecture -->", "<!-- end of the layers -->"

UNDRAWN = {*EVERYONE, "__init__", "__main__"}
"""Layers that all import, and those that are only doors."""

Graph = Mapping[str, set[str]]


def reachable(graph: Graph, layer: str, path: tuple[str, ...] = ()) -> set[str]:
    """All layers that `layer` imports, directly or through others; a circle is an error."""
    if layer in path:
        raise ValueError(f"layers import each other in a circle: {' > '.join((*path, layer))}")
    found = set(graph[layer])
    for other in graph[layer]:
        found |= reachable(graph, other, (*path, layer))
    return found


def reduced(graph: Graph) -> dict[str, set[str]]:
    """The same graph without the arrows that follow from others."""
    return {
        layer: imported - {far for near in imported for far in reachable(graph, near)}
        for layer, imported in graph.items()
    }


def height(graph: Graph, layer: str) -> int:
    """The longest way down from a layer."""
    return max((1 + height(graph, other) for other in graph[layer]), default=0)


def diagram(graph: Graph) -> list[str]:
    """One line for each layer, high ones first: the layer,
    and the arrows that follow from no other.
    """
    shown = {layer: imported - UNDRAWN for layer, imported in graph.items() if layer not in UNDRAWN}
    arrows = reduced(shown)
    order = sorted(shown, key=lambda layer: (-height(shown, layer), layer))
    width = max(map(len, order)) + 4
    return [
        f"{layer} {'─' * (width - len(layer))}> {'  '.join(sorted(arrows[layer]))}"
        if arrows[layer]
        else layer
        for layer in order
    ]


def drawn(graph: Graph) -> str:
    """What stands between the marks."""
    rows = [
        f"| `{layer.name}` | {layer.holds} | {layer.words(graph)} |"
        for layer in TABLE
        if layer.name in graph and layer.name not in ("__init__", "__main__")
    ]
    table = ["| layer | holds | may import |", "|---|---|---|", *rows]
    return "\n".join(["", *table, "", "```", *diagram(graph), "```", ""])


def renewed(page: str, inside: str) -> str:
    """The page with `inside` between its marks."""
    head, begin, rest = page.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the page has no place for the layers: {BEGIN} ... {END}")
    return f"{head}{BEGIN}\n{inside}\n{END}{tail}"


def main() -> None:
    """Draw anew."""
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(renewed(page, drawn(layer_imports(sources()))), encoding="utf-8")


if __name__ == "__main__":
    main()
