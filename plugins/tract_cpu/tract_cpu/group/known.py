"""What is known of a model, or of a body, before anything has a place in memory: types, sizes, instructions."""

from __future__ import annotations

from collections.abc import Sequence

from tract_llvm.fuse.known import Known
from tract_llvm.isa import Dot, Isa
from tract_llvm.language.types import F32, ElementType

from tract_core.model.fact import TypedFact
from tract_core.model.op import TypedOp
from tract_core.model.typed import TypedModel
from tract_core.runtime.binding_plan import given_in_every_turn
from tract_core.runtime.host import HostNode
from tract_cpu.program.form import Forms
from tract_cpu.program.reads import READS, Reads
from tract_cpu.table import MOVES
from tract_cpu.target import USUAL, Rounding


class CpuKnown(Known):
    """What kernels may rely on.

    ``isa``: the instruction set. ``threads``: how many there may be, which changes no result. ``rounding``: where
    results may be rounded otherwise. ``given_at_begin``: those of ``given`` that the inputs give.
    ``is_body``: whether the model is a body of an operator. ``forms``: of what concatenations put together, by their
    nodes, as far as somebody asked; ``tiles``: of convolutions by Winograd's method, ``None`` for direct ones.
    """

    def __init__(
        self,
        model: TypedModel,
        isa: Isa,
        around: CpuKnown | None = None,
        known: frozenset[str] = frozenset(),
        *,
        threads: int = 1,
        rounding: Rounding = USUAL,
        like: CpuKnown | None = None,
    ) -> None:
        """``around``: what the body is part of. ``known``: symbols that no input gives, but whoever runs the model.

        ``like``: what another pass knew of the same model at last, so that it is not found out again.
        """
        super().__init__(model, frozenset())
        self.isa, self.threads, self.rounding = isa, threads, rounding
        self.is_body = around is not None
        before = like or around
        self.given_at_begin = before.given_at_begin if before is not None else known | given_in_every_turn(model)
        self.given = self.given_at_begin if around is None else around.given
        self.forms: dict[int, Forms | None] = {} if like is None else like.forms
        self.tiles: dict[int, tuple[int, ...] | None] = {} if like is None else like.tiles
        if like is not None:
            self._around = like._around

    def moves(self, op: TypedOp) -> bool:
        """Whether a kernel only moves or converts the elements of an operator."""
        return self.model.registry[MOVES].find(type(op)) is not None

    def held(self, element: ElementType) -> ElementType:
        """The type of elements in blocks of channels: f32 for narrow floats, where no instruction sums their products.

        So they are converted once, not by each that reads them; they have no more digits than before.
        """
        return self._held(element, (*self.isa.dots, *self.isa.tiles))

    def held_apart(self, element: ElementType) -> ElementType:
        """The same of what is multiplied in no tiles."""
        return self._held(element, self.isa.dots)

    def _held(self, element: ElementType, dots: Sequence[Dot]) -> ElementType:
        narrow = element.kind == "f" and element.computed is F32
        return F32 if narrow and all(dot.left != element.name for dot in dots) else element

    def why_not_kept(self, facts: Sequence[TypedFact]) -> str | None:
        """Why native code cannot keep something from turn to turn whose sizes are among those of ``facts``."""
        if self.is_body:
            return "it keeps its state between turns, inside of a body"
        symbols = frozenset[str]().union(*(fact.shape.symbols() for fact in facts))
        return (
            None if symbols <= self.given_at_begin else "it keeps a state whose sizes come up in the middle of the run"
        )

    def reads(self, node: HostNode) -> Reads | None:
        """How sizes and numbers of a node are read before it is computed, where that can be: not inside of a body."""
        reads = self.model.registry[READS].find(type(node.op))
        if reads is None or self.is_body or None in [self.element_at(node.inputs[slot]) for slot in reads.slots]:
            return None
        return reads

    def wants_reading(self, node: HostNode) -> bool:
        """Whether only an input holds sizes of a node, which native code can read before it computes it."""
        sizes = frozenset[str]().union(*(fact.shape.symbols() for fact in node.facts))
        if sizes <= self.given or self.reads(node) is None:
            return False
        return all(self.element(fact.datum_type.storage) is not None for fact in self.facts_around(node.node))
