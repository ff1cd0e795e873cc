"""One network: how it is built, called, and at which sizes it is compared."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
import tract_torch
from torch import nn
from torch.utils import _pytree as pytree

from tract_core.api.model import Model

Sizes = Mapping[str, int]


@dataclass(frozen=True)
class Network:
    """``inputs``: for the sizes of its symbols, what it is called with, by the names of its arguments.

    ``axes``: for each of these, its dynamic axes with their sizes, as ``{0: "B", 1: "8*S"}``; an argument that holds
    several tensors has the same nesting here. ``sizes``: the values of the symbols that it is compared at; it is
    exported with the first ones. ``ranges``: of symbols, 1 to 1000 where nothing is said. ``tolerance``: of the largest
    difference, relative to the largest magnitude of an output. ``small``: it is quick enough to be always run, and
    also on the reference.
    """

    name: str
    build: Callable[[], nn.Module]
    inputs: Callable[..., dict[str, Any]]
    axes: Mapping[str, Any]
    sizes: tuple[Sizes, Sizes, Sizes]
    ranges: Mapping[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])
    tolerance: float = 1e-4
    small: bool = False

    def __str__(self) -> str:
        return self.name

    def module(self) -> nn.Module:
        """The network in evaluation mode, always with the same random weights."""
        torch.manual_seed(sum(map(ord, self.name)))
        module = self.build()
        settle(module)
        return module

    def given(self, sizes: Sizes) -> dict[str, Any]:
        """Inputs of these sizes, always the same ones."""
        torch.manual_seed(sum(sizes.values()))
        return self.inputs(**sizes)

    def dynamic_shapes(self) -> dict[str, Any]:
        """``axes`` as `torch.export.export` takes them."""
        dims = {
            name: torch.export.Dim(name, min=least, max=most)
            for name in self.sizes[0]
            for least, most in [self.ranges.get(name, (1, 1000))]
        }
        shapes = pytree.tree_map(lambda axes: _shape(axes, dims), dict(self.axes), is_leaf=is_axes)
        return {name: shapes.get(name) for name in self.given(self.sizes[0])}

    def load(self, module: nn.Module) -> Model:
        """The module as a model, with symbols for its sizes."""
        return tract_torch.load(module, (), self.given(self.sizes[0]), dynamic_shapes=self.dynamic_shapes())


def is_axes(value: Any) -> bool:
    return value is None or (isinstance(value, dict) and all(isinstance(axis, int) for axis in value))


def _shape(axes: Mapping[int, str] | None, dims: Mapping[str, Any]) -> dict[int, Any] | None:
    """The sizes of axes, each a symbol, or a number times one."""
    if axes is None:
        return None
    found: dict[int, Any] = {}
    for axis, text in axes.items():
        factor, _, name = text.rpartition("*")
        found[axis] = int(factor) * dims[name] if factor else dims[name]
    return found


def settle(module: nn.Module) -> None:
    """Evaluation mode, and nothing left at the 0 and 1 that it begins with, which would hide what is forgotten."""
    module.eval()
    for part in module.modules():
        if isinstance(part, (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)) and part.running_mean is not None:
            part.running_mean.normal_(0, 0.1)
            part.running_var.uniform_(0.5, 1.5)
    for parameter in module.parameters():
        flat = parameter.detach().view(-1)
        if bool((flat == flat[0]).all()):
            parameter.detach().add_(0.1 * torch.randn_like(parameter))
