"""Two methods on the same division, step by step: configuration, plan, run, figures.

python examples/compare_in_python.py
"""

from pathlib import Path
from tempfile import TemporaryDirectory

import ostraka

COMMON = {
    "data": "digits",
    "partition": "labels:2",
    "parties": 5,
    "engine": "serial",
    "set": {"local": {"epochs": 3}},
}


def main() -> None:
    with TemporaryDirectory() as folder:
        for method in ("solo", "closed-voting"):
            config = ostraka.make_config({**COMMON, "method": method})
            plan = ostraka.make_plan(
                config
            )  # data, parties, task and method; nothing is trained or written yet
            summary = ostraka.execute(plan, ostraka.RunDir(Path(folder) / method))
            print(f"{method:14} {summary.accuracy:5.1f} %  {summary.bytes_up:8} bytes up")


if __name__ == "__main__":
    main()
