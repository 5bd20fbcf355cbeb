"""The configuration of one run: what a TOML file or the command line may say, and nothing else."""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal

import tomli_w

from ostraka.core import settings
from ostraka.core.settings import Settings, setting
from ostraka.core.synonyms import ours
from ostraka.errors import ConfigError
from ostraka.registry import ENGINES, METHODS, NETS, PRESETS, unknown


@dataclass(frozen=True)
class NetChoice:
    """Which network to train."""

    name: str = setting("auto", "name of the net; auto: simple-cnn for images, mlp for the rest")
    options: Mapping[str, Any] = field(default_factory=dict, metadata={"doc": "options of the net"})


@dataclass(frozen=True)
class EngineChoice:
    """How the parties are run."""

    name: str = setting("auto", "name of the engine")
    options: Mapping[str, Any] = field(
        default_factory=dict, metadata={"doc": "settings of the engine"}
    )


@dataclass(frozen=True)
class Config(Settings):
    """One run.

    `set` holds the method's own settings; the last four say how to run, and do
    not change the numbers. Nor does it matter where a start lies (`start_from`):
    what it holds (`start_digest`) does.
    """

    method: str = setting("fedavg", "method or preset")
    data: str = setting("fashion-4k", "data set")
    label: str | None = setting(
        None,
        "the column of a table that holds the classes; default: the one called label, class or "
        "target",
    )
    partition: str = setting("labels:2", "how the training data is divided")
    parties: int | None = setting(
        None, "number of parties; default: 10, or as many as the data itself names", span="[1, inf)"
    )
    seed: int = setting(0, "seed of everything random", span="(-inf, inf)")
    known: int | None = setting(
        None, "open-set test: the first N classes are known, the others unknown", span="[1, inf)"
    )
    known_classes: tuple[int, ...] = setting(
        (), "open-set test: the listed classes are known", span="[0, inf)"
    )
    train_per_class: int | None = setting(
        None, "use the first N training samples of each class (and domain)", span="[1, inf)"
    )
    public: str | None = setting(
        None,
        "unlabelled samples that all may see: half-test (half of the test set; figures are then "
        "from the other half), the name or path of a data set, or generator:FILE (5,000 samples "
        "of a generator; generator: of the one in this package)",
    )
    start_from: str | None = setting(
        None, "a finished run (or grid) whose model is the first; default: a random one"
    )
    start_digest: str | None = setting(
        None, "hash of the first model; written by the run, another one is refused"
    )
    shared: float = setting(
        0.0,
        "share of the training data that all parties may use, labelled",
        span="[0, 1)",
    )
    standardise: Literal["auto", "on", "off", "raw"] = setting(
        "auto",
        "inputs with mean 0 and deviation 1 by the training data: auto (default: float data, not "
        "bytes), on, off; raw: values as they are stored, bytes up to 255",
    )
    augment: str = setting(
        "auto",
        "how training samples are changed at random: auto (default: as the data says), none, or "
        "an augmentation (ostraka list augmentations)",
    )
    validation: float = setting(
        0.0, "share of the training data that the server holds back", span="[0, 1)"
    )
    local_test: float = setting(
        0.0,
        "share of every party's samples that is the test set; the data's own test samples are "
        "divided among the parties too (0: they are the test set)",
        span="[0, 1)",
    )
    unknown_rate: float = setting(
        0.05,
        "share of samples of known classes that may be called unknown, as 0.05 or 5% (default)",
        span="(0, 1)",
    )
    rate_from: Literal["auto", "told", "validation", "public", "own"] = setting(
        "auto",
        "what places the threshold for it: told (what parties tell of held-out samples), "
        "validation, public (samples of known classes only), own (the method's own threshold); "
        "auto (default): validation if any, else told",
    )
    threshold: float | None = setting(
        None,
        "unknown score above which the answer is unknown, by hand",
        span="(-inf, inf)",
    )
    look: Literal["none", "validation", "public", "test"] = setting(
        "none",
        "unlabelled samples from which a vote estimates which members to trust before it is "
        "evaluated, at most 1,000: none (default), validation, public, or test; the result says so",
    )
    eval_every: int = setting(1, "evaluate every N-th round, and the last", span="[1, inf)")
    on_failure: Literal["stop", "drop"] = setting(
        "stop", "when a party fails: stop (default), or drop it and go on"
    )
    min_parties: int = setting(
        1, "with on_failure drop: fewest parties that a round may end with", span="[1, inf)"
    )
    net: NetChoice = setting(NetChoice(), "the network")
    set: Mapping[str, Any] = field(default_factory=dict, metadata={"doc": "settings of the method"})
    engine: EngineChoice = setting(
        EngineChoice(),
        "how parties are run: serial (in this process), pool (one process per core), ray (a "
        "cluster), flower (a simulation of a federation), or auto (default: the pool if the work "
        "is worth its start, else serial)",
    )
    workers: int | None = setting(
        None, "parties at work at once, with pool and ray; default: one per core", span="[1, inf)"
    )
    device: Literal["auto", "cpu", "cuda", "mps"] = setting(
        "auto", "what networks are trained on: auto (default), cpu, cuda or mps"
    )
    data_dir: str | None = setting(
        None, "folders with data sets, separated as in PATH (also: OSTRAKA_DATA)"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.shared + self.validation >= 1:
            raise ConfigError(
                f"shared is {self.shared} and validation {self.validation}; nothing is left for "
                "the parties. Together they must be below 1"
            )
        if self.known is not None and self.known_classes:
            raise ConfigError(
                f"give known ({self.known}) or known_classes ({list(self.known_classes)}), not both"
            )


HOW = ("start_from", "on_failure", "min_parties", "engine", "workers", "device", "data_dir")
"""Fields that say how or from where to run, not what: a run may be resumed with other values."""


SHORT = {"epochs": "local.epochs", "lr": "local.lr", "batch": "local.batch"}
"""Settings that have an option of their own (--epochs)
and a short name behind a method (fedavg:lr=0.1).
"""


def make(values: Mapping[str, Any]) -> Config:
    """A checked configuration from plain values.

    `net = "mlp"` and `engine = "serial"` are short for tables with that name; in `set`, names may
    be dotted.
    """
    short = [key for key in ("net", "engine") if isinstance(values.get(key), str)]
    values = {**values, **{key: {"name": values[key]} for key in short}}
    if isinstance(values.get("set"), Mapping):
        values["set"] = with_dots(values["set"])
    _refuse_misplaced(values)
    config = settings.build(Config, values)
    rate = (config.unknown_rate, config.rate_from)
    if config.threshold is not None and rate != (Config.unknown_rate, Config.rate_from):
        raise ConfigError(
            f"'threshold' is {config.threshold}, set by hand, beside unknown_rate "
            f"{config.unknown_rate} and rate_from {config.rate_from!r}, which would place it. Give "
            "a threshold, or how it is placed"
        )
    return config


def with_dots(values: Mapping[str, Any]) -> dict[str, Any]:
    """`{"local.epochs": 1}` as nested values, as `--set local.epochs=1` gives them."""
    out: dict[str, Any] = {}
    for key, value in values.items():
        out = settings.merge(out, settings.nested(str(key), value))
    return out


def _refuse_misplaced(values: Mapping[str, Any]) -> None:
    """Say where a setting of the method or net belongs that stands among those of the run."""
    net = values.get("net")
    if isinstance(net, Mapping):
        for key in [str(key) for key in net if key not in ("name", "options")]:
            from ostraka.core.net import net_options  # with torch: for this message alone

            if any(
                key in (spec.name for spec in fields(net_options(name))) for name in NETS.working()
            ):
                raise ConfigError(
                    f"'net.{key}' is an option of the net: in a file it belongs under "
                    f"[net.options], on the command line it is --set net.{key}=..., in Python "
                    f"net={{'options': {{{key!r}: ...}}}}"
                )
    name = values.get("method", Config.method)
    strays = [str(key) for key in values if key not in {spec.name for spec in fields(Config)}]
    if not strays or not isinstance(name, str):
        return
    names = [dotted for dotted, _, _ in settings.walk(build_method(Config(method=name)))]
    for key in strays:
        meant = (key, ours(key))
        fits = (dot for dot in (*names, "recipe") if dot in meant or dot.rpartition(".")[2] == key)
        found = next(fits, None)
        if found is not None:
            table, _, last = found.rpartition(".")
            group = isinstance(values[key], Mapping)
            where = (
                f"[set.{found}]" if group else f"[set{'.' if table else ''}{table}] ({last} = ...)"
            )
            raise ConfigError(
                f"{key!r} is {'' if key in found else f'{found!r} here, '}a setting of the method "
                f"{name}, not of the run: in a file it belongs under {where}, on the command "
                f"line it is --set {found}{'.NAME' if group else ''}=..., "
                "in Python it goes into set={...}"
            )


def label_of(config: Config, name: str) -> str | None:
    """The column with the classes in the data set `name`: public samples need none."""
    return config.label if name == config.data else None


def identity(config: Config) -> dict[str, Any]:
    """What decides the numbers of a run, as it can be written and read again."""
    values: dict[str, Any] = _without_none(settings.values_of(config))
    return {key: value for key, value in values.items() if key not in HOW}


def chosen(config: Config) -> dict[str, Any]:
    """The part of the identity that differs from the defaults, by dotted names: it stays the same
    when a new setting comes with one, and when a default is written out.
    """
    usual = dict(flat(identity(resolve(Config(method=config.method)))))
    own = flat(identity(resolve(config)))
    return {key: value for key, value in own if key == "method" or usual.get(key) != value}


def changed(old: Config, new: Config) -> list[str]:
    """What decides the numbers and differs, as `seed = 0 (now 5)`."""
    was, now = (dict(flat(identity(config))) for config in (old, new))
    keys = [key for key in {**was, **now} if was.get(key) != now.get(key)]
    return [f"{key.removeprefix('set.')} = {was.get(key)!r} (now {now.get(key)!r})" for key in keys]


def flat(values: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    """Nested values as dotted names."""
    for key, value in values.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{path}{key}.")
        else:
            yield path + key, value


def resolve(config: Config) -> Config:
    """The same configuration with the method's own name and all of its settings written out."""
    name = config.net.name
    return replace(
        config,
        method=canonical_method(config.method),
        net=replace(config.net, name=NETS.canonical(name) if name in NETS else name),
        set=settings.values_of(build_method(config)),
    )


def build_method(config: Config) -> Any:
    """The method with its settings, presets resolved."""
    name, table = config.method, dict(config.set)
    if name in PRESETS:
        preset = PRESETS.get(name)
        name, table = preset.method, settings.merge(preset.settings, table)
    elif name not in METHODS:
        raise unknown(name, METHODS, PRESETS)
    cls = METHODS.get(name)
    if "rounds" in table and not hasattr(cls, "rounds"):
        raise ConfigError(
            f"'rounds' is {table['rounds']!r}; the method {name} has a single round. Leave it out, "
            "or choose a method that averages over rounds, such as fedavg"
        )
    return settings.build(cls, table, owner=f"the method {name}")


def build_engine(config: Config) -> Any:
    """The engine with its settings; `workers` and `min_parties` are the run's own, for engines
    that have them."""
    name, options = config.engine.name, config.engine.options
    cls = ENGINES.get(name)
    for shared in ("workers", "min_parties"):
        if shared in options:
            raise ConfigError(
                f"'engine.{shared}' is {options[shared]!r}; "
                f"give it as a setting of the run: --{shared.replace('_', '-')}"
            )
    known = {spec.name for spec in fields(cls)}
    values = {"workers": config.workers, "min_parties": config.min_parties}
    own = {key: value for key, value in values.items() if key in known}
    if "min_parties" in own and config.on_failure == "stop":
        own["min_parties"] = None  # all of them
    return settings.build(cls, {**options, **own}, path="engine.", owner=f"the engine {name}")


def has_rounds(method: Any) -> bool:
    """Whether a method can have several rounds."""
    from ostraka.core.method import Iterative  # with torch, which the method has loaded already

    return isinstance(method, Iterative)


def method_names() -> list[str]:
    """All methods and presets."""
    return sorted({*METHODS.names(), *PRESETS.names()})


def canonical_method(name: str) -> str:
    """A method's or preset's own name."""
    return next((kind.canonical(name) for kind in (PRESETS, METHODS) if name in kind), name)


def read_toml(
    path: Path, what: str = "configuration", usual: str = "config.toml"
) -> dict[str, Any]:
    """The values of a TOML file; errors call it `what`, and such files are called `usual`."""
    if path.is_dir():
        raise ConfigError(f"the {what} {path} is a folder; give the file, such as {path / usual}")
    try:
        # some editors begin a file with a byte order mark
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise ConfigError(f"the {what} {path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigError(
            f"the {what} {path} is not valid TOML: it is not UTF-8 text; save it as such"
        ) from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"the {what} {path} is not valid TOML: {error}") from None


def write_toml(values: Mapping[str, Any]) -> str:
    """Plain values as TOML; None is left out, since TOML has no such value."""
    return tomli_w.dumps(_without_none(values))


def parse_assignments(pairs: Sequence[str]) -> dict[str, Any]:
    """`["local.epochs=20", "objective=proser"]` as nested values.

    A value is read as TOML, or else as text.
    """
    out: dict[str, Any] = {}
    seen: dict[str, str] = {}
    for pair in pairs:
        key, sign, text = pair.partition("=")
        if not sign or not all(part.strip() for part in key.split(".")):
            raise ConfigError(
                f"--set takes NAME=VALUE, for example local.epochs=20; {pair!r} was given"
            )
        if seen.setdefault(key.strip(), text.strip()) != text.strip():
            raise ConfigError(
                f"{key.strip()!r} is {seen[key.strip()]} and {text.strip()}; a setting has one "
                "value. Give it once; several values are for a grid: ostraka compare "
                "fedavg:lr=0.01 fedavg:lr=0.1"
            )
        out = settings.merge(out, settings.nested(key.strip(), _parse(text.strip())))
    return out


def _parse(text: str) -> Any:
    # TOML knows no .5
    for read in (lambda: tomllib.loads(f"v = {text}")["v"], lambda: float(text)):
        try:
            return read()
        except ValueError:
            continue
    return text


def _without_none(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _without_none(item) for key, item in value.items() if item is not None}
    return [_without_none(item) for item in value] if isinstance(value, list | tuple) else value
