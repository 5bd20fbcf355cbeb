"""Members of a group that do not fit each other: no single one decides for all."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from ostraka.core.member import Member
from ostraka.core.samples import Samples, View
from ostraka.errors import DataError, OstrakaError, StoreError
from ostraka.parties.answers import Answers
from ostraka.parties.asked import labels_for, read_for
from ostraka.parties.distilling import distil
from ostraka.parties.ensemble import Ensemble, selected
from ostraka.parties.gathering import answering, gather
from ostraka.parties.task_file import make_task
from ostraka.parties.verdict import judge
from tests.parties.voters import ANNA, BERTA, TRUTH, Table, samples, save, three, voter


def seen_by(member: Member, **view: object) -> Member:
    """The same weights for images of one row of five, behind this view."""
    return replace(member, model=replace(member.model, shape=(1, 1, 5), view=View(**view)))


def bytes_group(*more: Member) -> list[Member]:
    """Members whose samples are stored as 0 to 255: their logits are those of `voters`."""
    return [seen_by(m, scale=1 / 255, unit=255.0) for m in three()] + list(more)


def again(view: dict[str, object]) -> Member:
    """A fourth member, called AA, whose answers are anna's where its view is hers."""
    return seen_by(voter("AA", ("cat", "dog"), shifted(ANNA)), **{"unit": 255.0, **view})


def shifted(table: Table) -> Table:
    """Logits of the same shares, and other weights."""
    return [tuple(value + 0.25 for value in line) for line in table]


STORED = (255 * samples()).astype(np.uint8).reshape(5, 1, 1, 5)


@pytest.mark.parametrize(
    "view",
    [
        {"scale": 1.0, "mean": (0.0,), "std": (255.0,)},
        {"scale": 2 / 255, "mean": (0.0,), "std": (2.0,)},
    ],
)
def test_a_view_that_is_equal_by_its_formula_changes_nothing(
    view: dict[str, object], tmp_path: Path
) -> None:
    """Whatever the member is called, and whoever asks: the command reads samples by `read_for`."""
    usual = Ensemble(bytes_group(again({"scale": 1 / 255})), "sum")
    np.savez(tmp_path / "x.npz", x=STORED.reshape(5, 1, 5))
    for name in ("AA", "zz"):
        other = again(view)
        group = bytes_group(replace(other, card=replace(other.card, name=name)))
        ensemble = Ensemble(save(tmp_path / name, *group), "sum")
        held = read_for(ensemble, tmp_path / "x.npz", labelled=False)
        asked = ensemble.answer(held.samples.stored())
        assert_same(asked, ensemble.answer(STORED))
        assert asked.labels.tolist() == usual.predict(STORED).tolist()
        torch.testing.assert_close(asked.unknown, usual.answer(STORED).unknown)


def assert_same(one: Answers, other: Answers) -> None:
    assert one.numbers.tolist() == other.numbers.tolist()
    for name in ("unknown", "confidence"):
        assert torch.equal(getattr(one, name), getattr(other, name)), name


def test_samples_are_brought_to_the_unit_of_all_and_to_no_ones_view() -> None:
    """Bytes of 0 to 255 for members of 0 to 16: 255 becomes 16, whatever the first member makes."""
    first = seen_by(voter("AA", ("cat", "dog"), shifted(ANNA)), scale=2 / 16, unit=16.0)
    ensemble = Ensemble([first, *(seen_by(m, scale=1 / 16, unit=16.0) for m in three())])
    taken = ensemble.taken(Samples(torch.from_numpy(STORED), view=View(1 / 255)))
    assert taken.stored().max() == 16
    assert taken.view == View(1 / 16)
    assert ensemble.taken(taken.stored()).view == taken.view


def test_the_command_and_python_look_at_the_same_samples() -> None:
    """Of more samples than are looked at, those of one choice: the same to the bit."""
    ensemble = Ensemble(bytes_group(), {"name": "guarded", "copies": False})
    x = torch.from_numpy(STORED).repeat(300, 1, 1, 1)
    x[:, 0, 0, 0] = torch.arange(1500) % 251
    by_file = ensemble.seeing(Samples(x, view=View(1 / 255, mean=(0.5,), std=(2.0,))))
    by_hand = ensemble.seeing(x.numpy())
    assert by_file.seen is not None
    assert by_hand.seen is not None
    assert torch.equal(by_file.seen.agreement, by_hand.seen.agreement)


def test_a_member_of_another_unit_is_refused_by_name(tmp_path: Path) -> None:
    files = save(tmp_path, *bytes_group(again({"unit": 1.0})))
    words = r"AA.member takes image \[1, 1, 5\], values as they are; the group has .* from 0 to 255"
    with pytest.raises(StoreError, match=words):
        Ensemble(files)
    ensemble = Ensemble(files, skip_broken=True)
    assert ensemble.names == ("anna", "berta", "carl")
    assert "left out: " in ensemble.notes[0]
    with pytest.raises(DataError, match=r"anna: image .* from 0 to 255; AA: .* as they are"):
        Ensemble([files[0], files[3]], skip_broken=True)  # who is the odd one, nobody can say


def test_members_of_another_task_are_refused_by_name(tmp_path: Path) -> None:
    task = make_task(("cat", "dog", "eel"), kind="table", shape=(5,))
    members = [replace(m, made=replace(m.made, task=task.digest)) for m in three()]
    members[1] = replace(members[1], made=replace(members[1].made, task="other"))
    files = save(tmp_path, *members)
    with pytest.raises(
        StoreError, match=r"berta.member is of the task 'other'; the group's task is"
    ):
        Ensemble(files, task=task)
    assert Ensemble(files, task=task, skip_broken=True).names == ("anna", "carl")
    assert len(Ensemble(files).names) == 3
    small = make_task(("cat", "dog", "eel"), kind="table", shape=(4,))
    with pytest.raises(StoreError, match=r"takes table \[5\], .*; the task has table \[4\]"):
        Ensemble(three(), task=small)


def test_a_class_that_looks_like_anothers_is_refused(tmp_path: Path) -> None:
    """With its Cyrillic a it would be a class of its own, beside the one that reads the same."""
    fake = voter("AA", ("c\u0430t", "dog"), shifted(ANNA))
    files = save(tmp_path, fake, *three())
    words = r"AA.member has the class 'c.t' \(CYRILLIC SMALL LETTER A\), which looks like 'cat' of"
    with pytest.raises(StoreError, match=words):
        Ensemble(files)
    ensemble = Ensemble(files, skip_broken=True)
    assert (ensemble.names, ensemble.classes) == (("anna", "berta", "carl"), ("cat", "dog", "eel"))
    two = Ensemble([fake, voter("b", ("cat", "dog"), BERTA)], skip_broken=True)
    assert two.names == ("b",), "of one against one, that of plain letters"


def test_spellings_of_one_name_are_one_class() -> None:
    """Ligatures, wide letters and accents apart or not: NFKC."""
    one = voter("a", ("\ufb01sh", "caf\u00e9"), ANNA)
    other = voter("b", ("fish", "cafe\u0301"), BERTA)
    ensemble = Ensemble([one, other], "sum")
    assert len(ensemble.classes) == 2
    assert ensemble.notes == ()
    found = ensemble.evaluate(samples()[:2], ("cafe\u0301", "f\uff49sh"))
    assert (found.unknown_samples, found.samples) == (0, 2)


def test_capital_letters_are_pointed_out() -> None:
    ensemble = Ensemble([*three(), voter("d", ("Cat", "dog"), shifted(BERTA))], "sum")
    assert ensemble.classes == ("cat", "dog", "eel", "Cat")
    assert "'cat' and 'Cat' count as different classes" in ensemble.notes[0]


def overflowing(name: str, on: Sequence[int], weight: float = 5e37) -> Member:
    """anna's answers, but no numbers to the samples `on`: weights of 5e37 pass the probes, and
    overflow where a value is 9.
    """
    member = voter(name, ("cat", "dog"), ANNA)
    first, last = (key for key in member.params if member.params[key].dim() == 2)
    member.params[first] = torch.eye(5)
    for place in on:
        member.params[last][:, place] = weight * torch.tensor([1.0, -1.0, 1.0])
    return member


PLAIN = {"name": "guarded", "junk": False, "copies": False}
HIGH = np.concatenate([samples(), 9 * samples()])
"""The second five overflow, the first five do not."""


@pytest.mark.parametrize("ballot", ["sum", "guarded", "plurality", PLAIN])
def test_a_member_that_overflows_is_left_out_of_everything(ballot: object, tmp_path: Path) -> None:
    """The others answer as if it had never been there, and a note names it."""
    files = save(tmp_path, *three(), overflowing("evil", [0, 3]))
    without = Ensemble(three(), ballot).seeing(HIGH)
    for ensemble in (
        Ensemble(files, ballot),
        Ensemble([*three(), overflowing("evil", [3])], ballot),
    ):
        ready, answers = ensemble.seeing(HIGH).asked(HIGH)
        assert ready.names == answers.members == ("anna", "berta", "carl")
        assert_same(answers, without.answer(HIGH))
        assert ready.promise == without.promise
        assert "evil" in ready.notes[-1]
        assert "NaN or infinity" in ready.notes[-1]
        kept = ensemble.keeping(0.4, known=HIGH)
        assert kept.threshold == without.keeping(0.4, known=HIGH).threshold
        with pytest.warns(UserWarning, match="evil"):
            assert ensemble.predict(HIGH).tolist() == answers.labels.tolist()
        with pytest.warns(UserWarning, match="evil"):
            assert torch.equal(
                ensemble.scores(HIGH).known, Ensemble(three(), ballot).scores(HIGH).known
            )
        y = TRUTH * 2
        with pytest.warns(UserWarning, match="evil"):
            assert ensemble.evaluate(HIGH, y) == Ensemble(three(), ballot).evaluate(HIGH, y)


def test_the_others_look_again_without_it() -> None:
    """It answers the samples that are looked at, and says there what moves the trust in anna."""
    low = samples().repeat(8, axis=0)
    ensemble = Ensemble([*three(), overflowing("evil", [0])], PLAIN).seeing(low)
    ready, answers = ensemble.asked(HIGH)
    other = Ensemble(three(), PLAIN).seeing(low)
    assert ready.seen is not None
    assert other.seen is not None
    assert torch.equal(ready.seen.agreement, other.seen.agreement)
    assert_same(answers, other.answer(HIGH))


def test_a_verdict_and_a_stream_go_on_without_it() -> None:
    ensemble = Ensemble([*three(), overflowing("evil", [0])], PLAIN)
    numbers = ensemble.numbers
    labels = torch.tensor([numbers.get(name, -1) for name in TRUTH * 2])
    verdict = judge(ensemble, Samples(torch.from_numpy(HIGH), labels), "x")
    assert [one.name for one in verdict.members] == ["anna", "berta", "carl"]
    assert any("evil" in note for note in verdict.notes)
    stream, other = (
        ensemble.stream(size=4, every=2),
        Ensemble(three(), PLAIN).stream(size=4, every=2),
    )
    first = stream.answer(HIGH[1:3])
    assert first.members == ("anna", "berta", "carl", "evil")
    with pytest.warns(UserWarning, match="evil"):
        later = stream.answer(HIGH[5:7])
    assert later.members == other.answer(HIGH[5:7]).members == ("anna", "berta", "carl")
    assert stream.predict(HIGH[:2]).tolist() == other.predict(HIGH[:2]).tolist()


def test_a_student_and_a_choice_go_on_without_it(tmp_path: Path) -> None:
    public = HIGH.repeat(4, axis=0)
    group = [*three(), overflowing("evil", [0])]
    made = distil(Ensemble(group, PLAIN), public, net="mlp")
    assert any("evil" in note for note in made.notes)
    assert made.member.made.more["teachers"] == ["anna", "berta", "carl"]
    found = answering(gather(save(tmp_path, *group)), Samples(torch.from_numpy(public)))
    assert found.names == ("anna", "berta", "carl")
    assert "evil" in found.notes[0]
    chosen, _ = selected(found, {"name": "ds", "size": 2}, None, 0)
    assert len(chosen.members) == 2
    tuned = Ensemble(group, {"name": "calibrated", "public": "probe"}, public=public)
    assert tuned.names == ("anna", "berta", "carl")


def test_where_no_member_is_left_that_is_said() -> None:
    with pytest.raises(OstrakaError, match="evil answers with NaN or infinity"):
        Ensemble([overflowing("evil", [0])], "sum").predict(HIGH)
    with pytest.raises(DataError, match="no member is left that can vote: left out: evil"):
        Ensemble([overflowing("evil", range(5), 3e38)], "sum")


def test_a_class_that_nobody_owns_is_unknown(tmp_path: Path) -> None:
    """dora knows yaks by name and has none, and nobody else does: two yaks of five samples. By the
    plain sum anna, berta and carl answer all five rightly (`test_the_plain_sum_by_hand`).
    """
    dora = voter("dora", ("cat", "yak"), [(0, 0, 9)] * 5, (100, 0))
    ensemble = Ensemble([*three(), dora], "sum")
    assert dict(zip(ensemble.classes, ensemble.owned, strict=True))["yak"] is False
    found = ensemble.evaluate(samples(), TRUTH)
    assert (found.samples, found.unknown_samples) == (5, 2)
    assert (found.open.known_refused, found.open.unknown_refused) == (0.0, 100.0)
    np.savez(tmp_path / "x.npz", x=samples(), y=np.array(TRUTH))
    held = read_for(ensemble, tmp_path / "x.npz")
    labelled, notes = labels_for(ensemble, held)
    assert labelled.labels.tolist() == [0, 1, 2, -1, -1]
    assert notes == [
        "samples of yak count as unknown: no member that votes has samples of such a class"
    ]


def test_a_class_whose_only_owner_is_left_out_is_unknown() -> None:
    """evil alone has yaks, and is left out for what it says of another sample."""
    evil = overflowing("evil", [0])
    evil = replace(evil, model=replace(evil.model, classes=("cat", "yak")))
    ensemble = Ensemble([*three(), evil], "sum")
    labels = torch.tensor([ensemble.numbers[name] for name in TRUTH * 2])
    assert labels[3] == 3
    verdict = judge(ensemble, Samples(torch.from_numpy(HIGH), labels), "x")
    assert (verdict.evaluation.samples, verdict.evaluation.unknown_samples) == (10, 4)
    assert [one.name for one in verdict.classes] == ["cat", "dog", "eel", "unknown"]
    with pytest.warns(UserWarning, match="evil"):
        assert ensemble.evaluate(HIGH, TRUTH * 2).unknown_samples == 4


@pytest.mark.parametrize("way", ["size", "bands"])
def test_where_the_cards_do_not_tell_it_that_is_said(way: str, tmp_path: Path) -> None:
    """The lowest band is `<10`: it may be none, or nine."""
    dora = voter("dora", ("cat", "yak"), [(0, 0, 9)] * 5, None if way == "size" else (100, 0))
    dora = replace(dora, made=replace(dora.made, banded=way == "bands"))
    ensemble = Ensemble([*three(), dora], "sum")
    assert ensemble.owned == (True, True, True, None)
    np.savez(tmp_path / "x.npz", x=samples(), y=np.array(TRUTH))
    labelled, notes = labels_for(ensemble, read_for(ensemble, tmp_path / "x.npz"))
    assert labelled.labels.tolist() == [0, 1, 2, 3, 3]
    assert len(notes) == 1
    assert "samples of yak count as known; whether" in notes[0]
