"""What a new user of the Python interface trips over: each stumbling block once, gone."""

import re
from dataclasses import fields
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np
import pytest
import torch

import ostraka
from ostraka.api import RunValues, for_python, in_python
from ostraka.core.predictor import Placed, Predictor, Solo
from ostraka.errors import ConfigError, DataError, NeedError, OstrakaError, StoreError
from ostraka.parties.train import train_party
from ostraka.runs.config import SHORT, Config
from ostraka.store.member import load_member, save_member
from ostraka.voting.ballots import Sum
from ostraka.voting.ensemble import Ensemble
from tests.parties.wards import CLASSES, SIDE, pictures, short_task

TINY: dict[str, Any] = {
    "data": "digits", "parties": 2, "partition": "iid", "train_per_class": 5, "engine": "serial",
}  # fmt: skip


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs without `out` go to the current folder."""
    monkeypatch.chdir(tmp_path)


def test_a_folder_is_chosen_and_shown_where_none_is_given() -> None:
    first = ostraka.run("fedavg", **TINY, epochs=1, progress=False)
    second = ostraka.run("fedavg", **TINY, epochs=1, progress=False)
    assert first.folder == Path("runs/fedavg-digits-iid-s0-1")
    assert second.folder == Path("runs/fedavg-digits-iid-s0-2")
    assert ostraka.load_run(first.folder).summary == first.summary


def test_settings_of_the_method_in_three_ways() -> None:
    ways: list[dict[str, Any]] = [
        {"set": {"local": {"epochs": 1}, "rounds": 3}},
        {"set": {"local.epochs": 1, "rounds": 3}},
        {"rounds": 3, "epochs": 1},
        {"rounds": 3, "set": {"local.epochs": 1}},
    ]
    results = [ostraka.run("fedavg", **TINY, **way, progress=False) for way in ways]
    models = {(result.folder / "model.safetensors").read_bytes() for result in results}
    assert len(models) == 1
    assert results[0].summary.rounds == 3
    short = ostraka.run("fedavg", **TINY, lr=0.5, batch=7, epochs=1, progress=False)
    text = (short.folder / "config.toml").read_text()
    assert "lr = 0.5" in text
    assert "batch = 7" in text


def test_dotted_names_in_a_configuration() -> None:
    config = ostraka.make_config({"set": {"local.epochs": 1, "local": {"lr": 0.5}}})
    assert config.set == {"local": {"epochs": 1, "lr": 0.5}}


def test_keywords_are_typed_and_are_those_of_a_configuration() -> None:
    typed = get_type_hints(RunValues)
    own = {spec.name for spec in fields(Config)} - {"method"}
    assert set(typed) == own | {"rounds"} | set(SHORT)
    hints = get_type_hints(Config)
    for name in own - {"net", "engine", "set", "data", "public", "start_from", "data_dir"}:
        same = typed[name] == hints[name]
        assert same or name == "known_classes", name  # any sequence of numbers there


def test_progress_is_shown_unless_it_is_not_wanted(capfd: pytest.CaptureFixture[str]) -> None:
    ostraka.run("fedavg", **TINY, epochs=1)
    assert "fedavg on digits: iid, 2 parties, 20 rounds, seed 0, in runs/" in capfd.readouterr().err
    ostraka.run("fedavg", **TINY, epochs=1, progress=False)
    assert capfd.readouterr().err == ""
    ostraka.train(pictures(CLASSES[:2], 12), short_task())
    assert "training a member" in capfd.readouterr().err
    ostraka.train(pictures(CLASSES[:2], 12), short_task(), progress=False)
    captured = capfd.readouterr()
    assert (captured.out, captured.err) == ("", "")


def test_errors_speak_of_arguments() -> None:
    done = ostraka.run("fedavg", **TINY, epochs=1, progress=False)
    with pytest.raises(
        ConfigError, match=r"add resume=True to go on with it, or choose anoth.* out"
    ):
        ostraka.run("fedavg", **TINY, epochs=1, out=done.folder, progress=False)
    with pytest.raises(NeedError, match="for example public='half-test'"):
        ostraka.run("feddf", **TINY, progress=False)
    with pytest.raises(ConfigError, match="Did you mean 'parties'"):
        ostraka.run("fedavg", partys=3)  # type: ignore[call-arg]
    with pytest.raises(ConfigError, match="'set' is a table of settings"):
        ostraka.run("fedavg", set=3)  # type: ignore[arg-type]
    assert ostraka.run("fedavg", **TINY, epochs=1, out=done.folder, resume=True) == done


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("give --validation 0.05", "give validation=0.05"),
        ("use --unknown-rate 5% or less", "use unknown_rate=0.05 or less"),
        ("give --public half-test or --shared 0.05", "give public='half-test' or shared=0.05"),
        ("give both runs the same --net and an --objective with", "give both runs the same net and "
         "an objective with"),
        ("(--set ballot=sum), or tell=counts", "(set={'ballot': 'sum'}), or tell=counts"),
        ("train with --set dp.counts=0.5", "train with set={'dp.counts': 0.5}"),
        ("add --resume, or another --out", "add resume=True, or another out"),
        ("Go on with: ostraka run --resume --out x", "Go on with: ostraka run --resume --out x"),
        ("on the command line it is --set a=..., in Python set={...}",
         "on the command line it is --set a=..., in Python set={...}"),
        ("a - b -- c", "a - b -- c"),
        ("lower it: --lr 1e-3. Or --workers 1.", "lower it: lr=1e-3. Or workers=1."),
    ],
)  # fmt: skip
def test_options_become_arguments(said: str, meant: str) -> None:
    assert in_python(said) == meant


def test_no_option_is_left_in_any_message_of_the_package() -> None:
    """Every text in the package (but the command line's own) that names an option."""
    root = Path(ostraka.__file__).parent
    texts = [
        text
        for path in root.rglob("*.py")
        if "cli" not in path.relative_to(root).parts
        for text in re.findall(r'"([^"\n]*--[a-z][^"\n]*)"', path.read_text(encoding="utf-8"))
        if "in Python" not in text and "command line" not in text
    ]
    assert len(texts) > 20
    left = [text for text in texts if re.search(r"--[a-z]", in_python(text).split("ostraka ")[0])]
    assert left == []


def test_the_kind_of_an_error_stays() -> None:
    with pytest.raises(NeedError) as caught, for_python():
        raise NeedError("give --public half-test")
    assert str(caught.value) == "give public='half-test'"
    with pytest.raises(KeyError), for_python():
        raise KeyError("--public")


@pytest.mark.parametrize("given", [3, None, b"runs/x", ["a"]])
def test_load_run_of_what_is_no_path(given: Any) -> None:
    with pytest.raises(ConfigError, match="give the folder of a run, as text or as a path"):
        ostraka.load_run(given)


def test_load_run_of_what_is_no_run(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for name in ("text", "file", "."):
        with pytest.raises(OstrakaError):
            ostraka.load_run(name)


def predictors() -> dict[str, Predictor]:
    member = train_party(pictures(CLASSES[:2], 12), short_task()).member
    ensemble = Ensemble.of([member, member], Sum())
    alone = member.predictor()
    return {
        "member": alone,
        "ensemble": ensemble,
        "placed": Placed(alone, 0.5),
        "solo": Solo({0: alone}),
    }


def test_predictors_take_arrays_of_any_layout_and_precision() -> None:
    bytes_ = pictures(CLASSES, 3)[0][:, None]
    ways = {
        "float64": bytes_.astype(np.float64),
        "float32": bytes_.astype(np.float32),
        "float16": bytes_.astype(np.float16),
        "other byte order": bytes_.astype(">f8"),
        "backwards": bytes_[::-1].copy()[::-1],
        "columns first": np.asfortranarray(bytes_),
        "read only": np.frombuffer(bytes_.tobytes(), np.uint8).reshape(bytes_.shape),
        "without a channel": bytes_[:, 0],
        "list": bytes_.astype(float).tolist(),
        "tensor": torch.from_numpy(bytes_).double(),
    }
    for name, predictor in predictors().items():
        wanted = predictor.scores(torch.from_numpy(bytes_))
        for way, x in ways.items():
            found = predictor.scores(x)  # type: ignore[arg-type]
            assert torch.allclose(found.known, wanted.known, atol=1e-5), (name, way)
            assert predictor.predict(x).shape == (len(bytes_),), (name, way)
        predictor.seeing(ways["float64"])  # type: ignore[arg-type]


def test_arrays_that_are_no_samples() -> None:
    predictor = predictors()["ensemble"]
    cases: list[tuple[Any, str]] = [
        (np.zeros((2, 1, SIDE, SIDE), np.int64), "values of torch.int64 were given"),
        (np.array([["a"]]), "values of <U1 were given"),
        (np.array([None, object()]), "values of object were given"),
        (np.zeros((2, 1, 5, 5), np.float32), "this network takes samples of shape"),
    ]
    for x, words in cases:
        with pytest.raises(DataError, match=words):
            predictor.predict(x)


def test_members_with_impossible_numbers_are_refused(tmp_path: Path) -> None:
    from dataclasses import replace

    member = train_party(pictures(CLASSES[:2], 12), short_task()).member
    wrong = {name: tensor.clone() for name, tensor in member.params.items()}
    next(iter(wrong.values())).view(-1)[0] = float("nan")
    counts = replace(member.card, counts=(-5, 29, 0, 0))
    shape = replace(member.model, shape=(1, 5, 5))
    huge = replace(member.model, net=replace(member.model.net, options={"hidden": [10**9]}))
    for bad, words in (
        (replace(member, params=wrong), "NaN"),
        (replace(member, card=counts), "-5"),
        (replace(member, model=shape), "first|tensor"),
        (replace(member, model=huge), "hidden|1e\\+09"),
    ):
        path = tmp_path / "bad.member"
        save_member(path, bad)
        with pytest.raises(StoreError, match=words):
            load_member(path)
        with pytest.raises(StoreError, match=words):
            ostraka.load_members(path)


def test_members_are_loaded_by_file_folder_and_pattern(tmp_path: Path) -> None:
    member = train_party(pictures(CLASSES[:2], 12), short_task()).member
    for name in ("b", "a"):
        (tmp_path / "wards").mkdir(exist_ok=True)
        save_member(tmp_path / "wards" / f"{name}.member", member)
    assert len(ostraka.load_members("wards/a.member")) == 1
    assert len(ostraka.load_members(["wards/a.member", Path("wards/b.member")])) == 2
    assert len(ostraka.load_members("wards")) == 2
    assert len(ostraka.load_members("wards/*.member")) == 2
    with pytest.raises(OstrakaError, match="gone"):
        ostraka.load_members("gone.member")
    run = ostraka.run("solo", **TINY, epochs=1, progress=False)
    assert len(ostraka.load_members(run.folder)) == 2


def test_dir_shows_what_is_public() -> None:
    shown = {name for name in dir(ostraka) if not name.startswith("_")}
    assert set(ostraka.__all__) <= shown
    assert not shown & {"Any", "TYPE_CHECKING", "import_module", "ModuleType"}


def test_data_without_all_classes_and_without_a_test_set(tmp_path: Path) -> None:
    """A hospital with two of the task's four classes, from a file without x_test."""
    x, y = pictures(CLASSES[2:], 12)
    np.savez(tmp_path / "own.npz", x_train=x, y_train=y)
    member = ostraka.train(tmp_path / "own.npz", short_task(), progress=False)
    assert member.card.counts == (0, 0, 12, 12)
