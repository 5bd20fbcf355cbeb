"""Operators of torchvision that fluke never calls, but without which it cannot be imported."""

import torch


def declare() -> None:
    """Declare those that are missing.

    A torchvision built for another torch (CUDA beside CPU, say) cannot load its operators, and then
    refuses to be imported because they do not exist. fluke imports it for its data sets alone.
    """
    for name in ("nms", "qnms"):
        if not hasattr(torch.ops.torchvision, name):
            torch.library.define(
                f"torchvision::{name}", "(Tensor boxes, Tensor scores, float threshold) -> Tensor"
            )
