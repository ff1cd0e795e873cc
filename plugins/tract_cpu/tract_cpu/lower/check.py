"""Shapes that must be what a file says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tract_core.dims import Dim, symbols_of
from tract_core.ops.check import CheckShape, Refuse
from tract_core.plugins.tables import Rows
from tract_cpu.draft.lowering import Site
from tract_cpu.kernels.sizes import EqualPlan
from tract_cpu.program.program import STATUS, NativeStep
from tract_cpu.program.reads import LATE
from tract_cpu.program.views import View
from tract_cpu.table import MOVES

ROWS = Rows()


def refusing(pairs: Sequence[tuple[Dim, Dim]], result: View) -> list[NativeStep]:
    """The call that refuses where the sizes of a pair differ, before a result is written; none where none can."""
    unsure = [pair for pair in pairs if pair[0] != pair[1]]
    sizes = [size for pair in unsure for size in pair]
    return [NativeStep(EqualPlan(len(unsure)), (STATUS, *sizes), 1, (), (result.storage,))] if unsure else []


@ROWS.row(MOVES, CheckShape)
def lower_check(op: CheckShape, site: Site) -> str | None:
    """A view, and a kernel that refuses where a size differs."""
    (x,) = site.known_inputs()
    pairs = [(size, wanted) for size, wanted in zip(x.shape, op.shape, strict=True) if wanted not in {None, size}]
    if any(wanted is not None and not symbols_of(wanted) <= site.lowering.given for _, wanted in pairs):
        return LATE
    sizes = [size for pair in pairs for size in pair if size is not None]
    site.lowering.place(site.outlet, replace(x, shape=tuple(site.node.facts[0].shape)))
    site.add_all([NativeStep(EqualPlan(len(pairs)), (STATUS, *sizes), 1, (), (x.storage,))])
    return None


@ROWS.row(MOVES, Refuse)
def lower_refuse(op: Refuse, site: Site) -> str | None:
    """A kernel that always refuses: the host tells why."""
    storages = tuple(view.storage for view in site.results())
    site.add_all([NativeStep(EqualPlan(1), (STATUS, 0, 1), 1, (), storages)])
    return None
