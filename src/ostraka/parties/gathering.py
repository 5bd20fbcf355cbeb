"""Member files of a group: found by name, pattern, folder, list or run, read by the strict reader,
each once, and brought into an order that does not depend on how they were given.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from glob import glob, has_magic
from itertools import compress
from pathlib import Path

import torch

from ostraka.core.member import Member
from ostraka.core.names import letters, look
from ostraka.core.party import labels
from ostraka.core.samples import Samples, View
from ostraka.errors import DataError, StoreError, printable
from ostraka.parties.fitting import misfits, near_names
from ostraka.parties.task_file import TaskFile
from ostraka.runs.folder import RUN
from ostraka.store.generator import sha256_of
from ostraka.store.member import encode_member, load_member
from ostraka.voting.probes import junk_probes

SUFFIXES = (".member", ".safetensors")
"""What the files of members are called."""
LIST = ".txt"
"""What a list of member files is called: one path in each line, seen from the list's folder."""
MOST_BYTES = 1_000_000
"""A list beyond this is none."""
NO_NUMBERS = "answers some samples with NaN or infinity; its weights are too large"
"""Why a member is left out that was asked."""
SKIP = "Leave {} out, or all that cannot be used (--skip-broken, skip_broken=True)"


@dataclass(frozen=True)
class Gathered:
    """Members that were found, and where; what has to be said of it."""

    members: tuple[Member, ...]
    files: tuple[str, ...] = ()
    """Where each lies; empty where they were given as members."""
    notes: tuple[str, ...] = ()

    @property
    def units(self) -> View:
        """The kind of their samples and the unit of stored values."""
        view = self.members[0].model.view  # `gather` has seen to it that all have the same
        return View.of_unit(view.unit, view.kind)

    @property
    def names(self) -> tuple[str, ...]:
        """What each member is called: the name on its card, with its number where two are alike."""
        return labels([str(member.card) for member in self.members])


def gather(
    given: "str | Path | Member | Sequence[str | Path | Member]",
    skip_broken: bool = False,
    task: TaskFile | None = None,
) -> Gathered:
    """The members in these files, folders, runs, patterns (`wards/*.member`) and lists (.txt).

    A file that is no member in every respect, that does not fit the others or is of another `task`,
    is refused by name, or, with `skip_broken`, left out with a note. One that was given twice, also
    under two names, counts once. The order is that of the names on their cards and then of their
    weights, whatever the order in which they came.
    """
    items = [given] if isinstance(given, str | Path | Member) else list(given)
    read, notes = _read(items, skip_broken)
    wrong = misfits([member for _, member in read], task) if read else {}
    for at, words in wrong.items():
        who = read[at][0] or read[at][1].card
        if not skip_broken:
            raise StoreError(f"{who} {words}. {SKIP.format(who)}")
        notes.append(f"left out: {who} {words}")
    once, doubles = _once([one for at, one in enumerate(read) if at not in wrong])
    if not once:
        raise DataError(
            "no member was given; a vote needs at least one: name files that end with "
            f"{' or '.join(SUFFIXES)}, or a folder of such files"
        )
    _check_parties(once)
    ordered = [
        replace(m, card=replace(m.card, party=i, name=_called(file, m)))
        for i, (file, m) in enumerate(once)
    ]
    files = tuple(file for file, _ in once) if all(file for file, _ in once) else ()
    said = (*notes, *doubles, *near_names([m.model.classes for m in ordered]))
    return Gathered(tuple(ordered), files, said)


@torch.no_grad()
def answering(found: Gathered, public: Samples | None = None) -> Gathered:
    """Those whose answers are numbers: to junk, to the ends of the range of stored values, and to
    public samples, if any. The others are left out, each with a note: one file ends no vote.
    """
    shape, unit = found.members[0].model.shape, found.units.unit
    junk, ends = junk_probes(shape), torch.stack([torch.zeros(shape), torch.full(shape, unit)])
    able = []
    for member in found.members:
        model = member.predictor()
        asked = [model.answers(junk), model.scores(ends)]
        asked += [] if public is None else [model.scores(x.stored()) for x in public.chunks(1000)]
        able.append(
            all(one.known.isfinite().all() and one.unknown.isfinite().all() for one in asked)
        )
    if all(able):
        return found
    names = found.files or found.names
    notes = [
        f"left out: {name} {NO_NUMBERS}" for name, fine in zip(names, able, strict=True) if not fine
    ]
    if not any(able):
        raise DataError(f"no member is left that can vote: {'; '.join(notes)}. Use other members")
    return replace(
        found,
        members=tuple(compress(found.members, able)),
        files=tuple(compress(found.files, able)),
        notes=(*found.notes, *notes),
    )


def member_files(given: Iterable[str | Path]) -> list[Path]:
    """The files that names, patterns, folders, runs and lists stand for, each once."""
    found = (path for one in given for path in _files(str(one)))
    return list({path.resolve(): path for path in found}.values())


def is_run(path: str | Path) -> bool:
    """Whether it is the folder of a run."""
    folder = Path(path).expanduser()
    return folder.is_dir() and any((folder / name).exists() for name in RUN)


def _files(one: str) -> Iterator[Path]:
    path = Path(one).expanduser()
    if path.is_dir():
        yield from _inside(path)
    elif path.suffix == LIST and path.is_file():
        yield from _listed(path)
    elif path.exists():
        yield path
    elif has_magic(one):
        matched = sorted(Path(name) for name in glob(str(path)))
        if not matched:
            raise DataError(f"nothing is called {one!r}; give the names of member files")
        for match in matched:
            yield from _files(str(match))
    else:
        raise DataError(
            f"there is no file or folder {one!r}; give member files, a folder of them, or a run"
        )


def _inside(folder: Path) -> list[Path]:
    """The member files of a folder; those of a run lie in its members/."""
    if is_run(folder):
        home = folder / "members"
        if not home.is_dir():
            raise DataError(
                f"the run in {folder} has no members: its method makes one model, or it is not "
                "finished; ostraka predict asks it alone, without other files or a ballot"
            )
        folder = home
    found = sorted(path for path in folder.iterdir() if path.suffix in SUFFIXES)
    if not found:
        raise DataError(
            f"the folder {folder} holds no member files; their names end with "
            f"{' or '.join(SUFFIXES)}"
        )
    return found


def _listed(path: Path) -> list[Path]:
    """The files that a list names."""
    if path.stat().st_size > MOST_BYTES:
        raise DataError(f"{path} has more than {MOST_BYTES:,} bytes; it is no list of members")
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError:
        raise DataError(f"{path} is no text; a list of members has a path in each line") from None
    named = [line.strip() for line in lines if line.strip() and not line.startswith("#")]
    found = [path.parent / name for name in named]
    missing = [name for name, file in zip(named, found, strict=True) if not file.is_file()]
    if missing or not found:
        what = f"names {missing[0]!r}, which is not there" if missing else "is empty"
        raise DataError(f"the list {path} {what}; it has the path of a member file in each line")
    return found


Read = list[tuple[str, Member]]


def _read(items: Sequence[str | Path | Member], skip_broken: bool) -> tuple[Read, list[str]]:
    read: Read = [("", item) for item in items if isinstance(item, Member)]
    notes = []
    for path in member_files(item for item in items if not isinstance(item, Member)):
        try:
            member = load_member(path)
        except StoreError as error:
            if not skip_broken:
                raise StoreError(f"{error}. {SKIP.format(path.name)}") from None
            notes.append(f"left out: {error}")
        else:
            read.append((str(path), member))
    return read, notes


def _once(read: Read) -> tuple[Read, list[str]]:
    """Every member once, in an order of their own, and what is said of the others."""
    marked = sorted(
        ((_called(file, m) or str(m.card), sha256_of(m.params), file, m) for file, m in read),
        key=_place,
    )
    first: dict[str, tuple[str, Member]] = {}
    notes = []
    for name, weights, file, member in marked:
        if weights in first:
            other_file, other = first[weights]
            same = f"{file or name} has the same weights as {other_file or other.card}"
            if _but_for_its_name(member) != _but_for_its_name(other):
                raise DataError(f"{same}, but another card; one of them is a copy. Leave it out")
            notes.append(f"{same}; they count once")
        else:
            first[weights] = (file, member)
    return list(first.values()), notes


def _called(file: str, member: Member) -> str:
    """What a member is called: as its card says, or else as its file."""
    return member.card.name or printable(Path(file).stem)


def _but_for_its_name(member: Member) -> bytes:
    return encode_member(replace(member, card=replace(member.card, name="", party=0)))


def _check_parties(read: Read) -> None:
    """Refuse two members of one party: which of them is its own, nobody but the party can say."""
    first: dict[str, tuple[str, Member]] = {}
    for file, member in read:
        name = member.card.name
        if not name:
            continue
        other_file, other = first.setdefault(look(name).casefold(), (file, member))
        if other is not member:
            raise DataError(
                f"{other_file or 'a member'} is of the party {letters(other.card.name)}, and "
                f"{file or 'another one'} of the party {letters(name)}; a party votes once. "
                "Leave one of them out"
            )


def _place(marked: tuple[str, str, str, Member]) -> tuple[str, str, str]:
    return marked[:3]
