"""A function of tensors as a module."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch


class Calling(torch.nn.Module):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs: Any) -> Any:
        return self.function(*inputs)
