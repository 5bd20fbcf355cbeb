"""Figures by name: what each shows, what it needs,
and how it is drawn from a finished run or from data.

What takes long to load is imported when a figure is drawn: the command line lists the names.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ostraka.display.canvas import check_suffix
from ostraka.errors import ConfigError, DataError

if TYPE_CHECKING:
    from ostraka.core.member import Member
    from ostraka.core.net import Net
    from ostraka.display.rounds import History
    from ostraka.runs.config import Config
    from ostraka.runs.plan import Plan
    from ostraka.runs.results import Summary


@dataclass(frozen=True)
class Wanted:
    """What to draw a figure of, and where to."""

    out: Path
    run: Path | None = None
    """The folder of a finished run."""
    runs: tuple[Path, ...] = ()
    """Folders of finished runs and grids, for accuracy against rounds."""
    x: str = "rounds"
    smooth: int = 1
    """Evaluated rounds whose mean is one point."""
    party: int = 0
    data: str = "fashion-4k"
    """Whose images, where there is no run."""
    data_dir: str | None = None
    seed: int = 0

    @property
    def folder(self) -> Path:
        """The run of a figure that needs one."""
        assert self.run is not None, "draw sees to it"
        return self.run


Drawing = Callable[[Wanted], None]


class Kind(NamedTuple):
    """One figure: what it shows, how it is drawn, and the options without which it cannot be."""

    shows: str
    draw: Drawing
    needs: tuple[str, ...] = ()


KINDS: dict[str, Kind] = {}

NEEDED = {"run": "the folder of a finished run", "runs": "the folders of finished runs or grids"}


def _figure(name: str, shows: str, *needs: str) -> Callable[[Drawing], Drawing]:
    """Enter the function below as the one that draws this figure."""

    def enter(draw: Drawing) -> Drawing:
        KINDS[name] = Kind(shows, draw, needs)
        return draw

    return enter


def draw(what: str, wanted: Wanted) -> None:
    """Draw the figure called `what`; refused before anything is
    computed if something is missing.
    """
    kind = KINDS[what]
    for name in kind.needs:
        if not getattr(wanted, name):
            raise ConfigError(f"the figure {what!r} needs --{name}: {NEEDED[name]}")
    check_suffix(wanted.out)
    kind.draw(wanted)


@_figure("outliers", "samples and what destruction and enhancement make of them")
def _outliers(wanted: Wanted) -> None:
    from ostraka.display.gallery import draw_gallery
    from ostraka.runs.config import make
    from ostraka.runs.division import divide

    if wanted.run is None:
        place = {"data": wanted.data, "data_dir": wanted.data_dir}
        division = divide(make({**place, "partition": "iid", "parties": 1}))
        return draw_gallery(division.data.train, wanted.out, wanted.seed)
    plan, members = _members(wanted.folder)
    net = _member(members, wanted.party)
    draw_gallery(plan.parties[wanted.party].samples, wanted.out, wanted.seed, net)


@_figure("features", "t-SNE of a member's embedding", "run")
def _features(wanted: Wanted) -> None:
    from ostraka.display.features import draw_features

    plan, members = _members(wanted.folder)
    net = _member(members, wanted.party)
    seen = [c for c, n in enumerate(plan.counts[wanted.party]) if n]
    draw_features(net, plan.test.samples, seen, plan.task.classes, wanted.out, wanted.seed)


@_figure("top-k", "accuracy of the vote against the number of voters that count", "run")
def _top_k(wanted: Wanted) -> None:
    from ostraka.display.curves import Curve, accuracy_curve
    from ostraka.evaluation.evaluate import evaluate
    from ostraka.voting.ballots import TopK
    from ostraka.voting.ensemble import Ensemble

    plan, members = _members(wanted.folder)
    ks = range(1, len(members) + 1)
    values = []
    for k in ks:
        ensemble, test = Ensemble.of(members, TopK(k), plan.task.classes), plan.test
        found = evaluate(ensemble, test.samples, plan.task.classes, domains=test.domains)
        if found.accuracy is None:
            raise DataError(
                f"{wanted.run} has no accuracy to draw: its test samples are all of unknown classes"
            )
        values.append(found.accuracy)
    curve = Curve("top-k vote", list(ks), [values])
    xlabel = "members that count for a sample (k)"
    accuracy_curve([curve], wanted.out, _title(plan.name, plan.config), xlabel=xlabel)


@_figure(
    "clusters",
    "members by their weights, in clusters; those that a selector chose are ringed",
    "run",
)
def _clusters(wanted: Wanted) -> None:
    from ostraka.core.party import labels
    from ostraka.display.teams import Members, draw_clusters

    run = Members.of(wanted.folder)
    names = labels([str(card) for card in run.pool.cards])
    draw_clusters(run.rows(), run.choice, names, wanted.out, _title(run.plan.name, run.plan.config))


@_figure("sizes", "accuracy of each selector's team against its size", "run")
def _sizes(wanted: Wanted) -> None:
    from ostraka.display.curves import accuracy_curve
    from ostraka.display.teams import Members

    run = Members.of(wanted.folder)
    xlabel = "members that vote"
    accuracy_curve(run.curves(), wanted.out, _title(run.plan.name, run.plan.config), xlabel=xlabel)


@_figure(
    "teams",
    "accuracy of all teams of up to 12 members, and the ranks of the selectors' choices",
    "run",
)
def _teams(wanted: Wanted) -> None:
    from ostraka.display.teams import Members, draw_teams

    run = Members.of(wanted.folder)
    found, own = run.inspect(), run.choice.chosen
    size = len(own) if len(own) < len(run.members) else -(-len(own) // 2)
    chosen = {name: one.choose(run.pool).chosen for name, one in run.selectors(size).items()}
    teams = {**chosen, "all": tuple(range(len(run.members))), "best": found.best}
    for name, team in teams.items():
        different = "".join(f", {key} {value:.3f}" for key, value in run.diversity(team).items())
        accuracy = 100 * found.accuracy[tuple(sorted(team))]
        print(
            f"{name}: rank {found.rank(team)} of {len(found.accuracy)}, {accuracy:.2f} %, "
            f"{len(team)} members{different}"
        )
    draw_teams(found, teams, wanted.out, _title(run.plan.name, run.plan.config))


@_figure(
    "parties",
    "each party's samples by class, and how its member does on its own held-out samples and "
    "on the test set",
    "run",
)
def _parties(wanted: Wanted) -> None:
    import numpy as np

    from ostraka.core.party import labels
    from ostraka.display.teams import Members, draw_parties

    run = Members.of(wanted.folder)
    cards, plan = run.pool.cards, run.plan
    scores = [card.scores.get("validation") for card in cards]
    held = [None if score is None else 100 * score for score in scores]
    lines = {"own held-out samples": held} if any(s is not None for s in scores) else {}
    draw_parties(
        np.stack([plan.counts[card.party] for card in cards]),
        labels([str(card) for card in cards]),
        plan.task.classes,
        {**lines, "whole test set": run.alone()},
        wanted.out,
        _title(plan.name, plan.config),
    )


@_figure(
    "masks", "which weights fedpd's parties found important for what, by layer and unit", "run"
)
def _masks(wanted: Wanted) -> None:
    from ostraka.display.masks import draw_masks
    from ostraka.methods.fedpd import Conquered
    from ostraka.runs.record import load_state

    config, state = load_state(wanted.folder)
    if not isinstance(state, Conquered) or state.masks is None:
        raise ConfigError(
            f"{wanted.run} is a run of {config.method}, "
            "whose parties send no masks; take one of fedpd"
        )
    draw_masks(state.masks, wanted.out, wanted.party)


@_figure("confusion", "which classes a finished run takes for which others", "run")
def _confusion(wanted: Wanted) -> None:
    from ostraka.display.confusion import draw_confusion, stored_confusion

    summary = _summary(wanted.folder)
    draw_confusion(
        stored_confusion(summary, str(wanted.folder)), wanted.out, _title(summary.method, summary)
    )


@_figure("trust", "how far the members of a vote agree with each other, by party and class", "run")
def _trust(wanted: Wanted) -> None:
    from ostraka.display.trust import draw_trust, trust_of

    summary = _summary(wanted.folder)
    found, looked = trust_of(wanted.folder)
    draw_trust(
        found, list(summary.per_class), wanted.out, f"{_title(summary.method, summary)}\n{looked}"
    )


@_figure(
    "rounds", "accuracy of finished runs against rounds, or against bytes sent (--x bytes)", "runs"
)
def _rounds(wanted: Wanted) -> None:
    from ostraka.display.rounds import draw_rounds

    draw_rounds(_finished(wanted), wanted.x, wanted.out, wanted.smooth)


@_figure(
    "networks",
    "accuracy of fedova's binary networks against rounds, beside that of the runs' answers",
    "runs",
)
def _networks(wanted: Wanted) -> None:
    from ostraka.display.rounds import draw_networks

    draw_networks(_finished(wanted), wanted.out, wanted.smooth)


def _finished(wanted: Wanted) -> "list[History]":
    from ostraka.display.rounds import histories

    runs, unfinished = histories(wanted.runs)
    for folder in unfinished:
        print(f"left out, as it is not finished: {folder}")
    return runs


def _summary(folder: Path) -> "Summary":
    from ostraka.runs.api import load_run

    return load_run(folder).summary


def _members(folder: Path) -> "tuple[Plan, Sequence[Member]]":
    from ostraka.runs.plan import make_plan
    from ostraka.runs.record import load_state

    config, state = load_state(folder)
    plan = make_plan(config)
    members = plan.method.members(plan.task, state)
    if not members:
        raise ConfigError(
            f"{folder} is a run of {config.method}, which has no members; take one of fedov or "
            "closed-voting"
        )
    return plan, members


def _member(members: "Sequence[Member]", party: int) -> "Net":
    chosen = [member for member in members if member.card.party == party]
    if not chosen:
        have = ", ".join(str(member.card.party) for member in members)
        raise ConfigError(f"party {party} has no member in this run; members: {have}")
    return chosen[0].predictor().net


def _title(name: str, place: "Summary | Config") -> str:
    return f"{name} on {place.data}, {place.partition}, seed {place.seed}"
