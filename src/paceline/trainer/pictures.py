"""Sample grids: many small images on one sheet, as bytes of a PNG file."""

from __future__ import annotations

import ctypes

import torch
from torch import Tensor

from paceline.trainer import png

_COLUMNS = 8
_BORDER = 2
MOST = 64


def sheet(images: Tensor) -> Tensor:
    """Lay images in [-1, 1] of (N, C, H, W) out as one uint8 sheet of (H, W, C)."""
    images = images[:MOST].detach().to("cpu", torch.float32)
    count, channels, height, width = images.shape
    columns = min(_COLUMNS, count)
    rows = -(-count // columns)
    step_y, step_x = height + _BORDER, width + _BORDER
    canvas = torch.zeros(channels, rows * step_y + _BORDER, columns * step_x + _BORDER)
    for index, image in enumerate(images):
        top = (index // columns) * step_y + _BORDER
        left = (index % columns) * step_x + _BORDER
        canvas[:, top : top + height, left : left + width] = (image + 1) * 127.5
    return canvas.round_().clamp_(0, 255).to(torch.uint8).permute(1, 2, 0).contiguous()


def encoded(canvas: Tensor) -> bytes:
    """Return a sheet as the bytes of a PNG file."""
    height, width, channels = canvas.shape
    if channels not in (1, 3):
        canvas, channels = canvas[:, :, :1].contiguous(), 1
    return png.encode(raw_bytes(canvas), width, height, channels)


def raw_bytes(tensor: Tensor) -> bytes:
    """Return the memory of a contiguous tensor on the CPU (torch's own way needs NumPy)."""
    return ctypes.string_at(tensor.data_ptr(), tensor.numel() * tensor.element_size())
