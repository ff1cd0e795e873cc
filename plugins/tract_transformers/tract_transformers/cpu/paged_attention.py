"""Attention over pages: three calls, on memory that stays from turn to turn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from tract_cpu.draft.lowering import Site
from tract_cpu.group.groups import CpuGroup
from tract_cpu.group.start import GROUPS, Start
from tract_cpu.kernels.kernel import KernelPlan
from tract_cpu.kernels.runs import Run
from tract_cpu.kernels.sums import tile_for
from tract_cpu.program.arguments import arguments
from tract_cpu.program.program import STATUS, Argument, NativeStep
from tract_cpu.table import MOVES
from tract_llvm.elements.expressions import Apply, Expression, element_of
from tract_llvm.language.types import F32
from tract_llvm.program.keeping import Keeping
from tract_llvm.program.storages import Storage

from tract_core.dims import ceil_div, product
from tract_core.errors import RunError
from tract_core.frozen import frozen
from tract_core.model.op import TypedOp
from tract_core.ops.binary import Sub
from tract_core.ops.elementwise import Exp, Tanh
from tract_core.plugins.keys import Array
from tract_core.plugins.registry import Registry
from tract_core.plugins.tables import Rows
from tract_transformers.cpu.attend import PagedAttendPlan
from tract_transformers.cpu.store import PAGES, PageCheckPlan, PageStorePlan, memories
from tract_transformers.ops.paged_attention import PagedAttention

ROWS = Rows()

ROWS_AT_ONCE: Final = 48
"""How many rows meet a page while it is in the cache."""


@frozen
class KeptPages(Keeping):
    """Keys [N,H,D,page] and values [N,H,page,V], these with zeros behind that fill vectors, and scales.

    ``width``: V, without these.
    """

    width: int

    def frozen(self, tensors: Sequence[Array]) -> tuple[Array, ...]:
        """As `PagedState` has them."""
        return tuple(one.copy() for one in self._cut(tensors))

    def thaw(self, frozen: tuple[Array, ...] | None, tensors: Sequence[Array]) -> None:
        """The pages that there were; there may be room for more."""
        if frozen is None:
            return
        for held, memory in zip(frozen, self._cut(tensors), strict=True):
            if held.shape[1:] != memory.shape[1:] or len(held) > len(memory):
                raise RunError(f"{held.shape} were kept in pages, this turn wants {memory.shape}")
            memory[: len(held)] = held

    def _cut(self, tensors: Sequence[Array]) -> list[Array]:
        """Without what fills vectors."""
        keys, values, *scales = tensors
        return [keys, values[..., : self.width], *scales]


@ROWS.row(GROUPS, PagedAttention)
def group_paged_attention(op: PagedAttention, start: Start) -> CpuGroup:
    """Alone."""
    return start.alone()


@ROWS.row(MOVES, PagedAttention)
def lower_paged_attention(op: PagedAttention, site: Site) -> str | None:
    """What is named is looked at, new keys and values are stored, then rows meet their pages."""
    why = site.lowering.why_not_kept(site.facts())
    plan = _plan(op, site)
    if why is not None or plan is None:
        return why or f"a page of {op.page} positions is not whole vectors, or {op.kept.short} is not known"
    _Pages(site, plan).lower()
    return None


class _Pages:
    """The calls of one operator, while they are added to the program."""

    def __init__(self, site: Site, plan: PagedAttendPlan) -> None:
        self._plan, self._site, self._lowering = plan, site, site.lowering
        self._queries, self._new_keys, self._new_values = site.known_inputs()[:3]
        self._tokens, self._heads = self._queries.shape[:2]
        controls = map(self._lowering.contiguous, site.known_inputs()[3:7])
        self._positions, self._begins, self._pages, self._copies = controls
        self._room = site.facts()[7].shape[0]
        scales = [(self._heads, plan.page)] * 2
        sizes = (self._heads, plan.depth, plan.page), (self._heads, plan.page, plan.width), *scales
        kinds = [one.element for one in memories(plan.kept)]
        self._sizes = sizes[: len(kinds)]
        tensors = [(kind, (self._room, *one)) for kind, one in zip(kinds, self._sizes, strict=True)]
        self._kept = self._lowering.keep(site.node.node, KeptPages(plan.values), tensors)

    def lower(self) -> None:
        """Add them, in order."""
        self._lowering.steps += [self._checked(), self._stored(), self._attended()]

    def _given(self, plan: KernelPlan, **others: Any) -> tuple[Argument, ...]:
        """The arguments of a call. ``others``: besides those that all of them take."""
        texts, table = self._pages.shape
        named = {"positions": self._positions, "begins": self._begins, "pages": self._pages}
        named |= zip(PAGES, self._kept, strict=False)
        shared: dict[str, Any] = {name: one.address for name, one in named.items()}
        return arguments(plan, texts=texts, table=table, **shared, **others)

    @property
    def _storages(self) -> tuple[Storage, ...]:
        return tuple(one.storage for one in self._kept)

    def _checked(self) -> NativeStep:
        bits = [one.as_bits().element for one in self._kept]
        plan = PageCheckPlan(tuple(bits), tuple(Run.of(self._site.isa, one) for one in bits), self._plan.page)
        copies = {"count": self._copies.shape[0], "copies": self._copies.address}
        each = [product(one) for one in self._sizes]
        given = self._given(plan, tokens=self._tokens, room=self._room, each=each, status=STATUS, **copies)
        return NativeStep(plan, given, 1, (), self._storages)

    def _stored(self) -> NativeStep:
        sizes = self._plan
        plan = PageStorePlan(sizes.kept, sizes.page, sizes.depth, sizes.values, sizes.width)
        keys, values = self._new_keys, self._new_values
        addresses = {"new_keys": keys.address, "new_values": values.address}
        moves = {"key_moves": keys.strides, "value_moves": values.strides}
        given = self._given(plan, heads=self._heads, **addresses, **moves)
        return NativeStep(
            plan, given, self._heads, (), self._storages, work=product(keys.shape) + product(values.shape)
        )

    def _attended(self) -> NativeStep:
        plan, queries, (result,) = self._plan, self._queries, self._site.results()
        query: dict[str, Any] = {"queries": queries.address, "query": queries.strides}
        if plan.sinks:
            query["sinks"] = self._lowering.contiguous(self._site.known_inputs()[8]).address
        given = self._given(plan, tokens=self._tokens, heads=self._heads, result=result.address, **query)
        places = self._pages.shape[1] * plan.page
        work = product(queries.shape[:3]) * places * (plan.depth + plan.width)
        tasks = ceil_div(self._tokens, plan.tokens) * self._heads
        nodes = (self._site.node.node,)
        return NativeStep(plan, given, tasks, nodes, (result.storage,), plan.scratch, work=work)


def _plan(op: PagedAttention, site: Site) -> PagedAttendPlan | None:
    """How it is computed, if it is."""
    queries, _, values = (fact.shape for fact in site.facts()[:3])
    shared, depth, count = (int(size) for size in (queries[2], queries[3], values[2]))
    registry, kept, run = site.lowering.model.registry, site.lowering.element(op.kept), Run.of(site.isa, F32)
    powers = _powers(registry)
    if powers is None or kept is None or not run.lanes or op.page % run.lanes or not min(shared, depth, count):
        return None
    return PagedAttendPlan(
        kept=kept,
        page=op.page,
        shared=shared,
        depth=depth,
        values=count,
        width=-(-count // run.lanes) * run.lanes,
        tokens=max(ROWS_AT_ONCE // shared, 1),
        scale=op.scale,
        cap=op.cap,
        window=op.window,
        sinks=op.sinks,
        powers=powers,
        bent=None if op.cap is None else _applied(registry, Tanh()),
        run=run,
        tallest=tile_for(site.isa, F32).rows,
        registers=site.isa.registers,
    )


def _powers(registry: Registry) -> Expression | None:
    """exp(score - largest score)"""
    both = (F32, F32)
    less, exp = element_of(registry, Sub(), both), element_of(registry, Exp(), (F32,))
    if less is None or exp is None:
        return None
    return Expression(both, (Apply(Sub(), (0, 1), F32, less.emit), Apply(Exp(), (2,), F32, exp.emit)))


def _applied(registry: Registry, op: TypedOp) -> Expression | None:
    found = element_of(registry, op, (F32,))
    return None if found is None else Expression((F32,), (Apply(op, (0,), F32, found.emit),))
