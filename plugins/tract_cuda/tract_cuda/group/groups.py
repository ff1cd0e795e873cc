"""The kinds of groups that there are on a GPU: what their kernels compute."""

from __future__ import annotations

from collections.abc import Iterator

from tract_llvm.elements.expressions import Expression, step_text

from tract_core.compile.groups import Group, outlet_text
from tract_core.frozen import frozen
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel


@frozen
class Host(Group):
    """One node that is left to the node executor. ``why``: for want of what."""

    why: str

    def notes(self, model: TypedModel) -> Iterator[str]:
        """The reason."""
        yield self.why


@frozen
class Alone(Group):
    """One node, which has a kernel of its own, or several, or is a view."""


@frozen
class Behind:
    """What is computed of each element of a tensor. ``expression``: its first inputs are what the node gives itself.

    ``operands``: the tensors of the other inputs, stretched to the shape of the result; ``outlet``: what comes out.
    """

    expression: Expression
    operands: tuple[OutletId, ...]
    outlet: OutletId

    def notes(self, model: TypedModel) -> Iterator[str]:
        """The steps, and what they read."""
        for outlet in self.operands:
            yield f"reads {outlet_text(model, outlet)}"
        yield from map(step_text, self.expression.steps)


@frozen
class Epilogue(Group):
    """One node with a kernel of its own, and the chain behind it, computed while its elements are at hand."""

    behind: Behind

    def notes(self, model: TypedModel) -> Iterator[str]:
        """The chain."""
        yield from self.behind.notes(model)


@frozen
class Products(Epilogue):
    """A sum of products of two factors: the first input of the expression is the sum."""


@frozen
class Convolved(Epilogue):
    """A convolution: the first input of the expression is the sum of a window, the second one the bias."""


@frozen
class Elements(Epilogue):
    """A chain that begins with an element-wise node: all inputs of the expression are operands."""
