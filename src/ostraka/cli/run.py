"""`ostraka run`: one federation, from data to figures."""

import argparse
import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ostraka.cli.options import (
    SEED,
    add_outcome_options,
    add_run_options,
    check_local,
    flag_of,
    loudness,
    option,
    place,
    values_from,
)
from ostraka.core.settings import merge, values_of, with_recipe
from ostraka.errors import ConfigError
from ostraka.runs.config import HOW, Config, build_method, canonical_method, changed, make, resolve

NAME = "run"
HELP = "train and evaluate one method"
DESCRIPTION = """\
Train and evaluate one method.
Everything lands in one folder; a killed run can be resumed.
"""
EXAMPLE = """\
examples:
  ostraka run closed-voting --partition labels:2 --parties 10 --seed 1
  ostraka run fedavg --rounds 20 --set local.epochs=2 --out runs/mine
  ostraka run fedavg --data digits --known 6 --json
  ostraka run fedov --partition labels:3 --dry-run
  ostraka run --resume --out runs/mine
  ostraka run --start-from runs/nine --add-class 9 --rounds 10 --out runs/ten
"""

OPTIONS = (
    option("method METHOD", "method or preset (ostraka list methods)", nargs="?"),
    option("--data D", "data set (ostraka list data); default: fashion-4k"),
    option("--partition P", "how it is divided (ostraka list partitions); default: labels:2"),
    SEED,
    option("--seeds N", argparse.SUPPRESS),  # only to say where it belongs
    add_run_options,
    option("--out DIR", "folder of the run; default: a new one under runs/", place),
    option("--resume", "go on with the run in --out"),
    option(
        "--add-class NAME",
        "train a network for this class and leave those of the finished run --start-from as "
        "they are (fedova); repeatable",
        action="append",
        default=[],
    ),
    add_outcome_options,
)


def act(options: argparse.Namespace) -> int:
    """Run, show, done."""
    from rich.console import Console

    from ostraka.display.costs import show_run
    from ostraka.display.progress import follow_run
    from ostraka.display.summary import show_summary
    from ostraka.engines.memory import keep_freed_memory
    from ostraka.runs.api import prepare
    from ostraka.runs.folder import check_free, free_folder
    from ostraka.runs.loop import execute
    from ostraka.runs.plan import Plan
    from ostraka.runs.record import RunDir
    from ostraka.runs.summary import brief

    config = _config(options)
    out = options.out or free_folder(config)
    check_free(out, "run")
    keep_freed_memory()  # votes and evaluation run in this process
    home = RunDir(out)
    ready = prepare(config, home, options.resume)
    if not isinstance(ready, Plan):
        summary = ready
    elif options.dry_run:
        show_run(ready, options.json)
        return 0
    else:
        with follow_run(loudness(options)) as watch:
            summary = execute(ready, home, watch, resume=options.resume)
    if options.json:
        print(json.dumps(brief(summary)))
    else:
        show_summary(Console(), summary)
    return 0


def _config(options: argparse.Namespace) -> Config:
    from ostraka.runs.record import RunDir

    if options.seeds is not None:
        words = [word for word in options.words[1:] if word not in (options.method, "--resume")]
        raise ConfigError(
            "run takes one --seed; several seeds are for compare: ostraka compare "
            + shlex.join([options.method or "METHOD", *words])
        )
    values = values_from(options, ("method", "data", "partition", "seed"))
    if options.resume:
        if options.out is None:
            raise ConfigError("--resume needs --out: say which run to go on with")
        home = RunDir(options.out)
        if home.federation is not None:
            raise ConfigError(
                f"the run in {options.out} is a federation's, whose parties have the data; go on "
                f"with: {home.resume_command()}"
            )
        return _resumed(home.stored_config(), values, options.out)
    if options.add_class:
        from ostraka.runs.growth import grown

        if "start_from" not in values:
            raise ConfigError(
                "--add-class needs --start-from: say which finished run is to know one class more"
            )
        return make(grown(Path(values.pop("start_from")), options.add_class, values))
    if "method" not in values:
        raise ConfigError(
            "name a method, for example: ostraka run fedavg (ostraka list methods shows all)"
        )
    check_local(options, [values["method"]])
    return make(values)


def _resumed(stored: Config, values: Mapping[str, Any], out: Path) -> Config:
    """The stored run with what was given laid over it; only how it is run may be another."""
    given = dict(values)
    if canonical_method(str(given.pop("method", stored.method))) != stored.method:
        different = [f"method = {stored.method!r} (now {values['method']!r})"]
    else:
        own = dict(with_recipe(type(build_method(stored)), given.pop("set", {})))
        config = make(merge(values_of(stored), {**given, "set": own}))
        different = changed(resolve(stored), resolve(config))
        if not different:
            return config
    raise ConfigError(
        f"the run in {out} was begun with {', '.join(different)}; it can only be resumed as it is. "
        "Leave that out, or begin another run in another --out. What may change: "
        f"{', '.join(flag_of(name) for name in HOW)}"
    )
