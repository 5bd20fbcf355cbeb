"""Which operation of a mix of outliers does what?

FedOV with the whole mix, with each of its operations alone, and with each of them left out (the
others keep their proportions); more operations alone by `--alone`, more mixes by `--beside`.

    python -m benchmarks.outlier_study wide-tables --alone mixup exchange --beside tables \\
        --out tables.jsonl --data wine digits-rows --partition labels:1 labels:2 --seeds 0 1

Settings of `--set` hold for all of them. Every other option is one of recipe_study, which trains
and judges the members and prints the table; it also keeps what is finished.
"""

import argparse
from collections.abc import Iterator, Sequence

from benchmarks import recipe_study
from ostraka.core.kind import KINDS
from ostraka.errors import ConfigError, OstrakaError
from ostraka.objectives.destruction import BY_KIND, OPERATIONS, shares_of


def variants(
    mix: str, alone: Sequence[str], beside: Sequence[str], settings: Sequence[str]
) -> Iterator[list[str]]:
    """Variants as recipe_study takes them."""
    shares = shares_of(mix)
    tried = {mix: mix} | {other: other for other in beside}
    tried |= {f"only {name}": name for name in (*shares, *alone)}
    if len(shares) > 1:
        for left_out in shares:
            rest = {name: share for name, share in shares.items() if name != left_out}
            text = "+".join(f"{name}:{share}" for name, share in rest.items())
            tried[f"without {left_out}"] = text
    for name, outliers in tried.items():
        yield ["--variant", name, f"objective.outliers={outliers}", *settings]


def check_names(names: Sequence[str]) -> None:
    """What a name means must not depend on the data, which each may be of another kind."""
    for name in names:
        if name in BY_KIND:
            means = ", ".join(f"{BY_KIND[name][kind]} for {kind}" for kind in KINDS)
            raise ConfigError(f"{name!r} is another mix for each kind of data ({means}); name one")
        shares_of(name)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("mix", help="a mix of operations, such as wide-tables")
    parser.add_argument(
        "--alone", nargs="+", default=[], choices=list(OPERATIONS), help="more operations alone"
    )
    parser.add_argument("--beside", nargs="+", default=[], help="other mixes")
    parser.add_argument("--set", nargs="+", default=[], dest="settings", metavar="SETTING=VALUE")
    options, rest = parser.parse_known_args()
    try:
        check_names([options.mix, *options.beside])
    except OstrakaError as error:
        parser.exit(error.exit_code, f"{error}\n")
    chosen = variants(options.mix, options.alone, options.beside, options.settings)
    recipe_study.main([*rest, *(word for variant in chosen for word in variant)])


if __name__ == "__main__":
    main()
