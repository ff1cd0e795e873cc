"""What kernels send through an expression, and where they write it: further operands move along with the result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tract_llvm.elements.expressions import Expression, rounded
from tract_llvm.language.buffers import Buffer
from tract_llvm.language.values import Value

from tract_cpu.kernels.signature import Each, Memory, Sizes, Taken


@dataclass(frozen=True, slots=True, eq=False)
class Targets:
    """The further operands of an expression and its result, from a place on. Its first operand is what is computed.

    ``along``: of each further operand, whether it moves along what lanes go along. ``strides``: of each of them and of
    the result, how far it moves with each loop around.
    """

    expression: Expression
    along: tuple[bool, ...]
    places: tuple[Buffer, ...]
    strides: tuple[tuple[Value, ...], ...]

    @staticmethod
    def declared(expression: Expression, loops: int) -> Each:
        """The arguments for each further operand of an expression and for its result: where it is, and the strides."""
        types = [*expression.inputs[1:], expression.result]
        return Each("targets", tuple((Memory("tensor", one), Sizes("strides", loops)) for one in types))

    @staticmethod
    def of(taken: Taken, expression: Expression, along: tuple[bool, ...]) -> Targets:
        """Those among the arguments of a kernel that were declared."""
        found = [(one.memory("tensor"), tuple(one.sizes("strides"))) for one in taken.each("targets")]
        return Targets(expression, along, tuple(one for one, _ in found), tuple(strides for _, strides in found))

    def moved(self, loop: int, position: Value) -> Targets:
        """From a position of a loop on."""
        pairs = zip(self.places, self.strides, strict=True)
        return replace(self, places=tuple(place.at(position * strides[loop]) for place, strides in pairs))

    def put(self, place: Value, computed: Value, lanes: int, mask: Value | None) -> None:
        """Send what was computed through the expression, and write what comes out."""
        operands = [rounded(computed, self.expression.inputs[0]), *self._further(place, lanes, mask)]
        self.places[-1].put(place, self.expression.compute(operands).splat(lanes), mask)

    def _further(self, place: Value, lanes: int, mask: Value | None) -> Sequence[Value]:
        pairs = zip(self.places[:-1], self.along, strict=True)
        return [at.vector(place, lanes, mask) if along else at[0].splat(lanes) for at, along in pairs]
