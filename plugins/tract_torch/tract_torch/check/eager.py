"""What a module computes by itself, without leaving traces."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import field
from typing import Any

import numpy as np
import torch
from torch.utils import _pytree as pytree

from tract_core.frozen import frozen
from tract_torch.capture.exporting import evaluating
from tract_torch.example import Example
from tract_torch.tensors import array_of

Array = np.ndarray[Any, Any]


@frozen
class Start:
    """What a module is called with, and what its buffers hold then: by their names; others hold what they do.

    ``held``: what these buffers hold.
    """

    example: Example
    held: Mapping[str, torch.Tensor] = field(default_factory=dict[str, torch.Tensor])


@frozen
class EagerCall:
    """What came of a call. ``held``: what the buffers hold then that the module wrote into, by their names.

    ``changed``: the arguments that it wrote into, by theirs. ``result``: what was returned.
    """

    result: Any
    held: Mapping[str, torch.Tensor]
    changed: Mapping[str, torch.Tensor]

    @property
    def outputs(self) -> list[Array]:
        """What the module returned, flat, without what is None."""
        return [as_array(one) for one in pytree.tree_leaves(self.result) if one is not None]


def turn_of(model: torch.nn.Module, start: Start) -> EagerCall:
    """Call a module in evaluation mode, with copies of the tensors of an example.

    The module is left as it was, buffers too, and so are the tensors of the example, and the random numbers of the
    process.
    """
    copies = {name: tensor.detach().clone() for name, tensor in start.example.tensors().items()}
    given = start.example.with_tensors(copies)
    cuda = sorted({one.device.index or 0 for one in model.parameters() if one.device.type == "cuda"})
    with evaluating(model), _unchanged(model), torch.no_grad(), torch.random.fork_rng(cuda):
        before = dict(model.named_buffers(remove_duplicate=False))
        for name, value in start.held.items():
            before[name].copy_(value)
        first = {name: (one, _version(one), one.clone()) for name, one in before.items()}
        found = model(*given.args, **given.keywords)
        now = dict(model.named_buffers(remove_duplicate=False))
        wrote = [name for name in now if name in first and _wrote(now[name], *first[name])]
        own = start.example.tensors()
        return EagerCall(
            pytree.tree_map(lambda leaf: leaf.clone() if isinstance(leaf, torch.Tensor) else leaf, found),
            {name: now[name].detach().clone() for name in wrote},
            {name: copy for name, copy in copies.items() if not _same(copy, own[name])},
        )


def _version(buffer: torch.Tensor) -> int:
    """How often it was written into, as far as PyTorch counts that."""
    return 0 if buffer.is_inference() else buffer._version


def _wrote(now: torch.Tensor, before: torch.Tensor, version: int, value: torch.Tensor) -> bool:
    """Whether there is another tensor now, or it was written into, which PyTorch does not count in normalisations."""
    return now is not before or _version(now) != version or not _same(now, value)


def _same(one: torch.Tensor, other: torch.Tensor) -> bool:
    return one.shape == other.shape and bool(torch.equal(one, other))


def result_of(model: torch.nn.Module, example: Example) -> Any:
    """What a module returns; see `turn_of`."""
    return turn_of(model, Start(example)).result


def outputs_of(model: torch.nn.Module, example: Example) -> list[Array]:
    """The outputs of a module, flat, without those that are None; see `turn_of`."""
    return turn_of(model, Start(example)).outputs


def as_array(value: Any) -> Array:
    """What a module returned, a tensor or a number, without a copy."""
    return array_of(value) if isinstance(value, torch.Tensor) else np.asarray(value)


@contextmanager
def _unchanged(model: torch.nn.Module) -> Generator[None]:
    """What the block writes into buffers is undone; `evaluating` puts them back into their places."""
    copies = [(buffer, buffer.clone()) for buffer in model.buffers()]
    try:
        yield
    finally:
        for buffer, copy in copies:
            if not torch.equal(buffer, copy):
                buffer.copy_(copy)
