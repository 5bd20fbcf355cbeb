"""All that an author of a method, an objective or a network needs, under one roof.

    from ostraka.contract import Method, Objective, Report, Task, fit, setting

The names stay here when the modules behind them move. docs/adding-a-method.md goes through them.
"""

from ostraka.core.arrival import check_answers, check_kind, check_tensors
from ostraka.core.card import Card
from ostraka.core.fit import Budget, Fitted, RoundBudget, fit
from ostraka.core.learner import build_net, load_predictor
from ostraka.core.member import Member, Model
from ostraka.core.method import Iterative, Memory, Method, Needs, Report, Round
from ostraka.core.net import Net, Params, Recipe, params_of
from ostraka.core.objective import Batch, Helper, Objective
from ostraka.core.party import Party, PartyRef
from ostraka.core.predictor import UNKNOWN, Predictor, Promise, Scores
from ostraka.core.samples import Samples
from ostraka.core.seeds import derive, torch_rng
from ostraka.core.settings import setting
from ostraka.core.task import Commons, Task
from ostraka.core.wire import wire
from ostraka.errors import ConfigError, DataError, OstrakaError, ReportRefused
from ostraka.registry import BALLOTS, METHODS, NETS, OBJECTIVES, SELECTORS

__all__ = [
    "BALLOTS",
    "METHODS",
    "NETS",
    "OBJECTIVES",
    "SELECTORS",
    "UNKNOWN",
    "Batch",
    "Budget",
    "Card",
    "Commons",
    "ConfigError",
    "DataError",
    "Fitted",
    "Helper",
    "Iterative",
    "Member",
    "Memory",
    "Method",
    "Model",
    "Needs",
    "Net",
    "Objective",
    "OstrakaError",
    "Params",
    "Party",
    "PartyRef",
    "Predictor",
    "Promise",
    "Recipe",
    "Report",
    "ReportRefused",
    "Round",
    "RoundBudget",
    "Samples",
    "Scores",
    "Task",
    "build_net",
    "check_answers",
    "check_kind",
    "check_tensors",
    "derive",
    "fit",
    "load_predictor",
    "params_of",
    "setting",
    "torch_rng",
    "wire",
]
