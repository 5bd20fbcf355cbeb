"""Atheris throws bytes at the reader of member files: `make fuzz SECONDS=600`.

It changes the seeds in ways that reach new code, and stops at an error that is no StoreError, at an
input that takes more than ten seconds, and when memory grows beyond 2 GB.
"""

import sys
import tempfile
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["ostraka.store", "ostraka.core"]):
    from tests.store.fuzzing import look_at, seeds

LIMITS = ("-timeout=10", "-rss_limit_mb=2048", "-max_len=8192", "-print_final_stats=1")


def main(seconds: str = "60") -> None:
    with tempfile.TemporaryDirectory() as folder:
        for i, data in enumerate(seeds()):
            (Path(folder) / f"seed-{i}").write_bytes(data)
        atheris.Setup([__file__, *LIMITS, f"-max_total_time={seconds}", folder], look_at)
        atheris.Fuzz()


if __name__ == "__main__":
    main(*sys.argv[1:])
