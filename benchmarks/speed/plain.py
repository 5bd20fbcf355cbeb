"""Plain torch as one would write it: networks, training, averaging, voting. Without Ostraka."""

from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

CLASSES = 10


class SimpleCNN(nn.Module):
    """FedOV's simple CNN."""

    def __init__(self, shape: Sequence[int], outputs: int = CLASSES) -> None:
        super().__init__()
        side = ((shape[1] - 4) // 2 - 4) // 2
        self.conv1, self.conv2 = nn.Conv2d(shape[0], 6, 5), nn.Conv2d(6, 16, 5)
        self.fc1 = nn.Linear(16 * side * side, 120)
        self.fc2, self.fc3 = nn.Linear(120, 84), nn.Linear(84, outputs)

    def early(self, x: Tensor) -> Tensor:
        """Images to 120 hidden values."""
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        return F.relu(self.fc1(x.flatten(1)))

    def late(self, hidden: Tensor) -> Tensor:
        """Hidden values to logits."""
        logits: Tensor = self.fc3(F.relu(self.fc2(hidden)))
        return logits

    def forward(self, x: Tensor) -> Tensor:
        """Images to logits."""
        return self.late(self.early(x))


class LeNet5(nn.Module):
    """LeNet-5 with tanh and average pooling; digits of 28x28 are padded to 32x32."""

    def __init__(self, shape: Sequence[int], outputs: int = CLASSES) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(shape[0], 6, 5, padding=2 if shape[1] < 32 else 0)
        self.conv2, self.conv3 = nn.Conv2d(6, 16, 5), nn.Conv2d(16, 120, 5)
        self.fc1, self.fc2 = nn.Linear(120, 84), nn.Linear(84, outputs)

    def forward(self, x: Tensor) -> Tensor:
        """Images to logits."""
        x = F.avg_pool2d(torch.tanh(self.conv1(x)), 2)
        x = F.avg_pool2d(torch.tanh(self.conv2(x)), 2)
        x = torch.tanh(self.conv3(x)).flatten(1)
        logits: Tensor = self.fc2(torch.tanh(self.fc1(x)))
        return logits


def images(shape: Sequence[int], count: int, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Random bytes and labels."""
    rng = torch.Generator().manual_seed(seed)
    x = torch.randint(0, 256, (count, *shape), generator=rng, dtype=torch.uint8)
    return x, torch.randint(0, CLASSES, (count,), generator=rng)


def laid(net: nn.Module, last: bool) -> nn.Module:
    """The network in the wanted memory layout."""
    return net.to(memory_format=torch.channels_last) if last else net  # type: ignore[call-overload]


def inputs(x: Tensor, last: bool) -> Tensor:
    """Bytes as network inputs, in the wanted memory layout."""
    x = x.float() / 255
    return x.contiguous(memory_format=torch.channels_last) if last else x


def train(
    net: nn.Module,
    optimiser: torch.optim.Optimizer,
    x: Tensor,
    y: Tensor,
    batch: int,
    last: bool,
    loss: Callable[[nn.Module, Tensor, Tensor], Tensor] | None = None,
) -> None:
    """One epoch over random batches; the loss is cross-entropy unless another is given."""
    for index in torch.randperm(len(x)).split(batch):
        part, labels = inputs(x[index], last), y[index]
        value = F.cross_entropy(net(part), labels) if loss is None else loss(net, part, labels)
        optimiser.zero_grad()
        value.backward()
        optimiser.step()


def fedavg_round(
    net: nn.Module, parties: Sequence[tuple[Tensor, Tensor]], batch: int, last: bool
) -> None:
    """Every party trains one epoch by SGD from the same weights; then they are averaged."""
    start = {name: value.clone() for name, value in net.state_dict().items()}
    total = {name: torch.zeros_like(value) for name, value in start.items()}
    samples = sum(len(y) for _, y in parties)
    for x, y in parties:
        net.load_state_dict(start)
        optimiser = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-5)
        train(net, optimiser, x, y, batch, last)
        for name, value in net.state_dict().items():
            total[name] += value * (len(y) / samples)
    net.load_state_dict(total)


@torch.no_grad()
def vote(nets: Sequence[nn.Module], x: Tensor, last: bool, chunk: int = 1000) -> Tensor:
    """The sum of the members' probabilities of known classes: for every member, every chunk."""
    total = torch.zeros(len(x), CLASSES)
    for net in nets:
        for start in range(0, len(x), chunk):
            part = inputs(x[start : start + chunk], last)
            total[start : start + chunk] += net(part).softmax(dim=1)[:, :-1]
    return total
