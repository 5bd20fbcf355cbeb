"""Settings: frozen dataclasses that are built from plain values and written back as plain values.

Values come from TOML, JSON, Python or `--set local.epochs=20`. Unknown keys are refused with a
suggestion, numbers outside their range with the range; a field that names something from a registry
(an objective, a ballot) takes either the name or a table with `name` and its settings.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass, make_dataclass
from difflib import get_close_matches
from functools import lru_cache
from inspect import Parameter, signature
from typing import Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

from ostraka.core.span import ANYTHING, Span
from ostraka.core.synonyms import ours
from ostraka.core.values import convert, plain, words_in
from ostraka.errors import ConfigError, choices, did_you_mean, shown
from ostraka.registry import Registry

T = TypeVar("T")


def setting(
    default: Any,
    doc: str,
    *,
    span: str | None = None,
    server: bool = False,
    registry: Registry[Any] | None = None,
) -> Any:
    """A documented dataclass field.

    `span` is the range of a number, such as "[0, 1)" (see `core.span`). `server`: only the server
    uses it, so the parties' work does not depend on it.
    """
    return field(default=default, metadata=_metadata(doc, span, server, registry))


@dataclass(frozen=True)
class Option:
    """Documents an option of a net: `width: Annotated[int, Option("channels", "[1, inf)")] = 8`."""

    doc: str
    span: str | None = None


class Settings:
    """Base of settings that are also made directly: `Budget(lr=-1)` is refused as
    `--set local.lr=-1` is.
    """

    def __post_init__(self) -> None:
        words = _words_of(type(self))  # type: ignore[arg-type]  # classes are hashable
        for spec in fields(self):  # type: ignore[arg-type]
            value = getattr(self, spec.name)
            _check_span(value, spec, spec.name)
            if spec.name in words:
                convert(value, words[spec.name], spec.name)


def build(
    cls: type[T], values: Mapping[str, Any], base: T | None = None, path: str = "", owner: str = ""
) -> T:
    """An instance of `cls` from plain values, the rest from `base` or from the defaults.

    Where `cls` has RECIPES, `recipe = "name"` stands for a whole table of values; other
    values lie over it. `implied(values)` of `cls` gives values that follow from the given
    ones where they are not given themselves. Messages call the settings by their dotted name
    behind `path`, and say that they are those of `owner`.
    """
    implied = getattr(cls, "implied", None)
    values = with_recipe(cls, {**(implied(values) if implied else {}), **values}, path)
    hints = get_type_hints(cls)
    known = {f.name: f for f in fields(cls) if f.init}  # type: ignore[arg-type]
    for key in values:
        if key not in known:
            raise ConfigError(_unknown(str(key), cls, base, path, owner))
    out: dict[str, Any] = {}
    for name, spec in known.items():
        current = getattr(base, name) if base is not None else _default(spec)
        if name in values:
            registry = spec.metadata.get("registry")
            out[name] = _convert(values[name], hints[name], registry, current, path + name)
            _check_span(out[name], spec, path + name)
        elif current is not MISSING:
            out[name] = current
        else:
            raise ConfigError(f"the setting {path + name!r} has no default; give it a value")
    return cls(**out)


def with_recipe(cls: type, values: Mapping[str, Any], path: str = "") -> Mapping[str, Any]:
    """The values with `recipe` written out."""
    recipes: Mapping[str, Mapping[str, Any]] = getattr(cls, "RECIPES", {})
    if not recipes or "recipe" not in values:
        return values
    name, rest = values["recipe"], {key: value for key, value in values.items() if key != "recipe"}
    if not isinstance(name, str) or name not in recipes:
        raise ConfigError(
            f"{path + 'recipe'!r} is {shown(name)}.{did_you_mean(str(name), recipes)} "
            f"Recipes here: {choices(recipes)}"
        )
    return merge(recipes[name], rest)


def options_of(make: Callable[..., Any], given: Iterable[str]) -> type:
    """A dataclass of the parameters of `make` (a net's class)
    that are not `given` by others: its options.
    """
    hints = get_type_hints(make.__init__ if isinstance(make, type) else make, include_extras=True)  # type: ignore[misc]
    specs: list[tuple[str, Any, Any]] = []
    for name, one in signature(make).parameters.items():
        if name in given or one.kind in (Parameter.VAR_KEYWORD, Parameter.VAR_POSITIONAL):
            continue
        hint = hints.get(name, Any)
        told = next((arg for arg in get_args(hint)[1:] if isinstance(arg, Option)), Option(""))
        default = MISSING if one.default is Parameter.empty else one.default
        plain = get_args(hint)[0] if get_origin(hint) is Annotated else hint
        specs.append((name, plain, field(default=default, metadata=_metadata(told.doc, told.span))))
    return make_dataclass("Options", specs, frozen=True, kw_only=True)


def walk(instance: Any, prefix: str = "") -> Iterator[tuple[str, "Field[Any]", Any]]:
    """Every setting with its dotted name and value.

    Those of a group, an objective, a ballot come behind it.
    """
    for spec in fields(instance):
        if spec.init:
            value = getattr(instance, spec.name)
            yield prefix + spec.name, spec, value
            if is_dataclass(value):
                yield from walk(value, f"{prefix}{spec.name}.")


def values_of(instance: Any) -> dict[str, Any]:
    """The plain values from which `build` makes an equal instance."""
    out: dict[str, Any] = {}
    for spec in fields(instance):
        if spec.init:
            value = getattr(instance, spec.name)
            registry = spec.metadata.get("registry")
            out[spec.name] = _plain(value, registry)
    return out


def choice(value: Any, registry: Registry[T], path: str) -> T:
    """What the name, or the table with a name and settings, stands for in the registry."""
    return _from_registry(plain(value), registry, None, path)  # type: ignore[no-any-return]


def plain_choice(value: Any, registry: Registry[Any]) -> dict[str, Any]:
    """The table from which `choice` makes an equal value."""
    return {"name": registry.name_of(type(value)), **values_of(value)}


def merge(base: Mapping[str, Any], extra: Mapping[str, Any]) -> dict[str, Any]:
    """`extra` laid over `base`, table by table. A table that names another choice than before (a
    net, an objective, a ballot) replaces it: settings of the one mean nothing to the other.
    """
    out = dict(base)
    for key, value in extra.items():
        old = out.get(key)
        if isinstance(value, Mapping) and isinstance(old, str):
            old = {"name": old}  # objective = "proser" with objective.w_mix laid over it
        if isinstance(value, Mapping) and isinstance(old, Mapping):
            other = {"name"} <= old.keys() & value.keys() and old["name"] != value["name"]
            out[key] = value if other else merge(old, value)
        else:
            out[key] = value
    return out


def nested(path: str, value: Any) -> dict[str, Any]:
    """`nested("a.b", 1)` is `{"a": {"b": 1}}`."""
    for part in reversed(path.split(".")):
        value = {part: value}
    return value  # type: ignore[no-any-return]


def nearest(key: str, names: Iterable[str]) -> str:
    """`" Did you mean 'local.epochs'?"` for epochs: dotted names that end with `key`,
    or else with something near.
    """
    names = list(names)
    ends = [name for name in names if name.rpartition(".")[2] == key]
    if not ends:
        last = {name.rpartition(".")[2]: name for name in reversed(names)}
        ends = [last[near] for near in get_close_matches(key, list(last), n=1, cutoff=0.6)]
    return f" Did you mean {' or '.join(map(repr, ends))}?" if ends else ""


def _metadata(
    doc: str, span: str | None, server: bool = False, registry: Registry[Any] | None = None
) -> dict[str, Any]:
    return {
        "doc": doc,
        "span": None if span is None else Span.read(span),
        "server": server,
        "registry": registry,
    }


@lru_cache(maxsize=256)
def _words_of(cls: type) -> dict[str, Any]:
    """The settings that take one of a few words, or one of a few words or else a number."""
    return {name: hint for name, hint in get_type_hints(cls).items() if words_in(hint)}


def _default(spec: Any) -> Any:
    return spec.default_factory() if spec.default_factory is not MISSING else spec.default


def _check_span(value: Any, spec: "Field[Any]", path: str) -> None:
    span = spec.metadata.get("span")
    for one in value if isinstance(value, tuple) else (value,):
        if isinstance(one, str) and one in words_in(spec.type):
            continue
        if span is not None and one is not None:
            span.check(one, path)
        elif isinstance(one, float):
            ANYTHING.check(one, path)


def _unknown(key: str, cls: type, base: Any, path: str, owner: str) -> str:
    """What to say of a key that is no setting of `cls`."""
    known = [f.name for f in fields(cls) if f.init]
    whole = all(_default(f) is not MISSING for f in fields(cls))
    start = base if base is not None else cls() if whole else None
    every = [name for name, _, _ in walk(start)] if start is not None else known
    meant = ours(key).removeprefix(path)
    if meant.partition("=")[0] in every:
        hint = f" Did you mean {meant!r}?"
    else:  # perhaps a setting of one of the groups: epochs for local.epochs
        hint = did_you_mean(key, known) or nearest(key, [path + name for name in every])
    return (
        f"unknown setting {path + key!r}.{hint} Settings "
        f"{f'of {owner}' if owner else 'here'}: {choices(known, key)}"
    )


def _plain(value: Any, registry: Registry[Any] | None) -> Any:
    if registry is not None and value is not None and not isinstance(value, str):
        return plain_choice(value, registry)
    if is_dataclass(value):
        return values_of(value)
    if isinstance(value, Mapping):
        return {str(k): _plain(v, None) for k, v in value.items()}
    return [_plain(v, None) for v in value] if isinstance(value, tuple | list) else value


def _convert(value: Any, hint: Any, registry: Registry[Any] | None, current: Any, path: str) -> Any:
    value = plain(value)
    if registry is not None and value is not None:
        return _from_registry(value, registry, current, path)
    if isinstance(hint, type) and is_dataclass(hint):
        if isinstance(value, hint):  # made before, by whoever knows how
            return value
        if not isinstance(value, Mapping):
            raise ConfigError(
                f"{path!r} is a group of settings; {shown(value)} was given. Use {path}.<name> = "
                "value"
            )
        return build(hint, value, current if current is not MISSING else None, path + ".", path)
    return convert(value, hint, path)


def _from_registry(value: Any, registry: Registry[Any], current: Any, path: str) -> Any:
    table = {"name": value} if isinstance(value, str) else value
    if not isinstance(table, Mapping) or not isinstance(table.get("name", ""), str):
        raise ConfigError(
            f"{path!r} takes the name of one {registry.kind} "
            f"({choices(registry)}); {shown(value)} was given"
        )
    rest = {k: v for k, v in table.items() if k != "name"}
    name = table.get("name")
    if name is None:
        if current is None or current is MISSING:
            raise ConfigError(f"{path!r} needs a name; {registry.kind}s: {choices(registry)}")
        return build(type(current), rest, current, path + ".", registry.name_of(type(current)))
    cls = registry.get(name)
    return build(cls, rest, current if type(current) is cls else None, path + ".", name)
