"""Member files: one trained model that stands on its own,
with its card and all that is needed to ask it.

One safetensors file: the weights under the network's own names (any safetensors reader can list
them), and, as JSON in its metadata, the card, the classes, the shape of a sample, the network's
recipe, the objective, and how stored values become inputs.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ostraka.core.card import Card
from ostraka.core.member import Member, Model
from ostraka.core.net import Params, Recipe
from ostraka.core.samples import stored_view
from ostraka.core.settings import choice, plain_choice, values_of
from ostraka.core.wire import wire
from ostraka.errors import StoreError
from ostraka.registry import OBJECTIVES
from ostraka.store import codec

FORMAT = 2
WEIGHTS = "weights"


@wire("member-file/1", "MemberFile")
@dataclass(frozen=True)
class _First:
    """A member as the first format has it."""

    card: Card
    params: Params
    classes: tuple[str, ...]
    shape: tuple[int, ...]
    net: Mapping[str, Any]
    objective: Mapping[str, Any]
    view: Mapping[str, Any]
    format: int = 1


def save_member(path: Path, member: Member) -> bytes:
    """Write a member, atomically; returns the bytes of its file."""
    data = encode_member(member)
    codec.write_atomically(path, data)
    return data


def save_members(folder: Path, members: Sequence[Member], name: str = "members") -> codec.Beside:
    """Write members into the folder `name` of `folder`; what a file of `folder` need not repeat."""
    paths = [f"{name}/p{member.card.party:05d}.safetensors" for member in members]
    return codec.Beside.of(
        (path, save_member(folder / path, member), member.params)
        for path, member in zip(paths, members, strict=True)
    )


def encode_member(member: Member) -> bytes:
    """The bytes of a member file."""
    model = member.model
    content = {
        "member": FORMAT,
        "card": member.card,
        "classes": tuple(model.classes),
        "shape": tuple(model.shape),
        "net": {"name": model.net.name, "options": dict(model.net.options)},
        "objective": plain_choice(model.objective, OBJECTIVES),
        "view": values_of(model.view),
        WEIGHTS: dict(member.params),
    }
    return codec.encode(content, bare=WEIGHTS)


def load_member(path: str | Path) -> Member:
    """Read a member; anything else is refused."""
    value = codec.load(Path(path))
    if isinstance(value, _First):
        content = {**vars(value), "member": value.format, WEIGHTS: value.params}
    elif isinstance(value, dict) and isinstance(value.get("member"), int):
        content = value
    else:
        raise StoreError(
            f"{path} holds a {type(value).__name__}, not a member; "
            "members are written to a run's members/"
        )
    if content["member"] > FORMAT:
        raise StoreError(
            f"{path} is a member of format {content['member']}; "
            f"this version reads up to {FORMAT}: update ostraka"
        )
    return _member(content, path)


def _member(content: Mapping[str, Any], path: str | Path) -> Member:
    missing = [key for key in ("card", "classes", "shape", "net", "objective", "view", WEIGHTS)
               if key not in content]  # fmt: skip
    if missing:
        raise StoreError(f"{path} is a member without {', '.join(missing)}; it is not whole")
    net, shape = content["net"], tuple(content["shape"])
    model = Model(
        classes=tuple(content["classes"]),
        shape=shape,
        net=Recipe(net["name"], net["options"]),
        objective=choice(content["objective"], OBJECTIVES, "objective"),
        view=stored_view(content["view"], shape),
    )
    return Member(content["card"], model, content[WEIGHTS])
