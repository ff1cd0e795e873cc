"""What every operator answers.

An operator is a frozen dataclass: its fields are all that changes its meaning. Every other question about it (NumPy
meaning, cost, axes, simplifications, how a file format spells it) is a row in a table keyed by its type; see
`tract_core.plugins.tables`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Protocol

from tract_core.model.fact import TypedFact


class Op(Protocol):
    """A base operation: anything that can sit in a node."""

    @property
    def name(self) -> str:
        """What listings call the operator: the name of its class unless it says otherwise."""
        return type(self).__name__


class TypedOp(Op, Protocol):
    """An operator of a `TypedModel`.

    ``pure``: whether equal inputs always give equal outputs with no other effect, so that the node may be computed
    early (folded) or once for two (merged). Operators with a row in the ``state`` table are never folded either.

    ``announces``: names of fields that hold sizes of the outputs which only running the node tells. The meaning does
    not read them; their symbols, where nothing else gives them a value, get it from the shapes of the outputs.
    """

    pure: ClassVar[bool] = True
    announces: ClassVar[tuple[str, ...]] = ()

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """The facts of the outputs, from those of the inputs. Raises FactError when the inputs do not fit."""
        ...
