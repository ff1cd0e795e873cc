"""What convolutions and pools have in common: their attributes, as the core's `PoolSpec`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tract_core.dims import exact_div, is_symbolic
from tract_core.errors import FactError, Unsupported
from tract_core.model.graph import OutletId
from tract_core.ops.pool_spec import DataFormat, Explicit, Padding, PoolSpec, SameUpper, Valid
from tract_tensorflow.graphdef.node import GraphNode
from tract_tensorflow.graphdef.wiring import GraphWiring

_PADDINGS: Final = ("SAME", "VALID", "EXPLICIT")
_FIRST: Final = ("NCHW", "NCDHW", "NCW")
_LAST: Final = ("NHWC", "NDHWC", "NWC")


def data_format(node: GraphNode, default: str = "NHWC") -> DataFormat:
    """Where the channels are."""
    return DataFormat.NCHW if node.choice("data_format", (*_LAST, *_FIRST), default) in _FIRST else DataFormat.NHWC


def spatial(node: GraphNode, name: str, layout: DataFormat, given: Sequence[int]) -> tuple[int, ...]:
    """What a list of entries for all axes has for places. Raises Unsupported where it is not 1 for the others."""
    rank = len(given)
    if rank < 3:
        raise node.misfit(name, f"is {list(given)}", "a number for each axis")
    first = layout.h_axis
    batch, channels = given[0], given[layout.c_axis(rank)]
    if batch != 1 or channels != 1:
        raise node.misfit(name, f"is {list(given)}", "1 for batch and channels", Unsupported)
    return tuple(given[first : first + rank - 2])


def padding(node: GraphNode, layout: DataFormat) -> Padding:
    """The padding that ``padding`` and ``explicit_paddings`` describe."""
    kind = node.choice("padding", _PADDINGS)
    if kind != "EXPLICIT":
        return SameUpper() if kind == "SAME" else Valid()
    pairs = node.integers("explicit_paddings", ())
    if len(pairs) < 6 or len(pairs) % 2:
        raise node.misfit("explicit_paddings", f"is {list(pairs)[:50]}", "two numbers for each axis")
    count, first = len(pairs) // 2 - 2, layout.h_axis
    before, after = pairs[0::2][first : first + count], pairs[1::2][first : first + count]
    return Explicit(tuple(before), tuple(after))


def window(node: GraphNode, kernel: Sequence[int], layout: DataFormat) -> PoolSpec:
    """The window of a convolution with a kernel of these sizes."""
    rank = len(kernel) + 2
    strides = spatial(node, "strides", layout, node.integers("strides"))
    dilations = spatial(node, "dilations", layout, node.integers("dilations", (1,) * rank))
    return PoolSpec(layout, tuple(kernel), padding(node, layout), dilations=dilations, strides=strides)


def kernel_sizes(wire: GraphWiring, kernel: OutletId) -> tuple[int, ...]:
    """The sizes of a kernel (places, inputs, outputs) at its places, which must be numbers."""
    sizes = wire.shape(kernel)[:-2]
    if len(sizes) < 1:
        raise FactError(f"a kernel has axes for places and two for channels, found {wire.fact(kernel)}")
    if any(is_symbolic(size) for size in sizes):
        raise Unsupported(f"the size of the kernel {wire.fact(kernel)} must be known when the model is loaded")
    return tuple(int(size) for size in sizes)


def groups(wire: GraphWiring, x: OutletId, kernel: OutletId, layout: DataFormat) -> int:
    """Into how many groups the channels are cut: so many times those that the kernel has."""
    fact = wire.fact(x)
    if fact.rank < 3:
        raise FactError(f"a batch, places and channels are wanted, found {fact}")
    given, per_group = fact.shape[layout.c_axis(fact.rank)], wire.shape(kernel)[-2]
    if is_symbolic(per_group) or int(per_group) < 1:
        raise Unsupported(f"the channels of the kernel {wire.fact(kernel)} must be known when the model is loaded")
    count = exact_div(given, int(per_group))
    return 1 if count is None or is_symbolic(count) else max(int(count), 1)
