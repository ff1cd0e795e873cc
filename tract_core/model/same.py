"""Whether two models are the same, and a short text that stands for one.

Both read a model as one stream of tokens: its interface, then its nodes in the order in which the outputs need them,
each with its operator's fields and the places of its inputs in that order. So two models are the same when they are
built alike from the outputs up, whatever the ids of their nodes; one node that two others read is not the same as two
equal ones. Bodies are read where their operator is. Time and memory are linear in the model.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from enum import Enum
from itertools import zip_longest
from types import FunctionType
from typing import Any, Final, cast

import numpy as np

from tract_core.data import Constant, SymbolicArray
from tract_core.dims import TDim
from tract_core.errors import Unsupported
from tract_core.model.fields import parts_of
from tract_core.model.graph import OutletId
from tract_core.model.typed_graph import TypedGraph, TypedNode
from tract_core.plugins.tables import key_text

_SIMPLE: Final = (str, bytes, int, float, complex, bool, type(None), range)
_END: Final = object()


def same_model(a: TypedGraph, b: TypedGraph, *, names: bool = False) -> bool:
    """Whether two models have the same inputs, operators, connections, outputs, assertions and properties.

    ``names``: whether inputs, outputs and nodes must have the same names too. Constants are the same when type, shape
    and bits are. Raises Unsupported when an operator holds something that cannot be told apart.
    """
    if a is b:
        return True
    return all(one == other for one, other in zip_longest(_model(a, names), _model(b, names), fillvalue=_END))


def fingerprint(model: TypedGraph, *, names: bool = False) -> str:
    """32 hexadecimal digits that are equal for models that are `same_model`, in every process, and else differ.

    Reads every constant. Raises Unsupported as `same_model` does.
    """
    from hashlib import blake2b  # which loads OpenSSL

    state = blake2b(digest_size=16)
    for token in _model(model, names):
        text = token.digest if isinstance(token, Constant) else repr(token).encode("utf-8", "surrogatepass")
        state.update(len(text).to_bytes(8, "little") + text)
    return state.hexdigest()


def content(value: object) -> tuple[Any, ...]:
    """What is equal for operators of one type with the same fields, and else differs; constants count by content.

    Tells what ``==`` does not, as 0.0 from -0.0. Raises Unsupported as `same_model` does.
    """
    return tuple(token.digest if isinstance(token, Constant) else token for token in _value(value, names=False))


def outline(model: TypedGraph) -> int:
    """A number that is equal for models that are `same_model`; constants count by type and shape, and are not read."""
    return hash(tuple(map(hash, _model(model, names=False))))


def _model(model: TypedGraph, names: bool) -> Iterator[Any]:
    order = _order(model)
    place = {node_id: index for index, node_id in enumerate(order)}
    yield "model", tuple(place[outlet.node] for outlet in model.inputs)
    yield tuple((place[outlet.node], outlet.slot) for outlet in model.outputs)
    if names:
        yield tuple(model.outlet_name(outlet) for outlet in (*model.inputs, *model.outputs))
    yield tuple(sorted(map(str, model.symbols)))
    yield tuple(sorted(str(condition) for condition, _ in model.conditions))
    for node_id in order:
        node = model.nodes[node_id]
        yield tuple((place[outlet.node], outlet.slot) for outlet in node.inputs)
        yield tuple(str(fact) for fact in model.output_facts(node))
        if names:
            yield node.name
        yield from _value(node.op, names)
    for name in sorted(model.properties):
        yield name
        yield Constant(model.properties[name])


def _order(model: TypedGraph) -> list[int]:
    """The nodes that the interface needs, then those that only check something or bind a symbol.

    The latter have an order of their own, which depends on what they are and read.
    """
    wanted = [*model.inputs, *model.outputs]
    place = {node_id: index for index, node_id in enumerate(model.order_of_edges(wanted))}
    others = [model.nodes[node_id] for node_id in model.eval_order(wanted) if node_id not in place]

    def key(node: TypedNode) -> str:
        read = [(place.get(outlet.node, -1), outlet.slot) for outlet in node.inputs]
        return repr((read, [str(outlet.fact) for outlet in node.outputs], list(_value(node.op, names=False))))

    others.sort(key=key)
    return model.order_of_edges([*wanted, *(OutletId(node.id) for node in others)])


def _value(value: Any, names: bool) -> Iterator[Any]:
    """The tokens of an operator, or of what is in its fields."""
    parts = parts_of(value)
    if parts is None:
        yield from _leaf(value, names)
        return
    yield _class_of(value), len(parts)
    if isinstance(value, (Set, Mapping)):  # their order means nothing
        yield from sorted((tuple(_value(part, names)) for part in parts), key=repr)
        return
    for part in parts:
        yield from _value(part, names)


def _leaf(value: Any, names: bool) -> Iterator[Any]:
    if isinstance(value, Enum):
        yield _class_of(value), value.name
    elif isinstance(value, _SIMPLE):
        yield type(value).__name__, repr(value)
    elif isinstance(value, Constant):
        yield value
    elif isinstance(value, TDim):
        yield "size", str(value)
    elif isinstance(value, SymbolicArray):
        yield "sizes", value.array.shape, tuple(str(dim) for dim in value.dims)
    elif isinstance(value, np.generic):
        array: np.ndarray[Any, Any] = np.asarray(cast("Any", value))
        yield array.dtype.str, array.tobytes()
    elif isinstance(value, (type, FunctionType)) and "<" not in value.__qualname__:
        yield "code", f"{value.__module__}:{value.__qualname__}"
    elif isinstance(value, TypedGraph):
        yield from _model(value, names)
    else:
        yield from _other(value, names)


def _other(value: Any, names: bool) -> Iterator[Any]:
    """An object of a class that nobody here knows: what it pickles as. Raises Unsupported where it does not."""
    try:
        made = value.__reduce_ex__(4)
    except Exception as error:
        raise Unsupported(
            f"{_class_of(value)} cannot be compared by what it holds: {error}",
            hint="make it a frozen dataclass, or give it __reduce__",
        ) from None
    if isinstance(made, str):
        yield "code", f"{type(value).__module__}:{made}"
        return
    for part in made[:3]:  # what makes it, from what, and what is set afterwards
        yield from _value(part, names)


def _class_of(value: Any) -> str:
    return key_text(value.__class__)
