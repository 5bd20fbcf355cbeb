"""Training of a generator at the server: DCGAN on unlabelled images, once, before any federation.

Stopped in any way and begun again with the same settings, it goes on where it was, and the result
is the same to the bit: all that is random follows from the seed, the epoch and the step, and the
two networks with their optimisers are saved beside the result.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from ostraka import __version__
from ostraka.core.digest import digest_of
from ostraka.core.generator import TrainedGenerator
from ostraka.core.net import params_of
from ostraka.core.samples import Samples
from ostraka.core.seeds import seeded, torch_rng
from ostraka.core.settings import Settings, setting, values_of
from ostraka.data.images import load_images
from ostraka.engines.threads import one_thread
from ostraka.errors import ConfigError, Interrupted, StoreError
from ostraka.nets.generator import DCDiscriminator, DCGenerator, check_image
from ostraka.objectives.gan import BETAS, Trainee
from ostraka.runs.generator import span_of
from ostraka.store.desk import Place
from ostraka.store.files import retire, sweep
from ostraka.store.generator import read_generator, save_generator

LEAST_IMAGES = 64
EXAMPLE = "generator.safetensors"


@dataclass(frozen=True)
class GeneratorSettings(Settings):
    """How a generator is trained; the defaults are FedOS's, but for the epochs."""

    epochs: int = setting(25, "passes over the images", span="[1, inf)")
    batch: int = setting(128, "images per step; a last, smaller batch is left out", span="[2, inf)")
    latent: int = setting(25, "random numbers that an image is made from", span="[1, 1024]")
    width: int = setting(16, "channels of the generator's narrowest layer", span="[1, 128]")
    judge_width: int = setting(32, "channels of the discriminator's first layer", span="[1, 512]")
    lr: float = setting(4e-4, "learning rate of the generator", span="(0, inf)")
    judge_lr: float = setting(2e-4, "learning rate of the discriminator", span="(0, inf)")
    images: int | None = setting(None, "how many images, drawn at random", span="[1, inf)")
    seed: int = setting(0, "seed of everything random", span="(-inf, inf)")


@dataclass(frozen=True)
class Told:
    """Where a training is: epochs behind, the last epoch's mean losses."""

    epoch: int
    epochs: int
    judge_loss: float
    loss: float


Tell = Callable[[Told], None]


def train_generator(
    data: str,
    out: str | Path,
    data_dir: str | None = None,
    tell: Tell | None = None,
    save_seconds: float = 20.0,
    **settings: Any,
) -> TrainedGenerator:
    """Train a generator on the training images of `data` (labels are not looked at) and write it.

    `data` is the name of a data set, or a file: any that a run reads, or images alone, as .npy or
    as .npz without labels. `settings` are those of `GeneratorSettings`. Half-finished work lies
    beside `out`, as OUT.progress, and is resumed. A generator that the same call has finished
    before is returned as it is; any other file is never overwritten.
    """
    chosen, out = GeneratorSettings(**settings), Path(out)
    if out.is_dir():  # said before the training, not behind it
        raise ConfigError(f"{out} is a folder; give a file in it, such as {out / EXAMPLE}")
    images, mark, classes = load_images(data, data_dir)
    check_image(images.shape)
    images = _some(images, chosen)
    told = {"data": data, "classes": list(classes), "fingerprint": mark, "version": __version__}
    about = {**told, **values_of(chosen), "images": len(images)}
    if out.exists():
        return _finished(out, about)
    made_of = {"settings": values_of(chosen), "images": mark, "version": __version__}
    place = Place(
        out.with_name(out.name + ".progress"),
        {"what": "training of a generator", "run": digest_of(made_of)},
    )
    sweep(out.parent, place.path.name)
    with one_thread(), seeded(chosen.seed, "generator"):
        training = _Training(images, chosen, place, tell or (lambda told: None), save_seconds)
        try:
            training.run()
        except KeyboardInterrupt:
            if place.exists():
                goes_on = "the same command goes on where it was last saved"
            else:
                goes_on = f"nothing was saved in its first {save_seconds:g} seconds, so the same "
                goes_on += "command begins anew"
            raise Interrupted(f"stopped; {goes_on}") from None
    low, high = training.span
    made = save_generator(
        out,
        TrainedGenerator(
            shape=images.shape,
            latent=chosen.latent,
            width=chosen.width,
            low=low,
            high=high,
            params=params_of(training.maker.module),
            about=about,
        ),
    )
    retire(place.path)
    return made


def _finished(out: Path, about: Mapping[str, Any]) -> TrainedGenerator:
    """The generator that the same training has left there."""
    try:
        made = read_generator(out)
    except StoreError:
        made = None
    if made is None or made.about != about:
        raise ConfigError(
            f"{out} is there already, and is not what this training would write. Choose another "
            "--out, or delete it"
        )
    return made


def _some(images: Samples, chosen: GeneratorSettings) -> Samples:
    """As many images as were asked for, drawn at random."""
    count = len(images) if chosen.images is None else chosen.images
    if not max(chosen.batch, LEAST_IMAGES) <= count <= len(images):
        raise ConfigError(
            f"a generator is trained on {count} images here; give between "
            f"{max(chosen.batch, LEAST_IMAGES)} (a batch, and {LEAST_IMAGES}) and {len(images)}, "
            "which are there"
        )
    order = torch.randperm(len(images), generator=torch_rng(chosen.seed, "images"))
    return images if chosen.images is None else images.take(order[:count].sort().values)


@dataclass
class _Training:
    """The two networks, and where they are."""

    images: Samples
    chosen: GeneratorSettings
    place: Place
    tell: Tell
    save_seconds: float
    epoch: int = 0
    step: int = 0
    sums: list[float] = field(default_factory=lambda: [0.0, 0.0])

    def __post_init__(self) -> None:
        shape, chosen = self.images.shape, self.chosen
        self.maker = Trainee(DCGenerator(shape, chosen.latent, chosen.width), chosen.lr, BETAS)
        judge = DCDiscriminator(shape, chosen.judge_width)
        self.judge = Trainee(judge, chosen.judge_lr, BETAS)
        self.span = _span(self.images)
        self.saved_at = time.monotonic()

    def run(self) -> None:
        """All remaining epochs."""
        self._restore()
        while self.epoch < self.chosen.epochs:
            self._one_epoch()

    def _one_epoch(self) -> None:
        chosen = self.chosen
        order = torch.randperm(
            len(self.images), generator=torch_rng(chosen.seed, "order", self.epoch)
        )
        steps = len(self.images) // chosen.batch
        for step in range(self.step, steps):
            rows = order[step * chosen.batch : (step + 1) * chosen.batch]
            rng = torch_rng(chosen.seed, "noise", self.epoch, step)
            noise = torch.randn(chosen.batch, chosen.latent, generator=rng)
            for place, loss in enumerate(self._one_step(self._seen(rows), noise)):
                self.sums[place] += loss
            self.step = step + 1
            if self.step < steps:
                self._save_now_and_then()
        told = Told(self.epoch + 1, chosen.epochs, self.sums[0] / steps, self.sums[1] / steps)
        self.epoch, self.step, self.sums = self.epoch + 1, 0, [0.0, 0.0]
        if self.epoch < chosen.epochs:
            self._save_now_and_then()
        self.tell(told)

    def _one_step(self, real: Tensor, noise: Tensor) -> tuple[float, float]:
        """One step of the discriminator, one of the generator, both by cross-entropy."""
        with self.maker.awake():
            fakes = self.maker.module(noise)
            with self.judge.awake():
                judge = self.judge.module
                doubt = _real(judge(real)) + _unreal(judge(fakes.detach()))
                self.judge.descend(doubt)
            wish = _real(self.judge.module(fakes))
            self.maker.descend(wish)
        return float(doubt.detach()), float(wish.detach())

    def _seen(self, rows: Tensor) -> Tensor:
        """Images with values from -1 to 1."""
        low, high = self.span
        scaled = self.images.stored(rows).float().mul_(self.images.view.scale)
        return scaled.sub_(low).mul_(2 / (high - low)).sub_(1)

    def _save_now_and_then(self) -> None:
        if time.monotonic() - self.saved_at < self.save_seconds:
            return
        self.place.save(
            {
                "maker": self.maker.state(),
                "judge": self.judge.state(),
                "epoch": self.epoch,
                "step": self.step,
                "sums": list(self.sums),
            }
        )
        self.saved_at = time.monotonic()

    def _restore(self) -> None:
        if not self.place.exists():
            return
        try:
            saved = self.place.load()
        except StoreError:
            raise ConfigError(
                f"{self.place.path} is half of a training that was begun with other settings, "
                "images or another version, or it is damaged; repeat the command that it was begun "
                "with, choose another --out, or remove it to begin anew"
            ) from None
        self.maker.load(saved["maker"])
        self.judge.load(saved["judge"])
        self.epoch, self.step, self.sums = saved["epoch"], saved["step"], list(saved["sums"])


def _real(odds: Tensor) -> Tensor:
    """Cross-entropy of the answer *real*."""
    return F.softplus(-odds).mean()


def _unreal(odds: Tensor) -> Tensor:
    """Cross-entropy of the answer *not real*."""
    return F.softplus(odds).mean()


def _span(images: Samples) -> tuple[float, float]:
    """The least and the greatest value, which must differ."""
    low, high = span_of(images)
    if not low < high:
        raise ConfigError(f"all values of these images are {low:g}; there is nothing to learn")
    return low, high
