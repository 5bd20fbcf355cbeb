"""What a party has agreed to: the run in its folder, and nothing else.

A server that is not honest could ask for other settings, another network or more rounds than its
parties know of: the brief that comes with every order is compared with the party's own `run.toml`.
"""

from dataclasses import fields
from pathlib import Path
from typing import Any

from ostraka.core.method import Method
from ostraka.core.net import Recipe
from ostraka.core.private import Private
from ostraka.core.settings import values_of, walk
from ostraka.engines.brief import Brief
from ostraka.errors import ConfigError
from ostraka.registry import METHODS
from ostraka.runs.config import Config, build_method, flat, make, read_toml
from ostraka.runs.memory import check_network
from ostraka.runs.plan import recipe_of

MOST = 5
"""Differences that are named; the others are counted."""


def check_agreed(file: Path, brief: Brief, index: int) -> None:
    """Refuse what the party has not agreed to in its `run.toml`, and what has no room here."""
    config, task = agreed_config(file), brief.task
    method = build_method(config)
    refuse_promises(method)
    agreed = _terms(method, recipe_of(config.net, task.kind, task.shape))
    asked = _terms(brief.method, task.net)
    differ = [key for key in {**agreed, **asked} if asked.get(key) != agreed.get(key)]
    words = [f"{key} = {asked.get(key)!r} (agreed: {agreed.get(key)!r})" for key in differ]
    if task.nets:
        words.append("nets of single parties (agreed: none)")
    if index > method.exchanges or index < 0:
        words.append(f"round {index} (agreed: {method.exchanges} rounds)")
    if words:
        more = f" and {len(words) - MOST} more" if words[MOST:] else ""
        raise ConfigError(
            f"the server asks for what this party has not agreed to: {', '.join(words[:MOST])}"
            f"{more}. To agree, put the server's run.toml into the party's folder, and start the "
            "party again"
        )
    check_network(task, config, method, 1)


def agreed_config(file: Path) -> Config:
    """The run that a party was handed."""
    return make({**read_toml(file), "engine": "serial"})


def refuse_promises(method: Method[Any, Any, Any]) -> None:
    """Refuse differential privacy: all that is random at a party comes from the server's seed."""
    if any(isinstance(value, Private) and value.wanted for _, _, value in walk(method)):
        raise ConfigError(
            "dp.epsilon promises nothing in a federation: the server knows every seed, and could "
            "take the noise off again. Leave it out, or let every party train by itself with "
            "ostraka train --dp, and hand over its file"
        )


def _terms(method: Method[Any, Any, Any], net: Recipe) -> dict[str, Any]:
    """What is agreed on, by the names of settings; what the server does by itself is its own."""
    own = {spec.name for spec in fields(method) if spec.metadata.get("server")}
    settings = {key: value for key, value in values_of(method).items() if key not in own}
    options = dict(flat({"net": dict(net.options)}))
    named = {"method": METHODS.name_of(type(method)), "net": net.name}
    return {**named, **options, **dict(flat(settings))}
