"""Files of every kind with bytes that were changed at random: read, or refused by our own error."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from ostraka.data.own import Form, read
from ostraka.errors import OstrakaError
from tests.data.own.making import as_bits, image, tone, wav

TIMES = 40


def example(folder: Path, end: str) -> Path:
    path = folder / f"x{end}"
    if end == ".wav":
        path.write_bytes(wav(as_bits(tone(440, 0.1), 24), bits=24))
    elif end in (".csv", ".tsv"):
        lines = [f'{i},"{"ab"[i % 2]} ""c""",{i % 3}' for i in range(10)]
        path.write_text("\n".join(["a,b,label", *lines, ""]))
    elif end == ".npz":
        np.savez(path, x=np.arange(40, dtype=np.uint8).reshape(10, 2, 2), y=np.arange(10))
    elif end == ".parquet":
        pa = pytest.importorskip("pyarrow")
        import pyarrow.parquet

        columns = {"a": [1.0, None, 3.0], "b": ["x", "y", "x"], "label": ["p", "q", "q"]}
        pyarrow.parquet.write_table(pa.table(columns), path)
    elif end == ".16.tif":
        Image.fromarray(np.arange(64, dtype=np.uint16).reshape(8, 8)).save(path)
    else:
        image(path, (16, 16), colours=True)
    return path


@pytest.mark.parametrize("fixed", [False, True], ids=["any form", "fixed form"])
@pytest.mark.parametrize(
    "end",
    [".png", ".jpg", ".tif", ".16.tif", ".bmp", ".csv", ".tsv", ".wav", ".npz", ".parquet"],
)
def test_damage_leads_to_our_own_errors(folder: Path, end: str, fixed: bool) -> None:
    path = example(folder, end)
    whole = path.read_bytes()
    assert len(read(path))
    form = Form("image", (3, 4, 4)) if fixed and end not in TABULAR else Form()
    rng, refused = np.random.default_rng(len(end)), 0
    for _ in range(TIMES):
        content = bytearray(whole)
        for at in rng.integers(0, len(content), rng.integers(1, 6)):
            content[at] = rng.integers(0, 256)
        cut = rng.integers(0, len(content)) if rng.random() < 0.2 else len(content)
        path.write_bytes(bytes(content[:cut]))
        try:
            found = read(path, form)
        except OstrakaError:
            refused += 1
        else:
            assert found.samples.inputs().isfinite().all()
    assert refused


TABULAR = (".csv", ".tsv", ".wav", ".npz", ".parquet")
"""What is no image."""
