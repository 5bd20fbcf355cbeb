"""A vote of many members, in member-images per CPU-second."""

from benchmarks.speed import plain
from benchmarks.speed.table import OURS, PLAINS, Job, Lap, Table, layout

SHAPE = (3, 32, 32)
MEMBERS, IMAGES = 100, 10_000


def _plain(members: int, images: int, last: bool) -> Job:
    x, _ = plain.images(SHAPE, images)
    nets = [plain.laid(plain.SimpleCNN(SHAPE, plain.CLASSES + 1), last) for _ in range(members)]
    return Job(lambda lap: plain.vote(nets, x, last), members * images)


def _ours(members: int, images: int) -> Job:
    from ostraka.core.learner import NetPredictor
    from ostraka.core.method import Card
    from ostraka.core.net import Recipe
    from ostraka.core.samples import View
    from ostraka.objectives.cross_entropy import CrossEntropy
    from ostraka.voting.ballots import Sum
    from ostraka.voting.ensemble import Ensemble, Voter
    from ostraka.voting.union import Standing

    x, _ = plain.images(SHAPE, images)
    names = tuple(map(str, range(plain.CLASSES)))
    standing, recipe, voters = Standing.of(names, names), Recipe("simple-cnn"), []
    for seed in range(members):
        net = recipe.build_net(SHAPE, plain.CLASSES, unknown=True, seed=seed)
        model = NetPredictor(net, CrossEntropy(), view=View(scale=1 / 255))
        voters.append(Voter(model, Card(seed, 1), standing))
    ensemble = Ensemble(voters, names, Sum())

    def vote(lap: Lap) -> None:
        ensemble.scores(x)

    return Job(vote, members * images)


def job(cell: str, variant: str, small: bool) -> Job:
    """All images for us; a tenth for plain torch, whose cost of an image is always the same."""
    images = IMAGES // 20 if small else IMAGES
    if variant in PLAINS:
        return _plain(MEMBERS // (4 if small else 1), images // 10, layout(variant))
    return _ours(MEMBERS, images)


TABLE = Table(
    name="votes",
    title="A vote",
    unit="member-images",
    cells={"simple-cnn": f"{MEMBERS} members, {IMAGES:,} images of 3x32x32"},
    variants=(*PLAINS, OURS),
    opponents=PLAINS,
    job=job,
    rounds=5,
    memory=True,
)
