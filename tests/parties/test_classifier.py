"""The classifier: scikit-learn's own checks, and what is different about unknown."""

import pickle
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import cross_val_score
from sklearn.utils.estimator_checks import check_estimator

import ostraka
from ostraka.errors import ConfigError
from ostraka.parties.classifier import OpenSetClassifier
from ostraka.parties.ensemble import Ensemble
from ostraka.store.member import save_member

QUICK: dict[str, Any] = {
    "epochs": 12,
    "lr": 0.01,
    "objective": {"name": "fedov", "outliers": "none"},
}
ROUNDS = "sums of 32-bit numbers differ in their last digits with the size of a batch"
NO_CLASS = "predict may answer unknown, which is no class, so it is not always the likeliest one"
EXPECTED = {
    "check_methods_subset_invariance": ROUNDS,
    "check_methods_sample_order_invariance": ROUNDS,
}
OPEN = {
    "check_classifiers_train": NO_CLASS,
    "check_classifiers_classes": NO_CLASS,
    "check_classifiers_one_label": "of ten samples of one class any other sample may be unknown",
}


@pytest.mark.parametrize(
    ("rate", "expected"), [(None, EXPECTED), (0.05, EXPECTED | OPEN)], ids=["closed", "open"]
)
def test_scikit_learns_own_checks(rate: float | None, expected: dict[str, str]) -> None:
    classifier = OpenSetClassifier(unknown_rate=rate, **QUICK)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = check_estimator(
            classifier, expected_failed_checks=expected, on_skip=None, on_fail=None
        )
    assert len(found) > 45
    failed = {one["check_name"]: one["exception"] for one in found if one["status"] == "failed"}
    assert failed == {}
    assert sum(one["status"] == "passed" for one in found) >= 45


@pytest.fixture(scope="module")
def blobs() -> tuple[np.ndarray, np.ndarray]:
    """Three groups far apart, the third of which is not trained on."""
    x, y = make_blobs(300, centers=[(0, 0), (6, 0), (3, 30)], cluster_std=0.6, random_state=0)
    return x, y


@pytest.fixture(scope="module")
def fitted(blobs: tuple[np.ndarray, np.ndarray]) -> OpenSetClassifier:
    x, y = blobs
    return OpenSetClassifier(epochs=30, hold_out=0.2).fit(x[y < 2], y[y < 2])


def test_other_samples_are_unknown(fitted: OpenSetClassifier, blobs: Any) -> None:
    x, y = blobs
    assert fitted.classes_.tolist() == [0, 1]
    assert fitted.unknown_ == -1
    answers = fitted.predict(x)
    assert (answers[y == 2] == -1).mean() > 0.9
    assert (answers[y < 2] == y[y < 2]).mean() > 0.85
    # what is usual is scored above what is not: the sign
    assert fitted.score_samples(x[y < 2]).mean() > fitted.score_samples(x[y == 2]).mean()
    assert fitted.promise_.rate == 0.05
    assert fitted.score(x, y) == pytest.approx((np.where(y == 2, -1, y) == answers).mean())


def test_shares_and_scores_agree(fitted: OpenSetClassifier, blobs: Any) -> None:
    x, _ = blobs
    shares, ahead = fitted.predict_proba(x), fitted.decision_function(x)
    assert shares.shape == (300, 2)
    assert ahead.shape == (300,)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    assert ((ahead > 0) == (shares[:, 1] > 0.5)).all()


def test_it_never_answers_unknown_without_a_rate(blobs: Any) -> None:
    x, y = blobs
    closed = OpenSetClassifier(unknown_rate=None, **QUICK).fit(x[y < 2], y[y < 2])
    assert set(closed.predict(x)) == {0, 1}
    assert closed.promise_.why == "it never answers unknown"


@pytest.mark.parametrize(
    ("labels", "unknown"),
    [
        (["cat", "dog"], "unknown"),
        ([-1, 1], -2),
        ([3, 8], -1),
        ([0.0, 2.0], -1),
        ([False, True], "unknown"),
    ],
)
def test_what_unknown_is_called(labels: list[Any], unknown: Any) -> None:
    x = np.repeat(np.eye(2), 10, axis=0)
    y = np.repeat(np.array(labels), 10)
    classifier = OpenSetClassifier(epochs=1, objective=QUICK["objective"]).fit(x, y)
    assert classifier.unknown_ == unknown
    classifier.predictor_ = type(classifier.predictor_)(classifier.predictor_.inner, -1e9)
    assert set(classifier.predict(x).tolist()) == {unknown}
    assert classifier.score(x, y) == 0.0


def test_names_for_unknown_that_are_taken_are_refused() -> None:
    x, y = np.eye(2), np.array(["unknown", "dog"])
    with pytest.raises(ConfigError, match="'unknown', which is a class"):
        OpenSetClassifier(epochs=1).fit(x, y)
    renamed = OpenSetClassifier(epochs=1, unknown="?", objective=QUICK["objective"]).fit(x, y)
    assert renamed.unknown_ == "?"


def test_images_of_bytes_and_of_floats() -> None:
    rng = np.random.default_rng(0)
    x = rng.integers(0, 60, (40, 8, 8)).astype(np.uint8)
    y = np.repeat(["low", "high"], 20)
    x[:20, :4] += 150
    x[20:, 4:] += 150
    for given in (x, x[:, None], np.repeat(x[..., None], 3, axis=3), x / 255.0):
        classifier = OpenSetClassifier(unknown_rate=None, **QUICK).fit(given, y)
        assert classifier.score(given, y) > 0.9
        assert classifier.member_.model.view.kind == "image"
    with pytest.raises(ValueError, match="was fitted on"):
        classifier.predict(x[:, :, :4] / 255.0)
    with pytest.raises(ConfigError, match="kind is 'film'; kinds: auto, image"):
        OpenSetClassifier(kind="film").fit(x, y)


def test_it_can_be_cloned_pickled_and_searched(fitted: OpenSetClassifier, blobs: Any) -> None:
    x, y = blobs
    again = pickle.loads(pickle.dumps(fitted))
    assert (again.predict(x) == fitted.predict(x)).all()
    assert clone(fitted).get_params() == fitted.get_params()
    with pytest.raises(NotFittedError):
        clone(fitted).predict(x)
    scores = cross_val_score(OpenSetClassifier(**QUICK), x[y < 2], y[y < 2], cv=2)
    assert scores.min() > 0.8


def test_its_member_votes_with_others(tmp_path: Path, blobs: Any) -> None:
    x, y = blobs
    names = np.array(["west", "east", "north"])[y]
    files = []
    for i, pair in enumerate((("west", "east"), ("east", "north"))):
        mine = np.isin(names, pair)
        classifier = ostraka.OpenSetClassifier(epochs=20, name=f"owner {i}", random_state=i)
        files.append(tmp_path / f"{i}.member")
        save_member(files[-1], classifier.fit(x[mine], names[mine]).member_)
    ensemble = Ensemble(files)
    assert set(ensemble.classes) == {"west", "east", "north"}
    found = ensemble.evaluate(x, names)
    assert found.accuracy is not None
    assert found.accuracy > 90


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"unknown_rate": 2.0}, "unknown_rate is 2.0"),
        ({"epochs": 0}, "epochs"),
        ({"lr": -1.0}, "lr"),
        ({"net": "mlpp"}, "Did you mean 'mlp'"),
        ({"objective": "fedovv"}, "Did you mean 'fedov'"),
    ],
)
def test_settings_that_are_none_are_refused(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        OpenSetClassifier(**settings).fit(np.eye(4), np.array([0, 1, 0, 1]))
