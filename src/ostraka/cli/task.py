"""`ostraka task`: write the file that all parties agree on, or look at one."""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from ostraka.cli.options import NET, SETTING, given, numbers, option, place, share, titled
from ostraka.errors import ConfigError
from ostraka.runs.config import parse_assignments

NAME = "task"
HELP = "write the file that all parties of a task agree on, or show one"
DESCRIPTION = """\
Write the file that all parties of a task agree on, or show one.
The file can be edited by hand; its comments explain every line.
"""
EXAMPLE = """\
examples:
  ostraka task init --classes cat,dog --kind image --shape 1,28,28 --out t.toml
  ostraka task init --from wards.npz --tell bands --out task.toml
  ostraka task show task.toml
"""

PLAIN = ("method", "tell", "rare", "unknown_rate", "standardise", "augment", "net")
"""Settings of the task that have an option of their own."""


def names(text: str) -> list[str]:
    """`cat,dog` as names."""
    return [part.strip() for part in text.split(",")]


OPTIONS = (
    option("what", "write a new one, or show one", choices=("init", "show")),
    option("file FILE", "the task to show", place, nargs="?"),
    titled(
        "classes and samples",
        option("--classes A,B,...", "names of the classes of all parties", names),
        option("--kind", "what one sample is", choices=("image", "table", "sound")),
        option(
            "--shape N,N,...",
            "of one sample: 1,28,28 is a grey image",
            numbers("no shape such as 1,28,28", "[,x]"),
        ),
        option(
            "--from DATA",
            "take what is not given from own data like the parties' (folder or file)",
            place,
            dest="source",
        ),
        option("--label NAME", "tables: the column with the classes"),
        option("--skip-broken", "leave out files of --from that cannot be read"),
    ),
    titled(
        "members",
        option("--method NAME", "method or preset (default fedov)"),
        NET,
        option(
            "--tell WHAT",
            "what a party tells beside its weights: size, counts (default), bands, statistics",
        ),
        option(
            "--rare N",
            "leave out classes with fewer samples, which may identify people (default 10)",
            int,
        ),
        option(
            "--unknown-rate RATE",
            "share of known samples that may be called unknown (default 5%%)",
            share,
        ),
        option(
            "--standardise WHAT",
            "tables and sound: by a party's own samples (own, default), by those of --from "
            "(task), or off",
        ),
        option("--augment WHAT", "an augmentation (default none)"),
        SETTING,
    ),
    option("--out FILE", "where to write it", place),
    option("--json", "print one JSON object"),
)


def act(options: argparse.Namespace) -> int:
    """Write or show."""
    from ostraka.parties.task_file import load_task, save_task, task_text

    if options.what == "show":
        if options.file is None:
            raise ConfigError("name the task to show: ostraka task show task.toml")
        task = load_task(options.file)
    else:
        out = _free(options)
        task = _made(options)
        save_task(out, task)
    if options.json:
        print(json.dumps(task.as_dict()))
    elif options.what == "show":
        print(task_text(task), end="")
    else:
        many = f"{len(task.classes)} {'class' if len(task.classes) == 1 else 'classes'}"
        size = " x ".join(map(str, task.shape))
        print(f"Task: {out} ({many}, {task.kind} of {size}, {task.method}, tells {task.tell}).")
        print(f"Hand it to every party; each runs: ostraka train DATA --task {out} --out FILE")
    return 0


def _free(options: argparse.Namespace) -> Path:
    """Where the task goes; never in the place of another one."""
    out: Path | None = options.out or options.file
    if out is None:
        raise ConfigError("say where to write the task: --out task.toml")
    if out.exists():
        raise ConfigError(f"{out} is there already; edit it, or choose another --out")
    return out


def _made(options: argparse.Namespace) -> Any:
    from ostraka.data.own import Form
    from ostraka.parties.samples import collected
    from ostraka.parties.task_file import make_task

    values = given(options, PLAIN)
    assigned = parse_assignments(options.set)
    extra = assigned.pop("net", {})
    if not isinstance(extra, dict):
        raise ConfigError(f"--set net={extra} was given; use --net {extra}, --set net.NAME=VALUE")
    if extra:
        values["net"] = {"name": values.get("net", "auto"), "options": extra}
    if options.source is None and not (options.classes and options.kind and options.shape):
        raise ConfigError(
            "a task needs --classes, --kind and --shape, or --from DATA to take them from"
        )
    form = Form(options.kind, options.shape and tuple(options.shape), options.label)
    held = None if options.source is None else collected(options.source, form, options.skip_broken)
    for note in () if held is None else held.notes:
        print(f"Note: {note}", file=sys.stderr)
    return make_task(
        options.classes,
        data=held,
        kind=options.kind,
        shape=options.shape,
        label=options.label,
        set=assigned,
        **values,
    )
