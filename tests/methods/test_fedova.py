"""FedOVA: who trains what, means by hand, late reports, single labels, a class that comes later."""

from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import ostraka
from ostraka.core.card import Card
from ostraka.core.fit import RoundBudget, fit
from ostraka.core.method import Report, Round
from ostraka.core.net import Net, Params, Recipe
from ostraka.core.objective import Batch
from ostraka.core.party import Parties, Party, PartyRef
from ostraka.core.samples import Samples, View
from ostraka.core.seeds import torch_rng
from ostraka.core.task import Commons, Task
from ostraka.errors import ConfigError, DataError, ReportRefused
from ostraka.methods.fedova import FedOVA, Server, relabelled, task_of
from ostraka.methods.late import Late, Networks, Pile
from ostraka.nets import native
from ostraka.objectives.one_vs_all import OneVsAll
from ostraka.runs.record import load_model, load_state
from ostraka.store.task import task_from
from ostraka.testing import check_method

TASK = Task(("ant", "bee", "cat"), (1, 16, 16), Recipe("mlp", {"hidden": [8]}))
LABELS = ([0, 1] * 12, [1, 2] * 12, [2] * 9)


def parties() -> Parties:
    """Noise around a centre for each label."""
    y, shape = torch.tensor([label for own in LABELS for label in own]), TASK.shape
    rng = torch_rng(1, "x")
    x = torch.randn(3, *shape, generator=rng)[y] + 0.5 * torch.randn(len(y), *shape, generator=rng)
    return Parties.of(Samples(x, y), torch.arange(len(y)).split([len(own) for own in LABELS]))


def update(method: FedOVA, party: Party, state: Server | None = None) -> Report[Networks]:
    state = state or method.init(TASK, 5)
    return method.local_update(Round(TASK, 1, method.message(state, party.ref), 7), party, {})


class Affine(Net):
    """One linear layer."""

    def __init__(self, shape: tuple[int, ...], classes: int, unknown: bool) -> None:
        super().__init__(classes, unknown)
        self.line = nn.Linear(1, classes)

    def early(self, x: Tensor) -> Tensor:
        return x

    def embed_late(self, hidden: Tensor) -> Tensor:
        return hidden

    def head(self, embedding: Tensor) -> Tensor:
        logits: Tensor = self.line(embedding)
        return logits


@dataclass(frozen=True)
class AffineRecipe(Recipe):
    name: str = "affine"

    def build_net(self, shape: tuple[int, ...], classes: int, unknown: bool, seed: int) -> Net:
        return Affine(shape, classes, unknown)


def one(value: float) -> Params:
    return {"w": torch.tensor([value])}


def sent(party: int, **values: float) -> Report[Networks]:
    return Report({name: one(value) for name, value in values.items()}, 1.0, Card(party, 9))


def merged(method: FedOVA, state: Server, *reports: Report[Networks]) -> Server:
    return method.aggregate(TASK, state, reports)


def values(state: Server) -> dict[str, float]:
    return {name: float(net["w"]) for name, net in state.nets.items()}


def way(party: int, sent: int, due: int, **values: float) -> Late:
    """A report on its way, alone in its pile."""
    pile = Pile()
    pile.held[str(party)] = list(values)
    pile.add({name: one(value) for name, value in values.items()}, 1 / (1 + due - sent))
    return pile.late(due)


BEFORE = Server({"ant": one(1.0), "bee": one(2.0), "cat": one(4.0)}, seed=3)


def test_a_party_trains_and_sends_the_networks_of_its_labels_alone() -> None:
    method, everyone = FedOVA(), parties()
    start = method.init(TASK, 5)
    for party, names in zip(everyone, (["ant", "bee"], ["bee", "cat"], []), strict=True):
        report = update(method, party, start)
        assert list(report.payload) == names
        assert [n for n in names if _same(report.payload[n], start.nets[n])] == []


def test_every_network_has_first_weights_of_its_own() -> None:
    """By the name of its class, whatever other classes there are and in which order."""
    first = FedOVA().init(TASK, 5).nets
    assert not _same(first["ant"], first["bee"])
    fewer = FedOVA().init(replace(TASK, classes=("cat", "bee")), 5).nets
    assert _same(first["bee"], fewer["bee"])


def _same(a: Params, b: Params) -> bool:
    return a.keys() == b.keys() and all(torch.equal(a[key], b[key]) for key in a)


@pytest.mark.parametrize(
    ("net", "optimiser"),
    [
        (Recipe("mlp", {"hidden": [8]}), "sgd"),
        (Recipe("mlp", {"hidden": [8]}), "adam"),
        (Recipe("fedova-cnn", {"hidden": 0}), "sgd"),
    ],
)
def test_networks_trained_together_are_those_trained_one_by_one(
    net: Recipe, optimiser: Any
) -> None:
    """The reference trains each alone, by plain torch: a loop over the batches of the same order,
    an optimiser of torch, and the loss written out.
    """
    task = replace(TASK, net=net)
    local = RoundBudget(epochs=2, batch=10, optimiser=optimiser, lr=0.05)
    method, party = FedOVA(local=local), parties()[0]
    start = method.init(task, 5)
    report = method.local_update(Round(task, 1, start.nets, 7), party, {})
    for label, name in ((0, "ant"), (1, "bee")):
        alone = task_of(task, name).build_net(False)
        alone.load_state_dict(start.nets[name])
        _by_hand(alone, party.samples, label, local, seed=7)
        for key, tensor in alone.state_dict().items():
            torch.testing.assert_close(report.payload[name][key], tensor, rtol=2e-4, atol=2e-5)


def _by_hand(net: Net, samples: Samples, label: int, local: RoundBudget, seed: int) -> None:
    options: dict[str, Any] = {"lr": local.lr, "weight_decay": local.weight_decay}
    step = (
        torch.optim.Adam(net.parameters(), **options)
        if local.optimiser == "adam"
        else torch.optim.SGD(net.parameters(), momentum=local.momentum, **options)
    )
    order, x, y = torch_rng(seed, "fit", "order"), samples.inputs(), samples.labels
    with native.disabled():
        for _ in range(local.epochs):
            for rows in torch.randperm(len(y), generator=order).split(local.batch):
                chance = net(x[rows])[:, 0].sigmoid()
                right = torch.where(y[rows] == label, chance, 1 - chance)
                step.zero_grad()
                (-right.log().mean()).backward()
                step.step()


def test_each_network_is_the_plain_mean_of_its_own_parties() -> None:
    """ant: (3 + 6) / 2, whatever the sizes; bee: 10 alone; cat: nobody, the same tensor."""
    after = merged(FedOVA(), BEFORE, sent(0, ant=3.0, bee=10.0), sent(1, ant=6.0), sent(2))
    assert values(after) == {"ant": 4.5, "bee": 10.0, "cat": 4.0}
    assert after.nets["cat"]["w"] is BEFORE.nets["cat"]["w"]
    assert after.trained == {"ant": 2, "bee": 1}
    assert (after.round, after.late) == (1, ())


def test_late_reports_arrive_when_due_and_weigh_less() -> None:
    """In round 4, ant of round 2 counts 1 / (1 + 2), beside one in time:
    (3 / 3 + 6) / (4 / 3) = 5.25; bee of round 3 comes alone with 1/2, the other half stays:
    (10 + 2) / 2 = 6; cat is not due.
    """
    late = (way(0, 2, 4, ant=3.0), way(1, 3, 4, bee=10.0), way(2, 3, 5, cat=8.0))
    after = merged(FedOVA(), replace(BEFORE, round=3, late=late), sent(3, ant=6.0))
    assert values(after) == pytest.approx({"ant": 5.25, "bee": 6.0, "cat": 4.0})
    assert after.late == late[2:]
    assert after.trained == {"ant": 2, "bee": 1}
    assert after.held == {}, "only labels_known makes use of them"


def test_what_waits_for_the_same_round_is_summed() -> None:
    """Of forty late reports no more is kept than three rounds of one network, and all the same
    each counts by its own delay: those that arrive in round 3 were sent in round 1 (1/3) and in
    round 2 (1/2).
    """
    method = FedOVA(rounds=9, late="deliver", late_share=1.0, late_rounds=3, labels_known=True)
    first = merged(method, BEFORE, *(sent(party, ant=3.0) for party in range(40)))
    second = merged(method, first, *(sent(party, ant=9.0) for party in range(40)))
    assert [late.due for late in second.late] == [3, 4, 5]
    old, both = first.late[1].counts["ant"], second.late[0].counts["ant"]
    assert 0 < old < both
    weights = (old / 3, (both - old) / 2)
    expected = (3 * weights[0] + 9 * weights[1]) / sum(weights)
    assert values(merged(method, second))["ant"] == pytest.approx(expected)
    assert second.late[0].weights["ant"] == pytest.approx(sum(weights))
    seen = {party for late in second.late for party in late.held} | second.held.keys()
    assert seen == set(map(str, range(40)))


def test_a_report_of_no_network_is_never_late() -> None:
    """There is nothing to wait for, and what it tells of its party shortens the next message."""
    method = FedOVA(rounds=9, late="deliver", late_share=1.0, labels_known=True)
    state = merged(method, BEFORE, sent(0))
    assert (state.late, state.held) == ((), {"0": []})


def test_what_would_arrive_after_the_end_is_not_kept() -> None:
    """Two rounds: what round 1 sends may come in round 2, or never; round 2's late ones never."""
    method = FedOVA(rounds=2, late="deliver", late_share=1.0, late_rounds=3)
    state = merged(method, BEFORE, *(sent(party, ant=5.0) for party in range(40)))
    assert [late.due for late in state.late] == [2]
    state = merged(method, state, *(sent(party, bee=5.0) for party in range(40)))
    assert (state.late, list(state.trained)) == ((), ["ant"])


def test_a_late_report_alone_leaves_the_rest_to_the_network_that_is_there() -> None:
    """cat of round 1 comes in round 4 with 1/4, the other 3/4 stay: 8 / 4 + 4 * 3 / 4 = 5. Two
    late ones of round 3 have 1/2 each and leave nothing: ant is (3 + 6) / 2.
    """
    late = (way(2, 1, 4, cat=8.0), way(0, 3, 4, ant=3.0), way(1, 3, 4, ant=6.0))
    after = merged(FedOVA(), replace(BEFORE, round=3, late=late))
    assert values(after) == pytest.approx({"ant": 4.5, "bee": 2.0, "cat": 5.0})


def test_delays_are_drawn_by_seed_round_and_party() -> None:
    """All late, by one to three rounds: after three empty rounds everything has arrived once."""
    method = FedOVA(rounds=9, late="deliver", late_share=1.0, late_rounds=3)
    reports = [sent(party, ant=5.0) for party in range(40)]
    state = merged(method, BEFORE, *reports)
    assert values(state)["ant"] == 1.0
    assert state == merged(method, BEFORE, *reports)
    assert {late.due for late in state.late} == {2, 3, 4}
    others = merged(method, replace(BEFORE, seed=4), *reports)
    assert [late.counts for late in others.late] != [late.counts for late in state.late]
    for _ in range(3):
        state = merged(method, state)
    assert (state.late, state.trained) == ((), {"ant": 40})
    assert values(state)["ant"] == pytest.approx(5.0)


def test_in_time_is_the_default_and_a_share_is_late() -> None:
    reports = [sent(party, ant=5.0) for party in range(400)]
    assert merged(FedOVA(), BEFORE, *reports).late == ()
    some = merged(FedOVA(rounds=9, late="deliver", late_share=0.25), BEFORE, *reports)
    assert 70 < sum(late.counts["ant"] for late in some.late) < 130


@pytest.mark.parametrize(
    "settings", [{}, {"outliers": "dd"}, {"late": "deliver", "late_share": 0.7}]
)
def test_the_contract(settings: dict[str, Any]) -> None:
    check_method(FedOVA(labels_known=bool(settings), **settings))


def test_labels_that_reports_have_told_shorten_the_next_message() -> None:
    method = FedOVA(labels_known=True)
    assert method.message(BEFORE, PartyRef(0, 9)) is BEFORE.nets
    after = merged(method, BEFORE, sent(0, bee=1.0), sent(2))
    assert list(method.message(after, PartyRef(0, 9))) == ["bee"]
    assert method.message(after, PartyRef(2, 9)) == {}
    assert list(method.message(after, PartyRef(1, 9))) == ["ant", "bee", "cat"]
    unaware = merged(FedOVA(), BEFORE, sent(0, bee=1.0))
    assert FedOVA().message(unaware, PartyRef(0, 9)) is unaware.nets


def test_a_single_label_is_learnt_against_destroyed_samples() -> None:
    """The network says yes to its own samples and no to destroyed ones."""
    method = FedOVA(outliers="dd", local=RoundBudget(epochs=40, batch=9, lr=0.05))
    party = parties()[2]
    report = update(method, party)
    assert list(report.payload) == ["cat"]
    state = replace(method.init(TASK, 5), nets=report.payload, trained={"cat": 1})
    x, rows = party.samples.inputs(), torch.randperm(16, generator=torch_rng(0, "rows"))
    scores = method.predictor(TASK, state).scores(torch.cat([x, x[:, :, rows]]))
    assert (scores.known[:9, 2] > 0).all()
    assert (scores.known[9:, 2] < 0).float().mean() > 0.6


def test_several_labels_are_learnt_from_each_other_alone() -> None:
    """`outliers` is for a party with a single label: two labels have each other, and no more."""
    local, party = RoundBudget(epochs=2, batch=10, lr=0.05), parties()[0]
    plain, asked = (update(FedOVA(local=local, outliers=o), party) for o in ("none", "dd"))
    assert list(plain.payload) == list(asked.payload) == ["ant", "bee"]
    assert all(_same(plain.payload[name], asked.payload[name]) for name in plain.payload)


def test_the_rate_falls_in_the_second_half_of_the_rounds() -> None:
    """Round 2 of 2 at half of 0.08 is a round at 0.04; the first is not."""
    party, kept = parties()[0], FedOVA(rounds=2, local=RoundBudget(steps=3, lr=0.04))
    falls = replace(kept, local=RoundBudget(steps=3, lr=0.08, late_rate=0.5))
    nets = kept.init(TASK, 5).nets
    first, second = (falls.local_update(Round(TASK, i, nets, 7), party, {}).payload for i in (1, 2))
    usual = kept.local_update(Round(TASK, 2, nets, 7), party, {}).payload
    assert _same(second["ant"], usual["ant"])
    assert not _same(first["ant"], usual["ant"])


def test_the_answer_is_to_what_networks_see() -> None:
    """The line x - 1 is asked with the stored value 6, which its view makes 6 / 2 - 1 = 2."""
    view = View(scale=0.5, mean=(1.0,), std=(1.0,), kind="table")
    task = Task(("ant",), (1,), AffineRecipe(), view=view)
    net = {"line.weight": torch.tensor([[1.0]]), "line.bias": torch.tensor([-1.0])}
    state = Server({"ant": net}, seed=0, trained={"ant": 1})
    known = FedOVA().predictor(task, state).scores(torch.tensor([[6.0]])).known
    assert known.item() == pytest.approx(1.0)


def test_parties_that_cannot_train_are_told_of() -> None:
    counts = torch.tensor([[5, 5, 0], [0, 0, 9], [0, 3, 0]])
    (note,) = FedOVA().notes(TASK, counts)
    assert note.startswith("2 of 3 parties hold a single label and do not train")
    assert "outliers=dd" in note
    assert "; nobody else holds cat, so nobody trains its network;" in note
    (note,) = FedOVA().notes(TASK, counts[[0, 2]])
    assert "nobody" not in note, "bee has another party"
    assert FedOVA(outliers="dd").notes(TASK, counts) == ()
    assert FedOVA().notes(TASK, counts[:1]) == ()
    with pytest.raises(DataError, match=r"every one of the 2 parties.*outliers=dd"):
        FedOVA().notes(TASK, counts[1:])
    with pytest.raises(DataError, match="'ant'"):
        FedOVA(only=("ant",)).notes(TASK, counts[1:] + torch.tensor([[0, 1, 1]]))
    with pytest.raises(ConfigError, match=r"'dog'.*ant, bee, cat"):
        FedOVA(only=("dog",)).notes(TASK, counts)
    with pytest.raises(ConfigError, match="unknown destruction 'ddd'"):
        FedOVA(outliers="ddd")
    with pytest.raises(DataError, match="exchange"):
        FedOVA(outliers="exchange").notes(TASK, counts)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, [2, 3, 0]),
        ({"outliers": "dd"}, [2, 3, 1]),
        ({"only": ("bee",)}, [1, 1, 0]),
        ({"only": ("bee",), "outliers": "dd"}, [1, 1, 0]),
    ],
)
def test_a_party_has_a_training_for_each_label_whose_network_it_trains(
    settings: dict[str, Any], expected: list[int]
) -> None:
    """Of ant and bee; of all three; of cat alone."""
    counts = torch.tensor([[5, 1, 0], [1, 2, 3], [0, 0, 9]])
    method = FedOVA(**settings)
    assert [method.trainings(TASK, own) for own in counts] == expected


def test_a_report_holds_as_many_networks_as_were_counted() -> None:
    method = FedOVA(local=RoundBudget(steps=1))
    for party in parties():
        counts = torch.bincount(party.samples.labels, minlength=3)
        assert len(update(method, party).payload) == method.trainings(TASK, counts)


def test_the_answer_is_the_surest_network_and_unknown_what_all_refuse() -> None:
    """Three lines: logits x - 1, 2 x - 5, and one that nobody trained."""
    task = Task(("ant", "bee", "cat"), (1,), AffineRecipe())
    lines = {"ant": (1.0, -1.0), "bee": (2.0, -5.0), "cat": (0.0, 99.0)}
    nets = {
        name: {"line.weight": torch.tensor([[slope]]), "line.bias": torch.tensor([offset])}
        for name, (slope, offset) in lines.items()
    }
    state = Server(nets, seed=0, trained={"ant": 3, "bee": 1})
    scores = FedOVA().predictor(task, state).scores(torch.tensor([[0.5], [2.0], [9.0]]))
    assert scores.closed.tolist() == [0, 0, 1]
    assert scores.open.tolist() == [-1, 0, 1]
    expected = 1 - torch.tensor([-0.5, 1.0, 13.0]).sigmoid()
    torch.testing.assert_close(scores.unknown, expected, rtol=1e-3, atol=1e-7)
    assert scores.known.isfinite().all()


def test_a_network_of_no_class_is_refused_when_it_arrives() -> None:
    method = FedOVA(only=("ant",))
    good = {"ant": method.init(TASK, 1).nets["ant"]}
    method.inspect(TASK, Report(good, 1.0, Card(0, 5)))
    method.inspect(TASK, Report({}, 1.0, Card(0, 5)))
    for bad in ({"bee": good["ant"]}, {"dog": good["ant"]}, {"ant": one(1.0)}):
        with pytest.raises(ReportRefused):
            method.inspect(TASK, Report(bad, 1.0, Card(0, 5)))


def test_relabelled() -> None:
    samples = Samples(torch.zeros(5, 2), torch.tensor([4, 0, 7, 4, 9]))
    assert relabelled(samples, [4, 9]).labels.tolist() == [0, -1, -1, 0, 1]


def test_the_loss_by_hand() -> None:
    """Logits 0 and 1 of the labels 0 and none: ln 2 + ln 2 over two samples is the first
    network's mean; the second's is ln(1 + e) for both.
    """
    net = Affine((1,), 2, False)
    with torch.no_grad():
        net.line.weight.zero_()
        net.line.bias.copy_(torch.tensor([0.0, 1.0]))
    loss = OneVsAll().loss(net, Batch(torch.ones(2, 1), torch.tensor([0, -1])), torch_rng(0))
    expected = torch.tensor(2.0).log() + F.softplus(torch.tensor(1.0))
    assert loss.item() == pytest.approx(expected.item())


QUICK = {"rounds": 6, "local": {"epochs": 3, "batch": 15, "lr": 0.02}}


def run(out: Path, **values: Any) -> Any:
    net = {"name": "mlp", "options": {"hidden": [24]}}
    base = {"data": "digits", "partition": "labels:3", "net": net, "engine": "serial"}
    return ostraka.run("fedova", out=out, **{**base, "set": QUICK, **values})


@pytest.fixture(scope="module")
def nine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fedova") / "nine"
    summary = run(folder, known=9).summary
    assert summary.accuracy > 75
    assert summary.auroc > 75
    return folder


def test_a_class_more_leaves_the_other_networks_to_the_bit(nine: Path, tmp_path: Path) -> None:
    result = ostraka.add_class(nine, "9", out=tmp_path / "ten", rounds=5)
    before, after = load_state(nine)[1].all(), load_state(tmp_path / "ten")[1].all()
    assert result.classes == tuple("0123456789")
    assert list(before) == list("012345678")
    assert all(_same(before[name], after[name]) for name in before)
    assert (result.summary.per_class["9"] or 0) > 40
    assert (result.summary.accuracy or 0) > 70
    # of ten networks one travels: the messages are a tenth of the first run's
    assert result.summary.bytes_down / 5 < 0.15 * ostraka.load_run(nine).summary.bytes_down / 6


@pytest.mark.parametrize(
    ("names", "more", "message"),
    [
        (("3",), {}, "knows the class '3' already"),
        (("ten",), {}, "no class 'ten' in digits"),
        ((), {}, "no class was named"),
        (("9", "9"), {}, "'9' is to be added twice"),
        (("9",), {"data": "fashion-4k"}, "'9' in fashion-4k"),
        (("9",), {"method": "fedavg"}, "by the method of the finished run, fedova; fedavg was"),
        (("9",), {"known": 8}, "known = 8 was given.*leave known out"),
        (("9",), {"known_classes": [9]}, r"known_classes = \[9\] was given"),
        (("9",), {"start_from": "other"}, "start_from = 'other' was given"),
        (("9",), {"set": {"only": ["3"]}}, r"only = \['3'\] was given.*trains these alone"),
    ],
)
def test_what_cannot_be_added(
    nine: Path, tmp_path: Path, names: tuple[str, ...], more: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        ostraka.add_class(nine, *names, out=tmp_path / "ten", **more)


def test_one_network_for_all_classes_cannot_grow(tmp_path: Path) -> None:
    values: dict[str, Any] = {"data": "digits", "known": 9, "engine": "serial"}
    ostraka.run("fedavg", out=tmp_path / "a", set={"local": {"steps": 1}}, **values)
    with pytest.raises(ConfigError, match="fedova has a network for each class"):
        ostraka.add_class(tmp_path / "a", "9", out=tmp_path / "b")
    with pytest.raises(ConfigError, match="is another network"):
        run(tmp_path / "c", start_from=str(tmp_path / "a"), known=9)


def test_a_start_goes_on_with_all_networks(nine: Path, tmp_path: Path) -> None:
    still = {"rounds": 1, "local": {"steps": 0}}
    again = run(tmp_path / "again", known=9, start_from=str(nine), set=still).summary
    assert again.accuracy == ostraka.load_run(nine).summary.accuracy
    commons = Commons(nets={"start": FedOVA().single_model(load_state(nine)[1])})
    task = replace(TASK, classes=tuple("012345678"), commons=commons)
    assert FedOVA().init(task, 0).trained == dict.fromkeys("012345678", 1)


def test_a_network_that_nobody_trained_is_no_start() -> None:
    """bee was trained in round 1, ant and cat never: they stay without a say in a following run."""
    method, first = FedOVA(), FedOVA().init(TASK, 5)
    report = Report({"bee": first.nets["bee"]}, 1.0, Card(0, 9))
    start = method.single_model(method.aggregate(TASK, first, [report]))
    assert {name.split("/")[0] for name in start} == {"bee"}
    assert {name.split("/")[0] for name in method.single_model(first)} == set(TASK.classes)
    again = method.init(replace(TASK, commons=Commons(nets={"start": start})), 6)
    assert (list(again.nets), again.trained) == (["ant", "bee", "cat"], {"bee": 1})
    scores = method.predictor(TASK, again).scores(parties()[0].samples.stored())
    assert set(scores.closed.tolist()) == {1}


def test_classes_that_are_never_the_answer_are_named(tmp_path: Path) -> None:
    """Of five parties one is drawn, once: it holds three of ten classes."""
    method, first = FedOVA(), FedOVA().init(TASK, 5)
    report = Report({"bee": first.nets["bee"]}, 1.0, Card(0, 9))
    (note,) = method.closing_notes(TASK, method.aggregate(TASK, first, [report]))
    assert note.endswith("networks of 2 of 3 classes, which are never the answer: ant, cat")
    many = replace(TASK, classes=tuple(map(str, range(12))))
    (note,) = method.closing_notes(many, replace(first, trained={"7": 1}))
    assert note.endswith(": 0, 1, 2, 3, 4, 5, 6, 8, 9, 10 and 1 more")
    assert method.closing_notes(TASK, replace(first, trained=dict.fromkeys(TASK.classes, 1))) == ()
    once = {"rounds": 1, "fraction": 0.2, "local": {"epochs": 1}}
    notes = run(tmp_path / "once", parties=5, set=once).summary.notes
    assert [n for n in notes if "of 7 of 10 classes, which are never the answer" in n] == [
        notes[-1]
    ]


def test_names_of_classes_may_hold_any_sign() -> None:
    """A slash parts class and tensor in the names of a start, and a dot the parts of a tensor's."""
    names = ("a/b", "nets.0.w", "/", "..")
    task = replace(TASK, classes=names)
    first = FedOVA().init(task, 5)
    again = FedOVA().init(
        replace(task, commons=Commons(nets={"start": FedOVA().single_model(first)})), 6
    )
    assert list(again.trained) == list(names)
    assert all(_same(first.nets[name], again.nets[name]) for name in names)


def test_networks_that_stay_go_on_seeing_what_they_learnt(tmp_path: Path) -> None:
    """The mean of three classes is 1, of all four 2.5: standardised by that, old networks would be
    shown other inputs than those that they were trained on.
    """
    y = np.arange(80) % 4
    x = np.array([0.0, 1.0, 2.0, 7.0])[y, None] + np.zeros((80, 3))
    np.savez(tmp_path / "own.npz", x_train=x, y_train=y, x_test=x, y_test=y)
    values = {"data": str(tmp_path / "own.npz"), "partition": "iid", "parties": 2}
    three = run(tmp_path / "three", known=3, **values)
    four = ostraka.add_class(tmp_path / "three", "3", out=tmp_path / "four", rounds=1)
    means = [_view(result.folder).mean for result in (three, four)]
    assert means[0] == means[1] == pytest.approx((1.0, 1.0, 1.0))
    asked = torch.tensor([[0.0] * 3, [1.5] * 3, [7.0] * 3])
    before, after = (result.predictor().scores(asked).known[:, :3] for result in (three, four))
    assert torch.equal(before, after)
    assert "samples are standardised as those of the start were" in four.summary.notes


def _view(folder: Path) -> View:
    return task_from(load_model(folder)[1]["task"]).view


def test_every_networks_accuracy_is_in_each_round(nine: Path) -> None:
    rows = ostraka.RunDir(nine).read_metrics()
    assert [list(row.test.per_network) for row in rows] == [list("012345678")] * 6
    first, last = (list(rows[i].test.per_network.values()) for i in (0, -1))
    assert fmean(last) > fmean(first)
    assert fmean(last) > 85


def test_single_labels_alone_are_refused_or_destroyed(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="single label"):
        run(tmp_path / "a", partition="labels:1")
    summary = run(tmp_path / "b", partition="labels:1", set={**QUICK, "outliers": "dd"}).summary
    assert summary.accuracy > 30
    assert not any("single label" in note for note in summary.notes)
    mixed = {"partition": "dirichlet:0.05", "set": {**QUICK, "rounds": 1}}
    said = run(tmp_path / "c", **mixed).summary.notes
    assert any("hold a single label and do not train" in note for note in said)


def test_fit_of_side_by_side_counts_the_mean_loss() -> None:
    """The card's loss is that of one network, not the sum."""
    method = FedOVA(local=RoundBudget(epochs=1, batch=100, lr=1e-9))
    start, party = method.init(TASK, 5), parties()[0]
    loss = update(method, party, start).card.scores["loss"]
    alone = []
    for label, name in ((0, "ant"), (1, "bee")):
        net = task_of(TASK, name).build_net(False)
        goal, own = OneVsAll(), relabelled(party.samples, [label])
        alone.append(fit(net, start.nets[name], own, goal, method.local, 7).losses[0])
    assert loss == pytest.approx(sum(alone) / 2, rel=1e-5)
