"""Flower: its simulation, whose clients run in Ray's processes, one for each core."""

from functools import lru_cache

import torch
from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg
from flwr.simulation import run_simulation
from torch import Tensor

from benchmarks.speed.peers.net import SGD, BytesCNN
from benchmarks.speed.rounds import Federation
from benchmarks.speed.table import Job, Lap

ONE_CORE = {"client_resources": {"num_cpus": 1, "num_gpus": 0.0}}


@lru_cache(maxsize=1)
def division(work: Federation) -> list[tuple[Tensor, Tensor]]:
    """Made once in every process."""
    torch.set_num_threads(1)
    return work.division()


def client(work: Federation) -> ClientApp:
    """Trains one epoch."""
    app = ClientApp()

    @app.train()  # type: ignore[untyped-decorator]
    def train(message: Message, context: Context) -> Message:
        x, y = division(work)[int(context.node_config["partition-id"])]
        net = BytesCNN()
        net.load_state_dict(message.content["arrays"].to_torch_state_dict())
        optimiser = torch.optim.SGD(net.parameters(), **SGD)  # type: ignore[arg-type]
        for index in torch.randperm(len(x)).split(work.batch):
            optimiser.zero_grad()
            net.loss(x[index], y[index]).backward()
            optimiser.step()
        arrays, seen = ArrayRecord(net.state_dict()), MetricRecord({"num-examples": len(y)})
        return Message(RecordDict({"arrays": arrays, "metrics": seen}), reply_to=message)

    return app


def server(work: Federation, lap: Lap) -> ServerApp:
    """Averages; a lap after every round."""
    app = ServerApp()

    def after(number: int, arrays: ArrayRecord) -> None:
        if number > 0:
            lap()

    @app.main()  # type: ignore[untyped-decorator]
    def main(grid: Grid, context: Context) -> None:
        FedAvg(fraction_evaluate=0.0, min_available_nodes=work.parties).start(
            grid, ArrayRecord(BytesCNN().state_dict()), work.rounds + 1, evaluate_fn=after
        )

    return app


def job(work: Federation) -> Job:
    """A simulation with one more round, which comes before the first lap."""

    def run(lap: Lap) -> None:
        run_simulation(server(work, lap), client(work), work.parties, "ray", ONE_CORE)

    return Job(run)
