"""An ensemble of members whose votes are written down."""

from dataclasses import replace
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import ostraka
from ostraka.core.card import Card
from ostraka.core.learner import build_net
from ostraka.core.member import Member, Model
from ostraka.core.net import Recipe, params_of
from ostraka.core.samples import Samples, View
from ostraka.errors import ConfigError, DataError, OstrakaError, StoreError
from ostraka.objectives.open_voting import OpenVoting
from ostraka.parties.ensemble import Ensemble
from ostraka.parties.verdict import judge
from ostraka.voting.selectors import Pool
from tests.parties.voters import ANNA, BERTA, CARL, TRUTH, samples, save, shares, three, voter

CLASSES = ("cat", "dog", "eel")


def by_hand() -> tuple[np.ndarray, np.ndarray]:
    """The plain sum of the classes' probabilities [5, 3] and the least doubt [5]: anna knows cat
    and dog, berta dog and eel, carl eel and cat."""
    anna, berta, carl = map(shares, (ANNA, BERTA, CARL))
    known = np.stack(
        [anna[:, 0] + carl[:, 1], anna[:, 1] + berta[:, 0], berta[:, 1] + carl[:, 0]], axis=1
    )
    return known, np.stack([anna[:, 2], berta[:, 2], carl[:, 2]]).min(axis=0)


def test_the_plain_sum_by_hand() -> None:
    known, doubt = by_hand()
    answers = Ensemble(three(), ballot="sum").answer(samples())
    assert answers.classes == CLASSES
    assert answers.labels.tolist() == ["cat", "dog", "eel", "unknown", "unknown"]
    assert answers.nearest.tolist() == known.argmax(axis=1).tolist()
    np.testing.assert_allclose(answers.unknown, doubt, atol=1e-6)
    np.testing.assert_allclose(answers.confidence, known.max(axis=1) / known.sum(axis=1), atol=1e-6)
    assert answers.threshold == 0.5


def test_an_explanation_says_who_said_what_with_which_weight() -> None:
    cat, *_, yak = Ensemble(three(), ballot="sum").explain(samples())
    assert (cat.answer, cat.nearest, cat.answered_by) == ("cat", "cat", ("anna", "carl"))
    voices = {voice.member: voice for voice in cat.voices}
    assert [(v.member, v.weight) for v in cat.voices] == [
        ("anna", 0.5),
        ("carl", 0.5),
        ("berta", 0),
    ]
    assert voices["anna"].answer == "cat"
    assert voices["anna"].probability == pytest.approx(shares(ANNA)[0, 0])
    assert (voices["berta"].answer, voices["berta"].nearest) == ("unknown", "dog")
    assert yak.answer == "unknown"
    assert {voice.answer for voice in yak.voices} == {"unknown"}
    assert set(yak.answered_by) == {v.member for v in yak.voices if v.weight}
    assert "anna: cat, 91 %, weight 0.50" in str(cat)
    assert cat.as_dict()["voices"][0]["member"] == "anna"


@pytest.mark.parametrize(
    ("ballot", "weights"),
    [
        # anna tells 300 dogs and berta 100: 300 / 400 and 100 / 200 of full weight, together 1.25
        ("calibrated", {"anna": 0.6, "berta": 0.4, "carl": 0.0}),
        # of the two that count for this sample, who doubt least, both know dogs
        ({"name": "top-k", "k": 2}, {"anna": 0.5, "berta": 0.5, "carl": 0.0}),
        ({"name": "top-k", "k": 1}, {"anna": 1.0, "berta": 0.0, "carl": 0.0}),
        # sizes 400 and 200; carl does not know dogs
        ({"name": "plurality", "voice": "size"}, {"anna": 2 / 3, "berta": 1 / 3, "carl": 0.0}),
        ("plurality", {"anna": 0.5, "berta": 0.5, "carl": 0.0}),
    ],
)
def test_every_ballot_tells_its_weights(ballot: Any, weights: dict[str, float]) -> None:
    table = [(0, 3, -1), *ANNA[1:]]
    members = [
        voter("anna", ("cat", "dog"), table, (100, 300)),
        voter("berta", ("dog", "eel"), [(3, -1, 0), *BERTA[1:]]),
        voter("carl", ("eel", "cat"), [(-1, -1, 3), *CARL[1:]]),
    ]
    (told,) = Ensemble(members, ballot).explain(samples()[:1])
    assert told.nearest == "dog"
    assert {v.member: v.weight for v in told.voices} == pytest.approx(weights)


def test_a_guarded_vote_weighs_by_trust() -> None:
    """dora tells dogs as anna and berta do, and answers at random: she loses her say in them."""
    rng = np.random.default_rng(0)
    noise = rng.normal(0, 3, (200, 3))
    truth = np.eye(2)[rng.integers(0, 2, 200)] * 8 - 4
    honest = np.concatenate([truth, np.zeros((200, 1))], axis=1)
    members = [
        voter(name, ("cat", "dog"), (honest + rng.normal(0, 0.3, (200, 3))).tolist())
        for name in ("anna", "berta", "carl")
    ] + [voter("dora", ("cat", "dog"), noise.tolist())]
    x = samples(200)
    blind = Ensemble(members, {"name": "guarded", "junk": False, "copies": False})
    seeing = blind.seeing(x)
    assert [v.weight for v in blind.explain(x[:1])[0].voices] == pytest.approx([0.25] * 4)
    weights = {v.member: v.weight for v in seeing.explain(x[:1])[0].voices}
    assert weights["dora"] < 0.1 < min(weights[name] for name in ("anna", "berta", "carl"))
    assert sum(weights.values()) == pytest.approx(1)
    assert "dora" in seeing.trust()["suspects"]
    assert "class cat" in " ".join(seeing.trust()["suspects"]["dora"])
    assert blind.trust() == {}


def test_the_order_of_members_does_not_matter(tmp_path: Path) -> None:
    files = save(tmp_path, *three())
    first = Ensemble(files).seeing(samples())
    assert (first.names, first.classes) == (("anna", "berta", "carl"), CLASSES)
    for order in permutations(range(3)):
        other = Ensemble([files[i] for i in order]).seeing(samples())
        assert other.names == first.names
        assert torch.equal(other.scores(samples()).known, first.scores(samples()).known)
        assert other.explain(samples()) == first.explain(samples())


def test_files_folders_patterns_and_lists_are_the_same(tmp_path: Path) -> None:
    files = save(tmp_path / "wards", *three())
    (tmp_path / "list.txt").write_text("# chosen\nwards/anna.member\n\nwards/carl.member\n")
    every = Ensemble(files).scores(samples()).known
    for given in (tmp_path / "wards", str(tmp_path / "wards" / "*.member"), [files[0], *files]):
        assert torch.equal(Ensemble(given).scores(samples()).known, every)
    listed = Ensemble(tmp_path / "list.txt")
    assert listed.names == ("anna", "carl")
    assert listed.files == (files[0].replace("wards/", "wards/"), files[2])


def test_the_same_weights_count_once(tmp_path: Path) -> None:
    anna, berta, carl = three()
    renamed = replace(anna, card=replace(anna.card, name="zoe"))
    files = save(tmp_path, anna, berta, carl, renamed)
    ensemble = Ensemble(files, ballot="sum")
    assert ensemble.names == ("anna", "berta", "carl")
    assert len(ensemble.notes) == 1
    assert "zoe.member has the same weights as" in ensemble.notes[0]
    np.testing.assert_allclose(ensemble.scores(samples()).known, by_hand()[0], atol=1e-6)
    assert Ensemble([files[0], files[0], *files[1:3]]).notes == ()


def test_a_copy_with_another_card_is_refused(tmp_path: Path) -> None:
    """The first by name would else decide how large its party is, and what it is said to see."""
    anna, berta, _ = three()
    larger = replace(anna, card=replace(anna.card, name="AA", size=5, counts=(2, 3)))
    other = replace(
        anna,
        card=replace(anna.card, name="AA"),
        model=replace(anna.model, view=replace(anna.model.view, scale=2.0, unit=1.0)),
    )
    for copy in (larger, other):
        files = save(tmp_path / str(copy is other), anna, berta, copy)
        with pytest.raises(
            DataError, match=r"anna.member has the same weights as .*AA.member, but"
        ):
            Ensemble(files, skip_broken=True)


def named(name: str) -> list[Member]:
    return [
        replace(m, card=replace(m.card, name=n))
        for m, n in zip(three(), ("x", "north", name), strict=True)
    ]


@pytest.mark.parametrize("name", ["north", "North ", "n\uff4frth", "n\u043erth"])
def test_a_party_votes_once(name: str, tmp_path: Path) -> None:
    """Also one whose name only looks like that of another; both files are named."""
    members = named(name)
    save(tmp_path / "a", *members[:2])
    save(tmp_path / "b", replace(members[2], card=replace(members[2].card, name=name.strip())))
    with pytest.raises(DataError, match=r"(?=.*/a/north.member )(?=.*/b/).*votes once"):
        Ensemble([tmp_path / "a", tmp_path / "b"], skip_broken=True)
    assert len(Ensemble([tmp_path / "a", tmp_path / "b" / "none"][:1]).names) == 2


def test_files_without_a_party_are_called_as_they_are(tmp_path: Path) -> None:
    for part, member in zip("abc", named(""), strict=True):
        save(tmp_path / part, replace(member, card=replace(member.card, name="")))
        (tmp_path / part / ".member").rename(tmp_path / part / "north.member")
    assert Ensemble([tmp_path / part for part in "abc"]).names == (
        "0: north",
        "1: north",
        "2: north",
    )


def test_closed_members_never_answer_unknown() -> None:
    members = [voter(name, ("cat", "dog"), [(2, 1), (0, 3 + i)]) for i, name in enumerate("ab")]
    ensemble = Ensemble(members, ballot="sum")
    assert ensemble.predict(np.eye(2)).tolist() == ["cat", "dog"]
    assert (ensemble.threshold, ensemble.promise.why) == (None, "it never answers unknown")
    assert ensemble.explain(np.eye(2))[0].threshold is None


def test_evaluation_by_hand() -> None:
    found = Ensemble(three(), ballot="sum").evaluate(samples(), TRUTH)
    assert (found.samples, found.unknown_samples, found.accuracy) == (5, 2, 100.0)
    assert found.open.auroc == 100.0
    assert (found.open.known_refused, found.open.unknown_refused) == (0.0, 100.0)
    wrong = Ensemble(three(), ballot="sum").evaluate(samples(), ("dog", "dog", "eel", "cat", "yak"))
    assert wrong.accuracy == pytest.approx(50.0)
    assert wrong.open.known_refused == 25.0


def test_the_threshold_is_placed_by_held_out_samples_or_by_hand() -> None:
    ensemble = Ensemble(three(), ballot="sum")
    doubt = by_hand()[1]
    assert "0 samples" in ensemble.promise.why
    kept = ensemble.keeping(0.4, known=samples())  # 2 of 5 may lie above
    assert kept.promise.rate == 0.4
    assert kept.promise.basis == "held-out"
    assert kept.threshold == pytest.approx(np.sort(doubt)[2])
    few = ensemble.keeping(0.05, known=samples())
    assert (few.promise.rate, few.threshold) == (None, 0.5)
    assert "20 or more are needed" in few.promise.why
    assert ensemble.placed(2.0).predict(samples()).tolist()[-1] != "unknown"
    assert set(ensemble.placed(-1.0).predict(samples())) == {"unknown"}
    assert ensemble.threshold == 0.5, "the first one is as it was"


def test_samples_may_be_lists_doubles_and_tensors() -> None:
    ensemble = Ensemble(three(), ballot="sum")
    answers = ensemble.predict(samples()).tolist()
    for given in (samples().tolist(), samples().astype(np.float64), torch.eye(5)):
        assert ensemble.predict(given).tolist() == answers


@pytest.mark.parametrize(
    ("x", "words"),
    [
        (np.zeros((0, 5)), "give at least one"),
        (np.full((2, 5), np.nan), "NaN or infinity"),
        (np.zeros((2, 4)), r"samples of shape \[5\]"),
        (np.zeros((2, 5), dtype=np.int64), "values of torch.int64"),
    ],
)
def test_samples_that_cannot_be_asked_are_refused(x: np.ndarray, words: str) -> None:
    with pytest.raises(DataError, match=words):
        Ensemble(three()).predict(x)


def untrained() -> list[Member]:
    """Members as networks really are: what they compute of a sample depends on the size of its
    batch in the last bits.
    """
    model = Model(("cat", "dog", "eel"), (64,), Recipe("mlp", {"hidden": [96, 64]}),
                  OpenVoting(outliers="none"), View(kind="table"))  # fmt: skip
    return [
        Member(Card(i, 200, (80, 70, 50), {}, {"doubt": -2.0}, f"p{i}"), model,
               params_of(build_net(model.task, model.objective, i)))
        for i in range(4)
    ]  # fmt: skip


@pytest.mark.parametrize("look", [False, True])
def test_an_answer_depends_on_its_sample_alone_to_the_bit(look: bool) -> None:
    """Asked alone, in another batch, in another order: the same numbers, and the same voices."""
    x = torch.randn(150, 64, generator=torch.Generator().manual_seed(0))
    like = torch.randn(200, 64, generator=torch.Generator().manual_seed(1))
    group = Ensemble(untrained()).placed(0.7)
    group = group.seeing(like) if look else group
    whole, order = group.explain(x), torch.randperm(150, generator=torch.Generator().manual_seed(2))
    assert [group.explain(x[i : i + 1])[0] for i in range(150)] == whole
    mixed = group.explain(torch.cat([like[:77], x[order]]))[77:]
    assert mixed == [whole[i] for i in order]
    scores = group.scores(x)
    for name in ("known", "unknown"):
        alone = torch.cat([getattr(group.scores(x[i : i + 1]), name) for i in range(150)])
        assert torch.equal(alone, getattr(scores, name))


def test_nothing_but_seeing_looks() -> None:
    """Whatever is asked and evaluated, trust is not estimated; and the order of what is looked at
    does not matter.
    """
    x = torch.randn(60, 64, generator=torch.Generator().manual_seed(0))
    group = Ensemble(untrained())
    group.predict(x)
    group.explain(x)
    group.evaluate(x, ["cat", "dog", "eel"] * 20)
    assert group.seen is None
    assert group.trust() == {}
    blind, seeing = group.evaluate(x, ["cat"] * 60), group.seeing(x).evaluate(x, ["cat"] * 60)
    assert blind.confusion != seeing.confusion
    turned = x[torch.randperm(60, generator=torch.Generator().manual_seed(3))]
    assert group.seeing(x).explain(x[:5]) == group.seeing(turned).explain(x[:5])


def test_many_samples_are_answered_in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ostraka.parties.answering.BLOCK", 2)
    whole = Ensemble(three()).answer(samples())
    assert len(whole) == 5
    assert whole.said.own.shape == (3, 5)
    assert whole.labels[:3].tolist() == ["cat", "dog", "eel"]


def test_a_selector_chooses_who_votes() -> None:
    members = [replace(m, card=replace(m.card, size=200 + i)) for i, m in enumerate(three())]
    ensemble = Ensemble(members, ballot="sum", select={"name": "ds", "size": 2})
    assert ensemble.names == ("berta", "carl")
    assert ensemble.selection["chosen"] == ["berta", "carl"]
    assert "samples 200: place 3 of 3" in ensemble.selection["why"]["anna"]
    added = Ensemble(members, ballot="sum", select={"name": "ds", "size": 1})
    assert added.names == ("berta", "carl")
    assert added.selection["notes"] == ["1 added, so that every class has an owner"]
    one = {"name": "ds", "size": 1, "every_class": False}
    left = Ensemble(members, ballot="sum", select=one)
    assert left.selection["notes"] == ["no selected member is known to have samples of class dog"]


def test_members_with_lists_of_different_lengths_are_chosen_among() -> None:
    """dedes compares class counts: they must be brought to one list before."""
    wide = voter("dora", ("eel", "yak", "cat"), [(1, 0, 2, 0)] * 5, (50, 60, 70))
    ensemble = Ensemble([*three(), wide], select={"name": "ld", "size": 2})
    assert len(ensemble.names) == 3, "no two of them know all four classes"
    pool = Pool([three()[0], wide], ("cat", "dog", "eel", "yak"))
    assert [card.counts for card in pool.cards] == [(100, 100, 0, 0), (70, 0, 50, 60)]


def test_classes_that_are_not_asked_for_count_as_unknown() -> None:
    ensemble = Ensemble(three(), ballot="sum", classes=("cat", "dog"))
    answers = ensemble.answer(samples())
    assert answers.labels.tolist() == ["cat", "dog", "unknown", "unknown", "unknown"]


def test_a_ballot_that_wants_public_samples_gets_them() -> None:
    tuned = {"name": "calibrated", "public": "probe"}
    with pytest.raises(ConfigError, match=r"tuned on public samples; give some"):
        Ensemble(three(), tuned)
    assert len(Ensemble(three(), tuned, public=samples()).predict(samples())) == 5


def broken(path: Path) -> str:
    data = bytearray(path.read_bytes())
    data[-3] ^= 0xFF
    path.with_name("evil.member").write_bytes(data)
    return str(path.with_name("evil.member"))


def test_a_broken_file_is_refused_by_name_or_left_out(tmp_path: Path) -> None:
    files = save(tmp_path, *three())
    files.append(broken(Path(files[0])))
    with pytest.raises(StoreError, match=r"evil.member .*Leave evil.member out"):
        Ensemble(files)
    ensemble = Ensemble(files, skip_broken=True)
    assert ensemble.names == ("anna", "berta", "carl")
    assert "left out: " in ensemble.notes[0]
    assert "evil.member" in ensemble.notes[0]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ([], "no member was given"),
        ("gone.member", "there is no file or folder 'gone.member'"),
        ("*.member", r"nothing is called '\*.member'"),
        ("empty", "holds no member files"),
        ("list.txt", "names 'gone.member', which is not there"),
        ("none.txt", "is empty"),
        ("binary.txt", "is no text"),
    ],
)
def test_what_leads_to_no_member_is_refused(
    given: Any, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("empty").mkdir()
    Path("list.txt").write_text("gone.member\n")
    Path("none.txt").write_text("# nobody\n")
    Path("binary.txt").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DataError, match=words):
        Ensemble(given)


def other_shape() -> list[Member]:
    return [three()[0], voter("dora", ("cat", "dog"), [(1, 0, 2), (0, 1, 0)])]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (
            lambda: Ensemble(other_shape()),
            r"one kind, shape and unit, .*anna: table \[5\], values as they are; dora: table \[2\]",
        ),
        (lambda: Ensemble(three(), "guardedd"), "Did you mean 'guarded'"),
        (lambda: Ensemble(three(), select="dede"), "Did you mean 'dedes'"),
        (lambda: Ensemble(three(), unknown_rate=5), "the unknown rate is 5"),
        (lambda: Ensemble(three()).keeping(0.0), "the unknown rate is 0"),
        (
            lambda: Ensemble([voter("a", ("cat", "Unknown"), ANNA), *three()[1:]]),
            "a class called 'Unknown'",
        ),
    ],
)
def test_members_that_cannot_vote_are_refused(make: Any, words: str) -> None:
    with pytest.raises(OstrakaError, match=words):
        make()


def test_a_member_without_class_counts_does_not_end_the_vote() -> None:
    """Its 100 samples are taken to be 50 of each of its two classes, and it is said."""
    silent = voter("anna", ("cat", "dog"), ANNA, None)
    mixed = Ensemble([silent, *three()[1:]])
    assert mixed.notes[0].startswith("1 of 3 members disclose no class counts (anna)")
    assert list(mixed.predict(samples())) == list(Ensemble(three()).predict(samples()))
    alone = Ensemble([silent])
    assert "counted by the plain sum" in alone.notes[0]
    assert list(alone.predict(samples()[:2])) == ["cat", "dog"]
    assert Ensemble([silent], "sum").notes == ()
    assert mixed.promise.rate is None
    assert mixed.trust() == {}
    assert mixed.seeing(samples()).trust()["counts"][0] == [0, 0, 0]


def test_a_stream_learns_whom_to_trust_as_it_goes() -> None:
    rng = np.random.default_rng(1)
    truth = np.eye(2)[rng.integers(0, 2, 60)] * 8 - 4
    honest = np.concatenate([truth, np.zeros((60, 1))], axis=1)
    members = [
        voter(name, ("cat", "dog"), (honest + rng.normal(0, 0.2, (60, 3))).tolist())
        for name in ("anna", "berta")
    ] + [voter("carl", ("cat", "dog"), rng.normal(0, 3, (60, 3)).tolist())]
    ballot = {"name": "guarded", "junk": False, "copies": False}
    ensemble, x = Ensemble(members, ballot), samples(60)
    stream = ensemble.stream(size=50, every=30)
    (first,) = stream.explain(x[:1])
    assert first == ensemble.explain(x[:1])[0]
    for one in x[1:30]:
        stream.predict(one[None])
    (later,) = stream.explain(x[:1])
    weights = {voice.member: voice.weight for voice in later.voices}
    assert weights["carl"] < 0.5 * weights["anna"]
    assert later.threshold == first.threshold
    assert stream.trust()["samples"] == 30
    with pytest.raises(ConfigError, match="at least 1"):
        ensemble.stream(size=0)


def test_it_is_a_public_name() -> None:
    assert ostraka.Ensemble is Ensemble
    assert repr(Ensemble(three())) == "<Ensemble of 3 members on 3 classes>"


def test_a_vote_that_rejects_everything_says_so() -> None:
    ensemble = Ensemble(three(), ballot="sum")
    rows = samples()
    held = Samples(torch.as_tensor(rows), torch.zeros(len(rows), dtype=torch.long))
    said = "100 % of the samples of known classes are rejected as unknown"
    assert any(note.startswith(said) for note in judge(ensemble.placed(-1.0), held, "rows").notes)
    assert not any(note.startswith(said) for note in judge(ensemble, held, "rows").notes)


def test_a_vote_at_chance_says_so_and_what_to_do() -> None:
    """Every sample is labelled as a class that is not the vote's answer; then as its answer."""
    ensemble = Ensemble(three(), ballot="sum")
    rows = np.repeat(samples(), 10, axis=0)
    right = ensemble.scores(rows).closed
    wrong = (right + 1) % len(ensemble.classes)
    said = "hardly trained: the vote is at chance (balanced accuracy 0.0 %"
    notes = judge(ensemble, Samples(torch.as_tensor(rows), wrong), "rows").notes
    assert any(note.startswith(said) and "ostraka train --epochs" in note for note in notes)
    notes = judge(ensemble, Samples(torch.as_tensor(rows), right), "rows").notes
    assert not any("hardly trained" in note for note in notes)
