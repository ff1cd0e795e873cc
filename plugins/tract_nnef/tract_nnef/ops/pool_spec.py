"""How windows slide over axes, as files say it: borders, paddings, strides and dilations.

`conv` and its kind speak of the spatial axes, `box` and its kind of all axes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from tract_core.dims import Dim, dim_max, is_symbolic
from tract_core.errors import Unsupported
from tract_core.frozen import frozen
from tract_core.model.graph import OutletId
from tract_core.model.op import Op
from tract_core.ops.pad import Pad, PadEdge, PadReflect
from tract_core.ops.pool_spec import (
    AxisPlan,
    DataFormat,
    Explicit,
    ExplicitOnnxPool,
    Padding,
    PoolSpec,
    SameLower,
    SameUpper,
    Valid,
)
from tract_core.ops.wiring import wire_squeeze, wire_unsqueeze
from tract_nnef.reading.call import Call
from tract_nnef.syntax import ast
from tract_nnef.writing.spelling import Spelling

WINDOW: Final = (
    "border: string = 'constant', padding: (integer, integer)[] = [], stride: integer[] = [], dilation: integer[] = []"
)
"""What all operators with windows have."""

BORDERS: Final = ("constant", "ignore", "replicate", "reflect", "reflect-even")

Pair = tuple[Dim, Dim]
"""Elements before an axis, and after it."""


@frozen
class Steps:
    """How a window moves, as a file says it: an entry per axis. ``padding``: `None` for as much as `SameUpper` adds.

    ``strides``: from one place to the next; ``dilations``: between elements of the window.
    """

    padding: tuple[Pair, ...] | None
    strides: tuple[int, ...]
    dilations: tuple[int, ...]

    def spatial(self, axes: slice) -> Steps:
        """Those of some axes."""
        padding = None if self.padding is None else self.padding[axes]
        return Steps(padding, self.strides[axes], self.dilations[axes])

    def pool(self, kernel: Sequence[int], data_format: DataFormat = DataFormat.NCHW) -> PoolSpec:
        """The windows of that size that move so."""
        return PoolSpec(data_format, tuple(kernel), padding_of(self.padding), self.dilations, self.strides)


def padding_of(pairs: Sequence[Pair] | None) -> Padding:
    """What a list of pairs stands for; ``None`` for an empty one, which wants an output as large as strides allow."""
    if pairs is None:
        return SameUpper()
    if all(pair == (0, 0) for pair in pairs):
        return Valid()
    return Explicit(tuple(before for before, _ in pairs), tuple(after for _, after in pairs))


def read_steps(call: Call, rank: int) -> Steps:
    """Padding, strides and dilations of ``rank`` axes. Raises CorruptModel for lists of another length."""
    return Steps(_pairs(call, rank), _per_axis(call, "stride", rank), _per_axis(call, "dilation", rank))


def _per_axis(call: Call, name: str, rank: int) -> tuple[int, ...]:
    found = call.integers(name)
    _check_length(call, name, len(found), rank)
    return found or (1,) * rank


def _pairs(call: Call, rank: int) -> tuple[Pair, ...] | None:
    found = call.pairs("padding")
    _check_length(call, "padding", len(found), rank)
    return found or (None if rank else ())


def _check_length(call: Call, name: str, found: int, rank: int) -> None:
    if found not in (0, rank):
        raise call.misfit(name, f"has {found} entries", f"{rank}, one per axis, or none")


def all_axes(
    call: Call,
    x: OutletId,
    wire: Callable[[OutletId, PoolSpec], Sequence[OutletId]],
    *,
    channels_last: bool = True,
) -> list[OutletId]:
    """What ``wire`` makes of data, and of windows over spatial axes of it, for windows that are said for all axes.

    They may slide over any axes: where the first two or, if ``channels_last``, the first and the last are not among
    them, these are batch and channels. Else all axes are spatial, behind a batch and a channel of one. Raises
    CorruptModel for lists that are not as long as the rank of the data.
    """
    rank = call.rank(x)
    sizes, steps = call.integers("size"), read_steps(call, rank)
    if len(sizes) != rank:
        raise call.misfit("size", f"has {len(sizes)} entries", f"{rank}, one per axis")

    def still(axis: int) -> bool:
        whole = sizes[axis] == steps.strides[axis] == 1
        return whole and (steps.padding is None or steps.padding[axis] == (0, 0))

    if rank >= 2 and still(0) and still(1):
        return list(wire(x, steps.spatial(slice(2, None)).pool(sizes[2:])))
    if channels_last and rank >= 2 and still(0) and still(rank - 1):
        inner = slice(1, rank - 1)
        return list(wire(x, steps.spatial(inner).pool(sizes[inner], DataFormat.NHWC)))
    lifted = wire_unsqueeze(call.model, call.unique("lifted"), x, (0, 1))
    found = wire(lifted, steps.pool(sizes))
    return [wire_squeeze(call.model, call.unique("lowered"), y, (0, 1)) for y in found]


def bordered(call: Call, op: Op, pool: PoolSpec, x: OutletId, border: str) -> tuple[OutletId, PoolSpec]:
    """Data and windows for which nothing but zeros, or nothing at all, is beyond the border.

    Other borders are added to the data. Raises Unsupported for one that cannot be.
    """
    if border in ("constant", "ignore"):
        return x, pool
    ends = [(plan.before, plan.after) for plan in pool.plan(op, call.shape(x))]
    single = all(end in (0, 1) for pair in ends for end in pair)
    if border == "reflect-even" and not single:
        raise Unsupported(f"{call.name}: the border 'reflect-even' is only known for up to one element")
    kept = [(0, 0)]
    pads = (*kept, *kept, *ends) if pool.data_format.channels_first else (*kept, *ends, *kept)
    padded = call.op(Pad(pads, PadReflect() if border == "reflect" else PadEdge()), x)
    return padded, PoolSpec(pool.data_format, pool.kernel_shape, Valid(), pool.dilations, pool.strides)


# --- writing ---


def exact(padding: Padding) -> bool:
    """Whether reading what `pairs_of` writes gives that padding again."""
    return isinstance(padding, (Valid, SameUpper)) or (
        isinstance(padding, Explicit) and any((*padding.before, *padding.after))
    )


def pairs_of(padding: Padding, plans: Sequence[AxisPlan]) -> list[Pair] | None:
    """The list for a padding; ``None`` where it depends on sizes that are not known.

    What a ceil mode adds is written as more padding behind.
    """
    if isinstance(padding, SameUpper):
        return []
    pairs: list[Pair] = [(plan.before, plan.after) for plan in plans]
    if isinstance(padding, ExplicitOnnxPool) and padding.ceil_mode:
        pairs = [(before, dim_max(plan.overhang, 0)) for (before, _), plan in zip(pairs, plans, strict=True)]
    sized = isinstance(padding, (SameLower, ExplicitOnnxPool))
    return None if sized and any(is_symbolic(end) for pair in pairs for end in pair) else pairs


def to_nchw(node: Spelling, x: ast.Expression, layout: DataFormat, rank: int) -> ast.Expression:
    """An expression of data in that format as one of batch, channels and ``rank`` spatial axes."""
    if not layout.has_n:
        x = _let(node, "batched", "unsqueeze", x, axes=[0])
    if not layout.channels_first:
        x = _let(node, "nchw", "transpose", x, axes=[0, rank + 1, *range(1, rank + 1)])
    return x


def from_nchw(node: Spelling, y: ast.Invocation | None, layout: DataFormat, rank: int) -> ast.Invocation | None:
    """The opposite, for the result of an operator."""
    if y is not None and not layout.channels_first:
        y = node.invoke("transpose", node.let("in_nchw", y), axes=[0, *range(2, rank + 2), 1])
    if y is not None and not layout.has_n:
        y = node.invoke("squeeze", node.let("in_batch", y), axes=[0])
    return y


def _let(node: Spelling, what: str, name: str, x: ast.Expression, axes: list[int]) -> ast.Expression:
    value = node.invoke(name, x, axes=axes)
    assert value is not None  # of the standard
    return node.let(what, value)
