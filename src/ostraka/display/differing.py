"""In what a cell of a grid differs from the experiment of a paper: `ours for theirs`.

The papers' training is as their text has it; what a paper leaves open is not compared.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from ostraka.runs.config import Config
from ostraka.runs.rows import settings_of
from ostraka.runs.start import HALF_TEST

PLAIN = {"local.least_steps": 0, "local.least_class_steps": 0, "local.least_batches": 1}
"""Epochs and batches as they are, on few samples too."""
FEDOV = {
    "local.epochs": 200,
    "local.most_steps": 0,
    "local.class_steps": 0,
    "local.batch": 64,
    "local.lr": 0.001,
    "hold_out": 0.0,
    "local.schedule": "constant",
    "objective.outliers": "destruction",
    "objective.steps": 5,
    "objective.size": 0.002,
    "ballot.name": "sum",
    "seeds": 3,
    **PLAIN,
}
DEDES = {
    "local.epochs": 200,
    "local.most_steps": 0,
    "local.class_steps": 0,
    "local.lr": 0.1,
    "local.optimiser": "sgd",
    "hold_out": 0.125,
    "local_test": 0.2,
    "keep": "best",
    "ballot.name": "plurality",
    **PLAIN,
}
FEDPD = {"local.epochs": 1, "local.batch": 32, "local.lr": 0.01, "open_lr": 0.0001, **PLAIN}

TRAINING: dict[str, Mapping[str, Any]] = {
    "fedov": FEDOV,
    "fedov-11": {**FEDOV, "ballot.name": "top-k"},
    "fedov-13": {**FEDOV, "ballot.name": "top-k"},
    "fedov-14": {**FEDOV, "local.epochs": 100},
    "fedov-18": {**FEDOV, "local.epochs": 100},
    "fedova": {"local.epochs": 5, "local.batch": 15, "fraction": 0.2, **PLAIN},
    "fedos": {"local.epochs": 1, "local.lr": 0.1, "fraction": 0.2, **PLAIN},
    "fedos-1": {},
    "fedpd": FEDPD,
    "fedpd-2": {**FEDPD, "local.epochs": 5, "local.batch": 128, "local.lr": 0.1, "open_lr": 0.001},
    "dedes": DEDES,
}
"""What the text of a paper, or of one of its tables, says of training, in our settings."""

WORDS = {
    "local.epochs": "epochs",
    "local.most_steps": "steps at most",
    "local.class_steps": "steps at most for each class",
    "local.least_steps": "minimum of steps",
    "local.least_class_steps": "minimum of steps for each class",
    "local.batch": "batch",
    "local.least_batches": "minimum of batches",
    "local.lr": "learning rate",
    "local.optimiser": "optimiser",
    "local.schedule": "schedule",
    "objective.outliers": "outliers",
    "objective.steps": "adversarial steps",
    "objective.size": "adversarial step size",
    "ballot.name": "ballot",
    "fraction": "share of the parties in a round",
    "hold_out": "share held out by parties",
    "local_test": "parties' own share of test samples",
    "keep": "model of the training that is kept",
    "open_lr": "open-set learning rate",
}

COMPARED = {
    "method", "parties", "known", "known_classes", "train_per_class", "public", "rounds",
    "net.name", "objective.name", "select.name", "select.size",
}  # fmt: skip
"""Settings that the look-up of a published figure has compared already, or with words here."""

CHOICES = ("objective", "ballot", "select")
"""Settings that name something with settings of its own."""


def differences(config: Config, method: Any, table: str, seeds: int) -> Iterator[str]:
    """In what a cell is not the experiment of a paper's table, besides what was looked up.

    `seeds`: how many seeds of it finished.
    """
    settings, public = settings_of(config), method.needs.public
    theirs = TRAINING.get(table, TRAINING[table.partition("-")[0]])
    if config.train_per_class is not None:
        yield f"training samples per class: {config.train_per_class} for all"
    if config.public == HALF_TEST and not public:
        yield "test samples: half for all"
    if public and config.public != HALF_TEST and table.startswith("fedov"):
        yield f"public samples: {config.public or 'none'} for half of the test samples"
    passes = method.rounds if method.pooled else 1  # pooled, rounds only multiply the epochs
    # the defaults of the method, and of what was chosen in place of its own choices
    usual = settings_of(Config(method=config.method))
    chosen = {group: f"{group}.name" for group in CHOICES}
    other = {
        group: {"name": settings.get(name)}
        for group, name in chosen.items()
        if usual.get(name) != settings.get(name)
    }
    usual = settings_of(Config(method=config.method, set=other)) if other else usual
    for key, value in theirs.items():
        own = seeds if key == "seeds" else settings.get(key)
        if key == "local.epochs":
            own = None if "local.steps" in settings or own is None else own * passes
        if own is None or own == value or _idle(key, method):
            continue
        if key != "objective.outliers" or own == "auto" or own != usual.get(key):
            yield f"{WORDS.get(key, key)}: {own or 'none'} for {value or 'none'}"
    others = [
        f"{key}={value}"
        for key, value in settings.items()
        if usual.get(key) != value and key not in COMPARED and key not in theirs
    ]
    if others:
        yield f"set: {', '.join(others)}"


def _idle(key: str, method: Any) -> bool:
    """Whether another setting leaves this one without effect."""
    if key == "hold_out":
        return not (getattr(method, "scored", False) or method.objective.refuses)
    adversarial = key in ("objective.steps", "objective.size")
    return adversarial and not method.objective.w_adversarial
