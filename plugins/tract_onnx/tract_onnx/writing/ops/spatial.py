"""What convolutions and pools share: paddings as numbers, and data with channels first."""

from __future__ import annotations

from typing import Any

from tract_core.ops.pool_spec import DataFormat, ExplicitOnnxPool, PoolSpec, SameLower, SameUpper
from tract_onnx.writing.spelling import Spelling


def attributes(node: Spelling, pool: PoolSpec, op: Any) -> dict[str, Any] | None:
    """The attributes of windows; ``None`` where paddings depend on sizes in a way that there are no words for."""
    told: dict[str, Any] = {
        "kernel_shape": list(pool.kernel_shape),
        "strides": list(pool.strides),
        "dilations": list(pool.dilations),
    }
    plans = pool.plan(op, node.fact().shape)
    pads = [*(plan.before for plan in plans), *(plan.after for plan in plans)]
    if isinstance(pool.padding, ExplicitOnnxPool) and pool.padding.ceil_mode:
        told["ceil_mode"] = 1
    if all(isinstance(pad, int) for pad in pads):
        return told | {"pads": pads}
    if isinstance(pool.padding, (SameUpper, SameLower)) and set(pool.dilations) == {1}:
        return told | {"auto_pad": "SAME_UPPER" if isinstance(pool.padding, SameUpper) else "SAME_LOWER"}
    return None


def channels_first(node: Spelling, name: str, layout: DataFormat, rank: int) -> str:
    """Data as batch, channels, places. ``rank``: of the data."""
    if not layout.has_n:
        name, rank = node.with_axes(name, [0]), rank + 1
    return name if layout.channels_first else node.transposed(name, [0, rank - 1, *range(1, rank - 1)])


def as_it_was(node: Spelling, name: str, layout: DataFormat, rank: int) -> str:
    """The opposite of `channels_first`."""
    whole = rank if layout.has_n else rank + 1
    if not layout.channels_first:
        name = node.transposed(name, [0, *range(2, whole), 1])
    return name if layout.has_n else node.without_axes(name, [0])
