"""How tensors lie in memory: as views of inputs, or of what is computed, as PyTorch has them.

A graph is traced with tensors that have no elements, and share their storage as real ones would.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import Any, cast

import torch
from torch.fx import Node

from tract_core.dims import Dim, evaluate, symbols_of
from tract_core.errors import Unsupported
from tract_core.frozen import frozen
from tract_torch.wiring.sizes import dim_of

Values = Mapping[str, int]
"""What symbols are in one call."""

Laid = tuple[Any, Any, int]
"""Sizes, strides and offset, as numbers."""


@frozen
class Layout:
    """A tensor in memory, in elements.

    ``sizes``: of its axes; ``strides``: how far two places of an axis are apart; ``offset``: what is before the first
    element. ``is_fixed``: whether none of them depends on symbols.
    """

    sizes: tuple[Dim, ...]
    strides: tuple[Dim, ...]
    offset: Dim
    is_fixed: bool

    @classmethod
    def of(cls, value: torch.Tensor, base: torch.Tensor, names: Mapping[str, int]) -> Layout:
        """That of a tensor in the memory of another, from where that one begins.

        Raises Unsupported for a size that cannot be said, or has other symbols than these ``names``.
        """
        sizes, strides = (tuple(known_size(one, names) for one in those) for those in (value.shape, value.stride()))
        offset = known_size(value.storage_offset() - base.storage_offset(), names)
        fixed = all(isinstance(one, int) for one in (*sizes, *strides, offset))
        return cls(sizes, strides, offset, fixed)

    def at(self, values: Values) -> Laid:
        """Sizes, strides and offset in one call."""
        if self.is_fixed:
            return self.sizes, self.strides, cast("int", self.offset)
        sizes, strides = ([evaluate(one, values) for one in those] for those in (self.sizes, self.strides))
        return sizes, strides, evaluate(self.offset, values)


def known_size(size: Any, names: Mapping[str, int]) -> Dim:
    """A size of PyTorch. Raises Unsupported where it cannot be said by these symbols."""
    dim = dim_of(size, {})
    if not symbols_of(dim) <= names.keys():
        raise Unsupported(f"the size {dim} depends on data")
    return dim


def laid_out(tensor: torch.Tensor, sizes: Any, strides: Any) -> torch.Tensor:
    """A tensor whose elements lie one after the other, as one of these strides."""
    if any(stride != own and size > 1 for size, stride, own in zip(sizes, strides, tensor.stride(), strict=True)):
        return torch.empty_strided(sizes, strides, dtype=tensor.dtype).copy_(tensor)
    return tensor


def root_of(node: Node) -> Node:
    """The tensor that a node is a view of, or itself. Raises Unsupported where that has elements of another type."""
    root = node
    while (before := _viewed(root)) is not None:
        root = before
    value, base = node.meta["val"], root.meta["val"]
    if (value.dtype, value.is_conj(), value.is_neg()) != (base.dtype, base.is_conj(), base.is_neg()):
        raise Unsupported(f"an output of {value.dtype} is a view of a tensor of {base.dtype}, or of its conjugate")
    return root


def _viewed(node: Node) -> Node | None:
    """What a node is a view of."""
    source = cast("Node", node.args[0]) if node.target is operator.getitem else node
    own = _storage(node.meta["val"])
    for one in source.all_input_nodes:
        value = one.meta.get("val")
        if isinstance(value, torch.Tensor) and _storage(value) == own:
            return one
    return None


def _storage(value: torch.Tensor) -> int:
    """What is the same for tensors that share memory, also where there are no elements."""
    storage: Any = value.untyped_storage()
    return storage._cdata
