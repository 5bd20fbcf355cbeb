"""`ostraka completion`: a script that lets the shell complete verbs, options and names.

The script is made from the parser itself. Names (methods, data sets, ...) are written into it, so
that pressing Tab starts no Python.
"""

import argparse
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from shlex import quote

from ostraka.cli.options import option
from ostraka.registry import (
    AUGMENTATIONS,
    BALLOTS,
    ENGINES,
    NETS,
    OBJECTIVES,
    PARTITIONS,
    SELECTORS,
)

NAME = "completion"
HELP = "print a script that completes commands in bash, zsh or fish"
DESCRIPTION = "Print a script that lets the shell complete verbs, options and names."

SHELLS = ("bash", "zsh", "fish")

EXAMPLE = """\
examples:
  ostraka completion bash > ~/.local/share/bash-completion/completions/ostraka
  ostraka completion zsh > ~/.zfunc/_ostraka       (a folder of your fpath)
  ostraka completion fish > ~/.config/fish/completions/ostraka.fish
Make it anew after you have installed a plug-in.
"""

FILES, FOLDERS = "files", "folders"

OPTIONS = (option("shell", "which shell", choices=SHELLS),)


def act(options: argparse.Namespace) -> int:
    """Print the script."""
    from ostraka.cli.main import parser

    writers = {"bash": _bash, "zsh": _zsh, "fish": _fish}
    print("\n".join(writers[options.shell](list(words_of(parser(), names())))))
    return 0


@dataclass(frozen=True)
class Word:
    """An option of a verb, or (without `options`) what else it takes, and what may stand there.

    `values` are names; FILES or FOLDERS; or None, where anything may. A switch takes no value at
    all. The help is told up to its first stop.
    """

    options: tuple[str, ...]
    help: str
    values: tuple[str, ...] | str | None
    switch: bool = False
    several: bool = False
    """Whether more than one value may follow."""


@dataclass(frozen=True)
class Verb:
    """A verb and what may follow it."""

    name: str
    help: str
    words: tuple[Word, ...]

    @property
    def taking(self) -> list[Word]:
        """Options that take a value."""
        return [word for word in self.words if word.options and not word.switch]

    @property
    def options(self) -> list[str]:
        """All spellings of all options."""
        return [option for word in self.words for option in word.options]

    @property
    def free(self) -> tuple[str, ...] | str | None:
        """What may stand there without an option."""
        return next((word.values for word in self.words if not word.options), None)


def verb_parsers(top: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """The parsers of all verbs by name."""
    [choice] = [action for action in top._actions if isinstance(action, argparse._SubParsersAction)]
    return dict(choice.choices)


def words_of(top: argparse.ArgumentParser, known: Mapping[str, Iterable[str]]) -> Iterator[Verb]:
    """The verbs of a parser, with what may stand behind every option.

    `known` gives names by an option's `dest`.
    """
    [choice] = [action for action in top._actions if isinstance(action, argparse._SubParsersAction)]
    helps = {action.dest: action.help or "" for action in choice._choices_actions}
    for name, own in choice.choices.items():
        words = (
            Word(
                options=tuple(action.option_strings),
                help=(action.help or "").replace("%%", "%").partition(";")[0].partition(" (")[0],
                values=_values(action, known),
                switch=action.nargs == 0,
                several=action.nargs == "+",
            )
            for action in own._actions
        )
        yield Verb(name, helps[name], tuple(words))


def names() -> dict[str, tuple[str, ...]]:
    """What may stand behind an option, by its `dest`; data sets are those that are found now."""
    from ostraka.cli.listing import SHELVES
    from ostraka.data.sources import available
    from ostraka.runs.config import method_names

    methods = tuple(method_names())
    partitions = tuple(
        f"{n}:" if getattr(PARTITIONS.get(n), "argument", "") else n for n in PARTITIONS
    )
    return {
        "method": methods,
        "methods": methods,
        "name": methods,
        "what": tuple(sorted(SHELVES)),
        "net": ("auto", *NETS),
        "objective": tuple(OBJECTIVES),
        "engine": tuple(ENGINES),
        "augment": ("auto", *AUGMENTATIONS),
        "data": tuple(found.name for found in available()),
        "partition": partitions,
        "ballot": tuple(BALLOTS),
        "select": tuple(SELECTORS),
        "public": ("half-test",),
        "device": ("auto", "cpu", "cuda", "mps"),
        "on_failure": ("stop", "drop"),
    }


def _values(
    action: argparse.Action, known: Mapping[str, Iterable[str]]
) -> tuple[str, ...] | str | None:
    if action.choices is not None:
        return tuple(map(str, action.choices))
    if action.metavar in ("FILE", "DIR", "DATA"):  # own data is a file or a folder
        return FOLDERS if action.metavar == "DIR" else FILES
    return tuple(dict.fromkeys(known[action.dest])) if action.dest in known else None


def _bash(verbs: list[Verb]) -> Iterator[str]:
    yield "# bash completion for ostraka; made by: ostraka completion bash"
    yield "_ostraka() {"
    yield "    COMPREPLY=()"
    yield "    _ostraka_words"
    one = "${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *:"
    yield f"    [[ {one} ]] && compopt -o nospace 2>/dev/null"
    yield "    return 0"
    yield "}"
    yield "_ostraka_words() {"
    yield "    local word=${COMP_WORDS[COMP_CWORD]} verb= option= i"
    yield "    for ((i = 1; i < COMP_CWORD; i++)); do"
    yield "        case ${COMP_WORDS[i]} in"
    yield "            -*) [[ -n $verb ]] && option=${COMP_WORDS[i]} ;;"
    yield "            *) [[ -z $verb ]] && verb=${COMP_WORDS[i]} ;;"
    yield "        esac"
    yield "    done"
    yield "    if [[ -z $verb ]]; then"
    yield f"        {_reply([*(verb.name for verb in verbs), '--help', '--version'])}"
    yield "        return"
    yield "    fi"
    words = [(verb, word) for verb in verbs for word in verb.taking if word.several]
    several = [quote(f"{verb.name} {flag}") for verb, word in words for flag in word.options]
    yield '    if [[ ${COMP_WORDS[COMP_CWORD-1]} != "$option" ]]; then'
    yield f'        case "$verb $option" in {"|".join(several)}) ;; *) option= ;; esac'
    yield "    fi"
    yield "    if [[ $word != -* ]]; then"
    yield '        case "$verb $option" in'
    for verb in verbs:
        for word in verb.taking:
            pattern = "|".join(quote(f"{verb.name} {option}") for option in word.options)
            yield f"            {pattern}) {_bash_values(word.values)}; return ;;"
    yield "        esac"
    yield "    fi"
    yield "    case $verb in"
    for verb in verbs:
        yield f"        {verb.name})"
        yield f"            if [[ $word == -* ]]; then {_reply(verb.options)}"
        yield f"            else {_bash_values(verb.free)}; fi ;;"
    yield "    esac"
    yield "}"
    yield "complete -F _ostraka ostraka"


def _bash_values(values: tuple[str, ...] | str | None) -> str:
    if values == FILES:
        return 'compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -f -- "$word")'
    if values == FOLDERS:
        return 'compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -d -- "$word")'
    return _reply(values) if values else ":"


def _reply(names: Iterable[str]) -> str:
    return f'mapfile -t COMPREPLY < <(compgen -W {quote(" ".join(names))} -- "$word")'


def _zsh(verbs: list[Verb]) -> Iterator[str]:
    yield "#compdef ostraka"
    yield "# zsh completion for ostraka; made by: ostraka completion zsh"
    yield "_ostraka() {"
    yield "    local -a verbs"
    yield "    if (( CURRENT == 2 )); then"
    yield f"        verbs=({' '.join(quote(f'{verb.name}:{verb.help}') for verb in verbs)})"
    yield "        _describe verb verbs"
    yield "        return"
    yield "    fi"
    yield "    local verb=$words[2]"
    yield "    shift words; (( CURRENT-- ))"
    yield "    case $verb in"
    for verb in verbs:
        yield f"        {verb.name})"
        yield "            _arguments \\"
        for word in verb.words:
            told = word.help.translate({ord(c): f"\\{c}" for c in "[]:"})
            for flag in word.options:
                value = "" if word.switch else f":value:{_zsh_values(word.values)}"
                yield f"                {quote(f'*{flag}[{told}]{value}')} \\"
        yield f"                {quote(f'*:value:{_zsh_values(verb.free)}')} ;;"
    yield "    esac"
    yield "}"
    yield (
        'if [[ $funcstack[1] == _ostraka ]]; then _ostraka "$@"; else compdef _ostraka ostraka; fi'
    )


def _zsh_values(values: tuple[str, ...] | str | None) -> str:
    if values == FILES:
        return "_files"
    if values == FOLDERS:
        return "_files -/"
    return f"({' '.join(name.replace(':', chr(92) + ':') for name in values)})" if values else " "


def _fish(verbs: list[Verb]) -> Iterator[str]:
    yield "# fish completion for ostraka; made by: ostraka completion fish"
    yield "complete -c ostraka -f"
    everyone = " ".join(verb.name for verb in verbs)
    for verb in verbs:
        yield (
            f"complete -c ostraka -n {quote(f'not __fish_seen_subcommand_from {everyone}')} "
            f"-a {verb.name} -d {quote(verb.help)}"
        )
        seen = f"-n {quote(f'__fish_seen_subcommand_from {verb.name}')}"
        for word in (word for word in verb.words if word.options or word.values):
            spelt = " ".join(
                f"-l {o[2:]}" if o.startswith("--") else f"-s {o[1:]}" for o in word.options
            )
            yield " ".join(
                part for part in ("complete -c ostraka", seen, spelt, _fish_values(word)) if part
            )


def _fish_values(word: Word) -> str:
    told = f"-d {quote(word.help)}"
    if word.switch:
        return told
    if word.values == FILES:
        return f"-rF {told}"
    if word.values == FOLDERS:
        return f"-xa '(__fish_complete_directories)' {told}"
    values = f"-a {quote(' '.join(word.values))}" if word.values else ""
    return " ".join(part for part in ("-x" if word.options else "", values, told) if part)
