"""The task file: what all parties agree on before any of them trains.

An organiser writes it once (`ostraka task init`), every party is handed the same one, and every
member that was trained by it can vote with the others. It is a TOML file that a person can read;
the comments in it are the words that stand beside the settings here.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from math import prod
from pathlib import Path
from typing import Any, Literal, final

from ostraka.core.augmentation import check_augment
from ostraka.core.digest import digest_of
from ostraka.core.kind import NORMED, Kind
from ostraka.core.net import Recipe
from ostraka.core.private import Private
from ostraka.core.samples import View
from ostraka.core.settings import Settings, build, setting, values_of
from ostraka.core.task import Task
from ostraka.data.dataset import PIXELS
from ostraka.data.names import flaw
from ostraka.data.own import Form
from ostraka.data.standardise import statistics
from ostraka.errors import ConfigError, OstrakaError, choices, shown
from ostraka.methods.panel import PanelMethod, VotingMethod
from ostraka.parties.samples import OwnData, collected
from ostraka.parties.task_text import comment, entry
from ostraka.registry import METHODS
from ostraka.runs.config import Config, NetChoice, build_method, read_toml, with_dots
from ostraka.runs.memory import outline
from ostraka.runs.plan import check_objectives, recipe_of
from ostraka.store.codec import write_atomically
from ostraka.store.member_card import CLASSES, SAMPLE, TEXT

FORMAT = 1
HEAD = (
    "A task of ostraka: what all parties agree on before any of them trains. Hand the same file to "
    "every party; each then runs: ostraka train DATA --task FILE --out NAME.member"
)

Telling = Literal["size", "counts", "bands", "statistics"]


def _needed(doc: str) -> Any:
    return field(metadata={"doc": doc})


@final
@dataclass(frozen=True, kw_only=True)
class TaskFile(Settings):
    """What a task file says. One that is made is valid: its method and its network were built."""

    format: int = setting(FORMAT, "The format of this file.", span="[1, inf)")
    classes: tuple[str, ...] = _needed(
        "The names of the known classes, those of all parties together, in the order of every "
        "network's outputs. A party's folders, labels or column values must have these names; it "
        "need not have all of them."
    )
    method: str = setting(
        "fedov", "How a party trains its member: any method or preset whose parties make members."
    )
    tell: Telling = setting(
        "counts",
        "What a party tells beside its weights: size (how many samples in all); counts (also how "
        "many of each class, and how its network answers samples held out of training); bands (as "
        "counts, but only <10, 10-99, 100-999 or >=1000 of each class); statistics (as counts, and "
        "where its classes lie in its network).",
    )
    rare: int = setting(
        10,
        "A class with fewer samples than this may identify people: a party leaves it out, unless "
        "it decides otherwise (--keep-rare).",
        span="[0, inf)",
    )
    unknown_rate: float = setting(
        0.05,
        "The share of samples of known classes that may be called unknown, where the threshold is "
        "placed.",
        span="(0, 1)",
    )
    standardise: Literal["own", "task", "off"] = setting(
        "own",
        "Tables and sound are shown to networks with mean 0 and deviation 1: by the party's own "
        "samples (own: these means and deviations are then in its file), by mean and std of this "
        "file (task), or not at all (off). Images are shown as 0 to 1 (own and off).",
    )
    mean: tuple[float, ...] = setting(
        (), "With standardise = task: one number for each channel, feature or coefficient."
    )
    std: tuple[float, ...] = setting((), "Likewise the deviations.")
    augment: str = setting(
        "none",
        "How training samples are changed at random (ostraka list augmentations); none: they are "
        "not.",
    )
    form: Form = _needed(
        "One sample. kind: image, table or sound. shape: [channels, height, width], [features] or "
        "[1, frames, coefficients]; samples of another shape are brought to it or refused. Tables: "
        "label (the column with the class) and columns (those that are used, in this order; with "
        "levels: a category). Sound: rate, samples per second."
    )
    net: NetChoice = setting(
        NetChoice(), "The network (ostraka list nets); auto: simple-cnn for images, mlp else."
    )
    set: Mapping[str, Any] = field(
        default_factory=dict,
        metadata={"doc": "Settings of the method (ostraka list settings NAME); empty: its own."},
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.format != FORMAT:
            raise ConfigError(
                f"its format is {self.format}; this version reads {FORMAT}: update ostraka, or "
                "write the task anew"
            )
        self._check_classes()
        if self.form.kind is None or self.form.shape is None:
            raise ConfigError("the form needs a kind and a shape, such as image and [1, 28, 28]")
        if prod(self.shape) > SAMPLE:
            raise ConfigError(
                f"the shape {list(self.shape)} has {prod(self.shape):,} values; a member file "
                f"takes samples of at most {SAMPLE:,}: give a smaller one"
            )
        check_augment(self.augment, self.kind)
        self._check_statistics()
        task = self.task(self.view())
        check_objectives(self.build_method(), task)
        outline(task)  # a network that does not fit the shape is said now

    def _check_classes(self) -> None:
        wrong = flaw(self.classes, "class") or next(
            (
                f"the class {name[:40]!r} has a name of more than {TEXT} characters, or with some "
                "that cannot be printed"
                for name in self.classes
                if len(name) > TEXT or not name.isprintable() or name != name.strip()
            ),
            "",
        )
        if wrong or not 1 <= len(self.classes) <= CLASSES:
            wrong = wrong or f"there are {len(self.classes):,} classes"
            raise ConfigError(
                f"{wrong}; list 1 to {CLASSES:,} classes, each with a name of its own"
            )

    def _check_statistics(self) -> None:
        given, places = (len(self.mean), len(self.std)), self.shape[NORMED[self.kind]]
        wanted = (places, places) if self.standardise == "task" else (0, 0)
        if given != wanted:
            raise ConfigError(
                f"standardise is {self.standardise!r}, with {given[0]} means and {given[1]} "
                f"deviations; it takes {wanted[0]} of each here"
            )
        if self.std and min(self.std) <= 0:
            raise ConfigError(f"std has {min(self.std):g}; deviations are above 0")

    @property
    def kind(self) -> Kind:
        """What one sample is."""
        assert self.form.kind is not None
        return self.form.kind

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one sample."""
        assert self.form.shape is not None
        return self.form.shape

    @property
    def recipe(self) -> Recipe:
        """The network, by its own name."""
        return recipe_of(self.net, self.kind, self.shape)

    @property
    def digest(self) -> str:
        """Of all that is in the file: equal for parties that were handed the same."""
        return digest_of(self.as_dict(), size=8)

    def as_dict(self) -> dict[str, Any]:
        """Plain values, as the file has them."""
        return {**values_of(self), "form": self.form.values()}

    def view(self) -> View:
        """How stored values become inputs, as far as the task says it."""
        usual = PIXELS if self.kind == "image" else View()
        return replace(usual, kind=self.kind, mean=self.mean, std=self.std)

    def task(self, view: View) -> Task:
        """What a party's method is given, where networks see samples by `view`."""
        return Task(self.classes, self.shape, self.recipe, view=replace(view, augment="none"))

    def build_method(self, dp: Private | None = None) -> PanelMethod:
        """The method with its settings, and with what is to be told; with `dp`, with that promise.

        How votes are counted is for the group to say and no matter of a party's private training,
        so a ballot that wants class counts is no hindrance.
        """
        if "tell" in self.set:
            raise ConfigError("'tell' is a setting of the task itself; give it there, not in set")
        usual = build_method(Config(method=self.method))
        if not isinstance(usual, PanelMethod):
            able = [name for name in METHODS if issubclass(METHODS.get(name), PanelMethod)]
            raise ConfigError(
                f"the method {self.method!r} makes one model of all parties; a task needs one "
                f"whose parties make members of their own: {choices(able)}, or a preset of these"
            )
        told = "counts" if self.tell == "bands" else self.tell
        chosen = {**self.set, "tell": told}
        if dp is not None:
            chosen["dp"] = values_of(dp)
            chosen |= {"ballot": "sum"} if isinstance(usual, VotingMethod) else {}
        method: PanelMethod = build_method(Config(method=self.method, set=chosen))
        return method


def make_task(
    classes: Sequence[str] | None = None,
    *,
    data: OwnData | None = None,
    kind: Kind | None = None,
    shape: Sequence[int] | None = None,
    label: str | None = None,
    **values: Any,
) -> TaskFile:
    """A task, from the names of its classes and the kind and shape of its samples, or from `data`
    like those that the parties have (a path, a `Collection`, or arrays `(x, y)`).

    What is given goes before what the data says. `values` are other settings of a `TaskFile`, as
    its file has them: `method`, `tell`, `rare`, `set={"local.epochs": 5}`, `net="mlp"`, ...
    """
    form = Form(kind, None if shape is None else tuple(shape), label)
    if data is not None:
        held = collected(data, form)
        classes, form = classes or held.classes, held.form
        if values.get("standardise") == "task" and "mean" not in values:
            values["mean"], values["std"] = statistics(held.samples)
    if classes is None or form.kind is None or form.shape is None:
        raise ConfigError(
            "a task needs the names of its classes, the kind and the shape of its samples, or data "
            'to take them from: classes=["cat", "dog"], kind="image", shape=(1, 28, 28)'
        )
    if isinstance(values.get("net"), str):
        values["net"] = {"name": values["net"]}
    values["set"] = with_dots(values.get("set", {}))
    task = _built({**values, "classes": list(classes)}, form)
    # what auto stands for is said, so that it cannot become another with a later version
    return replace(task, net=NetChoice(task.recipe.name, task.net.options))


def _built(values: Mapping[str, Any], form: Form) -> TaskFile:
    if form.shape is None and form.columns:
        form = replace(form, shape=(form.width,))
    return build(TaskFile, {**values, "form": form}, owner="a task")


def load_task(path: str | Path) -> TaskFile:
    """Read a task file; anything in it that is not known, or does not fit, is refused."""
    values = read_toml(Path(path), "task", "task.toml")
    try:
        form = values.get("form", {})
        if not isinstance(form, Mapping):
            raise ConfigError(f"'form' is a table of settings; {shown(form)} was given")
        return _built(values, Form.of(form, "form."))
    except OstrakaError as error:
        raise ConfigError(f"the task {path}: {error}") from None


def save_task(path: str | Path, task: TaskFile) -> None:
    """Write a task file, with a comment for each line."""
    write_atomically(Path(path), task_text(task).encode(), mode=0o644)


def task_text(task: TaskFile) -> str:
    """The task as its file has it."""
    plain = task.as_dict()
    parts = [comment(HEAD)]
    for spec in fields(task):
        if spec.name in ("mean", "std") and not plain[spec.name]:
            continue
        parts.append(comment(spec.metadata["doc"]) + entry(spec.name, plain[spec.name]))
    return "\n".join(parts)
