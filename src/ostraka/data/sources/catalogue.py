"""All data sets that are found, with their shapes and sizes, without reading them whole."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ostraka.data.sources import domains
from ostraka.data.sources.find import Found, survey
from ostraka.data.sources.source import Source, Summary
from ostraka.errors import DataError

UNKNOWN = "its source does not tell"


def summaries(dirs: Sequence[Path]) -> list[tuple[Found, Summary | str]]:
    """Every data set and its summary, or a short reason why it has none."""
    found = survey(dirs)
    peeked = {place.name: _peek(place, source) for place, source in found if source is not None}
    return [
        (place, peeked.get(place.name) or _joined([peeked[part] for part in place.parts]))
        for place, _ in found
    ]


def _peek(place: Found, source: Source) -> Summary | str:
    if source.peek is None:
        return UNKNOWN
    try:
        return source.peek(place.path or Path(), place.name)
    except DataError as error:
        # the first part, without the path that stands beside it anyway
        return str(error).removeprefix(str(place.path)).lstrip(": ").partition(";")[0]
    except Exception as error:  # a plug-in's or a damaged file's: others must not be hidden by it
        return f"cannot be read: {error!r}"


def _joined(parts: Sequence[Summary | str]) -> Summary | str:
    """Several sets as domains of one."""
    whole = [part for part in parts if isinstance(part, Summary)]
    if len(whole) < len(parts):
        return "a part of it cannot be read"
    channels = max(part.shape[0] for part in whole)
    size = (channels, domains.SIZE, domains.SIZE)
    return replace(
        whole[0], shape=size, train=sum(p.train for p in whole), test=sum(p.test for p in whole)
    )
