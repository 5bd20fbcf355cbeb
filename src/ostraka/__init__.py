"""Ostraka: federated learning under label skew, with the right to answer *unknown*.

The public names are loaded on first use, so that `import ostraka` costs nothing:

* `run`: one method from data to figures, in one call; `load_run` gives its `Result` again;
  `add_class` goes on with a class more;
* `train`: a party's member from its own data, as one file; `load_members` reads such files;
  `make_task`, `load_task`, `save_task`: what all parties agree on before;
* `make_config`, `make_plan`, `execute`, `RunDir`: the same in steps;
* `load_data`, `partition`: data sets, and who holds what;
* `Ensemble`: members of several parties that answer together; `distil`: one network in its place;
  `OpenSetClassifier`: the same for one owner, as scikit-learn has its classifiers;
* `train_generator`, `load_generator`: generators of images, for `fedos`.

Authors of methods import what they need from `ostraka.contract`; see docs/adding-a-method.md.
"""

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ostraka.api import add_class, load_members, load_run, run, train
    from ostraka.data.partitions.divide import partition
    from ostraka.data.sources import load as load_data
    from ostraka.parties.classifier import OpenSetClassifier
    from ostraka.parties.distilling import distil
    from ostraka.parties.ensemble import Ensemble
    from ostraka.parties.task_file import load_task, make_task, save_task
    from ostraka.runs.api import Result
    from ostraka.runs.config import Config
    from ostraka.runs.config import make as make_config
    from ostraka.runs.generator import load_generator
    from ostraka.runs.generator_training import train_generator
    from ostraka.runs.loop import execute
    from ostraka.runs.plan import make_plan
    from ostraka.runs.record import RunDir

__version__ = "0.1.0"

_HOME = {
    "Config": ("ostraka.runs.config", "Config"),
    "Ensemble": ("ostraka.parties.ensemble", "Ensemble"),
    "OpenSetClassifier": ("ostraka.parties.classifier", "OpenSetClassifier"),
    "Result": ("ostraka.runs.api", "Result"),
    "RunDir": ("ostraka.runs.record", "RunDir"),
    "add_class": ("ostraka.api", "add_class"),
    "distil": ("ostraka.parties.distilling", "distil"),
    "execute": ("ostraka.runs.loop", "execute"),
    "load_data": ("ostraka.data.sources", "load"),
    "load_generator": ("ostraka.runs.generator", "load_generator"),
    "load_members": ("ostraka.api", "load_members"),
    "load_run": ("ostraka.api", "load_run"),
    "load_task": ("ostraka.parties.task_file", "load_task"),
    "make_config": ("ostraka.runs.config", "make"),
    "make_plan": ("ostraka.runs.plan", "make_plan"),
    "make_task": ("ostraka.parties.task_file", "make_task"),
    "partition": ("ostraka.data.partitions.divide", "partition"),
    "run": ("ostraka.api", "run"),
    "save_task": ("ostraka.parties.task_file", "save_task"),
    "train": ("ostraka.api", "train"),
    "train_generator": ("ostraka.runs.generator_training", "train_generator"),
}
"""Public name to module and name there."""

__all__ = [
    "Config",
    "Ensemble",
    "OpenSetClassifier",
    "Result",
    "RunDir",
    "add_class",
    "distil",
    "execute",
    "load_data",
    "load_generator",
    "load_members",
    "load_run",
    "load_task",
    "make_config",
    "make_plan",
    "make_task",
    "partition",
    "run",
    "save_task",
    "train",
    "train_generator",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(
            f"module 'ostraka' has no attribute {name!r}; its public names: "
            f"{', '.join(sorted(_HOME))}"
        )
    module, attribute = _HOME[name]
    return getattr(import_module(module), attribute)


def __dir__() -> list[str]:
    """The public names and the modules that are loaded; not what this file itself imports."""
    own = (
        name
        for name, value in globals().items()
        if name.startswith("__") or isinstance(value, ModuleType)
    )
    return sorted({*own, *_HOME})
