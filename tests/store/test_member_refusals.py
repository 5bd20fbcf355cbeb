"""Cards and weights with one thing wrong in each: a sentence that names the file, what was
found and what is allowed. Hashes are put right, as whoever sends such a file would do it.
"""

import json
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch

from ostraka.core.net import Recipe
from ostraka.core.samples import View
from ostraka.errors import StoreError
from ostraka.store import codec, outline
from ostraka.store.layout import TYPES
from ostraka.store.member import decode_member, encode_member
from tests.store.member_files import (
    CARD,
    GOOD,
    IMAGES,
    QUANTILES,
    ROWS,
    changed,
    joined,
    made,
    pieces,
    refused,
    with_tensors,
    with_text,
)

Change = Callable[[Any], Any]


CARD_TEXT = json.dumps(pieces()[0])


def card_with(**values: Any) -> bytes:
    return changed(lambda card: card.update(values))


def without(*names: str) -> bytes:
    return changed(lambda card: [card.pop(name) for name in names])


def net(name: str, **options: Any) -> bytes:
    return card_with(net={"name": name, "options": options})


CARDS = {
    "format 99": (card_with(format=99), "of format 99, made by another version; this one reads"),
    "format 3": (card_with(format=3), "of format 3, made by another version"),
    "format true": (card_with(format=True), "of format True"),
    "unknown field": (card_with(cuonts=[1]), r"the field 'cuonts'.*Did you mean 'counts'.*'more'"),
    "doubt beyond measure": (
        card_with(calibration={"doubt": -1e308}), r"tells -1e\+308 as doubt; it takes log odds up"
    ),
    "claims beyond measure": (
        card_with(calibration={"claims": [0] * 8 + [2e9]}), "as claims; it takes log odds up to 1e"
    ),
    "no size": (without("size"), "its card lacks size"),
    "no model": (without("net", "classes"), "its card lacks classes, net"),
    "card is a list": (joined([], *pieces()[1:]), "its card is no JSON object"),
    "card is no JSON": (with_text("{", *pieces()[1:]), "card of .* is not proper JSON"),
    "deep card": (with_text('{"more":' + "[" * 10_000 + "]" * 10_000 + "}", *pieces()[1:]),
                  "nests more than 32 deep"),
    "wide card": (card_with(more=[[]] * 30_000), "holds 30,.* objects and lists"),
    "doubled key": (with_text(CARD_TEXT[:-1] + ', "size": 20}', *pieces()[1:]), "'size' stands"),
    "NaN": (with_text(CARD_TEXT.replace("-1.5", "NaN"), *pieces()[1:]), "NaN is no number"),
    "infinity": (with_text(CARD_TEXT.replace("-1.5", "1e999"), *pieces()[1:]), "too large"),
    "huge number": (with_text(CARD_TEXT.replace("-1.5", "9" * 5000), *pieces()[1:]), r"2\^53"),
    "size -1": (card_with(size=-1), "'size' is -1; it takes a whole number from 0"),
    "size 1.5": (card_with(size=1.5), "'size' is 1.5"),
    "size true": (card_with(size=True), "'size' is True"),
    "party of text": (card_with(party="x"), "'party' is 'x'"),
    "counts of -5": (card_with(counts=[25, -5]), "'a class count' is -5"),
    "counts of 1e30": (card_with(counts=[1e30, 8]), "'a class count' is 1e"),
    "counts that do not add up": (card_with(counts=[12, 9]), "21 samples by class, and 20 in all"),
    "counts that leave some out": (card_with(counts=[12, 7]), "19 samples by class, and 20 in all"),
    "too few counts": (card_with(counts=[20]), "1 counts of 2 classes"),
    "counts are a number": (card_with(counts=20), "'counts' is 20; it takes a list"),
    "counts and bands": (card_with(bands=["<10", "<10"]), "tells counts and bands"),
    "another band": (changed(lambda c: (c.pop("counts"), c.update(bands=["<10", "10-20"]))),
                     "each is one of <10, 10-99, 100-999, >=1000"),
    "bands above the size": (changed(lambda c: (c.pop("counts"), c.update(bands=["10-99"] * 3))),
                             "3 bands of 2 classes"),
    "bands beyond the size": (changed(lambda c: (c.pop("counts"), c.update(bands=["100-999"] * 2))),
                              "at least 200 samples by class, and 20 in all"),
    "score 1.7": (card_with(scores={"validation": 1.7}), "a share or a probability, from 0 to 1"),
    "confidence -0.1": (card_with(scores={"confidence": -0.1}), "is -0.1; it is a share or a prob"),
    "score true": (card_with(scores={"validation": True}), "'validation' is True; it takes a numb"),
    "score of text": (card_with(scores={"loss": "low"}), "'loss' is 'low'; it takes a number"),
    "scores a list": (card_with(scores=[1]), "'scores' is .*; it takes a JSON object"),
    "many scores": (card_with(scores={str(i): i for i in range(65)}), "at most 64"),
    "name of 10,000": (card_with(name="x" * 10_000), "at most 200 printable characters"),
    "name with colours": (card_with(name="\x1b[31mred"), "printable characters"),
    "name backwards": (card_with(name="a\u202eb"), "printable characters"),
    "name a number": (card_with(name=7), "'name' is 7"),
    "no classes": (card_with(classes=[]), "at least one name"),
    "doubled class": (card_with(classes=["cat", "cat"]), "each only once"),
    "empty class": (card_with(classes=["cat", ""]), "none of them empty"),
    "class a number": (card_with(classes=["cat", 2]), "'a class' is 2"),
    "many classes": (card_with(classes=["x"] * 10_001), "at most 10,000 values"),
    "a class more": (changed(lambda c: c.update(classes=["cat", "dog", "cow"], counts=[9, 9, 2])),
                     r"'last.weight' is F32 \[2, 4\]; its network mlp has F32 \[3, 4\] there"),
    "another unknown": (card_with(unknown=True), "'unknown' is True, but .* no unknown output"),
    "unknown is 1": (card_with(unknown=1), "takes true or false"),
    "an unknown that is not there": (
        changed(lambda c: c.update(unknown=True, objective={"name": "fedov"})),
        r"'last.weight' is F32 \[2, 4\]; its network mlp has F32 \[3, 4\] there"),
    "kind": (card_with(kind="video"), "'kind' is 'video'; it is one of image, sound, table"),
    "kind of another shape": (card_with(kind="image"), "channels x height x width"),
    "another shape": (card_with(shape=[4]), r"'first.weight' is F32 \[4, 3\]; .* \[4, 4\] there"),
    "shape of 0": (card_with(shape=[0]), "whole numbers from 1"),
    "large shape": (card_with(shape=[10**9]), "product is at most"),
    "shape of text": (card_with(shape="3"), "'shape' is '3'"),
    "view of nothing": (card_with(view={"scale": 0.0}), "makes 0 of the value 1; it must"),
    "view of infinity": (card_with(view={"scale": 1e300}), "makes 1e.300 of the value 1; it must"),
    "scale 1e30": (card_with(view={"scale": 1e30}), "'view.scale' is 1e.30, .* Use 1$"),
    "scale of bytes 1e5": (card_with(unit=255, view={"scale": 1e5}), "Use 0.00392157$"),
    "unit 0": (card_with(unit=0), "'unit' is 0; it must be a number from 1e-06 to 1e.06"),
    "unit 1e7": (card_with(unit=1e7), "'unit' is 10000000.0; it must"),
    "unit true": (card_with(unit=True), "'unit' is True; it must"),
    "unit in the view": (card_with(view={"unit": 255}), "beside the view, as the unit"),
    "class unknown": (card_with(classes=["cat", "Unknown "]), "called 'Unknown ', which"),
    "class unknown, o Cyrillic": (card_with(classes=["cat", "unkn\u043ewn"]), "called 'unkn"),
    "classes that look the same": (
        card_with(classes=["cat", "c\u0430t"]), r"CYRILLIC SMALL LETTER A\), which look the same",
    ),
    "classes of one name": (card_with(classes=["\ufb01sh", "fish"]), "which look the same"),
    "means alone": (card_with(view={"mean": [0.0] * 3}), "3 means and 0 deviations; it takes 3"),
    "too many means": (card_with(view={"mean": [0.0] * 4, "std": [1.0] * 4}), "it takes 3"),
    "deviation 0": (card_with(view={"mean": [0.0] * 3, "std": [1.0, 0.0, 1.0]}), "a deviation"),
    "deviation -1": (card_with(view={"mean": [0.0] * 3, "std": [1.0, -1.0, 1.0]}), "a deviation"),
    "mean 1e300": (card_with(view={"mean": [1e300] * 3, "std": [1.0] * 3}), "a mean beyond 1e.30"),
    "view misspelt": (card_with(view={"sclae": 1.0}), "Did you mean 'scale'"),
    "view a list": (card_with(view=[]), "'view' is"),
    "no such net": (net("resnet-9000"), "unknown net 'resnet-9000'"),
    "net without a name": (card_with(net={}), "'net' takes a name and options"),
    "net with code": (card_with(net={"name": "mlp", "code": "x"}), "'net' takes a name and opt"),
    "net named by a list": (card_with(net={"name": ["mlp"]}), "'net.name' is"),
    "no such option": (net("mlp", hiden=[4]), "Did you mean 'hidden'"),
    "no such objective": (card_with(objective={"name": "cross-entropie"}),
                          "cross-entropie.*Did you mean 'cross-entropy'"),
    "objective out of range": (card_with(objective={"name": "cross-entropy", "smoothing": 7}),
                               "smoothing"),
    "another net": (net("mlp", hidden=[4, 4]), "it has the tensor|it lacks the tensor"),
    "10^9 units": (net("mlp", hidden=[10**9]), "numbers up to 1,000,000 are allowed"),
    "10^12 weights": (net("mlp", hidden=[10**6, 10**6]), "more than the file brings"),
    "a thousand layers": (net("mlp", hidden=[1] * 4000), "more than the file brings"),
    "a million layers": (net("mlp", hidden=[1] * 100_000), "100000 options; at most 4096"),
    "wide": (changed(lambda c: c.update(net={"name": "digits", "options": {"width": 1e5}},
             kind="image", shape=[1, 8, 8])), "more than the file brings"),
    "deep": (changed(lambda c: c.update(net={"name": "wideresnet", "options": {"depth": 1204}},
             kind="image", shape=[1, 8, 8])), "more than the file brings"),
    "doubt of text": (card_with(calibration={"doubt": "x"}), "takes numbers"),
    "doubt a list": (card_with(calibration={"doubt": [1.0]}), "'calibration.doubt' takes a numb"),
    "held -1": (card_with(calibration={"held": -1}), "'calibration.held' is -1"),
    "held more than all": (card_with(calibration={"held": 21}), "21 of 20"),
    "quantiles that fall": (card_with(calibration={"claims": list(QUANTILES)[::-1]}), "that fall"),
    "three quantiles": (card_with(calibration={"claims": [1, 2, 3]}), "3 quantiles"),
    "quantiles a number": (card_with(calibration={"claims": 3}), "takes a list of numbers"),
    "no such tensor": (card_with(calibration={"x": {"tensor": "y"}}), "'y', which is not there"),
    "weights as its own": (card_with(calibration={"x": {"tensor": "last.bias"}}), "as its own"),
    "typicality of numbers": (card_with(calibration={"typicality": 5}), "not made of means"),
    "created some day": (card_with(created="yesterday"), "'created' is 'yesterday'"),
    "month 13": (card_with(created="2026-13-01T00:00:00Z"), "'created'"),
    "more is text": (card_with(more="x"), "'more' is 'x'"),
    "more nests": (card_with(more={"a": {"b": 1}}), "'more.a' takes text, numbers"),
    "more of 2,000": (card_with(more={"a": "x" * 2000}), "at most 1000"),
    "more of 65": (card_with(more={str(i): 1 for i in range(65)}), "at most 64"),
    "wrong sha256": (joined({**pieces()[0], "sha256": "0" * 64}, *pieces()[1:], hashed=False),
                     "are not those that its card was written with"),
    "sha256 a number": (joined({**pieces()[0], "sha256": 5}, *pieces()[1:], hashed=False),
                        "are not those"),
}  # fmt: skip


@pytest.mark.parametrize(("data", "words"), CARDS.values(), ids=CARDS)
def test_card(data: bytes, words: str) -> None:
    refused(data, words)


def test_the_good_file_is_good() -> None:
    """Otherwise none of the above would say anything."""
    card, header, body = pieces()
    assert decode_member(joined(card, header, body)).card == CARD


def put(name: str, value: float) -> Change:
    return lambda params: params[name].view(-1).__setitem__(0, value)


def typed(name: str, dtype: torch.dtype) -> Change:
    return lambda params: params.update({name: params[name].to(dtype)})


WEIGHTS: dict[str, tuple[bytes, str]] = {
    "NaN": (with_tensors(put("first.weight", float("nan"))), "first.weight holds 1 of 12"),
    "infinity": (with_tensors(put("last.bias", float("-inf"))), "last.bias holds 1 of 2"),
    "float64": (with_tensors(typed("last.bias", torch.float64)), r"'last.bias' is F64 .* F32"),
    "float16": (with_tensors(typed("last.bias", torch.float16)), r"'last.bias' is F16 \[2\]"),
    "missing": (with_tensors(lambda p: p.pop("last.bias")), "lacks the tensor 'last.bias'"),
    "one more": (with_tensors(lambda p: p.update(x=torch.ones(1))), "'x'; its network mlp"),
    "one more of the card": (
        with_tensors(lambda p: p.update({"calibration/x": torch.ones(1)})), "does not tell"),
    "transposed": (with_tensors(lambda p: p.update({"last.weight": p["last.weight"].T})),
                   r"'last.weight' is F32 \[4, 2\]; its network mlp has F32 \[2, 4\]"),
    "3e38": (with_tensors(lambda p: [t.fill_(3e38) for t in p.values()]), "NaN or infinity"),
    "all zeros": (with_tensors(lambda p: [t.zero_() for t in p.values()]), "same answer to 12"),
    "dead": (with_tensors(lambda p: p["last.weight"].zero_()), "same answer to 12"),
    "negative variance": (with_tensors(put("norm2.running_var", -0.1), IMAGES),
                          "'norm2.running_var' is a variance, but has negative values"),
    "negative counter": (with_tensors(put("norm1.num_batches_tracked", -1), IMAGES),
                         "counts something, but has negative"),
}  # fmt: skip


@pytest.mark.parametrize(("data", "words"), WEIGHTS.values(), ids=WEIGHTS)
def test_weights(data: bytes, words: str) -> None:
    refused(data, words)


@pytest.mark.parametrize(
    ("name", "value"),
    [("means", torch.ones(2, 83)), ("placed", torch.ones(2)), ("usual", torch.ones(2, 2, 1)),
     ("precision", torch.full((84, 84), float("nan")))],
)  # fmt: skip
def test_embedding_statistics_of_another_network(name: str, value: torch.Tensor) -> None:
    places = {"means": torch.ones(2, 84), "precision": torch.eye(84), "usual": torch.ones(2, 2),
              "placed": torch.ones(2, dtype=torch.bool)}  # fmt: skip
    good = made(IMAGES, replace(CARD, calibration={"typicality": places}))
    decode_member(encode_member(good))
    bad = replace(CARD, calibration={"typicality": {**places, name: value}})
    refused(encode_member(made(IMAGES, bad)), rf"typicality.{name} ")


def test_a_truth_value_that_is_neither() -> None:
    """A byte of 2 is no BOOL: torch would take it for true here and for false there."""
    card, header, body = pieces()
    header["calibration/x"] = {"dtype": "BOOL", "shape": [1], "data_offsets": [104, 105]}
    card["calibration"]["x"] = {"tensor": "calibration/x"}
    assert decode_member(joined(card, header, body + b"\1")).card.calibration["x"].item() is True
    refused(joined(card, header, body + b"\2"), "is BOOL, but not 0 or 1")


def with_own(dtype: str, shape: list[int], values: bytes) -> bytes:
    """A good file whose card tells of a tensor of its own."""
    card, header, body = pieces()
    offsets = [len(body), len(body) + len(values)]
    header["calibration/x"] = {"dtype": dtype, "shape": shape, "data_offsets": offsets}
    card["calibration"]["x"] = {"tensor": "calibration/x"}
    return joined(card, header, body + values)


def test_tensors_of_a_card_have_a_bound() -> None:
    """65,536 bytes in all; those of the typicality are as large as the network says, and refused by
    their description: none of them is read before.
    """
    assert (
        decode_member(with_own("U8", [65536], bytes(65536))).card.calibration["x"].numel() == 65536
    )
    refused(
        with_own("U8", [65537], bytes(65537)), r"more than 65,536 bytes, U8 \[65537\] among them"
    )
    places = {"means": torch.ones(2, 84), "precision": torch.eye(84), "usual": torch.ones(2, 2),
              "placed": torch.ones(2, dtype=torch.bool)}  # fmt: skip
    large = {**places, "precision": torch.eye(2000)}
    data = encode_member(made(IMAGES, replace(CARD, calibration={"typicality": large})))
    refused(data[:-4] + b"\0\0\0\7", "typicality.precision ")


@pytest.mark.parametrize("dtype", TYPES, ids=TYPES.values())
def test_a_tensor_of_the_card_of_any_type(dtype: torch.dtype) -> None:
    """Empty ones as well; and of bytes that mean NaN in most of the types that have it."""
    said, width = TYPES[dtype], dtype.itemsize
    for shape in ([0], [3, 0, 2], [], [2]):
        values = bytes(width * math.prod(shape))
        found = decode_member(with_own(said, shape, values)).card.calibration["x"]
        assert (list(found.shape), found.dtype) == (shape, dtype)
    ones = torch.full((2 * width,), 255, dtype=torch.uint8)
    if dtype == torch.bool:
        refused(with_own(said, [2], ones.numpy().tobytes()), "is BOOL, but not 0 or 1")
    elif (dtype.is_floating_point or dtype.is_complex) and not said.endswith("FNUZ"):
        refused(with_own(said, [2], ones.numpy().tobytes()), "calibration.x holds . of . numbers")
    if dtype == torch.complex64:
        half = torch.tensor([complex(1.0, float("nan")), 1.0]).view(torch.uint8)
        refused(with_own(said, [2], half.numpy().tobytes()), "calibration.x holds 1 of 4 numbers")
    if said.startswith("F8"):
        nan = torch.tensor([1.0, float("nan")]).to(dtype).view(torch.uint8)
        refused(with_own(said, [2], nan.numpy().tobytes()), "calibration.x holds 1 of 2 numbers")


@pytest.mark.parametrize("shape", [[0, 2**53], [2**20, 0, 2**20], [0, 2**40, 2**40]])
def test_an_empty_tensor_of_more_places_than_can_be_counted(shape: list[int]) -> None:
    refused(with_own("F32", shape, b""), "is empty, but has the shape")


def test_every_changed_byte_of_card_and_weights_is_noticed() -> None:
    """Where hashes are not put right. No blank becomes another when its last bit is turned."""
    for place in range(8, len(GOOD), 7):
        data = bytearray(GOOD)
        data[place] ^= 1
        with pytest.raises(StoreError):
            decode_member(bytes(data))


@pytest.mark.parametrize(
    ("side", "most", "words"),
    [
        (1024, {}, "has layers with more than 67,108,864 values for one sample"),
        (512, {"ACTIVATIONS": 2**40}, "takes 13,[0-9,]+ operations for one sample; at most"),
    ],
)
def test_few_weights_that_make_much_work(
    side: int, most: dict[str, int], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A network that takes the mean over all places has the same 175,000 weights for a large image.

    It takes 53 million operations for 32 x 32, so 13.6 thousand millions for 512 x 512.
    """
    for name, value in most.items():
        monkeypatch.setattr(outline, name, value)
    small = replace(IMAGES, shape=(3, 32, 32), net=Recipe("wideresnet"), view=View())
    large = replace(small, shape=(3, side, side))
    refused(encode_member(replace(made(small), model=large)), words)


def test_files_of_another_kind_are_told_by_their_metadata() -> None:
    """A state of a run."""
    refused(codec.encode({"state": 1}), r"its metadata hold \['digest', 'ostraka'\]")


def test_rows() -> None:
    """The model of most files here, so that its names are known: two layers, 26 values."""
    assert {name: list(t.shape) for name, t in made(ROWS).params.items()} == {
        "first.weight": [4, 3], "first.bias": [4], "last.weight": [2, 4], "last.bias": [2],
    }  # fmt: skip
