"""Members as rows of numbers, so that they can be compared without data.

`last`, `first`: the weights and the bias of that layer. `all`: every weight. The name of a
layer: that one's. `counts`: the class counts on the cards. `answers`: probabilities that the
members give to probes, public samples or else junk; the only one that does not ask what network
a member is.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray

from ostraka.core.member import Member
from ostraka.core.net import Params
from ostraka.errors import ConfigError, choices, did_you_mean
from ostraka.voting.ballots import Ballot, Sum, Votes
from ostraka.voting.ensemble import Ensemble
from ostraka.voting.probes import junk_probes
from ostraka.voting.selectors import Pool

Rows = NDArray[np.float32]
"""One row for each member."""
PROBES = 200
"""Public samples by which members are compared at the most."""
OF_OBJECTIVE = "objective."
"""What tensors are called that an objective added to its network."""


def layers(params: Params) -> dict[str, list[str]]:
    """The tensors of each layer (module) that has a weight of two axes or more, in order."""
    found: dict[str, list[str]] = {}
    for name, tensor in params.items():
        module, _, part = name.rpartition(".")
        if name.startswith(OF_OBJECTIVE) or not tensor.is_floating_point():
            continue
        if part == "weight" and tensor.dim() >= 2:
            found[module] = [name]
        elif module in found:
            found[module].append(name)
    return found


def kinds(members: Sequence[Member]) -> list[list[int]]:
    """Positions of the members whose weights can be compared: same network, same outputs."""
    groups: dict[object, list[int]] = {}
    for i, member in enumerate(members):
        shapes = tuple((name, tuple(tensor.shape)) for name, tensor in member.params.items())
        groups.setdefault((member.model.net.name, member.model.classes, shapes), []).append(i)
    return list(groups.values())


def rows_of(pool: Pool, how: str) -> Rows:
    """A row for each member, by the representation `how`; their networks must be alike."""
    if how in FREE:
        return FREE[how](pool)
    return np.stack([_weights(member, how) for member in pool.members])


def _weights(member: Member, how: str) -> Rows:
    found = layers(member.params)
    if not found:
        raise ConfigError(
            f"the network of {member.card} has no layer with a weight matrix; "
            "use select.representation=answers"
        )
    named = {"last": list(found)[-1], "first": next(iter(found))}
    if how == "all":
        names = [n for n, t in member.params.items()
                 if t.is_floating_point() and not n.startswith(OF_OBJECTIVE)]  # fmt: skip
    elif how in named or how in found:
        names = found[named.get(how, how)]
    else:
        known = ["last", "first", "all", *FREE, *found]
        raise ConfigError(
            f"there is no layer or representation {how!r}.{did_you_mean(how, known)} "
            f"Known here: {choices(known, how)}"
        )
    flat = torch.cat([member.params[name].detach().flatten().float() for name in names])
    return np.asarray(flat.cpu().numpy(), dtype=np.float32)


def _counts(pool: Pool) -> Rows:
    """Class counts, in the order of the pool's classes."""
    lacking = [str(card) for card in pool.cards if card.counts is None]
    if lacking:
        raise ConfigError(
            f"class counts are compared, and {len(lacking)} of {len(pool.members)} members tell "
            f"none ({lacking[0]} ...): they tell their size only; use tell=counts, or a "
            "representation that needs none (select=dedes)"
        )
    ensemble = Ensemble.of(pool.members, Sum(), pool.classes)
    return np.array([card.counts for card in ensemble.cards], dtype=np.float32)


@torch.no_grad()
def _answers(pool: Pool) -> Rows:
    """Probabilities of every class, and of unknown, on the probes."""
    votes = votes_on_probes(pool, Sum()).logits.softmax(dim=2)
    return np.asarray(votes.flatten(1).cpu().numpy(), dtype=np.float32)


@torch.no_grad()
def votes_on_probes(pool: Pool, ballot: Ballot, most: int = PROBES) -> Votes:
    """All members' votes on so many public samples, or where there are none, on junk (then
    without typicality), with what `ballot` wants to know of the members.
    """
    ensemble = Ensemble.of(pool.members, ballot, pool.classes)
    if ballot.wants_junk:
        ensemble = replace(ensemble, junk=ensemble.known_junk())
    if pool.public is None or not len(pool.public):
        probes = junk_probes(pool.members[0].model.shape)
        logits = torch.stack([voter.votes(probes) for voter in ensemble.voters])
        return Votes(logits, ensemble.cards, junk=ensemble.junk)
    count = len(pool.public)
    index = torch.linspace(0, count - 1, min(count, most)).round().long()
    return ensemble.votes_on(pool.public.take(index))


FREE: Mapping[str, Callable[[Pool], Rows]] = {"counts": _counts, "answers": _answers}
"""Representations that do not depend on the members' networks."""
