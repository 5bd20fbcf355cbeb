"""The device of a run, without one: samples note where they are sent, and stay where they are."""

from pathlib import Path
from typing import Any

import pytest

from ostraka.api import run
from ostraka.core.samples import Samples
from ostraka.methods.feddf import FedDF
from ostraka.runs import config, loop
from ostraka.runs.plan import make_plan

VALUES: dict[str, Any] = {
    "data": "digits", "partition": "iid", "parties": 2, "public": "half-test", "engine": "serial",
    "set": {"rounds": 2, "local": {"steps": 1}, "distil": {"steps": 1}},
}  # fmt: skip


def test_the_server_works_on_the_device_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The public samples are sent there once, not in every round,
    and `aggregate` learns from those.
    """
    public = make_plan(config.make({"method": "feddf", **VALUES})).task.commons.public
    assert public is not None
    sent: list[tuple[str, int, bool]] = []
    learnt_from: list[Any] = []
    there: list[Samples] = []

    def to(samples: Samples, device: str) -> Samples:
        sent.append((device, len(samples), samples.y is None))
        moved = Samples(samples.x, samples.y, samples.rows, samples.view)
        there.append(moved)
        return moved

    usual = FedDF._student

    def student(method: Any, net: Any, start: Any, samples: Samples, *rest: Any) -> Any:
        learnt_from.append(samples)
        return usual(method, net, start, samples, *rest)

    monkeypatch.setattr(Samples, "to", to)
    monkeypatch.setattr(loop, "pick_device", lambda wanted: "fake")
    monkeypatch.setattr(FedDF, "_student", student)
    run("feddf", out=tmp_path / "run", **VALUES)
    assert {device for device, *_ in sent} == {"fake"}
    assert [one for one in sent if one[2]] == [("fake", len(public), True)]
    assert len(learnt_from) == 2
    assert all(any(one is moved for moved in there) for one in learnt_from)
