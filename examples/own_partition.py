"""A division of one's own: write the parties' training rows as JSON, then run with `file:PATH`.

python examples/own_partition.py
"""

import json
from pathlib import Path
from tempfile import TemporaryDirectory

import ostraka


def main() -> None:
    labels = ostraka.load_data("digits").train.labels
    groups = {"low": (0, 1, 2, 3), "middle": (4, 5, 6), "high": (7, 8, 9)}
    rows = [
        [i for i, label in enumerate(labels.tolist()) if label in group]
        for group in groups.values()
    ]
    with TemporaryDirectory() as folder:
        path = Path(folder) / "mine.json"
        path.write_text(json.dumps({"names": list(groups), "parties": rows}))
        result = ostraka.run(
            "closed-voting",
            data="digits",
            partition=f"file:{path}",
            set={"local": {"epochs": 3}},
            engine="serial",
            out=Path(folder) / "run",
        )
    for party, accuracy in result.summary.per_party.items():
        print(f"{party:8} {accuracy:5.1f} % on classes as it meets them")
    print(f"all      {result.summary.accuracy:5.1f} %")


if __name__ == "__main__":
    main()
