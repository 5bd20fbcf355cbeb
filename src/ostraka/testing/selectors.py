"""The contract of selectors, checked on made-up members of small networks on three classes."""

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import fields, replace

import torch

from ostraka.core.card import Card
from ostraka.core.member import Member, Model
from ostraka.core.net import Recipe, params_of
from ostraka.core.samples import Samples
from ostraka.core.seeds import torch_rng
from ostraka.core.task import Task
from ostraka.errors import ConfigError
from ostraka.objectives.cross_entropy import CrossEntropy
from ostraka.store import codec
from ostraka.testing.expect import (
    SEED,
    difference,
    expect,
    expect_picklable,
    expect_settings,
    hoped,
)
from ostraka.testing.stage import twice
from ostraka.voting.choice import NOWHERE, Choice
from ostraka.voting.selectors import Pool, Selector

MEMBERS, CLASSES, WIDTH = 9, ("ant", "bee", "cat"), 4


def check_selector(selector: Selector) -> None:
    """Raise a ContractBroken if `selector` fails any of CHECKS; takes a moment."""
    with hoped(selector, "it loads its libraries", "fix the error above, or install them"):
        selector.load()
    for check in CHECKS:
        check(selector)


def check_settings(selector: Selector) -> None:
    """The selector can be written as plain values, and sent to a worker process."""
    expect_settings(selector)
    expect_picklable(selector)


def check_choice(selector: Selector) -> None:
    """At least one member votes, each is named once and in order, and there is a reason for every
    member, whoever they are and however many.
    """
    for case, pool in _told().items():
        _expect_choice(selector, _choose(selector, pool, case), len(pool.members), case)


def check_strangers(selector: Selector) -> None:
    """Members that tell little, or have other networks, are chosen among, or refused with a
    ConfigError.
    """
    for case, pool in _strange().items():
        advice = "raise a ConfigError that says what to do"
        with hoped(selector, f"it chooses among {case}", advice, ConfigError):
            _expect_choice(selector, selector.choose(pool), len(pool.members), case)


def check_repeatable(selector: Selector) -> None:
    """The same pool gives the same choice, however the global random generators stand."""
    first, second = twice(lambda: _choose(selector, _pool(), "members"))
    change = first != second and f"it chose {first.chosen}, and then {second.chosen}"
    advice = "draw from torch_rng(pool.seed, ...) and use pool.lots() where nothing else decides"
    expect(selector, "the same pool gives the same choice", change, advice)


def check_unchanged(selector: Selector) -> None:
    """The members are left as they were."""
    pool = _pool()
    before = deepcopy(pool)
    _choose(selector, pool, "members")
    pairs = list(zip(before.members, pool.members, strict=False))
    changes = [difference(a.params, b.params, "params") for a, b in pairs]
    changes += [difference(a.card, b.card, "cards") for a, b in pairs]
    changes += [] if len(before.members) == len(pool.members) else ["some members are gone"]
    found = next((change for change in changes if change), None)
    expect(selector, "the members are left unchanged", found, "work on copies: they vote later")


def check_size(selector: Selector) -> None:
    """With a setting `size`, no more members vote than it says, and more than there are is no
    obstacle.
    """
    if "size" not in {spec.name for spec in fields(selector)}:
        return
    for size in (1, 2, MEMBERS, 5 * MEMBERS):
        sized = replace(selector, size=size)  # type: ignore[call-arg]
        chosen = _choose(sized, _pool(), f"members, with the size {size}").chosen
        more = len(chosen) > size and f"with the size {size} it chose {len(chosen)}"
        expect(selector, "no more members vote than size says", more, "end the team there")


def check_stored(selector: Selector) -> None:
    """What was chosen, and why, survives storing."""
    choice = _choose(selector, _pool(), "members")
    what = "a choice is stored and read back"
    with hoped(selector, what, "use plain numbers and words in a Choice"):
        again = codec.decode(codec.encode(choice))
    change = again != choice and f"{choice} became {again}"
    expect(selector, what, change, "use tuples of plain numbers and words")


CHECKS: tuple[Callable[[Selector], None], ...] = (
    check_settings,
    check_choice,
    check_unchanged,
    check_repeatable,
    check_size,
    check_stored,
    check_strangers,
)
"""All checks, those with the plainest message first."""


def _choose(selector: Selector, pool: Pool, case: str) -> Choice:
    with hoped(selector, f"it chooses among {case}"):
        return selector.choose(pool)


def _expect_choice(selector: Selector, choice: Choice, count: int, case: str) -> None:
    """A choice that the rest of the program can use."""
    chosen, places = list(choice.chosen), range(count)
    plain = all(isinstance(i, int) and not isinstance(i, bool) for i in chosen)
    told = f"among {case} ({count} of them)"
    odd = not chosen or not plain or chosen != sorted({*chosen}) or not {*chosen} <= {*places}
    wrong = odd and f"{told} it chose {choice.chosen}"
    advice = "give the places of the chosen in pool.members as ints, ascending, at least one"
    expect(selector, "chosen are places of members, ascending", wrong, advice)
    odd = len(choice.why) != count or not all(isinstance(w, str) and w for w in choice.why)
    wrong = odd and f"{told} it gave {len(choice.why)} reasons: {choice.why}"
    advice = "give one for each member"
    expect(selector, "every member has a reason in words", wrong, advice)
    groups = list(choice.groups)
    odd = len(groups) not in (0, count) or any(int(g) != g or g < NOWHERE for g in groups)
    wrong = odd and f"{told} the groups are {choice.groups}"
    what = "groups are numbers from -1, one for each member"
    expect(selector, what, wrong, "or leave them out")
    odd = not all(isinstance(note, str) for note in choice.notes)
    expect(selector, "notes are words", odd and f"they are {choice.notes}", "give texts")


def _member(number: int, hidden: int = WIDTH, card: Card | None = None) -> Member:
    """A member with random weights; cards differ in size, counts and scores."""
    task = Task(CLASSES, (WIDTH,), Recipe("mlp", {"hidden": [hidden]}))
    counts = tuple(5 + (7 * number + 3 * c) % 11 for c in range(len(CLASSES)))
    score = 0.5 + 0.05 * (number * 4 % MEMBERS)
    scores = {"validation": score, "confidence": 1 - score / 2}
    card = card or Card(number, sum(counts), counts, scores, name=f"member {number}")
    params = params_of(task.build_net(unknown=False, seed=number))
    return Member(card, Model.of(task, CrossEntropy()), params)


def _pool(count: int = MEMBERS, public: bool = False) -> Pool:
    samples = torch.randn(8, WIDTH, generator=torch_rng(SEED, "public"))
    return _of([_member(i) for i in range(count)], Samples(samples) if public else None)


def _of(members: Sequence[Member], public: Samples | None = None) -> Pool:
    return Pool(members, CLASSES, SEED, public)


def _told() -> dict[str, Pool]:
    """Members that tell all there is to tell."""
    twin = _member(0)
    alike = [replace(twin, card=replace(twin.card, party=i)) for i in range(MEMBERS)]
    return {
        "members": _pool(),
        "a single member": _pool(1),
        "two members": _pool(2),
        "members, with public samples": _pool(public=True),
        "members that are all alike": _of(alike),
    }


def _strange() -> dict[str, Pool]:
    """Members that not every selector can choose among."""
    sizes = [_member(i, card=Card(i, 10 + i)) for i in range(MEMBERS)]
    one_silent = [_member(0), _member(1), _member(2), _member(3, card=Card(3, 10))]
    bands = [_member(i, card=Card(i, 9, (0, 0, 0), {"validation": 0.5})) for i in range(MEMBERS)]
    return {
        "members that tell their size alone": _of(sizes),
        "members of which one tells nothing": _of(one_silent),
        "members with fewer than ten samples of every class, told as bands": _of(bands),
        "members of two networks": _of([_member(i, WIDTH + i % 2) for i in range(MEMBERS)]),
    }
