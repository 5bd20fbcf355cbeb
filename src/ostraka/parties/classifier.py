"""`ostraka.OpenSetClassifier`: one owner's open-set network, used as those of scikit-learn.

    classifier = ostraka.OpenSetClassifier().fit(x, y)
    classifier.predict(x)           # classes of y, or `classifier.unknown_`

It is trained as FedOV's members are, and is one: `member_` can be saved and vote with others.
"""

from dataclasses import replace
from typing import Any, Self, final

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import Tensor

from ostraka.core.kind import KINDS, Kind
from ostraka.core.member import Member, Model
from ostraka.core.net import Recipe
from ostraka.core.objective import Objective
from ostraka.core.party import Party, PartyRef
from ostraka.core.predictor import Placed, Predictor, Promise, Scores
from ostraka.core.samples import Samples, View
from ostraka.core.settings import choice
from ostraka.data.dataset import LARGEST, PIXELS, channels_first
from ostraka.data.standardise import statistics
from ostraka.engines.threads import one_thread
from ostraka.errors import ConfigError, choices
from ostraka.evaluation.placing import placed_on
from ostraka.methods.fedov import SHORT, WIDE
from ostraka.registry import NETS, OBJECTIVES
from ostraka.runs.promise import NEVER
from ostraka.voting.training import Terms, train_member

AUTO = "auto"
NUMBER, WORD = -1, "unknown"
"""What unknown is called among classes that are numbers, and among others."""


@final
class OpenSetClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A network that tells the classes it was trained on, and says of other samples that it does
    not know them.

    Samples are rows [N, D], images [N, H, W], [N, H, W, C] or [N, C, H, W], or, with
    `kind="sound"`, features of recordings [N, frames, coefficients]. After `fit`, `classes_` are
    the classes, `unknown_` is what unknown samples are answered with, `promise_` says how often a
    sample of a known class will be, and `member_` can be stored and vote with others.

    Parameters: `unknown_rate`, the share of samples of known classes that may be called unknown
    (None: it never answers so); `unknown`, what is then answered (auto: -1, or the next smaller
    number that is no class, among numbers; "unknown" among names); `epochs`, `lr`, `batch`, the
    training; `hold_out`, the share of each class that places the threshold; `net` and `objective`,
    by name; `name` of the owner on its member; `random_state`.
    """

    def __init__(
        self,
        *,
        unknown_rate: float | None = 0.05,
        unknown: Any = AUTO,
        epochs: int = SHORT.epochs,
        lr: float = SHORT.lr,
        batch: int = SHORT.batch,
        hold_out: float = 0.1,
        kind: str = AUTO,
        net: str = AUTO,
        objective: Any = None,
        name: str = "",
        random_state: Any = 0,
    ) -> None:
        self.unknown_rate = unknown_rate
        self.unknown = unknown
        self.epochs = epochs
        self.lr = lr
        self.batch = batch
        self.hold_out = hold_out
        self.kind = kind
        self.net = net
        self.objective = objective
        self.name = name
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Train on samples and their classes."""
        X, y = validate_data(self, X, y, allow_nd=True)
        check_classification_targets(y)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        self.classes_, labels = np.unique(y, return_inverse=True)
        self.unknown_ = self._unknown_name()
        self.shape_in_ = X.shape[1:]
        samples = self._samples(X, torch.as_tensor(labels, dtype=torch.int64))
        training = {name: getattr(self, name) for name in ("epochs", "lr", "batch")}
        own = {name: value for name, value in training.items() if value != getattr(SHORT, name)}
        terms = Terms(SHORT.changed(**own), "counts", self.hold_out)
        party = Party(PartyRef(0, len(samples), self.name), samples)
        with one_thread():
            self.member_: Member = train_member(self._model(samples), terms, party, seed)
            self.predictor_, self.promise_ = self._placed(samples)
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """The class of each sample, or `unknown_`."""
        scores = self._scores(X)
        closed = self.classes_[scores.closed.numpy()]
        refused = (scores.unknown > scores.threshold).numpy()
        if not refused.any():
            return np.asarray(closed)
        if closed.dtype.kind not in "iuf" and closed.dtype.kind not in "US":
            closed = closed.astype(object)
        return np.where(refused, np.asarray(self.unknown_, _kind(closed, self.unknown_)), closed)

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """How likely each class is, if the sample is of one of them [N, classes]."""
        shares: NDArray[np.float64] = self._scores(X).known.double().softmax(dim=1).numpy()
        return shares

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Scores of the classes [N, classes], the largest for the likeliest; of two classes, by how
        much the second is ahead [N].
        """
        known: NDArray[np.float64] = self._scores(X).known.double().numpy()
        return known[:, 1] - known[:, 0] if known.shape[1] == 2 else known

    def score_samples(self, X: Any) -> NDArray[np.float64]:
        """How usual each sample is [N]: the lower, the more unknown."""
        usual: NDArray[np.float64] = -self._scores(X).unknown.double().numpy()
        return usual

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The share of right answers; of a class that it was not trained on, unknown is right."""
        truth = np.asarray(y)
        strange = ~np.isin(truth, self.classes_)
        if strange.any():
            truth = truth.astype(object)
            truth[strange] = self.unknown_
        answers = self.predict(X)
        right = np.array([a == b for a, b in zip(truth, answers, strict=True)])
        return float(accuracy_score(np.ones(len(right)), right, sample_weight=sample_weight))

    def _scores(self, X: Any) -> Scores:
        check_is_fitted(self)
        X = validate_data(self, X, allow_nd=True, reset=False)
        if X.shape[1:] != self.shape_in_:
            raise ValueError(
                f"one sample has the shape {X.shape[1:]}, but this classifier was fitted on "
                f"samples of {self.shape_in_}"
            )
        stored = self._stored(X)
        with one_thread(), torch.no_grad():
            return self.predictor_.scores(stored)

    def _placed(self, samples: Samples) -> tuple[Predictor, Promise]:
        """The network with its threshold, by held-out samples, or, if these are too few, by all of
        its own, of which nothing can be promised.
        """
        alone = self.member_.predictor()
        if self.unknown_rate is None:
            return Placed(alone, float("inf")), NEVER
        if not 0 < self.unknown_rate < 1:
            raise ConfigError(
                f"unknown_rate is {self.unknown_rate}; give a share above 0 and below 1, or None"
            )
        placed, promise = alone.keeping(self.unknown_rate)
        if promise.rate is None:
            placed, _ = placed_on(alone, samples, self.unknown_rate, "own")
        return placed, promise

    def _model(self, samples: Samples) -> Model:
        goal = WIDE if self.objective is None else self.objective
        if not isinstance(goal, Objective):
            goal = choice(goal, OBJECTIVES, "objective")
        net = self.net
        if net == AUTO:
            large = samples.view.kind != "table" and min(samples.shape[1:]) >= 16
            net = "simple-cnn" if large else "mlp"
        classes = tuple(str(name) for name in self.classes_)
        goal.check_samples(samples.view.kind, samples.shape)
        return Model(classes, samples.shape, Recipe(NETS.canonical(net), {}), goal, samples.view)

    def _samples(self, X: NDArray[Any], labels: Tensor) -> Samples:
        kind = self._kind(X)
        stored = self._stored(X)
        if stored.dtype == torch.uint8:
            return Samples(stored, labels, view=replace(PIXELS, kind=kind))
        plain = Samples(stored, labels, view=View(kind=kind))
        mean, std = statistics(plain)
        return replace(plain, view=replace(plain.view, mean=mean, std=std))

    def _kind(self, X: NDArray[Any]) -> Kind:
        if self.kind == AUTO:
            return "table" if X.ndim == 2 else "image"
        for kind in KINDS:
            if kind == self.kind:
                return kind
        raise ConfigError(f"kind is {self.kind!r}; kinds: auto, {choices(KINDS)}")

    def _stored(self, X: NDArray[Any]) -> Tensor:
        """Samples as networks are given them: bytes of images, else floats."""
        kind = self._kind(X)
        values = channels_first("X", X, kind) if kind != "table" else X
        if kind == "image" and values.dtype == np.uint8:
            return torch.from_numpy(np.array(values))
        if np.abs(values).max(initial=0.0) > LARGEST:
            raise ValueError(f"X has values beyond {LARGEST:g}; rescale them")
        return torch.from_numpy(np.array(values, dtype=np.float32))

    def _unknown_name(self) -> Any:
        """What unknown is called, which no class may be."""
        given, classes = self.unknown, self.classes_
        number = classes.dtype.kind in "iuf"
        if isinstance(given, str) and given == AUTO:
            given = (
                min(NUMBER, classes.min() - 1 if NUMBER in classes else NUMBER) if number else WORD
            )
        if given in classes.tolist():
            raise ConfigError(
                f"unknown samples would be answered with {given!r}, which is a class; give another "
                "name (unknown=...)"
            )
        return given


def _kind(closed: NDArray[Any], unknown: Any) -> Any:
    """The type of an array that holds the name of unknown beside these classes."""
    if closed.dtype.kind in "US":
        return None
    return closed.dtype if np.can_cast(np.min_scalar_type(unknown), closed.dtype) else object
