"""Questions that rules ask about the surroundings of a node. All are cheap, and ``None`` means: not there."""

from __future__ import annotations

from typing import Any, Final, TypeVar, cast

import numpy as np

from tract_core.data import Constant
from tract_core.model.fact import TypedFact
from tract_core.model.graph import Node, OutletId
from tract_core.model.op import TypedOp
from tract_core.model.typed import TypedModel, TypedNode

K = TypeVar("K", bound=TypedOp)

UNIFORM_ELEMENTS: Final = 1 << 16
"""Constants up to this many elements are looked at to see whether all elements are equal."""

MOST_READERS: Final = 256
"""Rules do not compare the readers of a tensor that has more: that would take the square of the time."""


def node_of(node: TypedNode | None, *kinds: type[K]) -> Node[TypedFact, K] | None:
    """``node``, when there is one and its operator is of one of these types."""
    return cast("Node[TypedFact, K]", node) if node is not None and isinstance(node.op, kinds) else None


def produced_by(model: TypedModel, outlet: OutletId, *kinds: type[K]) -> Node[TypedFact, K] | None:
    """The node that an outlet belongs to, when its operator is of one of these types."""
    return node_of(model.nodes[outlet.node], *kinds)


def alone_by(model: TypedModel, outlet: OutletId, *kinds: type[K]) -> Node[TypedFact, K] | None:
    """Like `produced_by`, when the outlet has one reader only, and is no output of the model."""
    found = produced_by(model, outlet, *kinds)
    return None if found is None or model.single_reader(outlet) is None else found


def read_by(model: TypedModel, outlet: OutletId, *kinds: type[K]) -> Node[TypedFact, K] | None:
    """The only reader of an outlet that is no output of the model, when its operator is of one of these types."""
    return node_of(model.single_reader(outlet), *kinds)


def is_known(model: TypedModel, outlet: OutletId) -> bool:
    """Whether the value of an outlet is part of the model."""
    return model.outlet_fact(outlet).value is not None


def uniform(model: TypedModel, outlet: OutletId) -> Any | None:
    """The element that a known tensor consists of, as a Python number, when all of its elements are equal."""
    value = model.outlet_fact(outlet).value
    if not isinstance(value, Constant):
        return None
    array = value.array
    if not 0 < array.size <= UNIFORM_ELEMENTS or not _comparable(value):
        return None
    first = array.reshape(-1)[0]
    if array.size > 1 and any(array.strides):
        differ = array.item(-1) != array.item(0)  # as nearly always
        if differ or not bool(np.all(array == first)):
            return None
    return first.item()


def _comparable(value: Constant) -> bool:
    kind = value.datum_type
    return kind.is_number() or kind.is_bool()


def uniform_operand(model: TypedModel, node: TypedNode) -> tuple[int, Any] | None:
    """For a node of two inputs of which one is uniform: the slot of the other one, and the element."""
    for slot in (1, 0):
        element = uniform(model, node.inputs[slot])
        if element is not None:
            return 1 - slot, element
    return None


def same_tensor(model: TypedModel, a: OutletId, b: OutletId) -> bool:
    """Whether two outlets certainly hold the same elements: the same outlet, or equal small constants."""
    if a == b:
        return True
    left, right = model.outlet_fact(a).value, model.outlet_fact(b).value
    if left is None or right is None or left.array.shape != right.array.shape:
        return False
    return left is right or (left.array.size <= UNIFORM_ELEMENTS and left == right)


def op_of(model: TypedModel, outlet: OutletId) -> TypedOp:
    """The operator that makes an outlet."""
    return model.nodes[outlet.node].op


def rounds_late(fact: TypedFact) -> bool:
    """Whether operators compute floats of a type in a wider one, and round them when they are done."""
    return fact.datum_type.is_float() and fact.datum_type.itemsize < 4
