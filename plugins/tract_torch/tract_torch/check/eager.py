"""What a module computes by itself, without leaving traces."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch.utils import _pytree as pytree

from tract_torch.capture.exporting import evaluating
from tract_torch.example import Example
from tract_torch.tensors import array_of

Array = np.ndarray[Any, Any]


def result_of(model: torch.nn.Module, example: Example) -> Any:
    """What a module returns in evaluation mode, with copies of its tensors.

    The module is left as it was, buffers too, and so are the tensors of the example, and the random numbers of the
    process.
    """
    given = example.with_tensors({name: tensor.detach().clone() for name, tensor in example.tensors().items()})
    cuda = sorted({one.device.index or 0 for one in model.parameters() if one.device.type == "cuda"})
    with evaluating(model), _unchanged(model), torch.no_grad(), torch.random.fork_rng(cuda):
        found = model(*given.args, **given.keywords)
        return pytree.tree_map(lambda leaf: leaf.clone() if isinstance(leaf, torch.Tensor) else leaf, found)


def outputs_of(model: torch.nn.Module, example: Example) -> list[Array]:
    """The outputs of a module, flat, without those that are None; see `result_of`."""
    return [as_array(one) for one in pytree.tree_leaves(result_of(model, example)) if one is not None]


def as_array(value: Any) -> Array:
    """What a module returned, a tensor or a number, without a copy."""
    return array_of(value) if isinstance(value, torch.Tensor) else np.asarray(value)


@contextmanager
def _unchanged(model: torch.nn.Module) -> Generator[None]:
    """What the block does to buffers is undone."""
    parts = list(model.modules())
    held = [(part, name, buffer) for part in parts for name, buffer in part.named_buffers(recurse=False)]
    copies = [buffer.clone() for _, _, buffer in held]
    try:
        yield
    finally:
        for (part, name, buffer), copy in zip(held, copies, strict=True):
            if getattr(part, name) is not buffer:
                setattr(part, name, buffer)
            if not torch.equal(buffer, copy):
                buffer.copy_(copy)
