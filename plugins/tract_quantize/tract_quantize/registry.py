"""The table of this distribution."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

from tract_core.frozen import frozen
from tract_core.model.op import TypedOp
from tract_core.model.typed import TypedModel, TypedNode
from tract_core.plugins.tables import TableKey, function_row


@frozen
class Product:
    """Sums of products of data and weights.

    ``data``, ``weights``: which inputs they are; ``bias``: the input that holds one number for each channel, if any.
    ``channel``: the axis of the weights along which each has its own scale; ``summed``: the one that is summed over,
    where there is exactly one. ``output``: the axis of the result that the channels are. ``as_conv``: whether it is a
    convolution, whose results engines only compute in integers where they are rounded to bytes at once.
    """

    data: int
    weights: int
    channel: int
    output: int
    summed: int | None = None
    bias: int | None = None
    as_conv: bool = False


@frozen
class Moves:
    """The result consists of elements of the first input, and of zeros at most: it is in the same steps."""


@frozen
class Function:
    """Each element of the result is made of one of the input, and about as large at most.

    ``gate``: where the result is the input times a function of it that lies between 0 and 1, that function. It is
    rounded as well: engines compute it, and the product, on bytes.
    """

    gate: TypedOp | None = None


@frozen
class Joins:
    """The result is about as large as the inputs, of which each may have steps of its own."""


@frozen
class Bound:
    """A bound for all elements of an input: what is rounded behind it needs it no more. ``data``: which input."""

    data: int


@frozen
class Shift:
    """Known numbers are added. ``data``: the input that is not known."""

    data: int


Role: TypeAlias = Product | Moves | Function | Joins | Bound | Shift
RoleFn: TypeAlias = Callable[[Any, TypedModel, TypedNode], Role | None]

ROLES: Final[TableKey[type, RoleFn]] = TableKey(
    "quantized_roles", "what the operator is to tensors that are rounded to bytes", function_row
)


def role_of(model: TypedModel, node: TypedNode) -> Role | None:
    """What a node is to quantised tensors; ``None`` for what stays in floats."""
    row = model.registry[ROLES].find(type(node.op))
    return None if row is None else row(node.op, model, node)
