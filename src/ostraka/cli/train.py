"""`ostraka train`: a party makes its member from its own data, as one file."""

import argparse
import json

from ostraka.cli.options import add_loudness, loudness, option, place

NAME = "train"
HELP = "make a party's member from its own data, as one file"
DESCRIPTION = """\
Train a party's member on its own data and write it as one file.
No test set is needed, and a party need not have all classes of the task.
"""
EXAMPLE = """\
examples:
  ostraka train scans/ --task task.toml --out st-anna.member --name "St. Anna"
  ostraka train wards.csv --task task.toml --out st-anna.member
  ostraka train wards.npz --out st-anna.member --dp epsilon=8

After Ctrl-C or a crash the same command goes on where it was.
"""

OPTIONS = (
    option(
        "source DATA",
        "own data: a folder with a sub-folder for each class, a table, or a .npz file",
        place,
    ),
    option("--task FILE", "what all parties agreed on; default: as found", place),
    option("--out FILE", "such as st-anna.member", place, required=True),
    option("--name NAME", "this party's name; default: the file's", dest="called"),
    option("--seed S", "seed of everything random (default 0; with dp a secret one)", int),
    option(
        "--keep-rare", "train on classes too that have so few samples that they may identify people"
    ),
    option(
        "--skip-broken", "leave out images and recordings that cannot be read, and say how many"
    ),
    option(
        "--dp epsilon=E",
        "promise differential privacy: the file tells next to nothing about any one sample",
    ),
    option("--replace", "replace the file --out"),
    option(
        "--device",
        "what the network is trained on (default auto)",
        choices=("auto", "cpu", "cuda", "mps"),
        default="auto",
    ),
    add_loudness,
)


def act(options: argparse.Namespace) -> int:
    """Train, write, say what was told."""
    from rich.console import Console

    from ostraka.display.member import show_trained, trained_facts
    from ostraka.display.progress import follow_training
    from ostraka.engines.memory import keep_freed_memory
    from ostraka.parties.dp import parse
    from ostraka.parties.train import train_party

    keep_freed_memory()
    with follow_training(loudness(options), f"training on {options.source}") as tell:
        trained = train_party(
            options.source,
            options.task,
            options.out,
            name=options.called or "",
            seed=options.seed,
            keep_rare=options.keep_rare,
            skip_broken=options.skip_broken,
            replace_file=options.replace,
            device=options.device,
            dp=None if options.dp is None else parse(options.dp),
            tell=tell,
        )
    if options.json:
        print(json.dumps(trained_facts(trained)))
    else:
        show_trained(Console(), trained)
    return 0
