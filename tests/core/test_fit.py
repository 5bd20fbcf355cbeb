"""The training loop: steps by hand, budgets, batches, and interruption."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import exp, log, log1p
from typing import Any

import pytest
import torch
from torch import nn

from ostraka.core.fit import Budget, Diverged, Fitted, RoundBudget, Student, fit
from ostraka.core.learning import bounds as batch_bounds
from ostraka.core.net import Net, Params, Recipe
from ostraka.core.progress import Progress
from ostraka.core.samples import Samples
from ostraka.core.settings import build, values_of
from ostraka.errors import ConfigError, DataError
from ostraka.objectives.cross_entropy import CrossEntropy
from ostraka.store import codec
from tests.core.toy_nets import Layered, Line, Noisy, Squares, UnitGradient

PLAIN = Budget(epochs=2, batch=8, lr=0.1, momentum=0.0, weight_decay=0.0)
TWO = Samples(torch.tensor([[1.0], [2.0]]), torch.tensor([2, 4]))


def random_samples(count: int, inputs: int = 3, classes: int = 2) -> Samples:
    rng = torch.Generator().manual_seed(1)
    return Samples(torch.randn(count, inputs, generator=rng), torch.arange(count) % classes)


def test_two_steps_with_momentum_by_hand() -> None:
    """x = (1, 2), y = (2, 4), w = 0, lr 0.1, momentum 0.5, one batch an epoch;
    gradient = mean of x (w x - y).

    Step 1: g = mean(-2, -8) = -5, v = -5, w = 0.5; loss 0.5 mean(4, 16) = 5.
    Step 2: g = mean(1 (0.5 - 2), 2 (1 - 4)) = -3.75, v = 0.5 (-5) - 3.75 = -6.25, w = 1.125;
    loss 0.5 mean(2.25, 9) = 2.8125.
    """
    fitted = fit(Line(), None, TWO, Squares(), replace(PLAIN, momentum=0.5), seed=0)
    assert float(fitted.params["weight"]) == pytest.approx(1.125, abs=1e-6)
    assert fitted.losses == pytest.approx((5.0, 2.8125))
    assert fitted.steps == 2


def test_two_steps_of_cross_entropy_by_hand() -> None:
    """One sample x = 2 of class 0, two classes, w = (0, 0), lr 0.1: gradient (p - 1,
    1 - p) x, p that of class 0.

    Step 1: p = 1/2, w = (0.1, -0.1), loss log 2. Step 2: logits +-0.2, p = 1 / (1 + exp(-0.4)),
    w_0 = 0.1 + 0.2 (1 - p), loss log(1 + exp(-0.4)).
    """
    samples = Samples(torch.tensor([[2.0]]), torch.tensor([0]))
    fitted = fit(Line(classes=2), None, samples, CrossEntropy(), PLAIN, seed=0)
    w = 0.1 + 0.2 * (1 - 1 / (1 + exp(-0.4)))
    assert fitted.params["weight"].flatten().tolist() == pytest.approx([w, -w], abs=1e-6)
    assert fitted.losses == pytest.approx((log(2), log1p(exp(-0.4))))


def test_weight_decay_by_hand() -> None:
    """From w = 1: g = mean(1 (1 - 2), 2 (2 - 4)) = -2.5, plus 0.5 w = -2; w = 1 + 0.1 * 2 = 1.2."""
    start = {"weight": torch.ones(1, 1)}
    fitted = fit(Line(), start, TWO, Squares(), replace(PLAIN, epochs=1, weight_decay=0.5), seed=0)
    assert float(fitted.params["weight"]) == pytest.approx(1.2)
    assert float(start["weight"]) == 1.0


def test_first_step_of_adam_is_the_learning_rate() -> None:
    """Adam's first step is lr g / (|g| + 1e-8): g = -5 gives +0.1."""
    fitted = fit(Line(), None, TWO, Squares(), replace(PLAIN, epochs=1, optimiser="adam"), seed=0)
    assert float(fitted.params["weight"]) == pytest.approx(0.1, abs=1e-6)


def test_cosine_rate() -> None:
    """Half the rate half way, nothing at the end."""
    budget = Budget(lr=0.2, schedule="cosine")
    assert [budget.rate(d) for d in (0, 0.5, 1)] == pytest.approx([0.2, 0.1, 0.0])
    assert Budget(lr=0.2).rate(0.7) == 0.2


@pytest.mark.parametrize(("schedule", "way"), [("constant", 4.0), ("cosine", 2.5)])
def test_cosine_over_a_training(schedule: Any, way: float) -> None:
    """Gradient 1 all along: w = -lr * sum of rates; cosine at 0, 1/4, 1/2, 3/4:
    1 + 0.85355 + 0.5 + 0.14645 = 2.5.
    """
    fitted = fit(
        Line(), None, TWO, UnitGradient(), replace(PLAIN, epochs=4, schedule=schedule), seed=0
    )
    assert float(fitted.params["weight"]) == pytest.approx(-0.1 * way, abs=1e-6)


@pytest.mark.parametrize(
    ("rounds", "rates"),
    [(1, [1.0]), (2, [1.0, 0.25]), (3, [1.0, 1.0, 0.25]), (4, [1.0, 1.0, 0.25, 0.25])],
)
def test_the_rate_of_the_second_half_of_all_rounds(rounds: int, rates: list[float]) -> None:
    budget = RoundBudget(epochs=3, lr=1.0, late_rate=0.25)
    late = [budget.in_round(index, rounds) for index in range(1, rounds + 1)]
    assert [one.lr for one in late] == rates
    assert all(replace(one, lr=1.0, late_rate=0.25) == budget for one in late)
    assert late[-1].in_round(rounds, rounds).lr == rates[-1]  # asking twice does not lower it twice


def test_epochs_keep_the_last_smaller_batch() -> None:
    """10 samples in batches of 4: 4, 4, 2 in each epoch."""
    objective = UnitGradient()
    fitted = fit(Line(), None, random_samples(10, 1), objective, replace(PLAIN, batch=4), seed=0)
    assert objective.sizes == [4, 4, 2, 4, 4, 2]
    assert fitted.steps == 6


@pytest.mark.parametrize(
    ("budget", "steps"),
    [
        ({"epochs": 4}, 12),
        ({"epochs": 4, "most_steps": 7}, 7),
        ({"epochs": 2, "most_steps": 7}, 6),
        ({"steps": 9}, 9),
        ({"steps": 9, "most_steps": 7}, 7),
    ],
)
def test_most_steps_is_an_upper_bound(budget: dict[str, int], steps: int) -> None:
    """Ten samples in batches of four: three steps an epoch."""
    fitted = fit(
        Line(), None, random_samples(10, 1), Squares(), replace(PLAIN, batch=4, **budget), seed=0
    )
    assert fitted.steps == steps


@pytest.mark.parametrize(
    ("budget", "steps"),
    [
        ({"epochs": 4, "class_steps": 3}, 6),
        ({"epochs": 1, "class_steps": 3}, 3),
        ({"epochs": 4, "class_steps": 3, "most_steps": 5}, 5),
        ({"epochs": 4, "class_steps": 3, "most_steps": 50}, 6),
        ({"steps": 9, "class_steps": 3}, 9),
    ],
)
def test_class_steps_grow_with_the_classes_that_a_party_holds(
    budget: dict[str, int], steps: int
) -> None:
    """Ten samples of two classes (0 and 7) in batches of four:
    three steps an epoch, six for both classes.
    """
    samples = replace(random_samples(10, 1), y=torch.tensor([0, 7] * 5))
    fitted = fit(Line(), None, samples, Squares(), replace(PLAIN, batch=4, **budget), seed=0)
    assert fitted.steps == steps


@pytest.mark.parametrize(
    ("budget", "steps"),
    [
        ({"epochs": 2, "least_steps": 7}, 7),
        ({"epochs": 4, "least_steps": 7}, 12),
        ({"epochs": 2, "least_class_steps": 4}, 8),  # two classes
        ({"epochs": 2, "least_class_steps": 4, "least_steps": 9}, 9),
        ({"epochs": 2, "least_class_steps": 4, "class_steps": 3}, 6),
        ({"epochs": 2, "least_steps": 20, "most_steps": 13}, 13),
        ({"steps": 2, "least_steps": 7, "least_class_steps": 4}, 2),
        ({"epochs": 1, "least_batches": 5}, 5),  # of two samples each
        ({"epochs": 1, "least_batches": 4}, 4),  # 3, 3, 3, 1
        ({"epochs": 1, "least_batches": 2}, 3),  # of four: five would be more than a batch may have
        ({"epochs": 1, "least_batches": 99}, 10),
    ],
)
def test_a_minimum_of_steps_and_batches_holds_on_few_samples(
    budget: dict[str, int], steps: int
) -> None:
    """Ten samples of two classes in batches of four, where nothing else is said: three steps an
    epoch. What is counted beforehand is what is done."""
    samples = replace(random_samples(10, 1), y=torch.tensor([0, 7] * 5))
    training = replace(PLAIN, batch=4, **budget)
    objective = UnitGradient()
    fitted = fit(Line(), None, samples, objective, training, seed=0)
    assert fitted.steps == steps == training.steps_on(10, 2)
    assert max(objective.sizes) == training.width(10) <= 4
    assert training.steps_on(0, 0) == 0


def test_what_somebody_asks_for_is_not_raised_by_a_default() -> None:
    usual = Budget(epochs=5, least_steps=100, least_class_steps=50, batch=32, least_batches=4)
    assert usual.changed(lr=0.5) == replace(usual, lr=0.5)
    assert usual.changed(epochs=5) == replace(usual, least_steps=0, least_class_steps=0)
    assert usual.changed(steps=0).steps_on(10, 2) == usual.changed(steps=0).least_steps == 0
    assert usual.changed(batch=32) == replace(usual, least_batches=1)
    assert usual.changed(epochs=1, least_steps=7).steps_on(10, 2) == 7
    made = build(Budget, {"epochs": 1}, usual)
    assert made == usual.changed(epochs=1)
    assert build(Budget, values_of(usual)) == usual  # what is written out stays


def test_a_student_of_no_epochs_is_not_wanted_whatever_its_minimum() -> None:
    assert not Student(least_steps=10).wanted
    assert Student(epochs=1).wanted
    assert Student(steps=1).wanted
    assert not Student(epochs=3, steps=0).wanted


def test_steps_replace_epochs() -> None:
    """5 steps in batches of 4 of 10: an epoch of three,
    then two. w falls by 0.1 a step from 0, and loss = w + 2.

    Epoch 1: losses 2, 1.9, 1.8 on 4, 4, 2 samples: mean (8 + 7.6 + 3.6) / 10 = 1.92.
    Epoch 2: 1.7, 1.6 on 4 and 4 samples: 1.65.
    """
    objective = UnitGradient()
    fitted = fit(
        Line(), None, random_samples(10, 1), objective, replace(PLAIN, batch=4, steps=5), seed=0
    )
    assert objective.sizes == [4, 4, 2, 4, 4]
    assert fitted.steps == 5
    assert fitted.losses == pytest.approx((1.92, 1.65))


def test_no_step_gives_the_start_and_no_loss() -> None:
    fitted = fit(
        Line(), {"weight": torch.full((1, 1), 3.0)}, TWO, Squares(), replace(PLAIN, steps=0), seed=0
    )
    assert float(fitted.params["weight"]) == 3.0
    assert (fitted.steps, fitted.losses, fitted.figures()) == (0, (), {})
    assert replace(fitted, losses=(2.0, 1.0)).figures() == {"loss": 1.0}


@pytest.mark.parametrize(
    ("count", "batch", "joins", "bounds"),
    [
        (10, 4, False, [(0, 4), (4, 8), (8, 10)]),
        (9, 4, False, [(0, 4), (4, 8), (8, 9)]),
        (9, 4, True, [(0, 4), (4, 9)]),
        (8, 4, True, [(0, 4), (4, 8)]),
        (1, 4, True, [(0, 1)]),
        (3, 4, True, [(0, 3)]),
    ],
)
def test_bounds(count: int, batch: int, joins: bool, bounds: list[tuple[int, int]]) -> None:
    assert batch_bounds(count, batch, joins) == bounds


def test_a_last_sample_joins_the_batch_before_it_with_batch_norm_only() -> None:
    for between, sizes in ((nn.BatchNorm1d(8), [4, 5]), (nn.LayerNorm(8), [4, 4, 1])):
        objective = UnitGradient()
        fit(
            Layered(between),
            None,
            random_samples(9),
            objective,
            replace(PLAIN, epochs=1, batch=4),
            seed=0,
        )
        assert objective.sizes == sizes


def test_every_epoch_has_its_own_order_and_the_seed_decides_it() -> None:
    """Batches of one, labels 0 to 5: the order in which labels come is
    a permutation, new in each epoch.
    """

    @dataclass(frozen=True)
    class Order(UnitGradient):
        def loss(self, net: Net, batch: Any, rng: torch.Generator) -> torch.Tensor:
            self.sizes.append(int(batch.y))
            return next(net.parameters()).sum()

    samples, orders = random_samples(6, 1, classes=6), []
    for seed in (0, 0, 1):
        objective = Order()
        fit(Line(), None, samples, objective, replace(PLAIN, batch=1), seed=seed)
        orders.append(objective.sizes)
    assert sorted(orders[0][:6]) == sorted(orders[0][6:]) == list(range(6))
    assert orders[0][:6] != orders[0][6:]
    assert orders[0] == orders[1] != orders[2]


def test_a_loss_that_runs_away_is_an_error() -> None:
    """Squares with a rate of 1e30 overflow in the third epoch at the latest."""
    with pytest.raises(Diverged, match=r"in epoch \d.*lr 1e\+30.*lower the learning rate"):
        fit(Line(), None, TWO, Squares(), replace(PLAIN, epochs=5, lr=1e30), seed=0)


def test_no_samples_is_an_error() -> None:
    with pytest.raises(DataError, match="no samples"):
        fit(Line(), None, TWO.take(torch.tensor([], dtype=torch.long)), Squares(), PLAIN, seed=0)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"lr": 0.0}, "'lr' is 0.0; it must be above 0"),
        ({"lr": float("nan")}, "'lr' is nan; it must be a finite number, above 0"),
        ({"lr": float("inf")}, "'lr' is inf; it must be a finite number, above 0"),
        ({"lr": "fast"}, "'lr' takes a number; 'fast' was given"),
        ({"batch": 0}, "'batch' is 0; it must be at least 1"),
        ({"epochs": 0}, "'epochs' is 0; it must be at least 1"),
        ({"steps": -2}, "'steps' is -2; it must be at least 0"),
        ({"most_steps": -3}, "'most_steps' is -3; it must be at least 0"),
        ({"momentum": 1}, "'momentum' is 1; it must be at least 0 and below 1"),
        ({"weight_decay": -1e-9}, "'weight_decay' is -1e-09; it must be at least 0"),
        ({"late_rate": 0}, "'late_rate' is 0; it must be above 0"),
        ({"optimiser": "adm"}, "'optimiser' is 'adm'; allowed: sgd, adam. Did you mean 'adam'"),
    ],
)
def test_impossible_budgets(values: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        RoundBudget(**values)


def test_a_student_may_be_left_out() -> None:
    assert not Student().wanted
    assert Student(epochs=1).wanted
    assert Student(steps=1).wanted, "steps stand instead of epochs"
    assert not Student(epochs=1, steps=0).wanted
    with pytest.raises(ConfigError, match="'epochs' is -1; it must be at least 0"):
        Student(epochs=-1)


def test_statistics_are_measured_after_training_in_evaluation_mode() -> None:
    @dataclass(frozen=True)
    class Measured(Squares):
        def attach(self, net: Net) -> None:
            net.register_buffer("mean", torch.zeros(1))

        def statistics(self, net: Net, samples: Samples) -> Params:
            assert not net.training
            return {"mean": samples.inputs().mean().reshape(1)}

    net, objective = Line(), Measured()
    objective.attach(net)
    assert float(fit(net, None, TWO, objective, PLAIN, seed=0).params["mean"]) == 1.5


@pytest.mark.parametrize("before", [False, True])
def test_tiny_numbers_are_zero_while_training_and_as_before_afterwards(before: bool) -> None:
    seen: list[float] = []

    @dataclass(frozen=True)
    class Looking(Squares):
        def loss(self, net: Net, batch: Any, rng: torch.Generator) -> torch.Tensor:
            seen.append(tiny())
            return super().loss(net, batch, rng)

    def tiny() -> float:
        return float(torch.tensor(1e-30) * 1e-10)

    if not torch.set_flush_denormal(before):
        pytest.skip("this processor cannot flush denormal numbers")
    try:
        fit(Line(), None, TWO, Looking(), PLAIN, seed=0)
        after = tiny()
    finally:
        torch.set_flush_denormal(False)
    assert set(seen) == {0.0}
    assert (after == 0.0) is before


def test_the_global_generator_is_left_alone() -> None:
    net, samples = Layered(nn.Dropout(0.5)), random_samples(9)
    torch.manual_seed(5)
    before = torch.get_rng_state()
    first = fit(net, None, samples, CrossEntropy(), PLAIN, seed=0).params
    assert torch.equal(before, torch.get_rng_state())
    torch.manual_seed(6)  # and it does not matter where it stands
    second = fit(Layered(nn.Dropout(0.5)), None, samples, CrossEntropy(), PLAIN, seed=0).params
    assert codec.encode(first) == codec.encode(second)


class Killed(Exception):
    """Stands for a kill."""


class Killer(Progress):
    """Keeps saved values as bytes and kills at one of the saves."""

    every_seconds = 0.0

    def __init__(self, kept: dict[str, bytes], kill_at: int) -> None:
        self.kept, self.left, self.steps = kept, kill_at, list[int]()

    def load(self, name: str) -> Mapping[str, Any] | None:
        return codec.decode(self.kept[name]) if name in self.kept else None

    def save(self, name: str, values: Mapping[str, Any]) -> None:
        self.kept[name] = codec.encode(dict(values))
        self.steps.append(values["steps"])
        self.left -= 1
        if self.left == 0:
            raise Killed

    def tell(self, done: float, loss: float | None) -> None: ...


BETWEEN = {"dropout": nn.Dropout(0.5), "batch norm": nn.BatchNorm1d(8), "nothing": nn.Identity()}
BUDGETS = {
    "sgd": Budget(epochs=3, batch=4, lr=0.1),
    "no momentum": Budget(epochs=3, batch=4, lr=0.1, momentum=0.0),
    "adam, cosine": Budget(epochs=3, batch=4, optimiser="adam", schedule="cosine"),
    "steps": Budget(steps=13, batch=4, lr=0.1),
}


@pytest.mark.parametrize("budget", BUDGETS.values(), ids=BUDGETS)
@pytest.mark.parametrize("between", BETWEEN)
def test_interrupted_training_goes_on_to_the_same_bits(
    between: str, budget: Budget, monkeypatch: pytest.MonkeyPatch
) -> None:
    """21 samples in batches of 4 (6, or 5 with batch norm, an epoch),
    saved every two batches: also inside epochs.

    Killed at each of the saves in turn, and resumed:
    the result is always that of straight training.
    """
    monkeypatch.setattr(Noisy, "chunk", 8)
    samples = random_samples(21)

    def train(progress: Progress | None) -> bytes:
        net = Layered(type(BETWEEN[between])(*([8] if between == "batch norm" else [])))
        fitted = fit(net, None, samples, Noisy(), budget, seed=3, progress=progress)
        return codec.encode(
            {"params": fitted.params, "losses": fitted.losses, "steps": fitted.steps}
        )

    straight = train(None)
    watched = Killer({}, kill_at=0)
    assert train(watched) == straight
    assert any(step % (5 if between == "batch norm" else 6) for step in watched.steps), (
        "no save inside an epoch"
    )
    for kill_at in range(1, len(watched.steps) + 1):
        kept: dict[str, bytes] = {}
        with pytest.raises(Killed):
            train(Killer(kept, kill_at))
        again = Killer(kept, kill_at=0)
        assert train(again) == straight
        assert again.steps[0] >= watched.steps[kill_at - 1], "it began anew"


def test_names_keep_trainings_apart() -> None:
    kept: dict[str, bytes] = {}
    for name in ("first", "second"):
        fit(Line(), None, TWO, Squares(), PLAIN, seed=0, progress=Killer(kept, 0), name=name)
    assert kept.keys() == {"first", "second"}


def test_progress_is_told_after_every_epoch() -> None:
    told: list[tuple[float, float | None]] = []

    class Ear(Killer):
        def tell(self, done: float, loss: float | None) -> None:
            told.append((done, loss))

    fitted = fit(Line(), None, TWO, Squares(), PLAIN, seed=0, progress=Ear({}, 0))
    assert told == [(0.5, fitted.losses[0]), (1.0, fitted.losses[1])]


def test_training_can_be_ended_after_an_epoch() -> None:
    """Two steps of an epoch each: the third of five epochs is the last,
    and as it is without the two after it.
    """
    seen: list[tuple[int, float]] = []
    net, budget = Line(), replace(PLAIN, epochs=5)

    def enough(epochs: int) -> bool:
        seen.append((epochs, float(net.weight.detach())))
        return epochs == 3

    ended = fit(net, None, TWO, Squares(), budget, seed=0, after_epoch=enough)
    shorter = fit(Line(), None, TWO, Squares(), replace(PLAIN, epochs=3), seed=0)
    assert [epochs for epochs, _ in seen] == [1, 2, 3]
    assert seen[-1][1] == float(ended.params["weight"]) == float(shorter.params["weight"])
    assert (ended.steps, ended.losses) == (shorter.steps, shorter.losses)


def test_training_that_was_ended_is_not_taken_up_again() -> None:
    """Killed when its last state was saved: the next attempt finds that it was enough."""
    kept: dict[str, bytes] = {}

    def train(kill_at: int, asked: list[int]) -> Fitted:
        return fit(
            Line(),
            None,
            TWO,
            Squares(),
            replace(PLAIN, epochs=5),
            0,
            Killer(kept, kill_at),
            after_epoch=lambda epochs: asked.append(epochs) or epochs == 2,  # type: ignore[func-returns-value]
        )

    with pytest.raises(Killed):
        train(2, [])
    asked: list[int] = []
    assert len(train(0, asked).losses) == 2
    assert asked == []


def test_batch_norm_with_one_sample_is_said_in_words() -> None:
    net = Recipe("lenet5", {"norm": "batch"}).build_net((1, 28, 28), 2, unknown=False, seed=0)
    one = Samples(torch.rand(1, 1, 28, 28), torch.tensor([1]))
    with pytest.raises(
        DataError,
        match="batch norm cannot train on a party of size 1: it needs at least two values",
    ):
        fit(net, None, one, CrossEntropy(), Budget(epochs=1), seed=0)
