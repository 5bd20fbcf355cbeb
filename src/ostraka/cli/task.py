"""`ostraka task`: write the file that all parties agree on, or look at one."""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from ostraka.cli.options import place, share
from ostraka.errors import ConfigError
from ostraka.runs.config import parse_assignments

NAME = "task"

EXAMPLE = """\
examples:
  ostraka task init --classes cat,dog --kind image --shape 1,28,28 --out t.toml
  ostraka task init --from wards.npz --tell bands --out task.toml
  ostraka task show task.toml
"""

PLAIN = ("method", "tell", "rare", "unknown_rate", "standardise", "augment", "net")
"""Settings of the task that have an option of their own."""


def add_to(verbs: Any) -> None:
    """Register the verb."""
    parser: argparse.ArgumentParser = verbs.add_parser(
        NAME,
        help="write the file that all parties of a task agree on, or show one",
        description="Write the file that all parties of a task agree on, or show one.\n"
        "The file can be edited by hand; its comments explain every line.",
        epilog=EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("what", choices=("init", "show"), help="write a new one, or show one")
    parser.add_argument("file", nargs="?", type=place, metavar="FILE", help="the task to show")
    sample = parser.add_argument_group("classes and samples")
    sample.add_argument(
        "--classes", type=names, metavar="A,B,...", help="names of the classes of all parties"
    )
    sample.add_argument("--kind", choices=("image", "table", "sound"), help="what one sample is")
    sample.add_argument(
        "--shape", type=sides, metavar="N,N,...", help="of one sample: 1,28,28 is a grey image"
    )
    sample.add_argument(
        "--from",
        dest="source",
        type=place,
        metavar="DATA",
        help="take what is not given from own data like the parties' (folder or file)",
    )
    sample.add_argument("--label", metavar="NAME", help="tables: the column with the classes")
    sample.add_argument(
        "--skip-broken", action="store_true", help="leave out files of --from that cannot be read"
    )
    add_agreed(parser)
    parser.add_argument("--out", type=place, metavar="FILE", help="where to write it")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(act=act)


def add_agreed(parser: argparse.ArgumentParser) -> None:
    """How members are trained, and what is told of them."""
    group = parser.add_argument_group("members")
    group.add_argument("--method", metavar="NAME", help="method or preset (default fedov)")
    group.add_argument("--net", metavar="NAME", help="network (ostraka list nets); default: auto")
    group.add_argument(
        "--tell",
        metavar="WHAT",
        help="what a party tells beside its weights: size, counts (default), bands, statistics",
    )
    group.add_argument(
        "--rare",
        type=int,
        metavar="N",
        help="leave out classes with fewer samples, which may identify people (default 10)",
    )
    group.add_argument(
        "--unknown-rate",
        type=share,
        metavar="RATE",
        help="share of known samples that may be called unknown (default 5%%)",
    )
    group.add_argument(
        "--standardise",
        metavar="WHAT",
        help="tables and sound: by a party's own samples (own, default), by those of --from "
        "(task), or off",
    )
    group.add_argument("--augment", metavar="WHAT", help="an augmentation (default none)")
    group.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a setting of the method (local.epochs=20) or of the net (net.padding=same); "
        "repeatable",
    )


def names(text: str) -> list[str]:
    """`cat,dog` as names."""
    return [part.strip() for part in text.split(",")]


def sides(text: str) -> list[int]:
    """`1,28,28` as numbers."""
    try:
        return [int(part) for part in text.replace("x", ",").split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no shape such as 1,28,28") from None


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

    values = {key: value for key in PLAIN if (value := getattr(options, key)) is not None}
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
