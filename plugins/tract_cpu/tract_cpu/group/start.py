"""The node with which a group begins, and the table of what begins with it.

The table ``cpu_groups`` says, for a type of operators, which group begins with one: a function ``(op, start)``. What
has no row there is alone; or it begins a chain, or a program for rows, where it computes elements or reduces.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tract_llvm.elements.expressions import Expression
from tract_llvm.fuse.chain import Chain, OperandFn, chain_after, plain
from tract_llvm.isa import Isa
from tract_llvm.language.types import ElementType

from tract_core.frozen import frozen
from tract_core.model.fact import TypedFact
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel
from tract_core.plugins.keys import Array
from tract_core.plugins.tables import TableKey, function_row
from tract_core.runtime.host import HostNode
from tract_cpu.group.forms import fits_in_blocks
from tract_cpu.group.groups import Alone, CpuGroup, Epilogue, Host, Reading
from tract_cpu.group.known import CpuKnown
from tract_cpu.group.walk import CpuWalk
from tract_cpu.program.form import Form


@frozen
class Start:
    """One node with which a group is about to begin."""

    walk: CpuWalk
    node: HostNode

    @property
    def known(self) -> CpuKnown:
        """What is known of the model."""
        return self.walk.known

    @property
    def model(self) -> TypedModel:
        """The model."""
        return self.walk.model

    @property
    def isa(self) -> Isa:
        """The instruction set."""
        return self.walk.known.isa

    @property
    def outlet(self) -> OutletId:
        """Its first output."""
        return OutletId(self.node.node)

    def facts(self) -> list[TypedFact]:
        """The facts of the inputs."""
        return self.known.facts_of(self.node)

    def array(self, slot: int) -> Array | None:
        """An input that is part of the model; ``None`` for any other."""
        return self.known.constant_array(self.node.inputs[slot])

    def result(self) -> ElementType | None:
        """The type of the first output, where kernels know it."""
        return self.known.element_at(self.outlet)

    def only_blocked(self, slot: int) -> Form | None:
        """The blocks of an input that is there in blocks, and not plain."""
        return self.walk.layouts.only_blocked(self.node.inputs[slot])

    def read(self, form: Form | None = None, slots: Sequence[int] | None = None) -> Iterator[Reading]:
        """The inputs, or those at some slots, as they are read in blocks of a form, or plain."""
        for slot, outlet in enumerate(self.node.inputs):
            if slots is None or slot in slots:
                yield outlet, form

    def host(self, why: str) -> Host:
        """The node is left to the node executor."""
        return Host((self.node.node,), tuple(self.read()), None, why)

    def alone(self, form: Form | None = None, reads: Sequence[Reading] | None = None) -> CpuGroup:
        """The node has kernels of its own; it reads plain tensors unless ``reads`` says more."""
        return Alone((self.node.node,), tuple(self.read()) if reads is None else tuple(reads), form)

    def operands(self, form: Form | None) -> OperandFn:
        """Whether tensors can be operands of what is computed in blocks of a form, or of plain tensors."""
        return plain(self.known) if form is None else fits_in_blocks(self.known, form)

    def behind(self, start: Expression, form: Form | None = None, own: Sequence[OutletId] = ()) -> Chain:
        """The chain behind the node. ``start``: what it computes of elements itself, of ``own``, some of its inputs."""
        return chain_after(self.walk, self.node.node, start, self.operands(form), own)

    def epilogue(self, start: Expression, reads: Sequence[Reading], form: Form | None = None) -> CpuGroup:
        """The node with the chain behind it."""
        chain = self.behind(start, form)
        return Epilogue(chain.nodes, (*reads, *read_along(chain, form)), form, chain)


def read_along(chain: Chain, form: Form | None) -> Iterator[Reading]:
    """How the operands of a chain are read, but for those that are inputs of the node before it."""
    yield from ((outlet, form) for outlet in chain.others)


StartFn = Callable[[Any, Start], CpuGroup | None]

GROUPS: TableKey[type, StartFn] = TableKey("cpu_groups", "which nodes native code computes with one", function_row)
