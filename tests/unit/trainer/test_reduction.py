"""How a gradient is cut into messages, and when they leave."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from paceline.trainer.layers import cpu_layers
from paceline.trainer.models import discriminator
from paceline.trainer.reduction import Reduction, plan_pieces
from paceline.trainer.weights import Weights, plan_segments
from paceline.trainer.wire import Arrival

pytestmark = pytest.mark.torch
CPU = torch.device("cpu")


def test_the_largest_layer_leaves_first() -> None:
    """D's 4x4 kernels of 8 MB do not wait for the rest; small layers share a message."""
    network = discriminator(cpu_layers(), width=64, channels=3, image_size=64)
    segments = plan_segments(network)
    pieces = plan_pieces(segments, 4)
    names = [[segment.name for segment in piece.segments] for piece in pieces]
    assert names[0] == ["11.weight", "8.weight"]
    assert pieces[0].start == 0
    assert [piece.start for piece in pieces[1:]] == [piece.stop for piece in pieces[:-1]]
    assert pieces[-1].stop == segments[-1].stop
    assert sorted(name for piece in names for name in piece) == sorted(
        segment.name for segment in segments
    )
    assert "0.weight" in names[-1]


class _Doubling:
    """A wire between two equal ranks, which notes what was sent when."""

    def __init__(self, log: list[str], size: int) -> None:
        self._log, self._size = log, size

    def send(self, piece: Tensor, total: Tensor) -> Arrival:
        """Deliver twice the piece on arrival."""
        self._log.append(f"sent {self._size}")
        doubled = 2 * piece.float()

        def arrive() -> None:
            self._log.append(f"arrived {self._size}")
            total.copy_(doubled)

        return arrive

    def kept(self) -> tuple[Tensor, ...]:
        """Keep nothing."""
        return ()


def _network() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Linear(4, 4, bias=False),
        nn.Linear(4, 300_000, bias=False),
        nn.Linear(300_000, 1, bias=False),
    )


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_only_the_last_pass_is_sent_and_as_it_goes(dtype: torch.dtype) -> None:
    """Earlier passes add up; in the last, what is ready leaves before the pass is over."""
    network = _network()
    weights = Weights(network, dtype=dtype, device=CPU)
    log: list[str] = []
    reduction = Reduction(weights, lambda size, _: _Doubling(log, size))
    data = torch.ones(2, 4, dtype=dtype)
    network(data).float().sum().backward()
    assert log == []
    first = {name: part.grad.float().clone() for name, part in weights.parameters.items()}  # type: ignore[union-attr]
    reduction.arm()
    weights.parameters["0.weight"].register_hook(lambda _: log.append("first layer"))
    network(data).float().sum().backward()
    assert log[0].startswith("sent")
    assert log.index("first layer") > 0
    reduction.finish()
    sizes = [line.split()[1] for line in log if line.startswith("arrived")]
    assert sum(map(int, sizes)) == weights.size
    for name, found in weights.named(weights.total).items():
        assert torch.allclose(found, 4 * first[name], rtol=0.02)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_one_rank_sends_nothing(dtype: torch.dtype) -> None:
    """Alone, the total is one's own gradient, normalisations included."""
    torch.manual_seed(0)
    network = nn.Sequential(nn.Conv2d(3, 4, 4, 2, 1, bias=False), nn.BatchNorm2d(4), nn.Flatten())
    weights = Weights(network, dtype=dtype, device=CPU)
    reduction = Reduction(weights, None)
    reduction.arm()
    images, pull = torch.randn(2, 3, 4, 4).to(dtype), torch.randn(2, 16)
    (network(images).float() * pull).sum().backward()
    assert reduction.finish() == 0.0
    loss = (network(images).float() * pull).sum()
    expected = torch.autograd.grad(loss, list(weights.parameters.values()))
    found = weights.named(weights.total)
    for name, gradient in zip(weights.parameters, expected, strict=True):
        assert torch.equal(found[name], gradient.float())
    assert weights.total.any()
