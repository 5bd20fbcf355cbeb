"""pfl (Apple's pfl-research): `SimulatedBackend`, all users in this process."""

from typing import Any

import torch
from pfl.aggregate.simulate import SimulatedBackend
from pfl.aggregate.weighting import WeightByDatapoints
from pfl.algorithm.base import NNAlgorithmParams
from pfl.algorithm.federated_averaging import FederatedAveraging
from pfl.callback.base import TrainingProcessCallback
from pfl.data.federated_dataset import FederatedDataset
from pfl.data.pytorch import PyTorchTensorDataset
from pfl.data.sampling import MinimizeReuseUserSampler
from pfl.hyperparam.base import NNTrainHyperParams
from pfl.metrics import Metrics
from pfl.model.pytorch import PyTorchModel

from benchmarks.speed.peers.net import SGD, BytesCNN
from benchmarks.speed.rounds import Federation
from benchmarks.speed.table import Job, Lap


class Net(BytesCNN):
    """As pfl wants it."""

    def metrics(self, x: torch.Tensor, y: torch.Tensor) -> dict[str, Any]:
        """Nothing is evaluated."""
        return {}


class Laps(TrainingProcessCallback):  # type: ignore[misc]
    """A lap after every round."""

    def __init__(self, lap: Lap) -> None:
        self.lap = lap

    def after_central_iteration(
        self, aggregate_metrics: Any, model: Any, *, central_iteration: int
    ) -> tuple[bool, Any]:
        """One round is over."""
        self.lap()
        return False, Metrics()


def job(work: Federation) -> Job:
    """A training with one more round, which comes before the first lap."""
    parties = work.division()

    def user(number: int) -> PyTorchTensorDataset:
        return PyTorchTensorDataset(parties[number], user_id=str(number))

    def local(parameters: Any, lr: float) -> torch.optim.Optimizer:
        return torch.optim.SGD(parameters, **{**SGD, "lr": lr})  # type: ignore[arg-type]

    def run(lap: Lap) -> None:
        net = Net()
        data = FederatedDataset(user, MinimizeReuseUserSampler(list(range(work.parties))))
        FederatedAveraging().run(
            NNAlgorithmParams(
                central_num_iterations=work.rounds + 1,
                evaluation_frequency=work.rounds + 2,
                train_cohort_size=work.parties,
                val_cohort_size=0,
            ),
            SimulatedBackend(data, data, postprocessors=[WeightByDatapoints()]),
            PyTorchModel(net, local, torch.optim.SGD(net.parameters(), lr=1.0)),
            NNTrainHyperParams(
                local_num_epochs=1,
                local_learning_rate=SGD["lr"],
                local_batch_size=work.batch,
            ),
            callbacks=[Laps(lap)],
        )

    return Job(run)
