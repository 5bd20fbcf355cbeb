"""Member files of a group: found by name, pattern, folder, list or run, read by the strict reader,
each once, and brought into an order that does not depend on how they were given.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from glob import glob, has_magic
from pathlib import Path

from ostraka.core.member import Member
from ostraka.core.party import labels
from ostraka.errors import DataError, StoreError, printable
from ostraka.runs.folder import RUN
from ostraka.store.generator import sha256_of
from ostraka.store.member import load_member

SUFFIXES = (".member", ".safetensors")
"""What the files of members are called."""
LIST = ".txt"
"""What a list of member files is called: one path in each line, seen from the list's folder."""
MOST_BYTES = 1_000_000
"""A list beyond this is none."""


@dataclass(frozen=True)
class Gathered:
    """Members that were found, and where; what has to be said of it."""

    members: tuple[Member, ...]
    files: tuple[str, ...] = ()
    """Where each lies; empty where they were given as members."""
    notes: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """What each member is called: the name on its card, with its number where two are alike."""
        return labels([str(member.card) for member in self.members])


def gather(
    given: "str | Path | Member | Sequence[str | Path | Member]", skip_broken: bool = False
) -> Gathered:
    """The members in these files, folders, runs, patterns (`wards/*.member`) and lists (.txt).

    A file that is no member in every respect is refused by name, or, with `skip_broken`, left out
    with a note. One that was given twice, also under two names, counts once. The order is that of
    the names on their cards and then of their weights, whatever the order in which they came.
    """
    items = [given] if isinstance(given, str | Path | Member) else list(given)
    read, notes = _read(items, skip_broken)
    if not read:
        raise DataError(
            "no member was given; a vote needs at least one: name files that end with "
            f"{' or '.join(SUFFIXES)}, or a folder of such files"
        )
    once, doubles = _once(read)
    ordered = [replace(m, card=replace(m.card, party=i)) for i, (_, m) in enumerate(once)]
    files = tuple(file for file, _ in once) if all(file for file, _ in once) else ()
    return Gathered(tuple(ordered), files, (*notes, *doubles))


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
                raise StoreError(
                    f"{error}. Leave {path.name} out, or all that are broken "
                    "(--skip-broken, skip_broken=True)"
                ) from None
            notes.append(f"left out: {error}")
        else:
            named = replace(member.card, name=member.card.name or printable(path.stem))
            read.append((str(path), replace(member, card=named)))
    return read, notes


def _once(read: Read) -> tuple[Read, list[str]]:
    """Every member once, in an order of their own, and what is said of the others."""
    marked = sorted(((str(m.card), sha256_of(m.params), file, m) for file, m in read), key=_place)
    first: dict[str, tuple[str, Member]] = {}
    notes = []
    for name, weights, file, member in marked:
        if weights in first:
            other_file, other = first[weights]
            notes.append(
                f"{file or name} has the same weights as {other_file or other.card}; "
                "they count once"
            )
        else:
            first[weights] = (file, member)
    return list(first.values()), notes


def _place(marked: tuple[str, str, str, Member]) -> tuple[str, str, str]:
    return marked[:3]
