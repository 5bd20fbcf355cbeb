"""Work that is killed (SIGKILL) at every step at which it changes the disk, then done again.

Run as a program of its own, `python -m tests.killing CASE FOLDER EVERY`, as it forks: a process
that torch has been at work in could not. Prints what remained of each attempt beside what one that
was left alone leaves, if they differ.
"""

import json
import os
import signal
import stat
import sys
from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path
from typing import Any

from ostraka.cli.main import main as ostraka
from ostraka.parties.train import train_party
from ostraka.runs import loop
from ostraka.runs.config import make
from ostraka.runs.grid import Grid, run_grid
from ostraka.runs.plan import make_plan
from ostraka.runs.record import RunDir
from tests.parties.wards import CLASSES, SHORT, pictures, short_task

TINY = {
    "data": "digits", "train_per_class": 4, "partition": "iid", "parties": 2, "engine": "serial",
    "net": {"name": "mlp", "options": {"hidden": [4]}},
}  # fmt: skip
STEPS = ("replace", "rename", "unlink", "rmdir")


def run(method: str, **settings: Any) -> Callable[[Path], None]:
    def act(out: Path) -> None:
        home = RunDir(out / "run")
        values = {**TINY, "method": method, "set": {"local": {"epochs": 2}, **settings}}
        plan = make_plan(make(values), home if home.marks.exists() else None)
        loop.execute(plan, home, resume=True, save_seconds=0.0)

    return act


def grid(out: Path) -> None:
    """Two methods that share their members; half-finished training is saved at every step."""
    loop.execute.__defaults__ = (*loop.execute.__defaults__[:-1], 0.0)  # type: ignore[index]
    base = {**TINY, "set": {"local": {"epochs": 2}}}
    for name in ("data", "partition"):
        del base[name]
    run_grid(Grid(("closed-voting", "solo"), ("digits",), ("iid",), (0,), base, {}), out / "grid")


def train(out: Path, **more: Any) -> None:
    train_party(pictures(CLASSES[:2], 15), short_task(**more), out / "a.member", save_seconds=0.0)


def private(out: Path) -> None:
    """With a secret seed, which a resumed training must have, and nobody afterwards."""
    chosen = {**SHORT, "ballot": "sum", "objective": "cross-entropy", "dp.epsilon": 5.0}
    train(out, set=chosen)


def select(out: Path) -> None:
    """Into a folder, and a list beside it."""
    if not (out / "in").exists():
        for name in "ab":
            train_party(pictures(CLASSES[:2], 15), short_task(), out / "in" / f"{name}.member")
    sys.stdout = open(os.devnull, "w")  # noqa: SIM115  (this process ends with it)
    words = ["select", str(out / "in"), "--method", "all", "--out"]
    for place in ("chosen", "chosen.txt"):
        if ostraka([*words, str(out / place)]):
            raise AssertionError(place)


CASES: dict[str, Callable[[Path], None]] = {
    "scaffold": run("scaffold", rounds=2),
    "fedova": run("fedova", rounds=2),
    "fedov": run("fedov"),
    "grid": grid,
    "train": train,
    "private": private,
    "select": select,
}


def child(act: Callable[[], None], last: int = 0) -> int:
    """The status of a process that does it, and is killed when it comes to its step `last`."""
    number = os.fork()
    if number:
        return os.waitpid(number, 0)[1]
    done = 0

    def counted(step: Callable[..., Any]) -> Callable[..., Any]:
        def dying(*words: Any, **more: Any) -> Any:
            nonlocal done
            done += 1
            if done == last:
                os.kill(os.getpid(), signal.SIGKILL)
            return step(*words, **more)

        return dying

    for name in STEPS:
        setattr(os, name, counted(getattr(os, name)))
    try:
        act()
        os._exit(0)
    except BaseException as error:
        print(json.dumps({"step": last, "error": repr(error)}), flush=True)
        os._exit(1)


def left(root: Path, secret: bool) -> dict[str, Any]:
    """Every file and folder: what it holds, but for times; of what is secret, that it is there."""
    found: dict[str, Any] = {}
    for path in sorted(root.rglob("*")):
        mode, name = stat.S_IMODE(path.stat().st_mode), str(path.relative_to(root))
        data = path.read_bytes() if path.is_file() else b""
        timed = path.suffix in (".json", ".jsonl", ".toml") or path.parent.name == "members"
        if timed or secret or "grid" in path.parts:
            data = b""  # how long it took is in it, or when it was made
        found[name] = [oct(mode), blake2b(data, digest_size=8).hexdigest()]
    return found


def main(case: str, folder: str, every: int) -> None:
    act, root = CASES[case], Path(folder)
    os.umask(0o022)

    def attempt(name: str, last: int = 0) -> tuple[int, dict[str, Any]]:
        home = root / name
        home.mkdir()
        if case == "select":
            child(lambda: select(home))
            for path in (home / "chosen.txt", *(home / "chosen").iterdir()):
                path.unlink()
        status = child(lambda: act(home), last)
        if last and os.WIFSIGNALED(status):
            child(lambda: act(home))
        return status, left(home, case == "private")

    _, whole = attempt("whole")
    print(json.dumps({"whole": {name: mode for name, (mode, _) in whole.items()}}), flush=True)
    last = 1
    while True:
        status, found = attempt(f"k{last}", last)
        if not os.WIFSIGNALED(status):
            break
        if found != whole:
            other = {n: found.get(n) for n in {*found, *whole} if found.get(n) != whole.get(n)}
            print(json.dumps({"step": last, "other": other}), flush=True)
        last += every
    print(json.dumps({"steps": last}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
