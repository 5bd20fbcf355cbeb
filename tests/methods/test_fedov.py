"""FedOV as a method: it learns, says unknown, can be distilled.

What only the server uses retrains nothing.
"""

from pathlib import Path
from typing import Any

import pytest
import torch

from ostraka.errors import ConfigError, NeedError
from ostraka.methods.closed_voting import ClosedVoting
from ostraka.registry import PRESETS
from ostraka.runs.config import build_method, make
from ostraka.runs.loop import execute
from ostraka.runs.plan import make_plan
from ostraka.runs.record import RunDir, load_state
from ostraka.runs.results import Summary
from ostraka.store.member import load_member
from ostraka.voting.ensemble import Ensemble
from ostraka.voting.panel import Panel
from tests.methods.toy_line import TASK

LEARN = {
    "data": "fashion-4k",
    "known": 5,
    "parties": 5,
    "partition": "labels:2",
    "train_per_class": 150,
    "engine": "serial",
    "public": "half-test",
}
LOCAL = {
    "local": {"epochs": 50, "lr": 0.004, "schedule": "cosine", "batch": 32},
    "tell": "statistics",
}


def run(tmp: Path, method: str, shelf: Path | None = None, **settings: Any) -> Summary:
    plan = make_plan(make({**LEARN, "method": method, "set": {**LOCAL, **settings}}))
    return execute(plan, RunDir(tmp), shelf=shelf)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Members are trained once for all tests of this module."""
    folder = tmp_path_factory.mktemp("fedov")
    run(folder / "calibrated", "fedov", folder / "shelf")
    return folder


def test_open_members_beat_closed_ones_and_know_what_they_do_not_know(folder: Path) -> None:
    """Five parties with two of five classes each; five other classes are unknown.

    Chance is 20 % and an AUROC of 50.
    """
    closed = run(folder / "closed", "closed-voting")
    plain = run(folder / "sum", "fedov-sum", folder / "shelf")
    calibrated = RunDir(folder / "calibrated").finished()
    assert calibrated is not None
    assert plain.reused == 5, "another ballot needs no other members"
    assert plain.accuracy > closed.accuracy + 5
    assert calibrated.accuracy > closed.accuracy + 5
    assert calibrated.auroc > 60


def test_a_student_answers_nearly_as_the_vote_does(folder: Path) -> None:
    vote = RunDir(folder / "calibrated").finished()
    student = run(folder / "student", "fedov-distilled", folder / "shelf", distil={"epochs": 40})
    assert vote is not None
    assert student.reused == 5
    assert abs(student.accuracy - vote.accuracy) < 10
    _, panel = load_state(folder / "student")
    assert panel.student["fc3.weight"].shape[0] == 5, "a student has no unknown output"


def test_public_samples_tune_the_ballot(folder: Path) -> None:
    run(
        folder / "probe",
        "fedov",
        folder / "shelf",
        ballot={"name": "calibrated", "public": "probe"},
    )
    _, panel = load_state(folder / "probe")
    assert len(panel.tuned) == 5
    assert len(set(panel.tuned)) == 5


def test_members_are_files_that_vote_as_the_run_did(folder: Path) -> None:
    config, state = load_state(folder / "calibrated")
    plan = make_plan(config)
    files = sorted((folder / "calibrated" / "members").glob("*.safetensors"))
    members = [load_member(path) for path in files]
    assert [m.card.party for m in members] == [0, 1, 2, 3, 4]
    assert members[0].card.counts == tuple(plan.counts[0])
    x = plan.test.samples.stored(slice(0, 50))
    one = plan.method.predictor(plan.task, state)
    two = Ensemble.of(members, plan.method.ballot, junk=state.junk)  # type: ignore[attr-defined]
    assert torch.equal(one.scores(x).known, two.scores(x).known)


def test_an_ensemble_of_one_is_its_member(folder: Path) -> None:
    config, state = load_state(folder / "calibrated")
    plan = make_plan(config)
    method = build_method(make({"method": "fedov-sum"}))
    (alone,) = method.members(plan.task, Panel(state.members[:1]))
    x = plan.test.samples.stored(slice(0, 50))
    scores, vote = alone.predictor().scores(x), Ensemble.of([alone], method.ballot).scores(x)
    assert torch.equal(vote.closed, scores.closed)
    torch.testing.assert_close(vote.known, scores.logits().softmax(dim=1)[:, :-1])


def test_only_server_settings_share_members() -> None:
    """Ballots, top-k and distillation use the same members.

    Anything that changes training does not.
    """

    def key(name: str) -> Any:
        return build_method(make({"method": name})).work_key(TASK)

    keys = {name: key(name) for name in ("fedov", *PRESETS.names()) if "fedov" in name}
    assert keys["fedov"] == keys["fedov-sum"] == keys["fedov-top-k"] == keys["fedov-distilled"]
    assert keys["fedov"] != keys["fedov-text-weights"]
    assert key("solo") == key("closed-voting") == key("closed-voting-distilled")
    assert key("solo") != key("fedov")


def test_presets_set_what_their_names_say() -> None:
    built = {name: build_method(make({"method": name})) for name in PRESETS.names()}
    assert built["open-proser"].objective.outliers == "none"
    assert built["open-proser-dd"].objective.w_adversarial == 0
    assert built["open-proser-aoe"].objective.w_destroyed == 0
    assert (
        built["fedov-text-weights"].objective.w_second,
        built["fedov-text-weights"].objective.w_mix,
    ) == (0.01, 1.0)
    assert (built["dd-crop"].objective.outliers, built["dd-crop"].objective.w_adversarial) == (
        "crop",
        0,
    )
    for name in ("stretch", "elastic", "mirror", "morph", "patches", "patchswap", "turn", "wide"):
        objective = built[f"dd-{name}"].objective
        assert (objective.outliers, objective.w_adversarial) == (name, 0)
    assert built["fedov-paper"].objective.outliers == "destruction", "the paper's own mix"
    assert built["closed-voting-distilled"].distil.epochs == 100


def test_recipes_stand_for_settings_that_others_lie_over() -> None:
    paper = build_method(
        make({"method": "fedov", "set": {"recipe": "paper", "local": {"epochs": 7}}})
    )
    assert (paper.local.epochs, paper.local.batch, paper.local.schedule) == (7, 64, "constant")
    assert (paper.objective.steps, paper.objective.size) == (5, 0.002)
    fast = build_method(make({"method": "fedov", "set": {"recipe": "fast"}}))
    assert fast == build_method(make({"method": "fedov"}))
    assert (fast.objective.outliers, fast.objective.steps, fast.objective.size) == (
        "auto",
        2,
        0.005,
    )
    assert (fast.local.class_steps, fast.local.most_steps, fast.local.epochs) == (500, 3500, 45)
    assert (fast.local.least_steps, fast.local.least_class_steps) == (800, 120)
    assert (fast.local.least_batches, ClosedVoting().local.least_steps) == (4, 800)
    assert (paper.local.least_steps, paper.local.least_class_steps) == (0, 0)
    assert paper.local.least_batches == 1
    photos = build_method(make({"method": "fedov", "set": {"recipe": "photos"}}))
    assert (photos.objective.outliers, photos.objective.w_adversarial) == ("wide:0.6+turn:0.4", 0)
    assert (photos.local.class_steps, photos.local.most_steps) == (0, 5000)
    long = build_method(make({"method": "fedov", "set": {"recipe": "long"}}))
    assert (long.objective.outliers, long.objective.steps, long.objective.size) == (
        "destruction",
        2,
        0.005,
    )
    assert (long.local.class_steps, long.local.most_steps, paper.local.class_steps) == (0, 3500, 0)
    assert build_method(make({"method": "fedov-paper"})).local.epochs == 200
    with pytest.raises(ConfigError, match="Recipes here: fast, long, paper, photos"):
        build_method(make({"method": "fedov", "set": {"recipe": "papr"}}))


def test_distillation_without_public_samples_is_refused_before_training() -> None:
    with pytest.raises(NeedError, match="half-test"):
        make_plan(make({"method": "fedov-distilled"}))


def test_more_rounds_are_refused() -> None:
    with pytest.raises(ConfigError, match="single round"):
        build_method(make({"method": "fedov", "set": {"rounds": 3}}))


def test_public_samples_are_never_evaluated() -> None:
    plan = make_plan(make({**LEARN, "method": "fedov"}))
    assert plan.task.commons.public is not None
    assert plan.task.commons.public.y is None
    assert plan.test.samples.rows is not None
    assert plan.task.commons.public.rows is not None
    assert not set(plan.test.samples.rows.tolist()) & set(plan.task.commons.public.rows.tolist())
    assert len(plan.test) + len(plan.task.commons.public) == 1000


def test_the_default_recipe_is_far_above_closed_voting_on_digits(tmp_path: Path) -> None:
    """Ten parties with two of ten digits each, all settings as they come."""
    accuracy = {}
    for name in ("closed-voting", "fedov"):
        plan = make_plan(make({"method": name, "data": "digits", "engine": "serial"}))
        accuracy[name] = execute(plan, RunDir(tmp_path / name)).accuracy
    assert accuracy["fedov"] > 85
    assert accuracy["closed-voting"] < 50
