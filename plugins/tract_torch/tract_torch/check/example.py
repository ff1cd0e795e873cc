"""A module with an example of what it is called with: the tensors in it can be exchanged for others."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch.utils import _pytree as pytree

from tract_torch.exporting import evaluating
from tract_torch.tensors import array_of

Array = np.ndarray[Any, Any]


class Example:
    """``args``: a tensor, or a tuple or list of arguments of any structure. ``tensors``: those in it, in order."""

    def __init__(self, model: torch.nn.Module, args: Any, kwargs: Mapping[str, Any] | None = None) -> None:
        self.model = model
        given = tuple(args) if isinstance(args, (list, tuple)) else (args,)
        self._leaves, self._spec = pytree.tree_flatten((given, dict(kwargs or {})))
        self._places = [place for place, leaf in enumerate(self._leaves) if isinstance(leaf, torch.Tensor)]
        self.tensors: list[torch.Tensor] = [self._leaves[place].detach() for place in self._places]

    def arguments(self, tensors: Iterable[torch.Tensor]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """What the module is called with when the tensors are these; they are copied, as a module may change them."""
        leaves = list(self._leaves)
        for place, tensor in zip(self._places, tensors, strict=True):
            leaves[place] = tensor.clone()
        return pytree.tree_unflatten(leaves, self._spec)

    def specs(self, dynamic: Sequence[Any]) -> tuple[Any, ...]:
        """The structure of the arguments with one thing for each tensor, as `torch.export.export` wants its shapes."""
        leaves: list[Any] = [None] * len(self._leaves)
        for place, spec in zip(self._places, dynamic, strict=True):
            leaves[place] = spec
        return pytree.tree_unflatten(leaves, self._spec)

    def run(self, tensors: Sequence[torch.Tensor]) -> list[Array]:
        """The outputs of the module in evaluation mode, flat, without those that are None.

        The module is left as it was, buffers too, and so are the random numbers of the process.
        """
        args, kwargs = self.arguments(tensors)
        cuda = sorted({one.device.index or 0 for one in self.model.parameters() if one.device.type == "cuda"})
        with evaluating(self.model), _unchanged(self.model), torch.no_grad(), torch.random.fork_rng(cuda):
            found = pytree.tree_leaves(self.model(*args, **kwargs))
            return [_array(one) for one in found if one is not None]


def _array(value: Any) -> Array:
    return array_of(value.detach().clone()) if isinstance(value, torch.Tensor) else np.asarray(value)


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
