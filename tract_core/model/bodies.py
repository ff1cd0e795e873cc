"""The models inside an operator, its bodies: loops, branches and submodels hold them in fields.

These functions find bodies in the fields of any operator. So a pass enters all bodies without knowing which operators
have some.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, TypeVar

from tract_core.data.containers import compatible_types
from tract_core.dims import Dim, substitute, symbol_name
from tract_core.frozen import frozen
from tract_core.model.conditions import may_be_of_shape
from tract_core.model.fields import changed, leaves
from tract_core.model.op import TypedOp
from tract_core.model.questions import node_cost
from tract_core.model.typed import TypedModel
from tract_core.plugins.keys import STATE

if TYPE_CHECKING:
    from tract_core.model.fact import TypedFact

T = TypeVar("T")

_NOTHING: Final[Mapping[str, Dim]] = MappingProxyType({})

BodyFn = Callable[[TypedModel], TypedModel]


def bodies_of(op: object) -> list[TypedModel]:
    """The models that an operator holds, in the order of its fields; not those that are inside of these models."""
    return [leaf for leaf in leaves(op) if isinstance(leaf, TypedModel)]


@frozen
class OpWithBodies(TypedOp):
    """An operator whose fields hold models, which it runs."""

    @cached_property
    def checks(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]: not the same for all of one class
        """Whether the bodies refuse runs, by nodes that check something, or want something of sizes.

        What only reads the sizes of the outputs relies on the runs that they accept.
        """
        bodies = bodies_of(self)
        return any(len(body.conditions) or any(node.op.checks for node in body.live_nodes()) for body in bodies)

    @property
    def keeps(self) -> bool:
        """Whether a body keeps something from turn to turn."""
        return any(keeps_state(body) for body in bodies_of(self))


def keeps_state(model: TypedModel) -> bool:
    """Whether a turn of a model depends on those before it: whether a node keeps something, in bodies too."""
    states = model.registry[STATE]
    return any(states.find(type(node.op)) is not None and node.op.keeps for node in model.live_nodes())


def map_bodies(op: T, function: BodyFn) -> T:
    """``op`` with ``function`` of each body in its place; the very same object when no body changes."""
    return changed(op, lambda leaf: function(leaf) if isinstance(leaf, TypedModel) else leaf)


def own_symbols(body: TypedModel) -> frozenset[str]:
    """The symbols that are a size of an input of ``body``. They belong to the body, whatever has their name outside."""
    sizes = (dim for outlet in body.inputs for dim in body.outlet_fact(outlet).shape)
    own = frozenset(name for dim in sizes if (name := symbol_name(dim)) is not None)
    return body.symbols.definitions.with_dependent(own)


def from_outside(own: frozenset[str], symbols: Mapping[str, int]) -> dict[str, int]:
    """The symbols outside, with their values, that mean the same in a body. ``own``: the body's `own_symbols`."""
    return {name: value for name, value in symbols.items() if name not in own}


def body_cost(body: TypedModel, outside: Mapping[str, Dim]) -> dict[str, Dim]:
    """What one run of a model costs, by kind: the sum over the nodes that its outputs need.

    ``outside``: what the body's own symbols are there, as `sizes_outside` tells.
    """
    total: dict[str, Dim] = {}
    for node_id in body.eval_order():
        node = body.nodes[node_id]
        add_cost(total, node_cost(body, node))
    return {kind: substitute(count, outside) for kind, count in total.items()}


def add_cost(total: dict[str, Dim], more: Mapping[str, Dim]) -> None:
    """Add counts to a total, kind by kind."""
    for kind, count in more.items():
        total[kind] = total.get(kind, 0) + count


def sizes_outside(
    body: TypedModel, slot: int, fact: TypedFact, outside: Mapping[str, Dim] = _NOTHING
) -> dict[str, Dim] | None:
    """What the symbols of a body are outside when a tensor of ``fact`` is its input ``slot``; ``None`` if it cannot be.

    ``outside``: what the inputs before it said; sizes of this input that are a single symbol in the body are added.
    Facts of the body's outputs become facts outside with ``fact.substitute(sizes)``.
    """
    wanted = body.outlet_fact(body.inputs[slot])
    sizes = dict(outside)
    if fact.rank == wanted.rank:
        for inner, outer in zip(wanted.shape, fact.shape, strict=True):
            name = symbol_name(inner)
            if name is not None:
                sizes.setdefault(name, outer)
        sizes = body.symbols.definitions.outside(sizes)
    return sizes if may_fit(fact, wanted.substitute(sizes)) else None


def may_fit(fact: TypedFact, wanted: TypedFact) -> bool:
    """Whether a tensor of ``fact`` can be one of ``wanted``; sizes as `may_equal`."""
    return compatible_types(fact.datum_type, wanted.datum_type) and may_be_of_shape(fact.shape, wanted.shape)
