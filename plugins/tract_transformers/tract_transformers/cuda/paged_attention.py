"""Attention over pages, which stay on the device from turn to turn: up to six launches, two of them for all layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tract_cuda.group.attention import powers_of
from tract_cuda.kernels.positions import THREADS
from tract_cuda.language.arch import WARP
from tract_cuda.lowering import Site
from tract_cuda.positions import strides_of
from tract_cuda.program import Given
from tract_cuda.table import CUDA
from tract_llvm.elements.expressions import Apply, Expression, element_of
from tract_llvm.language.types import F32, I8, I64, element_type
from tract_llvm.program.keeping import Keeping
from tract_llvm.program.views import View

from tract_core.data import DatumType
from tract_core.dims import ceil_div, dim_min, product
from tract_core.errors import RunError
from tract_core.frozen import frozen
from tract_core.ops.elementwise import Tanh
from tract_core.plugins.keys import Array
from tract_core.plugins.tables import Rows
from tract_transformers.cuda.attend import SCALES, GpuPagedAttendPlan
from tract_transformers.cuda.places import GpuPageCheckPlan, PlacesPlan
from tract_transformers.cuda.store import GpuPageStorePlan, PageBytesPlan, PageCopyPlan
from tract_transformers.ops.paged_attention import CONTROLS, PagedAttention, kept_in_pages

ROWS = Rows()

_KINDS: Final = (DatumType.F32, DatumType.F16, DatumType.BF16, DatumType.I8)

_MOST_ROWS: Final = 8
_MOST_SUMS: Final = 16
"""How many rows, and how many mixed numbers of them, a thread has in registers."""


@frozen
class GpuKeptPages(Keeping):
    """What `kept_in_pages` says, as `PagedState` has it."""

    def frozen(self, tensors: Sequence[Array]) -> tuple[Array, ...]:
        """Copies."""
        return tuple(one.copy() for one in tensors)

    def thaw(self, frozen: tuple[Array, ...] | None, tensors: Sequence[Array]) -> None:
        """The pages that there were; there may be room for more."""
        if frozen is None:
            return
        for held, memory in zip(frozen, tensors, strict=True):
            if held.shape[1:] != memory.shape[1:] or len(held) > len(memory):
                raise RunError(f"{held.shape} were kept in pages, this turn wants {memory.shape}")
            memory[: len(held)] = held


@ROWS.row(CUDA, PagedAttention)
def lower_paged_attention(op: PagedAttention, site: Site) -> str | None:
    """What is named is looked at, new keys and values are stored, then queries meet their pages."""
    why = site.lowering.why_not_kept([site.lowering.model.outlet_fact(one) for one in site.node.inputs])
    plan = _plan(op, site)
    if why is not None or plan is None:
        return why or f"heads have no numbers, or pages are in {op.kept.short}"
    _Pages(op, site, plan).lower()
    return None


class _Pages:
    """The launches of one operator, while they are added."""

    def __init__(self, op: PagedAttention, site: Site, plan: GpuPagedAttendPlan) -> None:
        self._site, self._lowering, self._plan = site, site.lowering, plan
        views = site.inputs()
        self._queries, self._new = views[0], views[1:3]
        whole = [self._lowering.compact(one) for one in views[3:]]
        self._controls: dict[str, View] = dict(zip(CONTROLS, whole, strict=False))
        self._sinks = whole[-1] if plan.sinks else None
        self._room, self._heads = self._controls["room"].shape[0], self._queries.shape[1]
        wanted = kept_in_pages(op, self._room, (self._heads, plan.depth), (self._heads, plan.width))
        tensors = [(plan.kept if kind is op.kept else F32, shape) for shape, kind in wanted]
        self._kept = self._lowering.keep(site.node.node, GpuKeptPages(), tensors)

    def lower(self) -> None:
        """Add them, in order."""
        key = ("pages", self._plan.page, self._site.node.inputs[3 : 3 + len(CONTROLS)])
        owners, slots = self._lowering.once(key, self._placed)
        self._copy()
        if self._plan.kept is I8:
            self._store_bytes(slots)
        else:
            self._store(slots)
        self._attend(owners)

    @property
    def _refused(self) -> View:
        return self._lowering.status()

    def _numbers(self, *names: str) -> dict[str, Given]:
        return {name: self._controls[name] for name in names}

    def _placed(self) -> tuple[View, View]:
        """What is named is looked at. Gives the text and the slot of each token."""
        tokens, (texts, table) = self._queries.shape[0], self._controls["pages"].shape
        numbers = self._numbers("positions", "begins", "pages")
        counts: dict[str, Given] = {"tokens": tokens, "texts": texts, "table": table, "room": self._room}
        counts |= {"cuts": self._controls["begins"].shape[0], "copied": self._controls["copies"].shape[0]}
        check = GpuPageCheckPlan(self._plan.page)
        given = {**counts, **numbers, **self._numbers("copies"), "status": self._lowering.status()}
        self._site.launch(check, [1], given, [])
        owners, slots = (self._lowering.scratch(I64, (tokens,)) for _ in range(2))
        given = {"tokens": tokens, "table": table, **numbers, "refused": self._refused, "owners": owners}
        self._site.launch(
            PlacesPlan(self._plan.page), [ceil_div(tokens, THREADS)], {**given, "slots": slots}, [owners, slots]
        )
        return owners, slots

    def _copy(self) -> None:
        copied = self._controls["copies"].shape[0]
        for one in self._kept:
            count, bits = product(one.shape[1:]), one.as_bits()
            given = {"count": count, "copied": copied, "kept": bits, "refused": self._refused}
            grid = [ceil_div(count, THREADS) * dim_min(copied, 1)]
            self._site.launch(PageCopyPlan(bits.element), grid, {**given, **self._numbers("copies")}, [one])

    def _store(self, slots: View) -> None:
        plan, (keys, values) = self._plan, self._kept
        count = product([*self._queries.shape[:2], plan.depth + plan.width])
        new = strides_of(dict(zip(("new_keys", "new_values"), self._new, strict=True)))
        given: dict[str, Given] = {"count": count, "heads": self._heads, **new, "slots": slots}
        given |= {"keys": keys, "values": values, "refused": self._refused}
        store = GpuPageStorePlan(plan.kept, plan.page, plan.depth, plan.width)
        self._site.launch(store, [ceil_div(count, THREADS)], given, [keys, values])

    def _store_bytes(self, slots: View) -> None:
        plan, count = self._plan, product(self._queries.shape[:2])
        keys = PageBytesPlan(plan.page, plan.depth, apart=plan.page, along=1)
        values = PageBytesPlan(plan.page, plan.width, apart=1, along=plan.width)
        for store, new, kept, scales in zip((keys, values), self._new, self._kept[:2], self._kept[2:], strict=True):
            given: dict[str, Given] = {"count": count, "heads": self._heads, **strides_of({"new": new})}
            given |= {"slots": slots, "kept": kept, "scales": scales, "refused": self._refused}
            self._site.launch(store, [ceil_div(count * WARP, THREADS)], given, [kept, scales])

    def _attend(self, owners: View) -> None:
        plan, (keys, values, *scales), (result,) = self._plan, self._kept, self._site.results()
        given: dict[str, Given] = {"heads": self._heads, "table": self._controls["pages"].shape[1]}
        given |= {**strides_of({"query": self._queries}), "keys": keys, "values": values, "owners": owners}
        given |= {**self._numbers("positions", "pages"), "result": result, "refused": self._refused}
        given |= dict(zip(SCALES, scales, strict=False))
        given |= {} if self._sinks is None else {"sinks": self._sinks}
        grid = [product([*self._queries.shape[:2], plan.shared // plan.rows])]
        self._site.launch(plan, grid, given, [result])


def _plan(op: PagedAttention, site: Site) -> GpuPagedAttendPlan | None:
    """How it is computed, if it is."""
    model = site.lowering.model
    queries, values = (model.outlet_fact(site.node.inputs[slot]).shape for slot in (0, 2))
    shared, depth, width = (int(size) for size in (queries[2], queries[3], values[2]))
    powers, bent, kept = powers_of(model, F32), element_of(model.registry, Tanh(), (F32,)), element_type(op.kept)
    if (
        powers is None
        or bent is None
        or kept is None
        or op.kept not in _KINDS
        or not min(int(queries[1]), shared, depth, width)
    ):
        return None
    return GpuPagedAttendPlan(
        kept=kept,
        page=op.page,
        shared=shared,
        rows=_rows(shared, width),
        depth=depth,
        width=width,
        scale=op.scale,
        cap=op.cap,
        window=op.window,
        sinks=op.sinks,
        powers=powers,
        bent=None if op.cap is None else Expression((F32,), (Apply(Tanh(), (0,), F32, bent.emit),)),
    )


def _rows(shared: int, width: int) -> int:
    """How many queries of a token a block has: a divisor of those that share a head of keys."""
    most = min(_MOST_ROWS, max(_MOST_SUMS * WARP // width, 1))
    return next(count for count in range(min(most, shared), 0, -1) if shared % count == 0)
