"""Values as trees of plain JSON values and named tensors, and back."""

import math
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, final

import torch
from torch import Tensor

from ostraka.core.wire import WIRE_TYPES, wire_name
from ostraka.errors import StoreError
from ostraka.store.layout import TYPES


@final
class Named:
    """The tensors of a value, by the names under which they are stored.

    Those that lie in other files, by their `id` in `elsewhere`, are only named.
    """

    def __init__(self, bare: str = "", elsewhere: Mapping[int, str] | None = None) -> None:
        self.bare, self.elsewhere = bare, elsewhere or {}
        self.by_name: dict[str, Tensor] = {}

    def put(self, path: str, tensor: Tensor) -> str:
        """Name a tensor; returns the name."""
        if id(tensor) in self.elsewhere:
            return self.elsewhere[id(tensor)]
        name = path.removeprefix(self.bare) or "value"
        # a key with a slash in it can lead to the path of another value
        while name in self.by_name:
            name += "'"
        self.by_name[name] = tensor
        return name


def tree_of(value: Any, path: str, tensors: Named) -> Any:
    """A value as plain JSON values; its tensors are put into `tensors`."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"float": str(value)}
    if isinstance(value, Tensor):
        if value.layout != torch.strided or value.is_quantized or value.dtype not in TYPES:
            raise StoreError(
                f"{path or 'the value'} is a tensor of {value.dtype} and "
                f"{value.layout}, which cannot be stored"
            )
        return {"tensor": tensors.put(path, value)}
    if isinstance(value, Mapping):
        if not all(isinstance(key, str) for key in value):
            raise StoreError(
                f"the keys of {path or 'the value'} are {list(value)[:3]}...; "
                "only text keys can be stored"
            )
        return {
            "dict": {key: tree_of(item, f"{path}/{key}", tensors) for key, item in value.items()}
        }
    if isinstance(value, list | tuple):
        kind = "list" if isinstance(value, list) else "tuple"
        return {kind: [tree_of(item, f"{path}/{i}", tensors) for i, item in enumerate(value)]}
    called = wire_name(type(value))
    if called is not None:
        items = {
            f.name: tree_of(getattr(value, f.name), f"{path}/{f.name}", tensors)
            for f in fields(value)
            if f.init
        }
        return {"is": called, "fields": items}
    raise StoreError(
        f"{path or 'the value'} is a {type(value).__name__}, which cannot be stored; use tensors, "
        "plain values, lists, dicts, or a frozen dataclass decorated with "
        "ostraka.core.wire.wire(name)"
    )


def value_of(tree: Any, tensors: Mapping[str, Any], origin: str) -> Any:
    """The value that `tree_of` was given."""
    if not isinstance(tree, dict):
        return tree
    if "float" in tree:
        return float(tree["float"])
    if "tensor" in tree:
        if tree["tensor"] not in tensors:
            raise StoreError(f"{origin} lacks the tensor {tree['tensor']!r}; it is damaged")
        return tensors[tree["tensor"]]
    if "dict" in tree:
        return {key: value_of(item, tensors, origin) for key, item in tree["dict"].items()}
    if "list" in tree:
        return [value_of(item, tensors, origin) for item in tree["list"]]
    if "tuple" in tree:
        return tuple(value_of(item, tensors, origin) for item in tree["tuple"])
    return _rebuilt(tree, tensors, origin)


def _rebuilt(tree: dict[str, Any], tensors: Mapping[str, Any], origin: str) -> Any:
    known = WIRE_TYPES.get(str(tree.get("is")))
    if known is None:
        raise StoreError(
            f"{origin} holds a {tree.get('is')!r}, which this version does not know: another "
            "version made it, or a package that is not installed"
        )
    try:
        stored: Mapping[str, Any] = {
            key: value_of(item, tensors, origin) for key, item in tree["fields"].items()
        }
        return known(**stored)
    except (TypeError, KeyError) as error:
        raise StoreError(f"{origin} holds a {tree['is']} of another version: {error}") from None
