"""`ostraka train`: a party makes its member from its own data, as one file."""

import argparse
import json
from typing import Any

from ostraka.cli.options import add_loudness, loudness, place

NAME = "train"

EXAMPLE = """\
examples:
  ostraka train scans/ --task task.toml --out st-anna.member --name "St. Anna"
  ostraka train wards.csv --task task.toml --out st-anna.member
  ostraka train wards.npz --out st-anna.member --dp epsilon=8

After Ctrl-C or a crash the same command goes on where it was.
"""


def add_to(verbs: Any) -> None:
    """Register the verb."""
    parser: argparse.ArgumentParser = verbs.add_parser(
        NAME,
        help="make a party's member from its own data, as one file",
        description="Train a party's member on its own data and write it as one file.\n"
        "No test set is needed, and a party need not have all classes of the task.",
        epilog=EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "source",
        type=place,
        metavar="DATA",
        help="own data: a folder with a sub-folder for each class, a table, or a .npz file",
    )
    parser.add_argument(
        "--task", type=place, metavar="FILE", help="what all parties agreed on; default: as found"
    )
    parser.add_argument(
        "--out", type=place, required=True, metavar="FILE", help="such as st-anna.member"
    )
    parser.add_argument(
        "--name", dest="called", metavar="NAME", help="this party's name; default: the file's"
    )
    parser.add_argument(
        "--seed",
        type=int,
        metavar="S",
        help="seed of everything random (default 0; with dp a secret one)",
    )
    parser.add_argument(
        "--keep-rare",
        action="store_true",
        help="train on classes too that have so few samples that they may identify people",
    )
    parser.add_argument(
        "--skip-broken",
        action="store_true",
        help="leave out images and recordings that cannot be read, and say how many",
    )
    parser.add_argument(
        "--dp",
        metavar="epsilon=E",
        help="promise differential privacy: the file tells next to nothing about any one sample",
    )
    parser.add_argument("--replace", action="store_true", help="replace the file --out")
    parser.add_argument(
        "--device",
        choices=("auto", "cpu", "cuda", "mps"),
        default="auto",
        help="what the network is trained on (default auto)",
    )
    add_loudness(parser)
    parser.set_defaults(act=act)


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
