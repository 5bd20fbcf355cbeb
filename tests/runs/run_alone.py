"""One run in a process of its own, to be killed:
`run_alone.py OUT VALUES [resume]`, VALUES being JSON.
"""

import json
import sys
from pathlib import Path

from ostraka.errors import OstrakaError
from ostraka.runs import config
from ostraka.runs.loop import execute
from ostraka.runs.plan import make_plan
from ostraka.runs.record import RunDir

if __name__ == "__main__":
    out, values, *rest = sys.argv[1:]
    try:
        execute(
            make_plan(config.make(json.loads(values))),
            RunDir(Path(out)),
            resume=bool(rest),
            save_seconds=0.02,
        )
    except OstrakaError as error:
        print(f"{type(error).__name__}: {error}")
        sys.exit(error.exit_code)
