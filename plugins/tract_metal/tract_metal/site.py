"""A place in a model where something is to be computed by MLX, and how that is said.

A row of ``metal`` is asked twice: when a model is prepared, with sizes that may be symbols, whether there is a way; and
when MLX records the functions for certain sizes, which way it is. It gives a function of arrays, `laid` or `by_element`
around it where it is not about plain arrays, or a text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum, auto
from typing import Any, TypeVar

import mlx.core as mx

from tract_core.compile.groups import Group, given_by
from tract_core.dims import evaluate
from tract_core.frozen import frozen
from tract_core.model.fact import TypedFact
from tract_core.model.graph import OutletId
from tract_core.model.op import TypedOp
from tract_core.model.substitute import substitute_in
from tract_core.model.typed import TypedModel
from tract_core.plugins.keys import Array
from tract_metal.group.groups import reads_of

T = TypeVar("T")


class Wants(Enum):
    """What a function takes and gives: arrays with axes in their own order, in any one order, or `Laid` tensors."""

    PLAIN = auto()
    ANY_ORDER = auto()
    LAID = auto()


@frozen
class Computed:
    """``function``: takes the inputs of a node or a group, and gives what it gives, several of them as a sequence."""

    function: Callable[..., Any]
    wants: Wants = Wants.PLAIN


@frozen
class Keeping:
    """How an operator is computed that keeps something between the turns of a state.

    ``step``: takes what it kept, ``None`` in the first turn, and the inputs; gives the outputs and what it keeps, both
    as sequences. ``frozen``, ``thawed``: what it keeps, in NumPy, as its state in the core freezes it, and back.
    """

    step: Callable[..., tuple[Sequence[mx.array], Sequence[mx.array]]]
    frozen: Callable[[Sequence[Array]], Any]
    thawed: Callable[[Any], Sequence[Array] | None]


def by_element(function: Callable[..., Any]) -> Computed:
    """A function that computes each element of what is in its place in all inputs."""
    return Computed(function, Wants.ANY_ORDER)


def laid(function: Callable[..., Any]) -> Computed:
    """A function of `Laid` tensors."""
    return Computed(function, Wants.LAID)


class Site:
    """A group of nodes of a model. ``symbols``: the values that sizes have; none when it is only asked for a way.

    ``refusals``: where functions say that a turn is wrong: `refuse_where`.
    """

    def __init__(
        self,
        model: TypedModel,
        group: Group,
        symbols: Mapping[str, int] | None = None,
        made: dict[tuple[int, ...], Any] | None = None,
    ) -> None:
        """``made``: what was made of weights, by the nodes of groups."""
        self.model, self.group, self.symbols = model, group, symbols or {}
        self._made = {} if made is None else made
        first = model.nodes[group.nodes[0]]
        alone = len(group.nodes) == 1
        self.inputs = list(first.inputs) if alone else reads_of(model, group)
        self.outputs = list(first.outlets()) if alone else list(given_by(model, group.nodes))
        self.refusals: list[mx.array] = []

    @property
    def op(self) -> TypedOp:
        """The operator that the group begins with, with the sizes of now."""
        return substitute_in(self.model.nodes[self.group.nodes[0]].op, self.symbols)

    @property
    def facts(self) -> list[TypedFact]:
        """The facts of the inputs."""
        return [self.fact(outlet) for outlet in self.inputs]

    def fact(self, outlet: OutletId) -> TypedFact:
        """The fact of a tensor, with the sizes of now."""
        return self.model.outlet_fact(outlet).substitute(self.symbols)

    def shape(self, slot: int = 0) -> tuple[int, ...]:
        """The shape of an output, for certain sizes."""
        return tuple(evaluate(size, self.symbols) for size in self.model.outlet_fact(self.outputs[slot]).shape)

    def once(self, make: Callable[[], T]) -> T:
        """What is made of weights, the same for all sizes: made when it is first wanted."""
        key = self.group.nodes
        if key not in self._made:
            self._made[key] = make()
        return self._made[key]

    def refuse_where(self, wrong: mx.array) -> None:
        """Where any element is true, the turn is wrong, and the node executor is asked what is."""
        self.refusals.append(mx.any(wrong))


def as_sequence(given: Any) -> Sequence[Any]:
    """What a function gives, as several."""
    return given if isinstance(given, (tuple, list)) else [given]
