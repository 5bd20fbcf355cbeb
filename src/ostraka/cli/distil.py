"""`ostraka distil`: one network in place of a vote."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from ostraka.cli.group import MEMBERS, VOTING, ensemble_of, form_of, print_json
from ostraka.cli.options import add_loudness, given, loudness, option, place
from ostraka.errors import ConfigError, printable

if TYPE_CHECKING:
    from ostraka.core.samples import Samples
    from ostraka.parties.distilling import Distilled
    from ostraka.parties.ensemble import Ensemble

NAME = "distil"
HELP = "train one network that answers as a group's vote does"
DESCRIPTION = """\
Train one network, on samples that anybody may see, to answer as the vote of
the members does, and write it as a member file.
"""
EXAMPLE = """\
examples:
  ostraka distil wards/ --public public.npz --out student.member
  ostraka distil wards/ --public generator --epochs 20 --out student.member
  ostraka predict student.member --on scan.png

Stopped, the same command goes on where it was.
"""

OPTIONS = (
    MEMBERS,
    option(
        "--public DATA",
        "unlabelled samples: a folder, file or data set; or generator, generator:FILE",
        required=True,
    ),
    option("--out FILE", "the student's member file", place, required=True),
    VOTING,
    option("--net NAME", "the student's network; default: that of most members"),
    option("--epochs E", "passes over the public samples (default 100)", int),
    option("--lr L", "learning rate (default 0.001)", float),
    option("--seed S", "seed of everything random", int, default=0),
    option("--replace", "replace a file that is there already"),
    add_loudness,
)


def act(options: argparse.Namespace) -> int:
    """Read, train, write, say how far the student agrees."""
    from ostraka.display.progress import follow_training
    from ostraka.parties.distilling import STUDENT, distil

    out: Path = options.out
    training = STUDENT.changed(**given(options, ("epochs", "lr")))
    if not training.wanted:
        raise ConfigError("--epochs is 0; a student needs at least 1")
    ensemble = ensemble_of(options)
    public, notes = _public(ensemble, options)
    with follow_training(loudness(options), f"learning the vote of {len(ensemble.names)}") as tell:
        made = distil(ensemble, public, out, net=options.net, training=training,
                      seed=options.seed, overwrite=options.replace, tell=tell)  # fmt: skip
    told = [*ensemble.notes, *notes, *made.notes]
    if options.json:
        print_json({**made.as_dict(), "notes": told, "out": str(out)})
    else:
        _show(made, out, told)
    return 0


def _public(ensemble: "Ensemble", options: argparse.Namespace) -> tuple["Samples", list[str]]:
    from ostraka.parties.asked import read_for
    from ostraka.parties.distilling import GENERATOR, drawn

    if options.public.partition(":")[0] == GENERATOR:
        return drawn(ensemble, options.public, options.seed), []
    held = read_for(ensemble, options.public, labelled=False, form=form_of(options), part="train")
    return held.samples, list(held.notes)


def _show(made: "Distilled", out: Path, notes: list[str]) -> None:
    numbers = sum(tensor.numel() for tensor in made.member.params.values())
    print(
        f"Student: {out} ({numbers:,} numbers). On {made.held:,} public samples that it has not "
        f"seen it answers as the vote on {made.agreement:.1f} % of them, with the same likeliest "
        f"class on {made.nearest_agreement:.1f} %; the vote calls {made.refused:.1f} % unknown."
    )
    for note in notes:
        print(f"Note: {printable(note)}")
