"""Whether two models are the same, and a short text that stands for one.

Both read a model as one stream of tokens: its interface, then its nodes in the order in which the outputs need them,
each with its operator's fields and the places of its inputs in that order. So two models are the same when they are
built alike from the outputs up, whatever the ids of their nodes; one node that two others read is not the same as two
equal ones, unless it is a constant. A body is one token where its operator is, and is read once, however many operators
hold it. Time and memory are linear in the model.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from enum import Enum
from functools import cached_property
from itertools import zip_longest
from types import FunctionType
from typing import Any, Final, cast

import numpy as np

from tract_core.data import Constant, SymbolicArray
from tract_core.dims import TDim
from tract_core.dims.atoms import dim_key
from tract_core.errors import Unsupported
from tract_core.model.const import Const
from tract_core.model.fact import TypedFact
from tract_core.model.fields import parts_of
from tract_core.model.graph import OutletId
from tract_core.model.typed_graph import TypedGraph, TypedNode
from tract_core.plugins.tables import key_text

_SIMPLE: Final = (str, bytes, int, float, complex, bool, type(None), range)
_END: Final = object()


def same_model(a: TypedGraph, b: TypedGraph, *, names: bool = False) -> bool:
    """Whether two models have the same inputs, operators, connections, outputs, assertions and properties.

    ``names``: whether inputs, outputs and nodes must have the same names too. Constants are the same when type, shape
    and bits are, and, without names, whether one node holds them or several do. Raises Unsupported when an operator
    holds something that cannot be told apart.
    """
    with _Walk(names) as one, _Walk(names) as other:
        return a is b or _are_same(_model(a, one), _model(b, other))


def fingerprint(model: TypedGraph, *, names: bool = False) -> str:
    """32 hexadecimal digits that are equal for models that are `same_model`, in every process, and else differ.

    Reads every constant. Raises Unsupported as `same_model` does.
    """
    with _Walk(names) as walk:
        return _digest(_model(model, walk))


def content(value: object) -> tuple[Any, ...]:
    """What is equal for operators of one type with the same fields, and else differs; constants count by content.

    Tells what ``==`` does not, as 0.0 from -0.0. Raises Unsupported as `same_model` does.
    """
    with _Walk() as walk:
        return tuple(_content_of(token) for token in _value(value, walk))


def _content_of(token: Any) -> Any:
    return token.digest if isinstance(token, Constant) else repr(token) if isinstance(token, _Body) else token


def outline(model: TypedGraph) -> int:
    """A number that is equal for models that are `same_model`; constants count by type and shape, and are not read."""
    with _Walk() as walk:
        return _hash(_model(model, walk))


def _are_same(a: Iterator[Any], b: Iterator[Any]) -> bool:
    return all(one == other for one, other in zip_longest(a, b, fillvalue=_END))


def _digest(tokens: Iterator[Any]) -> str:
    from tract_core.digests import blake2b

    state = blake2b(digest_size=16)
    for token in tokens:
        text = token.digest if isinstance(token, Constant) else repr(token).encode("utf-8", "surrogatepass")
        state.update(len(text).to_bytes(8, "little") + text)
    return state.hexdigest()


def _hash(tokens: Iterator[Any]) -> int:
    return hash(tuple(map(hash, tokens)))


class _Walk:
    """One way through a model. ``names``: whether names are read."""

    def __init__(self, names: bool = False) -> None:
        self.names = names
        self._bodies: dict[int, _Body] = {}
        self._nameless: _Walk | None = None

    def __enter__(self) -> _Walk:
        return self

    def __exit__(self, *_: object) -> None:
        """Let go of the models, which would wait for the garbage collector else."""
        if self._nameless is not None:
            self._nameless._bodies.clear()
        self._bodies.clear()

    @property
    def nameless(self) -> _Walk:
        """The same way, on which names are not read."""
        if self.names and self._nameless is None:
            self._nameless = _Walk()
        return self._nameless or self

    def body(self, model: TypedGraph) -> _Body:
        """The token of a model inside an operator; always the same one."""
        return self._bodies.setdefault(id(model), _Body(model, self))


class _Body:
    """A model inside an operator, as a token. What is found out about it is kept."""

    def __init__(self, model: TypedGraph, walk: _Walk) -> None:
        self._model, self._walk = model, walk
        self._same: dict[int, bool] = {}
        """By the number of another body, whether it is the same."""

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Body):
            return NotImplemented
        if self._model is other._model:
            return True
        if id(other) not in self._same:
            self._same[id(other)] = _are_same(self._tokens(), other._tokens())
        return self._same[id(other)]

    def __hash__(self) -> int:
        return self._outline

    def __repr__(self) -> str:
        return self._fingerprint

    @cached_property
    def _outline(self) -> int:
        return _hash(self._tokens())

    @cached_property
    def _fingerprint(self) -> str:
        return _digest(self._tokens())

    def _tokens(self) -> Iterator[Any]:
        return _model(self._model, self._walk)


def _model(model: TypedGraph, walk: _Walk) -> Iterator[Any]:
    order = _order(model, walk)
    place = {node_id: index for index, node_id in enumerate(order)}
    yield "model", tuple(place[outlet.node] for outlet in model.inputs), len(model.outputs)
    for outlet in model.outputs:
        yield from _tensor(model, outlet, place, walk)
    if walk.names:
        yield tuple(model.outlet_name(outlet) for outlet in (*model.inputs, *model.outputs))
    yield tuple(sorted(repr((dim_key(one.left), one.op, dim_key(one.right), one.scenario)) for one in model.symbols))
    yield tuple(sorted((dim_key(one.left), one.relation, dim_key(one.right)) for one, _ in model.conditions))
    for node_id in order:
        node = model.nodes[node_id]
        yield len(node.inputs)
        for outlet in node.inputs:
            yield from _tensor(model, outlet, place, walk)
        yield tuple(_fact(fact) for fact in model.output_facts(node))
        if walk.names:
            yield node.name
        yield from _value(node.op, walk)
    for name in sorted(model.properties):
        yield name
        yield Constant(model.properties[name])


def _tensor(model: TypedGraph, outlet: OutletId, place: Mapping[int, int], walk: _Walk) -> Iterator[Any]:
    """The tokens of what is read: where it comes from, or a constant, which is the same one or another of its content.

    A constant with a name that counts has a place.
    """
    if outlet.node in place:
        yield place[outlet.node], outlet.slot
    else:
        yield from _value(model.nodes[outlet.node].op, walk)


def _order(model: TypedGraph, walk: _Walk) -> list[int]:
    """The nodes that the interface needs, then those that only check something or bind a symbol.

    The latter have an order of their own, which depends on what they are and read. Constants are left out where their
    names do not count.
    """
    wanted = [*model.inputs, *model.outputs]
    place = {node_id: index for index, node_id in enumerate(model.order_of_edges(wanted))}
    others = [model.nodes[node_id] for node_id in model.eval_order(wanted) if node_id not in place]

    def key(node: TypedNode) -> str:
        read = [(place.get(outlet.node, -1), outlet.slot) for outlet in node.inputs]
        return repr((read, [_fact(outlet.fact) for outlet in node.outputs], list(_value(node.op, walk.nameless))))

    others.sort(key=key)
    order = model.order_of_edges([*wanted, *(OutletId(node.id) for node in others)])
    return order if walk.names else [node_id for node_id in order if not isinstance(model.nodes[node_id].op, Const)]


def _fact(fact: TypedFact) -> tuple[str, ...]:
    return fact.datum_type.short, *map(dim_key, fact.shape)


def _value(value: Any, walk: _Walk) -> Iterator[Any]:
    """The tokens of an operator, or of what is in its fields."""
    parts = parts_of(value)
    if parts is None:
        yield from _leaf(value, walk)
        return
    yield _class_of(value), len(parts)
    if isinstance(value, (Set, Mapping)):  # their order means nothing
        yield from sorted((tuple(_value(part, walk)) for part in parts), key=repr)
        return
    for part in parts:
        yield from _value(part, walk)


def _leaf(value: Any, walk: _Walk) -> Iterator[Any]:
    if isinstance(value, Enum):
        yield _class_of(value), value.name
    elif isinstance(value, _SIMPLE):
        yield type(value).__name__, repr(value)
    elif isinstance(value, Constant):
        yield value
    elif isinstance(value, TDim):
        yield "size", dim_key(value)
    elif isinstance(value, SymbolicArray):
        yield "sizes", value.array.shape, tuple(map(dim_key, value.dims))
    elif isinstance(value, np.generic):
        array: np.ndarray[Any, Any] = np.asarray(cast("Any", value))
        yield array.dtype.str, array.tobytes()
    elif isinstance(value, (type, FunctionType)) and "<" not in value.__qualname__:
        yield "code", f"{value.__module__}:{value.__qualname__}"
    elif isinstance(value, TypedGraph):
        yield walk.body(value)
    else:
        yield from _other(value, walk)


def _other(value: Any, walk: _Walk) -> Iterator[Any]:
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
        yield from _value(part, walk)


def _class_of(value: Any) -> str:
    return key_text(value.__class__)
