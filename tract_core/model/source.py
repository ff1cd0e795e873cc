"""The inputs of a model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from tract_core.frozen import frozen
from tract_core.model.fact import TypedFact
from tract_core.model.op import TypedOp


@frozen
class TypedSource(TypedOp):
    """A tensor that the caller gives."""

    fact: TypedFact
    pure: ClassVar[bool] = False

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """The fact that the model was built with."""
        return (self.fact,)
