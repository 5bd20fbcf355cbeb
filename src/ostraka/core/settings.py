"""Settings: frozen dataclasses that are built from plain values and written back as plain values.

Values come from TOML, JSON or `--set local.epochs=20`. Unknown keys are refused with a suggestion; a field that names
something from a registry (an objective, a ballot) takes either the name or a table with `name` and its settings.
"""

import types
from collections.abc import Mapping
from dataclasses import MISSING, field, fields, is_dataclass
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from ostraka.errors import ConfigError, choices, did_you_mean
from ostraka.registry import Registry

T = TypeVar("T")


def setting(default: Any, doc: str, *, server: bool = False, registry: Registry[Any] | None = None) -> Any:
    """A documented dataclass field. `server`: only the server uses it, so the parties' work does not depend on it."""
    return field(default=default, metadata={"doc": doc, "server": server, "registry": registry})


def build(cls: type[T], values: Mapping[str, Any], base: T | None = None, path: str = "") -> T:
    """An instance of `cls` from plain values, the rest from `base` or from the defaults.

    Where `cls` has RECIPES, `recipe = "name"` stands for a whole table of values; other values lie over it.
    """
    values = _with_recipe(cls, values, path)
    hints = get_type_hints(cls)
    known = {f.name: f for f in fields(cls) if f.init}  # type: ignore[arg-type]
    for key in values:
        if key not in known:
            raise ConfigError(
                f"unknown setting {path + key!r}.{did_you_mean(key, known)} Settings here: {choices(known) or 'none'}"
            )
    out: dict[str, Any] = {}
    for name, spec in known.items():
        current = getattr(base, name) if base is not None else _default(spec)
        if name in values:
            registry = spec.metadata.get("registry")
            out[name] = _convert(values[name], hints[name], registry, current, path + name)
        elif current is not MISSING:
            out[name] = current
        else:
            raise ConfigError(f"the setting {path + name!r} has no default; give it a value")
    return cls(**out)


def _with_recipe(cls: type, values: Mapping[str, Any], path: str) -> Mapping[str, Any]:
    recipes: Mapping[str, Mapping[str, Any]] = getattr(cls, "RECIPES", {})
    if not recipes or "recipe" not in values:
        return values
    name, rest = values["recipe"], {key: value for key, value in values.items() if key != "recipe"}
    if name not in recipes:
        raise ConfigError(
            f"{path + 'recipe'!r} is {name!r}.{did_you_mean(str(name), recipes)} Recipes here: {choices(recipes)}"
        )
    return merge(recipes[name], rest)


def values_of(instance: Any) -> dict[str, Any]:
    """The plain values from which `build` makes an equal instance."""
    out: dict[str, Any] = {}
    for spec in fields(instance):
        if spec.init:
            value = getattr(instance, spec.name)
            registry = spec.metadata.get("registry")
            out[spec.name] = _plain(value, registry)
    return out


def merge(base: Mapping[str, Any], extra: Mapping[str, Any]) -> dict[str, Any]:
    """`extra` laid over `base`, table by table."""
    out = dict(base)
    for key, value in extra.items():
        old = out.get(key)
        if isinstance(value, Mapping) and isinstance(old, str) and "name" not in value:
            old = {"name": old}  # objective = "proser" with objective.w_mix laid over it
        out[key] = merge(old, value) if isinstance(old, Mapping) and isinstance(value, Mapping) else value
    return out


def nested(path: str, value: Any) -> dict[str, Any]:
    """`nested("a.b", 1)` is `{"a": {"b": 1}}`."""
    for part in reversed(path.split(".")):
        value = {part: value}
    return value  # type: ignore[no-any-return]


def _default(spec: Any) -> Any:
    return spec.default_factory() if spec.default_factory is not MISSING else spec.default


def _plain(value: Any, registry: Registry[Any] | None) -> Any:
    if registry is not None and value is not None and not isinstance(value, str):
        return {"name": registry.name_of(type(value)), **values_of(value)}
    if is_dataclass(value):
        return values_of(value)
    if isinstance(value, Mapping):
        return {str(k): _plain(v, None) for k, v in value.items()}
    return [_plain(v, None) for v in value] if isinstance(value, tuple | list) else value


def _convert(value: Any, hint: Any, registry: Registry[Any] | None, current: Any, path: str) -> Any:
    if registry is not None and value is not None:
        return _from_registry(value, registry, current, path)
    if isinstance(hint, type) and is_dataclass(hint):
        if not isinstance(value, Mapping):
            raise ConfigError(f"{path!r} is a group of settings; {value!r} was given. Use {path}.<name> = value")
        return build(hint, value, current if current is not MISSING else None, path + ".")
    return _scalar(value, hint, path)


def _from_registry(value: Any, registry: Registry[Any], current: Any, path: str) -> Any:
    table = {"name": value} if isinstance(value, str) else value
    if not isinstance(table, Mapping):
        raise ConfigError(f"{path!r} takes the name of a {registry.kind} ({choices(registry)}); {value!r} was given")
    rest = {k: v for k, v in table.items() if k != "name"}
    name = table.get("name")
    if name is None:
        if current is None or current is MISSING:
            raise ConfigError(f"{path!r} needs a name; {registry.kind}s: {choices(registry)}")
        return build(type(current), rest, current, path + ".")
    cls = registry.get(name)
    return build(cls, rest, current if type(current) is cls else None, path + ".")


def _scalar(value: Any, hint: Any, path: str) -> Any:
    if hint is Any:
        return value
    origin, args = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        if value is None or (value == "none" and type(None) in args and str not in args):
            return None
        return _scalar(value, next(a for a in args if a is not type(None)), path)
    if origin is Literal:
        if value not in args:
            raise ConfigError(
                f"{path!r} is {value!r}; allowed: {choices(map(str, args))}.{did_you_mean(str(value), map(str, args))}"
            )
        return value
    if origin is tuple:
        if not isinstance(value, list | tuple):
            raise ConfigError(f"{path!r} takes a list; {value!r} was given")
        return tuple(_scalar(v, args[0], path) for v in value)
    if origin in (dict, Mapping):
        if not isinstance(value, Mapping):
            raise ConfigError(f"{path!r} is a table of settings; {value!r} was given. Use {path}.<name> = value")
        return dict(value)
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if hint is int and isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(hint, type) and (not isinstance(value, hint) or (hint is int and isinstance(value, bool))):
        raise ConfigError(f"{path!r} takes {_KINDS.get(hint, hint.__name__)}; {value!r} was given")
    return value


_KINDS = {int: "a whole number", float: "a number", str: "text", bool: "true or false"}
