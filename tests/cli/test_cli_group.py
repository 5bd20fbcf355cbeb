"""`ostraka select`, `vote`, `predict`, `distil` from the command line, on members whose votes are
written down (tests/parties/voters.py)."""

import csv
import io
import json
import os
import re
import shutil
from dataclasses import replace
from functools import partial
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from ostraka import load_data, load_run
from ostraka.cli.select import _line
from ostraka.core.member import Member
from ostraka.core.samples import View
from ostraka.display.answers import Answered, show_answers
from ostraka.errors import ConfigError
from ostraka.parties.answers import Explanation, Voice
from ostraka.runs.promise import NEVER
from ostraka.runs.results import BESIDE_ACCURACY
from ostraka.runs.summary import JSON_KEYS
from ostraka.store.member import save_member
from tests.cli.calling import ONE_EPOCH, TINY, Ostraka
from tests.parties.voters import ANNA, BERTA, CARL, TRUTH, samples, save, three, voter

SUM = ("--ballot", "sum")


@pytest.fixture
def ward(ostraka: Ostraka) -> Path:
    """A folder with three members, and samples beside it: labelled, unlabelled, only known ones."""
    folder = Path("ward")
    save(folder, *three())
    np.savez("test.npz", x=samples(), y=np.array(TRUTH))
    np.savez("new.npz", x=samples())
    np.savez("known.npz", x=np.repeat(samples()[:3], 10, axis=0))
    return folder


def test_a_vote_prints_accuracy_and_auroc_as_run_does(ostraka: Ostraka, ward: Path) -> None:
    found = ostraka("vote", ward, "--data", "test.npz", *SUM, "--json").json()
    assert (found["accuracy"], found["auroc"]) == (100.0, 100.0)
    assert (found["known_refused"], found["unknown_refused"]) == (0.0, 100.0)
    assert (found["samples"], found["unknown_samples"], found["ballot"]) == (5, 2, "sum")
    assert found["per_class"] == {"cat": 100.0, "dog": 100.0, "eel": 100.0}
    assert [one["name"] for one in found["members"]] == ["anna", "berta", "carl"]
    anna = found["members"][0]
    # of five: cat and dog as the group; eel, which she does not know, is not hers to join; of the
    # two yaks the nearest are dog (anna, berta) and cat (a tie: the first class)
    assert anna["alone"] == pytest.approx(80.0)
    assert "no member knows such a class" in found["notes"][-1]
    beside = ("accuracy", "balanced_accuracy", "f1", *BESIDE_ACCURACY, "notes")
    assert set(beside) <= set(JSON_KEYS)
    assert set(beside) <= set(found)


def test_a_vote_for_people(ostraka: Ostraka, ward: Path) -> None:
    done = ostraka("vote", ward, "--data", "test.npz")
    assert done.code == 0
    assert re.search(r"cat +1 +100.00 % +0.00 %", done.out)
    assert re.search(r"UNKNOWN +2 +100.00 % +100.00 %", done.out)
    assert "Nothing is promised" in done.out
    assert "samples of yak count as unknown" in done.out
    table = ostraka("vote", ward, "--data", "test.npz", "--csv").out
    assert table.splitlines()[0] == "class,samples,answered rightly,called unknown"
    assert table.splitlines()[1] == "cat,1,100.0,0.0"


def test_a_class_that_two_may_have_meant_is_suggested_once(ostraka: Ostraka, ward: Path) -> None:
    np.savez("odd.npz", x=samples(), y=np.array(["cat", "dogg", "ddog", "eel", "eel"]))
    done = ostraka("vote", ward, "--data", "odd.npz", *SUM, "--json").json()
    assert done["notes"][-1].endswith("no member knows such a class. Did you mean 'dog'?")


def test_predict_gives_a_class_or_unknown_and_who_answered(ostraka: Ostraka, ward: Path) -> None:
    found = ostraka("predict", ward, "--on", "new.npz", *SUM, "--json").json()
    assert [one["answer"] for one in found["answers"]] == [
        "cat",
        "dog",
        "eel",
        "unknown",
        "unknown",
    ]
    assert found["answers"][0]["answered_by"] == ["anna", "carl"]
    assert (found["samples"], found["refused"], found["threshold"]) == (5, 2, 0.5)
    assert found["promise"]["rate"] is None
    assert "voices" not in found["answers"][0]
    told = ostraka("predict", ward, "--on", "new.npz", *SUM, "--json", "--explain").json()
    assert told["answers"][0]["voices"][0]["weight"] == 0.5
    lines = list(
        csv.DictReader(io.StringIO(ostraka("predict", ward, "--on", "new.npz", "--csv").out))
    )
    assert [line["answer"] for line in lines[:3]] == ["cat", "dog", "eel"]
    assert lines[0]["answered by"] == "anna; carl"
    shown = ostraka("predict", ward, "--on", "new.npz", "--explain").out
    assert "UNKNOWN" in shown
    assert "who said what" in shown
    assert "5 samples, 2 of them unknown." in shown


def test_predict_answers_several_places_and_one_sample(ostraka: Ostraka, ward: Path) -> None:
    np.savez("one.npz", x=samples()[:1])
    found = ostraka("predict", ward, "--on", "one.npz", "new.npz", "--json").json()
    assert [one["sample"] for one in found["answers"]][:2] == ["sample 0", "new: sample 0"]
    alone = ostraka("predict", ward, "--on", "one.npz", "--json").json()
    assert alone["answers"][0]["answer"] == "cat"
    assert alone["notes"] == ["1 sample: too few to estimate member trust. Use --like FILE"]
    assert alone["looked"] == {}
    for count in (24, 25):
        np.savez("several.npz", x=samples().repeat(5, axis=0)[:count])
        notes = ostraka("predict", ward, "--on", "several.npz", "--json").json()["notes"]
        assert any("too few" in note for note in notes) == (count == 24)


def test_predict_and_vote_say_what_they_looked_at(ostraka: Ostraka, ward: Path) -> None:
    """Five samples that they are asked about, or the thirty of --like; a ballot that does not look
    says nothing.
    """
    words = "looked at 5 unlabelled samples of {} to estimate member trust: those that are asked"
    for verb, data, name in (("predict", "--on", "new"), ("vote", "--data", "test")):
        asked = (verb, ward, data, f"{name}.npz")
        own = ostraka(*asked, "--json").json()
        assert own["looked"] == {"samples": 5, "of": name}
        assert words.format(name) in " ".join(own["notes"])
        assert "may differ" in " ".join(own["notes"])
        assert own["notes"][-1] == ("5 samples: too few to estimate member trust. Use --like FILE")
        assert words.format(name) in " ".join(ostraka(*asked).out.split())
        assert words.format(name) in ostraka(*asked, "--csv").err
        ostraka(*asked, "--html", "page.html")
        assert words.format(name) in Path("page.html").read_text()
        like = ostraka(*asked, "--like", "known.npz", "--json").json()
        assert like["looked"] == {"samples": 30, "of": "known"}
        assert like["notes"][-1] == (
            "looked at 30 unlabelled samples of known to estimate member trust; an answer does not "
            "depend on what else is asked"
        )
        assert ostraka(*asked, *SUM, "--json").json()["looked"] == {}
        refused = ostraka(*asked, *SUM, "--like", "known.npz")
        assert (refused.code, "Leave --like out" in refused.err) == (2, True)


def test_with_like_an_answer_does_not_depend_on_the_others(ostraka: Ostraka) -> None:
    """Alone, together, in another order: the same to the bit. Without it, they are not."""
    ostraka("run", "fedov", *TINY, *ONE_EPOCH, "--out", "r")
    x = load_data("digits").test.x[:40].permute(0, 2, 3, 1).numpy()
    for name, part in (("all", x), ("turned", x[::-1]), ("few", x[:30]), ("like", x[10:])):
        np.savez(f"{name}.npz", x=part)

    def answers(name: str, *more: str) -> list[dict[str, object]]:
        given = ("r/members", "--on", f"{name}.npz", "--json", "--explain", *more)
        return [{k: v for k, v in one.items() if k != "sample"}
                for one in ostraka("predict", *given).json()["answers"]]  # fmt: skip

    fixed = ("--like", "like.npz")
    whole = answers("all", *fixed)
    assert answers("turned", *fixed)[::-1] == whole
    assert answers("few", *fixed) == whole[:30]
    assert answers("few") != answers("all")[:30]


def test_a_run_does_not_look_at_what_it_is_asked(ostraka: Ostraka) -> None:
    """It answers as it did: without a look, or with the one it had, which is said."""
    for look in ("none", "test"):
        ran = ostraka("run", "fedov", *TINY, *ONE_EPOCH, "--look", look, "--out", look, "--json")
        voted = ostraka("vote", look, "--data", "digits", "--json").json()
        assert voted["accuracy"] == ran.json()["accuracy"]
        assert voted["looked"] == ran.json().get("looked", {})
        said = "the run looked at 355 unlabelled test samples" in " ".join(voted["notes"])
        assert said == (look == "test")
        refused = ostraka("vote", look, "--data", "digits", "--like", "digits")
        assert (refused.code, "with --ballot guarded" in refused.err) == (2, True)


def test_the_threshold_by_known_samples_or_by_hand(ostraka: Ostraka, ward: Path) -> None:
    ask = ("predict", ward, "--on", "new.npz", *SUM)
    kept = ostraka(*ask, "--unknown-rate", "5%", "--known", "known.npz", "--json").json()
    assert kept["promise"]["rate"] == 0.05
    assert kept["promise"]["basis"] == "held-out"
    assert kept["threshold"] < 0.5
    placed = ostraka(*ask, "--threshold", "2", "--json").json()
    assert placed["refused"] == 0
    assert placed["promise"]["why"] == "the threshold was given by hand"
    both = ostraka(*ask, "--threshold", "2", "--unknown-rate", "5%")
    assert (both.code, "leave --unknown-rate and --known out" in both.err) == (2, True)
    words = ostraka(*ask, "--known", "known.npz").out
    assert "Promised: 5 % of samples of known classes will be called unknown" in words


def test_select_says_who_and_why_and_writes_the_choice(ostraka: Ostraka, ward: Path) -> None:
    by_size = ("--method", "ds", "--size", "2")
    for i, member in enumerate(three()):
        save(ward, replace(member, card=replace(member.card, size=200 + i, counts=(100, 100 + i))))
    found = ostraka("select", ward, *by_size, "--json", "--out", "chosen.txt").json()
    assert found["chosen"] == ["berta", "carl"]
    assert found["why"]["anna"] == "samples 200: place 3 of 3"
    assert found["files"] == ["ward/berta.member", "ward/carl.member"]
    assert Path("chosen.txt").read_text() == "ward/berta.member\nward/carl.member\n"
    ostraka("select", ward, *by_size, "--out", "chosen")
    assert sorted(path.name for path in Path("chosen").iterdir()) == ["berta.member", "carl.member"]
    votes = [
        ostraka("predict", given, "--on", "new.npz", "--json").json()["members"]
        for given in ("chosen.txt", "chosen")
    ]
    assert votes == [["berta", "carl"]] * 2
    shown = ostraka("select", ward, "--size", "2").out
    assert "chosen by cover" in shown
    assert "2 of 3 members vote." in shown
    alone = ("--method", "ds", "--set", "size=1", "--json")
    assert ostraka("select", ward, *alone).json()["chosen"] == ["berta", "carl"]
    asked = ostraka("select", ward, *alone, "--set", "select.every_class=false").json()
    assert asked["chosen"] == ["carl"]
    assert asked["notes"] == ["no selected member is known to have samples of class dog"]
    selected = ostraka(
        "vote", ward, "--data", "test.npz", "--select", "ds", "--size", "2", "--json"
    )
    assert selected.json()["selection"]["chosen"] == ["berta", "carl"]


def test_a_folder_of_chosen_members_holds_them_and_no_others(
    ostraka: Ostraka, ward: Path, request: pytest.FixtureRequest
) -> None:
    """Each under a name of its own, for whom the umask lets; and none of an earlier choice, which
    would vote too.
    """
    for name, place in (("anna", "x/m"), ("berta", "y/m"), ("carl", "z/1-m")):
        Path(place).parent.mkdir()
        shutil.copy(ward / f"{name}.member", f"{place}.member")
    Path("x/m.member").chmod(0o600)
    request.addfinalizer(partial(os.umask, os.umask(0o027)))
    for _ in range(2):
        done = ostraka("select", "x", "y", "z", "--method", "all", "--out", "chosen")
        assert done.code == 0
        files = sorted(Path("chosen").iterdir())
        assert [path.name for path in files] == ["0-m.member", "1-m.member", "2-1-m.member"]
        assert {path.stat().st_mode & 0o777 for path in files} == {0o640}
    fewer = ostraka("select", ward, "--method", "ds", "--size", "2", "--out", "chosen")
    assert (fewer.code, "would ask these too; give a new folder" in fewer.err) == (2, True)
    assert sorted(Path("chosen").iterdir()) == files


def test_a_run_answers_as_it_did_and_its_members_anew(ostraka: Ostraka, ward: Path) -> None:
    placed = ("--known", "8", "--threshold", "0.9")
    ran = ostraka("run", "fedov", *TINY, *placed, *ONE_EPOCH, "--out", "r", "--json").json()
    assert ostraka("predict", "r", "--on", "digits", "--json").json()["threshold"] == 0.9
    voted = ostraka("vote", "r", "--data", "digits", "--json").json()
    assert voted["accuracy"] == ran["accuracy"]
    assert voted["known_refused"] == ran["known_refused"]
    assert voted["answer"] == load_run("r").summary.to_json()["answer"]
    assert len(voted["members"]) == 3
    anew = ostraka("vote", "r", "--data", "digits", "--ballot", "sum", "--json").json()
    assert anew["ballot"] == "sum"
    ostraka("run", "fedavg", *TINY, *ONE_EPOCH, "--rounds", "1", "--out", "one")
    alone = ostraka("predict", "one", "--on", "digits", "--json").json()
    assert alone["members"] == []
    assert alone["answers"][0]["answered_by"] == []
    refused = ostraka("vote", "one", "--data", "digits", "--ballot", "sum")
    assert (refused.code, "has no members" in refused.err) == (2, True)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("vote ward --data new.npz", "new has no labels, and a vote is judged by them"),
        ("vote ward --data gone.npz", "gone.npz"),
        ("vote ward --data wrong.npz", "no class of wrong is known to any member (Cat, Dog"),
        ("vote ward --data wrong.npz", "Did you mean 'cat'?"),
        ("vote ward --data wide.npz", "5 is asked for"),
        ("vote ward --data digits", "the members take table [5]"),
        ("vote ward gone.member --data test.npz", "there is no file or folder 'gone.member'"),
        ("vote ward --data test.npz --size 2", "give --select too"),
        ("vote ward --data test.npz --select ds --size few", "a number of members, or auto"),
        ("vote ward --data test.npz --ballot som", "Did you mean 'sum'?"),
        ("vote ward --data test.npz --html gone/x.html", "a folder that exists"),
        ("vote ward evil.member --data test.npz", "Leave evil.member out"),
        ("predict ward --on new.npz --unknown-rate 5", "the unknown rate is 5"),
        ("predict ward --on new.npz test.npz wide.npz", "5 is asked for"),
        ("select ward --method dedess", "Did you mean 'dedes'?"),
        ("select ward --method all --size 2", "all takes everybody: choose by another one"),
        ("select ward --size 2 --out ward", "holds 1 other members, '"),
        ("select ward --method ds --set sise=2", "unknown setting 'select.sise'"),
        ("select ward --method ds --size 1 --set size=2", "--set size is 2 and --size is 1; give"),
        ("select ward --set name=ds", "--set name is 'ds' and --method is 'cover'; give one"),
        ("select ward --set size", "--set takes NAME=VALUE"),
        ("select ward --out test.npz", "a file; give a list (.txt) or a folder"),
        ("distil ward --public new.npz --out s.member", "a student needs 20 at least"),
        ("distil ward --public generator --out s.member", "a generator makes images"),
        ("distil ward --public known.npz --out gone/s.member", "a folder that exists"),
        ("distil ward --public known.npz --epochs 0 --out s.member", "needs at least 1"),
        ("distil ward --public known.npz --net mlpp --out s.member", "Did you mean 'mlp'?"),
    ],
)
def test_a_mistake_is_one_message(ostraka: Ostraka, ward: Path, words: str, message: str) -> None:
    np.savez("wrong.npz", x=samples()[:2], y=np.array(["Cat", "Dog"]))
    np.savez("wide.npz", x=np.zeros((3, 7), dtype=np.float32), y=np.array(["cat"] * 3))
    Path("evil.member").write_bytes(Path("ward/anna.member").read_bytes()[:-8])
    done = ostraka(*words.split())
    assert done.code == 2
    assert message in done.err.replace("\n", " ")
    assert done.err.splitlines()[-1].startswith("ostraka: ")


def test_broken_files_are_left_out_on_demand(ostraka: Ostraka, ward: Path) -> None:
    (ward / "evil.member").write_bytes(b"\x00" * 100)
    done = ostraka("vote", ward, "--data", "test.npz", "--skip-broken", "--json")
    assert done.json()["accuracy"] == 100.0
    assert "evil.member" in done.json()["notes"][0]


EVIL = "=cmd|'/c calc'!A1<script>alert(1)</script>"


def evil_members() -> list[Member]:
    """Names that a stranger chose to do harm in a page or a spreadsheet."""
    return [
        voter(EVIL, ("<img src=x onerror=alert(2)>", "+dog"), ANNA),
        voter("[red]@berta", ("+dog", "eel"), BERTA),
        voter("carl", ("eel", "<img src=x onerror=alert(2)>"), CARL),
    ]


def test_a_terminal_obeys_no_name(capsys: pytest.CaptureFixture[str]) -> None:
    """A file may be called anything, also what clears a screen."""
    voice = Voice("anna", "unknown", "cat", 0.9, 1.0)
    one = Explanation("unknown", "cat", 0.5, 0.9, 0.5, (voice,))
    evil = "\x1b[2J[bold]x\r.png"
    show_answers(Console(), Answered((evil,), (one,), ("anna",), NEVER, (evil,)), explain=True)
    shown = capsys.readouterr().out
    assert "\x1b" not in shown
    assert "[bold]x" in shown


class Page(HTMLParser):
    """The tags of a page, and every address in it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.addresses: list[str] = []
        self.handlers: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.addresses += [value or "" for key, value in attrs if key in ("src", "href")]
        self.handlers += [key for key, _ in attrs if key.startswith("on")]


def test_names_of_strangers_do_no_harm(ostraka: Ostraka) -> None:
    for i, member in enumerate(evil_members()):
        save(Path("ward") / str(i), replace(member, card=replace(member.card, name=f"m{i}")))
        path = next((Path("ward") / str(i)).iterdir())
        save_member(path, member)
    files = [str(path) for path in Path("ward").rglob("*.member")]
    np.savez("test.npz", x=samples(), y=np.array(["<img src=x onerror=alert(2)>", "+dog", "eel",
                                                  "yak", "yak"]))  # fmt: skip
    for verb, data in (("vote", ("--data", "test.npz")), ("predict", ("--on", "test.npz"))):
        table = ostraka(verb, *files, *data, "--csv", "--html", "page.html").out
        cells = [cell for line in csv.reader(io.StringIO(table)) for cell in line]
        assert not [cell for cell in cells if cell[:1] in tuple("=+-@") and not number(cell)]
        assert any(cell.startswith("'+dog") for cell in cells)
        page = Path("page.html").read_text()
        found = Page(page)
        assert not found.tags & {"script", "img", "iframe", "link", "object"}
        assert found.addresses == found.handlers == []
        assert "&lt;img src=x" in page
        assert "default-src 'none'" in page
        shown = ostraka(verb, *files, *data).out
        assert "[red]" in shown, "not taken for markup"


def number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def test_a_page_shows_images_and_stays_whole(ostraka: Ostraka) -> None:
    ostraka("run", "fedov", *TINY, *ONE_EPOCH, "--out", "r")
    done = ostraka("predict", "r", "--on", "digits", "--html", "page.html", "--json")
    assert done.json()["samples"] > 300
    assert "Page: page.html" in done.err
    page = Page(Path("page.html").read_text())
    assert len(page.addresses) == 300
    assert all(address.startswith("data:image/png;base64,") for address in page.addresses)
    ostraka("vote", "r", "--data", "digits", "--html", "vote.html")
    assert "Who answered" in Path("vote.html").read_text()


def test_distil_writes_a_member_that_answers(ostraka: Ostraka, ward: Path) -> None:
    rng = np.random.default_rng(0)
    x = np.abs(np.repeat(samples(), 40, axis=0) + rng.normal(0, 0.05, (200, 5)))
    np.savez("public.npz", x=x.astype(np.float32))
    done = ostraka("distil", ward, "--public", "public.npz", "--epochs", "60", "--lr", "0.02",
                   *SUM, "--out", "student.member")  # fmt: skip
    assert done.code == 0
    assert re.search(r"it answers as the vote on (100|9\d)\.\d % of them", done.out)
    assert "learning the vote of 3" in done.err
    answers = ostraka("predict", "student.member", "--on", "new.npz", *SUM, "--json").json()
    told = [one["answer"] for one in answers["answers"]]
    assert told == ["cat", "dog", "eel", "unknown", "unknown"]
    assert answers["members"] == ["student"]
    again = ostraka("vote", "student.member", "--data", "test.npz", "--json").json()
    assert again["accuracy"] == 100.0
    quiet = ostraka("distil", ward, "--public", "public.npz", "--epochs", "1", "--out", "s.member",
                    "--json", "--seed", "3")  # fmt: skip
    assert quiet.err == ""
    assert quiet.json()["held"] == 20
    assert quiet.json()["looked"] == {"samples": 200, "of": "public"}
    assert "the vote looked at 200 unlabelled public samples" in " ".join(quiet.json()["notes"])
    assert not Path("s.member.progress").exists()


def test_words_that_do_not_mislead(ostraka: Ostraka, ward: Path) -> None:
    """Nobody answers `unknown`; one member is no members; a hint is given once."""
    lines = csv.DictReader(
        io.StringIO(ostraka("predict", ward, "--on", "new.npz", *SUM, "--csv").out)
    )
    by = [(line["answer"], line["answered by"]) for line in lines]
    assert by[0] == ("cat", "anna; carl")
    assert by[3:] == [("unknown", ""), ("unknown", "")]
    one = ostraka("vote", "ward/anna.member", "--data", "test.npz", *SUM).out
    assert "1 member on test" in one
    assert "1 members" not in one
    np.savez("odd.npz", x=samples()[:3], y=np.array(["catt", "ccat", "dog"]))
    odd = ostraka("vote", ward, "--data", "odd.npz", *SUM, "--json").json()
    assert " ".join(odd["notes"]).count("Did you mean 'cat'?") == 1


def test_verify_ends_with_a_verdict(ostraka: Ostraka, ward: Path) -> None:
    files = ("ward/anna.member", "ward/berta.member")
    assert ostraka("verify", files[0]).out.splitlines()[-1] == "This file can be used."
    assert ostraka("verify", *files).out.splitlines()[-1] == "All 2 files can be used."
    Path("bad.member").write_bytes(b"bad")
    done = ostraka("verify", *files, "bad.member")
    assert done.out.splitlines()[-1] == "1 of 3 files cannot be used: bad.member."
    assert done.code == 2


def test_a_page_with_pictures_says_so(ostraka: Ostraka, ward: Path) -> None:
    """On the console, before anybody sends it, and on the page; a table has none to show."""
    for member in three():
        model = replace(member.model, shape=(1, 1, 5), view=View(1 / 255))
        save(Path("images"), replace(member, model=model))
    np.savez("images.npz", x=(255 * samples()).astype(np.uint8).reshape(5, 1, 5))
    words = "This page shows 5 samples as pictures: whoever has it sees them."
    done = ostraka("predict", "images", "--on", "images.npz", "--html", "page.html")
    assert words in done.out
    assert words in Path("page.html").read_text()
    assert Path("page.html").read_text().count("<img") == 5
    done = ostraka("predict", ward, "--on", "new.npz", "--html", "page.html")
    assert "pictures" not in done.out + Path("page.html").read_text()


@pytest.mark.parametrize("name", ["unknown", "UNKNOWN", "unkn\u043ewn"])
def test_a_class_called_unknown_is_refused_where_it_is_made(ostraka: Ostraka, name: str) -> None:
    """By `task init`, `train` and `run`: the vote would be too late. A class that is not among the
    known ones may be called so.
    """
    x = np.random.default_rng(0).normal(size=(40, 3)).astype(np.float32)
    y = np.repeat(["cat", name], 20)
    np.savez("own.npz", x=x, y=y)
    words = f"has a class called '{name}', which is the answer to samples of no class"
    for done in (
        ostraka("task", "init", "--from", "own.npz", "--out", "task.toml"),
        ostraka("train", "own.npz", "--out", "own.member"),
    ):
        assert (done.code, words in done.err) == (2, True), done.err
    both = {
        "x_train": x,
        "x_test": x,
        "y_train": np.repeat([0, 1], 20),
        "y_test": np.repeat([0, 1], 20),
    }
    np.savez("data.npz", **both)
    Path("data.json").write_text(json.dumps({"class_names": ["cat", name]}))
    done = ostraka("run", "solo", "--data", "data.npz", "--parties", "2", "--out", "run")
    assert (done.code, words in done.err) == (2, True), done.err
    alone = ("--parties", "2", "--partition", "iid", "--known", "1", *ONE_EPOCH, "--out", "known")
    known = ostraka("run", "solo", "--data", "data.npz", *alone)
    assert known.code == 0, known.err


def test_a_line_of_a_list_is_read_as_the_path_that_it_is() -> None:
    """A line that begins with # is a remark, so such a file is named from its folder."""
    assert [_line(path) for path in ("#a.member", "##b", "a#.member")] == [
        "./#a.member", "./##b", "a#.member",
    ]  # fmt: skip
    with pytest.raises(ConfigError, match="has a line break, or a space at an end"):
        _line("a.member ")
