"""One node that is being written: what it reads, as expressions, and the means to say what it does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from tract_core.data import Constant
from tract_core.data.blocks import Blocks
from tract_core.errors import Unsupported
from tract_core.model.fact import ShapeFact, TypedFact
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel
from tract_core.model.typed_graph import TypedNode
from tract_nnef.registries import STANDARD
from tract_nnef.syntax import ast
from tract_nnef.writing.expressions import express


class DocumentBeingWritten(Protocol):
    """The document that a node is written to, as far as what spells the node may ask: see `documents.writer`."""

    @property
    def model(self) -> TypedModel:
        """The model that is written."""
        ...

    def allows(self, registry: str) -> bool:
        """Whether the document may use the operators of a registry."""
        ...

    def use(self, registry: str) -> bool:
        """Use a registry, if the document may. Returns whether it does."""
        ...

    def tensor(self, outlet: OutletId) -> ast.Expression:
        """What is read: a name, or a constant."""
        ...

    def constant(self, wanted: str, value: Constant) -> ast.Expression:
        """A constant, or the name of a variable like ``wanted``."""
        ...

    def hold(self, wanted: str, value: Constant | Blocks) -> str:
        """Have a value lie beside the document. Returns its label, which is like ``wanted``."""
        ...

    def new_name(self, wanted: str) -> str:
        """A name that nothing has, like ``wanted``."""
        ...

    def assign(self, targets: ast.Expression, value: ast.Expression) -> None:
        """Add a statement."""
        ...

    def fragment(self, body: TypedModel, wanted: str) -> tuple[ast.Fragment, Sequence[str]]:
        """A body as a fragment, and lines that say what else is known of it. Raises Unsupported."""
        ...

    def body(self, model: TypedModel, wanted: str) -> tuple[str, Sequence[str], Sequence[tuple[str, str]]]:
        """A model as a fragment: its name, lines of what is known of it, and the labels of its properties."""
        ...

    def submodel(self, wanted: str, model: TypedModel) -> str:
        """Have a model lie beside the document, as an archive of its own. Returns its label."""
        ...


class Spelling:
    """A node, and the document that it is written to."""

    def __init__(self, writer: DocumentBeingWritten, node: TypedNode) -> None:
        self.writer = writer
        self.node = node

    @property
    def inputs(self) -> list[ast.Expression]:
        """What it reads: names of tensors, or constants."""
        return [self.writer.tensor(outlet) for outlet in self.node.inputs]

    def input(self, slot: int) -> ast.Expression:
        """One tensor that it reads."""
        return self.writer.tensor(self.node.inputs[slot])

    def input_fact(self, slot: int) -> TypedFact:
        """What is known of a tensor that it reads."""
        return self.writer.model.outlet_fact(self.node.inputs[slot])

    def output_fact(self, slot: int = 0) -> TypedFact:
        """What is known of a result."""
        return self.node.outputs[slot].fact

    def is_settled(self, shape: ShapeFact) -> bool:
        """Whether the result has a shape, in which what the model requires of its symbols changes nothing."""
        simplify = self.writer.model.known.simplify
        return self.output_fact().shape == shape == tuple(map(simplify, shape))

    def allows(self, registry: str) -> bool:
        """Whether the document may use the operators of a registry."""
        return self.writer.allows(registry)

    def invoke(self, name: str, /, *positional: Any, registry: str = STANDARD, **named: Any) -> ast.Invocation | None:
        """An operator of a registry, with its arguments; ``None`` where the document may not use that registry.

        Arguments are expressions, or values that `express` takes; those that are ``None`` are left out. ``None`` also
        where one of them cannot be written, as a number that is none.
        """
        if not self.allows(registry):
            return None
        try:
            arguments = [ast.Argument(None, express(value)) for value in positional]
            arguments += [ast.Argument(key, express(value)) for key, value in named.items() if value is not None]
        except Unsupported:
            return None
        self.writer.use(registry)
        return ast.Invocation(name, tuple(arguments))

    def constant(self, what: str, value: Constant) -> ast.Expression:
        """A constant that the operator holds: written where it is read, or a variable that ends in ``what``."""
        return self.writer.constant(f"{self.node.name}.{what}", value)

    def let(self, what: str, value: ast.Expression | None) -> ast.Identifier:
        """Assign a value to a new name, which ends in ``what``, in a statement before that of the node.

        ``value``: what `invoke` gave, once it is known that the document may use its registry.
        """
        assert value is not None
        name = self.writer.new_name(f"{self.node.name}_{what}")
        self.writer.assign(ast.Identifier(name), value)
        return ast.Identifier(name)

    def outlets(self) -> Sequence[OutletId]:
        """Its results."""
        return self.node.outlets()
