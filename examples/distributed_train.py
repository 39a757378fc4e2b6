"""A classifier of one layer on 28x28 images, as people write it for several processes.

WORLD_SIZE, RANK, MASTER_ADDR and MASTER_PORT come from the environment: whoever starts the
processes sets them. Nothing here knows Paceline.
"""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


class Net(nn.Module):
    """One layer: from 28x28 pixels to ten classes."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(28 * 28, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return a score for each class."""
        scores: torch.Tensor = self.fc(x.view(-1, 28 * 28))
        return scores


def images() -> TensorDataset:
    """Images that a classifier of one layer can learn; put your own data set here."""
    dice = torch.Generator().manual_seed(0)
    pixels = torch.rand(2000, 1, 28, 28, generator=dice)
    truth = torch.randn(28 * 28, 10, generator=dice)
    return TensorDataset(pixels, ((pixels.view(-1, 28 * 28) - 0.5) @ truth).argmax(1))


def train(epochs: int = 5) -> None:
    """Train on this process's share of the images."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    if device.type == "cuda":
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    model = DistributedDataParallel(Net().to(device))
    loss_fn = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    dataset = images()
    sampler = DistributedSampler(dataset)  # each process learns from its own share
    loader = DataLoader(dataset, batch_size=16, sampler=sampler)
    for epoch in range(epochs):
        sampler.set_epoch(epoch)
        for inputs, labels in loader:
            optimizer.zero_grad()
            loss = loss_fn(model(inputs.to(device)), labels.to(device))
            loss.backward()
            optimizer.step()
        if dist.get_rank() == 0:
            print(f"epoch {epoch} done, loss {loss.item():.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    train()
