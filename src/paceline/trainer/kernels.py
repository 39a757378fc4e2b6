"""4x4 convolutions with the cheapest way to each gradient.

A convolution and its transposed form are each other's adjoint, so one pair of functions serves
both directions of both. What differs from torch's own layers:

- between 8x8 and 4x4, both directions are matrix products over unfolded patches: there the
  kernel is larger than the images, and a library that brings it into an order of its own at each
  call takes up to three times as long (figures: docs/performance.md);
- so is the gradient of a kernel, wherever a batch has few positions;
- convolutions between 4x4 and a single point are matrix products as they stand.

Everything is channels-last: unfolding copies whole runs of memory, and the kernel, seen as a
matrix, lies in memory as the product needs it.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn
from torch.autograd import Function
from torch.nn.grad import conv2d_weight

_SIDE = 4
# Up to this side the images are unfolded, whatever the batch: it won at every one measured.
_FEW = 4
# Up to this many positions in a batch, unfolding wins for the gradient of a kernel, too.
_FEW_POSITIONS = 2048


def as_matrix(kernel: Tensor) -> Tensor:
    """Return a channels-last kernel (A, B, 4, 4) as the matrix (A, 16 B), without copying."""
    return kernel.permute(0, 2, 3, 1).reshape(kernel.shape[0], -1)


def product(left: Tensor, right: Tensor) -> Tensor:
    """Return the product of two matrices, of the very numbers, by the faster library.

    torch multiplies fp32 on CPUs by MKL, which has no AVX-512 for other makers' processors: there
    oneDNN, torch's library for convolutions, is twice as fast.
    """
    if left.dtype == torch.float32 and left.device.type == "cpu" and _onednn_multiplies():
        return _by_onednn(left, right)
    return left @ right


def _by_onednn(left: Tensor, right: Tensor) -> Tensor:
    apart = left.contiguous()
    rows: Tensor = torch.ops.mkldnn._linear_pointwise(apart, right.t(), None, "none", [], "")  # noqa: SLF001
    return rows


@lru_cache(maxsize=1)
def _onednn_multiplies() -> bool:
    # The operator is not torch's public interface: it is tried before it is relied on.
    sample = torch.arange(12.0).view(3, 4)
    try:
        found = _by_onednn(sample, sample.t())
    except (AttributeError, RuntimeError):
        return False
    return torch.equal(found, sample @ sample.t())


def as_rows(images: Tensor) -> Tensor:
    """Return channels-last images (N, C, H, W) as the matrix (N H W, C), without copying."""
    return images.permute(0, 2, 3, 1).reshape(-1, images.shape[1])


def unfolded(big: Tensor) -> Tensor:
    """Return the 4x4 patches under a stride-2 kernel, one per row: (N H/2 W/2, 16 C)."""
    count, channels, height, width = big.shape
    padded = F.pad(big.permute(0, 2, 3, 1), (0, 0, 1, 1, 1, 1)).contiguous()
    outer, row, column, inner = padded.stride()
    shape = (count, height // 2, width // 2, _SIDE, _SIDE, channels)
    strides = (outer, 2 * row, 2 * column, row, column, inner)
    return padded.as_strided(shape, strides).reshape(-1, _SIDE * _SIDE * channels)


def folded(patches: Tensor, side: int) -> Tensor:
    """Return images of (N, C, 2 side, 2 side): each position the sum of the patches over it.

    The adjoint of `unfolded`: `patches` has one row of 4x4 pixels per position of the small side.
    """
    channels = patches.shape[1] // _SIDE**2
    # A patch starts at an even column, so columns lie in pairs: half as many additions.
    pairs = patches.view(-1, side, side, _SIDE, _SIDE // 2, 2 * channels)
    padded = patches.new_zeros(len(pairs), 2 * side + 2, side + 1, 2 * channels)
    for row in range(_SIDE):
        for pair in range(_SIDE // 2):
            target = padded[:, row : row + 2 * side : 2, pair : pair + side]
            target += pairs[:, :, :, row, pair]
    framed = padded.view(len(pairs), 2 * side + 2, 2 * side + 2, channels)
    # Without gaps: what comes next, a normalisation, takes five times as long over a view.
    return framed[:, 1:-1, 1:-1].contiguous().permute(0, 3, 1, 2)


def shrunk(big: Tensor, kernel: Tensor) -> Tensor:
    """Return the convolution with stride 2, which halves each side."""
    side = big.shape[2] // 2
    if side > _FEW:
        return F.conv2d(big, kernel, stride=2, padding=1)
    rows = product(unfolded(big), as_matrix(kernel).t())
    return rows.view(len(big), side, side, -1).permute(0, 3, 1, 2)


def grown(small: Tensor, kernel: Tensor) -> Tensor:
    """Return the transposed convolution with stride 2, which doubles each side."""
    side = small.shape[2]
    if side > _FEW:
        return F.conv_transpose2d(small, kernel, stride=2, padding=1)
    return folded(product(as_rows(small), as_matrix(kernel)), side)


def kernel_gradient(big: Tensor, small: Tensor) -> Tensor:
    """Return the gradient of the kernel that leads from `big` to `small` with stride 2.

    One of the two is what went forward and the other is the gradient that came back.
    """
    wide, narrow = small.shape[1], big.shape[1]
    if len(small) * small.shape[2] * small.shape[3] > _FEW_POSITIONS:
        shape = (wide, narrow, _SIDE, _SIDE)
        gradient: Tensor = conv2d_weight(big, shape, small, stride=2, padding=1)
        return gradient
    flat = product(as_rows(small).t(), unfolded(big))
    return flat.view(wide, _SIDE, _SIDE, narrow).permute(0, 3, 1, 2)


class _Down(Function):
    @staticmethod
    def forward(ctx: Any, big: Tensor, kernel: Tensor) -> Tensor:
        ctx.save_for_backward(big, kernel)
        return shrunk(big, kernel)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, Tensor | None]:
        big, kernel = ctx.saved_tensors
        back = learn = None
        if ctx.needs_input_grad[0]:
            back = grown(gradients[0], kernel)
        if ctx.needs_input_grad[1]:
            learn = kernel_gradient(big, gradients[0])
        return back, learn


class _Up(Function):
    @staticmethod
    def forward(ctx: Any, small: Tensor, kernel: Tensor) -> Tensor:
        ctx.save_for_backward(small, kernel)
        return grown(small, kernel)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, Tensor | None]:
        small, kernel = ctx.saved_tensors
        back = learn = None
        if ctx.needs_input_grad[0]:
            back = shrunk(gradients[0], kernel)
        if ctx.needs_input_grad[1]:
            learn = kernel_gradient(gradients[0], small)
        return back, learn


class Down(nn.Conv2d):
    """A 4x4 convolution that halves each side."""

    def __init__(self, wide_in: int, wide_out: int) -> None:
        super().__init__(wide_in, wide_out, _SIDE, 2, 1, bias=False)

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002 - the name of the base class
        """Return the convolution."""
        return _Down.apply(input, self.weight)  # type: ignore[no-untyped-call,no-any-return]


class Up(nn.ConvTranspose2d):
    """A transposed 4x4 convolution that doubles each side."""

    def __init__(self, wide_in: int, wide_out: int) -> None:
        super().__init__(wide_in, wide_out, _SIDE, 2, 1, bias=False)

    def forward(self, input: Tensor, output_size: list[int] | None = None) -> Tensor:  # noqa: A002
        """Return the transposed convolution."""
        del output_size
        return _Up.apply(input, self.weight)  # type: ignore[no-untyped-call,no-any-return]


class ToPoint(nn.Conv2d):
    """A 4x4 convolution of 4x4 images: one number per image and output channel."""

    def __init__(self, wide_in: int, wide_out: int) -> None:
        super().__init__(wide_in, wide_out, _SIDE, 1, 0, bias=False)

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002
        """Return the convolution, a product of matrices."""
        return F.linear(as_matrix(input), as_matrix(self.weight))[:, :, None, None]


class FromPoint(nn.ConvTranspose2d):
    """A transposed 4x4 convolution of single points: 4x4 images."""

    def __init__(self, wide_in: int, wide_out: int) -> None:
        super().__init__(wide_in, wide_out, _SIDE, 1, 0, bias=False)

    def forward(self, input: Tensor, output_size: list[int] | None = None) -> Tensor:  # noqa: A002
        """Return the transposed convolution, a product of matrices."""
        del output_size
        flat = input.flatten(1) @ as_matrix(self.weight)
        return flat.view(len(input), _SIDE, _SIDE, self.out_channels).permute(0, 3, 1, 2)
