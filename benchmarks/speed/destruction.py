"""Data destruction alone, in images per CPU-second."""

from benchmarks.speed import image_by_image, plain
from benchmarks.speed.steps import SHAPES
from benchmarks.speed.table import OURS, Job, Table

ONE_BY_ONE = "image by image"
MIXES = {"fedov": "the paper's mix", "wide": "the mix wide (beside the paper's, image by image)"}


def job(cell: str, variant: str, small: bool) -> Job:
    """Destroy random images: as many at once as training does."""
    mix, size = cell.split(" ")
    x = plain.images(SHAPES[size], 8 * 1024)[0].float() / 255
    if variant == ONE_BY_ONE:
        part = x[:1024]
        return Job(lambda lap: image_by_image.destroy(part), len(part))

    import torch

    from ostraka.objectives.destruction import destroy

    rng = torch.Generator().manual_seed(0)
    return Job(lambda lap: [destroy(part, rng, mix) for part in x.split(1024)], len(x))


TABLE = Table(
    name="destruction",
    title="Data destruction",
    unit="images",
    cells={f"{mix} {size}": f"{words}, {size}" for mix, words in MIXES.items() for size in SHAPES},
    variants=(ONE_BY_ONE, OURS),
    opponents=(ONE_BY_ONE,),
    job=job,
)
