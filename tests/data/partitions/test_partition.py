"""Partition rules against numbers derived by hand, specs, files and error messages."""

import hashlib
import json
from dataclasses import dataclass

import numpy as np
import pytest

from ostraka.data.partitions.divide import partition
from ostraka.data.partitions.rule import Rule, Shares
from ostraka.data.partitions.rules import Dirichlet, floored_sizes
from ostraka.data.partitions.spec import describe, format_spec, parse
from ostraka.errors import PartitionError
from ostraka.registry import PARTITIONS

LABELS = np.repeat(np.arange(4), 10)  # class c is rows 10c to 10c + 9


def table(spec, parties, labels=LABELS, classes=4, seed=0, **more):
    return partition(spec, labels, parties, seed, classes=classes, **more).table(labels, classes)


class FixedDraws:
    """Stands for a generator whose Dirichlet draws are given."""

    def __init__(self, *draws):
        self.draws = [np.array(d) for d in draws]

    def dirichlet(self, alpha):
        draw = self.draws.pop(0)
        assert len(draw) == len(alpha)
        return draw


def test_labels_1_gives_party_i_class_i_mod_c():
    """8 parties, 4 classes of 10: parties i and i + 4 share class i, five samples each."""
    expected = np.zeros((8, 4), int)
    expected[np.arange(8), np.arange(8) % 4] = 5
    assert np.array_equal(table("labels:1", 8), expected)


def test_labels_with_all_classes_is_an_equal_split():
    """With k = C every party owns every class: 10 samples for 3 parties are 4, 3 and 3."""
    assert np.array_equal(table("labels:4", 3), np.array([[4] * 4, [3] * 4, [3] * 4]))


def test_labels_first_random_ignores_the_cycle():
    draws = [
        table("labels:1,first=random", 12, np.repeat(np.arange(4), 100), seed=s) for s in range(3)
    ]
    cycle = np.arange(12) % 4
    assert any((t.argmax(axis=1) != cycle).any() for t in draws)


@pytest.mark.parametrize(
    ("spec", "parties", "labels", "message"),
    [
        # 2 x 1 owners for 4 classes: 4 x 1 or 2 x 2 are the first that suffice
        (
            "labels:1",
            2,
            LABELS,
            "2 parties with 1 classes each own at most 2 of 4.*works: 4 parties or 2 classes per",
        ),
        # parties 1 and 3 both start with class 1, which has one sample;
        # with 3 parties only one does
        (
            "labels:1",
            4,
            [0] * 10 + [1],
            "class 1 has 1 samples for 2 owners; what works: 3 parties",
        ),
        # 3 parties x 2 classes = 6 shares; class 1 can give one, class 0 three (one for each party)
        (
            "labels:2,first=random",
            3,
            [0] * 9 + [1],
            "need 6 parts of a class, the samples give 4.*1 parties or 1 class",
        ),
        ("labels:1", 2, [0] * 9, "class 1 has 0 samples for 1 owners; no number of parties works"),
    ],
)
def test_labels_that_cannot_be_say_what_can(spec, parties, labels, message):
    classes = max(*labels, 1) + 1
    with pytest.raises(
        PartitionError, match=f"{spec[:8]} with {parties} parties is not possible: .*{message}"
    ):
        table(spec, parties, np.array(labels), classes)


GOLDEN = {
    ("labels:2", 10, 10, 0): "801d5ae11ee6d187",
    ("labels:2", 7, 10, 3): "f876446887fdb50a",
    ("labels:3", 5, 10, 1): "30ed4e741e1e302e",
    ("labels:2,first=random", 9, 10, 2): "67b5513e9df2de9b",
    ("labels:3", 12, 26, 1): "7eb0fe60f4756a75",
    ("labels:2", 5, 10, 0): "ddccab8995dc042e",
    ("labels:4", 9, 26, 4): "3180b269bf9bd0b4",
}
"""(spec, parties, classes, seed): of the parties' rows, as the first draw that fits gave them
before there was more.
"""


@pytest.mark.parametrize("case", GOLDEN)
def test_labels_that_chance_finds_stay_as_they_were(case):
    spec, parties, classes, seed = case
    labels = np.random.default_rng(7).permutation(np.repeat(np.arange(classes), 40))
    digest = hashlib.sha256()
    for rows in partition(spec, labels, parties, seed, classes=classes).parties:
        digest.update(len(rows).to_bytes(4, "big") + rows.astype("<i8").tobytes())
    assert digest.hexdigest()[:16] == GOLDEN[case]


@pytest.mark.parametrize(("k", "parties", "classes"), [(2, 5, 10), (3, 12, 26)])
def test_labels_with_hardly_a_choice_work_for_every_seed(k, parties, classes):
    """Of these, one draw in some hundreds or thousands has an owner for every class:
    1000 draws may find none.
    """
    labels = np.repeat(np.arange(classes), 40)
    for seed in range(8):
        found = table(f"labels:{k}", parties, labels, classes, seed)
        assert ((found > 0).sum(axis=1) == k).all()
        assert (found.sum(axis=0) == 40).all()
        assert all(found[i, i] > 0 for i in range(parties))


def test_dirichlet_balance_by_hand():
    """Two classes of 10, two parties, a fair size of 10.

    Class 0, p = (1.0, 0.0): party 0 gets 10 and is full. Class 1, p = (0.7, 0.3): party
    0's share becomes 0, party 1's is renormalised to 1, so it gets all 10. Without balance
    the cut is at floor(0.7 * 10) = 7.
    """
    counts, draws = np.array([10, 10]), ([1.0, 0.0], [0.7, 0.3])
    balanced = Dirichlet(0.5).draw(counts, 2, FixedDraws(*draws))
    assert balanced.tolist() == [[10, 0], [0, 10]]
    plain = Dirichlet(0.5, balance=False).draw(counts, 2, FixedDraws(*draws))
    assert plain.tolist() == [[10, 7], [0, 3]]


def test_dirichlet_draws_again_when_only_full_parties_were_drawn():
    """Class 1's draw gives all to the full party 0:
    a new draw is made among the open parties, here 1 and 2.
    """
    draws = FixedDraws([1.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.5, 0.5])
    assert Dirichlet(0.5).draw(np.array([10, 10]), 3, draws).tolist() == [[10, 0], [0, 5], [0, 5]]


def test_dirichlet_cuts_by_cumulative_shares():
    """Shares (0.25, 0.35, 0.40) of 10: cuts at floor(2.5) = 2 and floor(6.0) = 6."""
    draws = FixedDraws([0.25, 0.35, 0.40])
    assert Dirichlet(0.5).draw(np.array([10]), 3, draws)[:, 0].tolist() == [2, 4, 4]


def test_dirichlet_gives_up_after_bounded_draws():
    labels = np.repeat(np.arange(2), 50)
    with pytest.raises(
        PartitionError,
        match=r"not possible in 1000 draws: min_size is 10, the best draw left party \d+",
    ):
        table("dirichlet:0.001,balance=false", 10, labels, 2)
    with pytest.raises(
        PartitionError, match=r"11 parties of at least 10 samples need 110, there are 100"
    ):
        table("dirichlet:0.5", 11, labels, 2)


def test_party_dirichlet_zero_is_one_class_per_party():
    """4 classes of 10 and 8 parties of 5: sizes divide, so every party has exactly one class."""
    found = table("party-dirichlet:0", 8)
    assert sorted(found.max(axis=1)) == [5] * 8
    assert (found.sum(axis=0) == 10).all()


def test_party_dirichlet_with_a_large_number_is_nearly_iid():
    labels = np.repeat(np.arange(4), 1000)
    found = table("party-dirichlet:100000", 4, labels)
    # five standard deviations of a binomial(1000, 1/4) are 68
    assert np.abs(found - 250).max() < 80


def test_party_dirichlet_differs_from_dirichlet_in_sizes():
    labels = np.repeat(np.arange(4), 1000)
    assert set(table("party-dirichlet:0.3", 8, labels).sum(axis=1)) == {500}
    assert len(set(table("dirichlet:0.3", 8, labels).sum(axis=1))) > 1


def test_shards_by_hand():
    """4 classes of 10, 6 parties, l = 2: 12 parts, 3 of each class, of 4, 3 and 3 samples."""
    found = table("shards:2", 6)
    assert ((found > 0).sum(axis=1) == 2).all()
    for column in found.T:
        assert sorted(column[column > 0]) == [3, 3, 4]


def test_floored_sizes_by_hand():
    """Shares (0.01, 0.09, 0.9) of 100 with floor 10.

    The first two (1 and 9) are raised to 10; the third gets what is left, 80.
    """
    assert floored_sizes(np.array([0.01, 0.09, 0.9]), 100, 10).tolist() == [10, 10, 80]
    assert floored_sizes(np.array([0.5, 0.5, 0.0]), 11, 1).tolist() == [5, 5, 1]
    # 2.6, 2.6 and 4.8 of 10: the two samples that rounding down leaves go to
    # the remainders .8 and the first .6.
    assert floored_sizes(np.array([0.26, 0.26, 0.48]), 10, 1).tolist() == [3, 2, 5]
    assert floored_sizes(np.array([1.0, 0.0, 0.0]), 30, 10).tolist() == [10, 10, 10]


def test_domain_is_the_domain_column():
    domain = np.array(["usps", "mnist"] * 20)
    found = partition("domain", LABELS, 2, 0, classes=4, columns={"domain": domain})
    assert found.names == ("mnist", "usps")
    assert found.parties[0].tolist() == list(range(1, 40, 2))


def test_by_refuses_another_number_of_parties():
    with pytest.raises(PartitionError, match="has 2 values, 3 parties were asked for; ask for 2"):
        partition("by:who", LABELS, 3, 0, classes=4, columns={"who": np.arange(40) % 2})


def test_by_names_the_columns_there_are():
    with pytest.raises(
        PartitionError, match=r"no column 'speakr'. Did you mean 'speaker'\? Its columns: speaker"
    ):
        partition("by:speakr", LABELS, 0, 0, classes=4, columns={"speaker": LABELS})


def test_rows_outside_are_never_given_out():
    rows = np.array([3, 11, 25, 38])
    found = partition("iid", LABELS, 2, 0, rows=rows, classes=4)
    assert sorted(np.concatenate(found.parties)) == rows.tolist()


@pytest.mark.parametrize(
    ("alias", "spec"),
    [
        ("noniid-#label2", "labels:2"),
        ("noniid-l3", "labels:3"),
        ("#C=2", "labels:2"),
        ("#C=2,first=random", "labels:2,first=random"),
        ("labels:2,first=cycle", "labels:2"),
        ("noniid-labeldir", "dirichlet:0.5"),
        ("noniid-labeldir:0.1", "dirichlet:0.1"),
        ("noniid-lds", "dirichlet:0.4"),
        ("noniid-lds,min_size=1", "dirichlet:0.4,min_size=1"),
        ("dirichlet:0.1,balance=false,min_size=10", "dirichlet:0.1,balance=false"),
        ("non-iid-2", "shards:2"),
        ("homo", "iid"),
        ("iid-diff-quantity", "iid-quantity:0.5"),
        ("iid-dq:0.7", "iid-quantity:0.7"),
        ("party-dirichlet:0", "party-dirichlet:0"),
        ("by:my,column", "by:my,column"),
    ],
)
def test_names_and_aliases(alias, spec):
    assert format_spec(parse(alias)) == spec
    assert format_spec(parse(spec)) == spec


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("lables:2", r"unknown partition 'lables'. Did you mean 'labels'\?.*labels:K"),
        (
            "labels:2,frst=random",
            r"unknown setting 'frst'. Did you mean 'first'\? Settings of labels: first, k",
        ),
        (
            "labels:2,first=rando",
            r"'first' is 'rando'; allowed: cycle, random. Did you mean 'random'\?",
        ),
        ("labels", r"'labels': labels lacks its K; write it as labels:K\[,first=cycle\]"),
        ("labels:two", r"'labels:two': 'k' takes a whole number; 'two' was given"),
        ("labels:0", r"'k' is 0; .*at least 1"),
        ("labels:5", r"only 4 classes"),
        ("dirichlet:0", r"'beta' is 0.*above 0"),
        ("dirichlet:nan", r"'beta' is nan"),
        ("dirichlet:1,balance=maybe", r"'balance' takes true or false; 'maybe' was given"),
        ("dirichlet:1,min_size=", r"'min_size' has no value; write it as dirichlet:BETA"),
        ("dirichlet:1,min_size=0", r"'min_size' is 0; .*at least 1"),
        ("party-dirichlet:-1", r"'alpha' is -1.*at least 0"),
        ("shards:3", r"3 \* 5 = 15 parts cannot be cut equally from 4 classes.*multiple of 4"),
        ("shards:5", r"L goes from 1 to 4"),
        ("iid:3", r"unknown setting '3'. Settings of iid: \(none\)"),
        ("file:", r"file lacks its PATH; write it as file:PATH"),
    ],
)
def test_wrong_specs(spec, message):
    with pytest.raises(PartitionError, match=message):
        partition(spec, LABELS, 5, 0, classes=4)


@pytest.mark.parametrize(
    ("parties", "message"), [(0, "1 or more"), (-1, "1 or more"), (41, "only 40 samples")]
)
def test_wrong_numbers_of_parties(parties, message):
    with pytest.raises(PartitionError, match=message):
        partition("iid", LABELS, parties, 0, classes=4)


def test_wrong_rows_and_labels():
    for rows in ([0, 0], [-1], [40], [0.5], []):
        with pytest.raises(PartitionError):
            partition("iid", LABELS, 1, 0, rows=np.array(rows), classes=4)
    with pytest.raises(PartitionError, match="from 0 to 2"):
        partition("iid", LABELS, 1, 0, classes=3)


def test_save_and_file_are_inverse(tmp_path):
    made = partition("labels:2", LABELS, 6, 3, classes=4)
    made.save(tmp_path / "p.json")
    read = partition(f"file:{tmp_path / 'p.json'}", LABELS, 6, 0, classes=4)
    assert all(np.array_equal(a, b) for a, b in zip(made.parties, read.parties, strict=True))
    assert read.names == made.names
    assert json.loads((tmp_path / "p.json").read_text())["spec"] == "labels:2"
    assert json.loads((tmp_path / "p.json").read_text())["seed"] == 3


def from_file(folder, content, parties=0, rows=None):
    path = folder / "own, with a comma.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return partition(f"file:{path}", np.array([0, 0, 1, 1]), parties, 0, rows=rows, classes=2)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "is not JSON"),
        ([1], 'no list "parties"'),
        ({"parties": []}, 'no list "parties"'),
        ({"parties": [[0, 1], []]}, "party 1 is .*at least one"),
        ({"parties": [[0, 1], [1, 2, 3]]}, "row 1 belongs to parties 0 and 1"),
        ({"parties": [[0, 0, 1], [2, 3]]}, "party 0 lists row 0 twice"),
        ({"parties": [[0, 1], [2, 4]]}, "lists row 4; the training set has rows 0 to 3"),
        ({"parties": [[0, 1], [2, -1]]}, "out of range"),
        ({"parties": [[0, 1], [2, 3.0]]}, "lists 3.0; training rows are whole numbers"),
        ({"parties": [[0, 1], [2, True]]}, "lists True; training rows are whole numbers"),
        (
            {"parties": [[0, 1], [2]]},
            r'1 training rows belong to no party \(first: 3\).*"partial": true',
        ),
        ({"parties": [[0, 1], [2, 3]], "names": ["a"]}, '"names" must be a list of 2 names'),
    ],
)
def test_wrong_files(tmp_path, content, message):
    with pytest.raises(PartitionError, match=message):
        from_file(tmp_path, content)


def test_files_that_are_right(tmp_path):
    found = from_file(tmp_path, {"parties": [[3, 0], [1, 2]], "names": ["north", "south"]})
    assert [p.tolist() for p in found.parties] == [[0, 3], [1, 2]]
    assert found.names == ("north", "south")
    partial = from_file(tmp_path, {"parties": [[0], [2]], "partial": True})
    assert [p.tolist() for p in partial.parties] == [[0], [2]]
    with pytest.raises(PartitionError, match="row 3, which this run does not train on"):
        from_file(tmp_path, {"parties": [[0, 1], [2, 3]]}, rows=np.array([0, 1, 2]))
    with pytest.raises(PartitionError, match="has 2 parties, 3 were asked for"):
        from_file(tmp_path, {"parties": [[0, 1], [2, 3]]}, parties=3)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["a", "a"], "party 0 and party 1 are both called 'a'; give every party a name of its own"),
        ([1, "1"], "party 0 and party 1 are both called '1'"),
        (["a", ""], "party 1 has an empty name"),
        (
            ["a", "b\nc"],
            r"the name 'b\\nc' of party 1 has a line break or another control character",
        ),
        (["a", "\ud800"], "control character"),
        (["a", None], '"names" must be a list of 2 names'),
        (["a", True], '"names" must be a list of 2 names'),
    ],
)
def test_party_names_that_cannot_be_told_apart(tmp_path, names, message):
    path = tmp_path / "own.json"
    path.write_text(json.dumps({"names": names, "parties": [list(range(20)), list(range(20, 40))]}))
    with pytest.raises(PartitionError, match=message) as caught:
        partition(f"file:{path}", LABELS, 0, 0, classes=4)
    assert "own.json" in str(caught.value)


def test_names_of_any_language_and_a_byte_order_mark(tmp_path):
    path = tmp_path / "own.json"
    content = {"names": ["Zürich", "北京 🙂"], "parties": [list(range(20)), list(range(20, 40))]}
    path.write_text(json.dumps(content), encoding="utf-8-sig")
    assert partition(f"file:{path}", LABELS, 0, 0, classes=4).names == ("Zürich", "北京 🙂")
    path.write_text("[" * 100_000)
    with pytest.raises(PartitionError, match="is not JSON"):
        partition(f"file:{path}", LABELS, 0, 0, classes=4)


def test_columns_give_names_too():
    for value, message in (("", "party 0 has an empty name"), ("a\tb", "control character")):
        with pytest.raises(PartitionError, match=f"by:site: .*{message}"):
            partition(
                "by:site", LABELS, 0, 0, classes=4, columns={"site": np.array([value, "x"] * 20)}
            )
    days = np.array(["NaT", "2020-01-01"] * 20, "datetime64[D]")
    with pytest.raises(PartitionError, match="column 'day' has no value for row 0"):
        partition("by:day", LABELS, 0, 0, classes=4, columns={"day": days})


@pytest.mark.parametrize(
    ("shares", "message"),
    [
        (
            Shares([np.arange(20), np.arange(20, 40)], ("a", "a")),
            "odd: party 0 and party 1 are both called 'a'",
        ),
        (Shares([np.arange(20), np.arange(20, 40)], ("a",)), "odd gave 1 names to 2 parties"),
        (Shares([]), "odd made no party"),
        (Shares([np.arange(50)], partial=True), "odd gave out row 40, which is not one to divide"),
    ],
)
def test_a_plug_in_rule_is_checked_like_all_others(shares, message):
    @dataclass(frozen=True)
    class Odd(Rule):
        """Gives what it likes."""

        def divide(self, pool):
            return shares

    PARTITIONS.add("odd")(Odd)
    try:
        with pytest.raises(PartitionError, match=message):
            partition("odd", LABELS, 2, 0, classes=4)
    finally:
        PARTITIONS.remove("odd")


def test_every_rule_is_described():
    described = describe()
    assert len(described) == len(PARTITIONS.names())
    assert all(usage and summary.endswith(".") for usage, summary in described)
    assert "labels:K[,first=cycle]" in dict(described)
