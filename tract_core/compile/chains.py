"""Chains: nodes behind a tensor that are computed while its elements are at hand.

Each is the only reader of what is before it, and the shape stays the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tract_core.compile.groups import Grouper
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedNode

TakeFn = Callable[[TypedNode, Sequence[OutletId]], bool]
"""Whether a chain takes a node; with what that reads beside the tensor that the chain has come to, each once."""


def chain_behind(grouping: Grouper[Any], outlet: OutletId, take: TakeFn) -> Iterator[TypedNode]:
    """The nodes of the chain behind a tensor, in order.

    ``take`` is asked of nodes that alone read the tensor so far and give one of its shape, and sees to it that what
    else they read is there, by `Grouper.has` or `Grouper.bring`.
    """
    while (node := _next(grouping, outlet)) is not None and take(node, _besides(node, outlet)):
        yield node
        outlet = OutletId(node.id)


def _next(grouping: Grouper[Any], outlet: OutletId) -> TypedNode | None:
    node, model = grouping.only_reader(outlet), grouping.model
    if node is None or len(node.outlets()) != 1:
        return None
    same = tuple(model.outlet_fact(OutletId(node.id)).shape) == tuple(model.outlet_fact(outlet).shape)
    return node if same else None


def _besides(node: TypedNode, outlet: OutletId) -> list[OutletId]:
    return list(dict.fromkeys(one for one in node.inputs if one != outlet))
