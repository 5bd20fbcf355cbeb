"""FedPD (Yang, Zhu, Liu & Yuan, "FedPD: Federated Open Set Recognition with Parameter
Disentanglement", ICCV 2023).

Algorithm 1. All parties know the same classes. A party trains by PROSER, finds out which weights
matter for the known classes and which for telling unknown samples (equations 4 to 7:
`objectives.disentangle`), and sends its model and the two masks. The server divides every model
into close-only, open-only and shared weights, aligns each part to a reference party's by optimal
transport, and averages the sum with equal weights (equations 8 to 16: `alignment.parts`).

Local training: `stages="two"` is the published code's, cross-entropy alone for the first half of
all epochs, then PROSER at a rate of its own; `stages="joint"` is Algorithm 1's, L_close + lambda
L_open on every batch.

Readings and deviations (see also the two modules above): the masks are of the trained model
and averaged over the party's data; the largest half is taken layer by layer (`per="network"`:
of all weights); weights in neither mask move with the shared part's map; ties in the transport
follow that map too; the paper's reference is the second party, ours the first, and the first
to have reported where that one has not. The network's K + 1 outputs are trained by
cross-entropy in the first stage too. `merge="average"` is FedAvg and `merge="matched"` matched
averaging (one map for the whole network, the paper's "FedMA" row) under the same local
schedule; no masks are made or sent then.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar, Literal, final

import torch

from ostraka.alignment.masks import MaskRecord, record
from ostraka.alignment.match import check_covered, matched_average
from ostraka.alignment.parts import CLOSE, OPEN, Conquest, Remainder
from ostraka.alignment.transport import Entropic, Exact, Transport
from ostraka.contract import (
    METHODS,
    OBJECTIVES,
    Budget,
    ConfigError,
    Fitted,
    Memory,
    Net,
    Objective,
    OstrakaError,
    Params,
    Party,
    Report,
    ReportRefused,
    Round,
    RoundBudget,
    Task,
    build_net,
    check_kind,
    check_tensors,
    derive,
    fit,
    setting,
    torch_rng,
    wire,
)
from ostraka.core.net import Layer
from ostraka.core.params import average
from ostraka.methods.averaging import EACH_ROUND, SendingMethod, card_of
from ostraka.methods.training import preset
from ostraka.objectives.disentangle import Importance, MaskFrom, Per, importances, top_mask
from ostraka.objectives.proser import Proser

DIGITS: dict[str, Any] = {"epochs": 1, "batch": 32, "lr": 0.01}
CIFAR: dict[str, Any] = {"optimiser": "sgd", "lr": 0.1, "batch": 128, "epochs": 5}
"""The paper has Adam; at its rate of 0.1 a WideResNet stayed at chance here
(docs/results/fedpd.md).
"""


@wire("fedpd.disentangled/1")
@dataclass(frozen=True)
class Disentangled:
    """A party's model and, for the weights of each layer, in which masks they are
    (see `alignment.parts`).
    """

    params: Params
    masks: Params = field(default_factory=dict)


@wire("fedpd.conquered/1")
@dataclass(frozen=True)
class Conquered:
    """The server's model, and what is kept of the last round's masks for drawings."""

    params: Params
    masks: MaskRecord | None = None


@final
@METHODS.add("fedpd")
@dataclass(frozen=True)
class FedPD(SendingMethod[Conquered, Disentangled]):
    """Open-set averaging that aligns close-set, open-set and shared weights separately."""

    RECIPES: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "digits": {"local": DIGITS, "open_lr": 1e-4},
        "cifar": {"local": CIFAR, "open_lr": 1e-3},
        "cifar-adam": {"local": {**CIFAR, "optimiser": "adam"}, "open_lr": 1e-3},
    }
    """Section 5.2's training for the digits (100 rounds) and for CIFAR-10 (50 rounds;
    with SGD, and as printed).
    """

    objective: Objective = setting(
        Proser(), "what the parties minimise: proser", registry=OBJECTIVES
    )
    local: RoundBudget = setting(
        replace(EACH_ROUND, weight_decay=5e-4),
        "the parties' training; its rate is the first stage's",
    )
    stages: Literal["two", "joint"] = setting(
        "two", "cross-entropy for the first half of all epochs, or all jointly"
    )
    open_lr: float = setting(2e-3, "learning rate of the second stage", span="(0, inf)")
    open_weight: float = setting(1.0, "lambda: weight of the open-set terms", span="[0, inf)")
    merge: Literal["parts", "matched", "average"] = setting(
        "parts", "parts: FedPD; matched: one map; average: FedAvg"
    )
    ratio: float = setting(0.5, "share of the weights in each mask", span="(0, 1]")
    per: Per = setting("layer", "the share is of each layer, or of the whole network")
    importance: Importance = setting(
        "gradient-weight", "of a weight: gradient times weight, or the gradient alone"
    )
    mask_from: MaskFrom = setting(
        "all", "importance: mean over all of the party's data, or of one last batch"
    )
    divide: bool = setting(True, "three parts; false: the two overlapping subnetworks", server=True)
    conquer: bool = setting(True, "align the parts; false: sum them as they are", server=True)
    maps: Literal["parts", "one"] = setting(
        "parts", "a map for each part, or one for all", server=True
    )
    remainder: Remainder = setting(
        "shared",
        "weights in neither mask: shared (move with the shared part), average (stay) or drop",
        server=True,
    )
    reference: int = setting(
        0, "number of the party that all others are aligned to", span="[0, inf)", server=True
    )
    transport: Literal["exact", "sinkhorn"] = setting(
        "exact", "exact assignment, or Sinkhorn's", server=True
    )
    blur: float = setting(
        0.05, "Sinkhorn's entropy weight, in units of the mean cost", span="(0, inf)", server=True
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.objective, Proser):
            raise ConfigError(
                "fedpd takes the loss apart into a closed-set and an open-set part, which only "
                f"proser has; the objective is {type(self.objective).__name__}. Leave it at "
                "proser, or use fedavg"
            )
        if self.stages == "two" and self.local.late_rate != 1:
            raise ConfigError(
                f"local.late_rate is {self.local.late_rate}, but the second stage has a rate of "
                "its own: set open_lr, or stages=joint"
            )

    def solver(self) -> Transport:
        """The transport that the settings name."""
        return Exact() if self.transport == "exact" else Entropic(self.blur)

    def init(self, task: Task, seed: int) -> Conquered:
        """A random model, or the commons' "start"."""
        if self.merge != "average":
            self._layers(task)
        return Conquered(self.first_model(task, seed))

    def model(self, state: Conquered) -> Params:
        """The server's model."""
        return state.params

    def sent(self, payload: Disentangled) -> Params:
        """The party's model."""
        check_kind(payload, Disentangled)
        return payload.params

    def inspect(self, task: Task, report: Report[Disentangled]) -> None:
        """As every report, and its masks must be those of this network's layers."""
        super().inspect(task, report)
        params, masks = report.payload.params, report.payload.masks
        layers = self._layers(task) if self.merge == "parts" else ()
        wanted = {layer.weight: params[layer.weight].to(torch.uint8) for layer in layers}
        check_tensors(masks, wanted, "the masks")
        for name, mask in masks.items():
            if int(mask.max()) > CLOSE + OPEN:
                raise ReportRefused(f"its mask of {name} has values above {CLOSE + OPEN}")

    def local_update(
        self, rnd: Round[Params], party: Party, memory: Memory
    ) -> Report[Disentangled]:
        """Train in the stages that this round has, then find the masks."""
        net = build_net(rnd.task, self.objective)
        start, fitted = rnd.message, Fitted(rnd.message, 0, ())
        for name, objective, budget in self.phases(rnd.index):
            # a round in which both stages meet must not repeat the first one's draws
            seed = rnd.seed if start is rnd.message else derive(rnd.seed, name)
            fitted = fit(net, start, party.samples, objective, budget, seed, party.progress, name)
            start = fitted.params
        masks = self.masks(net, party, rnd.seed) if self.merge == "parts" else {}
        sent = Disentangled(fitted.params, masks)
        return Report(sent, float(len(party.samples)), card_of(party, fitted))

    def phases(self, index: int) -> Iterator[tuple[str, Proser, Budget]]:
        """The stages of round `index`: name, objective and training.

        Two where half of all epochs ends inside it.
        """
        assert isinstance(self.objective, Proser)
        weight, goal = self.open_weight, self.objective
        whole = Proser(weight * goal.w_second, weight * goal.w_mix)
        if self.stages == "joint":
            yield "joint", whole, self.local.in_round(index, self.rounds)
            return
        each = self.local.epochs if self.local.steps is None else self.local.steps
        closed = min(each, max(0, (self.rounds * each + 1) // 2 - (index - 1) * each))
        if closed:
            yield "closed", Proser(0.0, 0.0), lasting(self.local, closed)
        if closed < each or not each:
            yield "open", whole, replace(lasting(self.local, each - closed), lr=self.open_lr)

    def masks(self, net: Net, party: Party, seed: int) -> Params:
        """For every weight in which masks it is: 1 close, 2 open, 3 both, 0 none; one byte each."""
        assert isinstance(self.objective, Proser)
        names = [layer.weight for layer in net.anatomy()]
        close, open_ = importances(
            net, names, party.samples, self.objective, self.local.batch,
            torch_rng(seed, "importance"), self.importance, self.mask_from,
        )  # fmt: skip
        first, second = (top_mask(values, self.ratio, self.per) for values in (close, open_))
        codes = [CLOSE * first[n].to(torch.uint8) + OPEN * second[n].to(torch.uint8) for n in names]
        return {name: code.cpu() for name, code in zip(names, codes, strict=True)}

    def aggregate(
        self, task: Task, state: Conquered, reports: Sequence[Report[Disentangled]]
    ) -> Conquered:
        """Divide, align and average; all parties count the same."""
        if not reports:
            raise OstrakaError("nothing to average: no report arrived")
        sent = [report.payload for report in reports]
        if self.merge == "average":
            return Conquered(average((one.params, 1.0) for one in sent))
        layers, models = self._layers(task), [one.params for one in sent]
        parties = [report.card.party for report in reports]
        reference = parties.index(self.reference) if self.reference in parties else 0
        if self.merge == "matched":
            return Conquered(matched_average(layers, models, reference, self.solver()))
        how = Conquest(self.solver(), self.divide, self.conquer, self.maps, self.remainder)
        masks = [one.masks for one in sent]
        merged = how.merge(layers, models, masks, reference)
        return Conquered(merged, record(layers, parties, masks))

    def _layers(self, task: Task) -> tuple[Layer, ...]:
        net = build_net(task, self.objective)
        layers = net.anatomy()
        check_covered(layers, net.state_dict())
        return layers


def lasting(budget: Budget, length: int) -> Budget:
    """The same training over `length` epochs, or steps where it is counted in steps."""
    return replace(budget, epochs=length) if budget.steps is None else replace(budget, steps=length)


_preset = partial(preset, "fedpd")

_preset(
    "fedavg-proser",
    "FedAvg of PROSER models under FedPD's local schedule (Table 3)",
    merge="average",
)
_preset(
    "fedpd-matched",
    "one map for whole networks, then the mean: FedPD's row FedMA (Table 3)",
    merge="matched",
)
_preset(
    "fedpd-one-map",
    "ablation: one map moves all weights; the same result as fedpd-matched",
    maps="one",
)
_preset(
    "fedpd-no-divide",
    "ablation: two overlapping subnetworks instead of three parts (Table 3)",
    divide=False,
)
_preset(
    "fedpd-no-conquer",
    "ablation: parts not aligned, weights in neither mask dropped (Table 3)",
    conquer=False,
    remainder="drop",
)
_preset(
    "fedpd-gradient", "ablation: importance by the gradient alone (Table 4)", importance="gradient"
)
_preset(
    "fedpd-literal", "equation 16 read literally: weights in neither mask vanish", remainder="drop"
)
_preset("fedpd-joint", "FedPD with Algorithm 1's joint loss on every batch", stages="joint")
for tenths in (1, 2, 3, 4, 6, 7, 8, 9):
    _preset(
        f"fedpd-ratio-0.{tenths}",
        f"ablation: masks of 0.{tenths} of the weights (Figure 5)",
        ratio=tenths / 10,
    )
