"""Which members of a group cannot vote with the others: they take other samples, are of another
task, or have classes that nobody can tell from those of others.

No single member decides it for all: what most members have is what the group has.
"""

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from typing import TypeVar

from ostraka.core.member import Member
from ostraka.core.names import class_flaw, letters, look, normal
from ostraka.data.own.collection import some
from ostraka.errors import DataError
from ostraka.parties.task_file import TaskFile

Thing = TypeVar("Thing", bound=Hashable)


def misfits(members: Sequence[Member], task: TaskFile | None = None) -> Mapping[int, str]:
    """The places of members that cannot vote with the others, and why, said of their file."""
    found = {i: wrong for i, m in enumerate(members) if (wrong := class_flaw(m.model.classes))}
    takes = _of_task(members, task, found) if task else _most(members)
    for i, member in enumerate(members):
        if member.model.takes != takes:
            found.setdefault(
                i,
                f"takes {member.model.takes}; the {'task' if task else 'group'} has {takes}",
            )
    return found | _lookalikes(members, found)


def near_names(lists: Sequence[Sequence[str]]) -> list[str]:
    """What is said of classes that only capital letters tell apart: they may be meant to be one."""
    first: dict[str, str] = {}
    pairs: dict[str, None] = {}
    for name in (name for names in lists for name in names):
        other = first.setdefault(normal(name).casefold(), name)
        if normal(other) != normal(name):
            pairs[f"{other!r} and {name!r}"] = None
    if not pairs:
        return []
    return [f"the members' classes {some(list(pairs))} count as different classes: are they one?"]


def _most(members: Sequence[Member]) -> str:
    """What most members take; an error where no kind of samples is that of most."""
    taken = Counter(member.model.takes for member in members).most_common(2)
    if len(taken) > 1 and taken[0][1] == taken[1][1]:
        owners = {m.model.takes: m.card for m in reversed(members)}
        each = "; ".join(f"{owners[takes]}: {takes}" for takes, _ in taken)
        raise DataError(
            "members that vote together take samples of one kind, shape and unit, and these do "
            f"not ({each}). Leave some out"
        )
    return taken[0][0]


def _of_task(members: Sequence[Member], task: TaskFile, found: dict[int, str]) -> str:
    """What members of the task take; those of another one are `found`."""
    for i, member in enumerate(members):
        if member.made.task not in ("", task.digest):
            found[i] = f"is of the task {member.made.task!r}; the group's task is {task.digest!r}"
    return task.takes


def _lookalikes(members: Sequence[Member], out: Mapping[int, str]) -> dict[int, str]:
    """Members with a class that looks like one of others, but has other letters.

    They are not merely pointed out: an answer of such a class cannot be read, and where the members
    of a class are divided between two names, each half of them speaks against the other.
    """
    spelt: dict[str, Counter[str]] = {}
    for i, member in enumerate(members):
        for name in member.model.classes if i not in out else ():
            spelt.setdefault(look(name), Counter())[normal(name)] += 1
    usual = {
        shown: max(names, key=lambda name: (names[name], name.isascii()))
        for shown, names in spelt.items()
        if len(names) > 1
    }
    return {
        i: f"has the class {letters(name)}, which looks like {letters(usual[look(name)])} of others"
        for i, member in enumerate(members)
        if i not in out
        for name in member.model.classes
        if normal(name) != usual.get(look(name), normal(name))
    }
