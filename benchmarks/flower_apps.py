"""The apps that `flower_overhead` runs: Flower's own FedAvg, and our server with a clock.

Flower loads them by name, at the server and for every message at a party: what a party needs of
Flower's own is torch and numpy, and no ostraka.
"""

import json
import os
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg
from torch import nn

SERVER_FOLDER, PARTY_FOLDER = "OSTRAKA_FEDERATION", "OSTRAKA_PARTY"
"""What `ostraka federation` tells the apps, whosever they are."""
BEGAN, WORK, SHARE = "began.txt", "work.json", "share.npz"
"""In the server's folder when each round began and what is trained; in a party's, its samples."""


def network(hidden: int) -> nn.Module:
    """The same layers as `mlp` has on the digits."""
    sizes = (64, hidden), (hidden, hidden), (hidden, 10)
    first, second, last = (nn.Linear(*size) for size in sizes)
    return nn.Sequential(nn.Flatten(), first, nn.ReLU(), second, nn.ReLU(), last)


def round_begins() -> None:
    """Note the time, at the server."""
    with Path(os.environ[SERVER_FOLDER], BEGAN).open("a") as file:
        file.write(f"{time.time()}\n")


class AllFedAvg(FedAvg):  # type: ignore[misc]
    """Flower's own; a party that fails ends the run, or its rounds would be too short."""

    def aggregate_train(self, server_round: int, replies: Iterable[Message]) -> Any:
        """Averages."""
        held = list(replies)
        if len(held) < self.min_train_nodes or any(reply.has_error() for reply in held):
            raise RuntimeError(f"round {server_round}: {held}")
        return super().aggregate_train(server_round, held)


# one to a line: Flower looks for their names in the text of this file
client = ClientApp()
server = ServerApp()
ours = ServerApp()


@client.train()  # type: ignore[untyped-decorator]
def train(message: Message, context: Context) -> Message:
    """One step."""
    torch.set_num_threads(1)
    with np.load(Path(os.environ[PARTY_FOLDER], SHARE)) as held:
        x, y = torch.from_numpy(held["x"]).float(), torch.from_numpy(held["y"])
    weights = message.content["arrays"].to_torch_state_dict()
    net = network(len(weights["1.bias"]))
    net.load_state_dict(weights)
    optimiser = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
    nn.functional.cross_entropy(net(x / 255), y).backward()
    optimiser.step()
    arrays, seen = ArrayRecord(net.state_dict()), MetricRecord({"num-examples": len(y)})
    return Message(RecordDict({"arrays": arrays, "metrics": seen}), reply_to=message)


@server.main()  # type: ignore[untyped-decorator]
def average(grid: Grid, context: Context) -> None:
    """Flower's own rounds; it calls `after` before the first and after every one."""
    work = json.loads(Path(os.environ[SERVER_FOLDER], WORK).read_text())

    def after(number: int, arrays: ArrayRecord) -> None:
        if number < work["rounds"]:
            round_begins()

    AllFedAvg(
        fraction_evaluate=0.0,
        min_train_nodes=work["parties"],
        min_available_nodes=work["parties"],
    ).start(
        grid, ArrayRecord(network(work["hidden"]).state_dict()), work["rounds"], evaluate_fn=after
    )


@ours.main()  # type: ignore[untyped-decorator]
def serve(grid: Grid, context: Context) -> None:
    """What `ostraka federation server` runs, with a clock."""
    from ostraka.federation.server import run_over
    from ostraka.runs.watch import Watch

    class Clock(Watch):
        """Notes when each round began."""

        def round_begins(self, index: int, rounds: int, parties: int, ready: int) -> None:
            """The round before is over."""
            round_begins()

    run_over(grid, Path(os.environ[SERVER_FOLDER]), Clock())
