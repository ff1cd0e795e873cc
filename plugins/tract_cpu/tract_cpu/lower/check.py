"""Shapes that must be what a file says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tract_llvm.fuse.known import LATE
from tract_llvm.program.views import View

from tract_core.dims import Dim, symbols_of
from tract_core.ops.check import CheckShape, Refuse
from tract_core.plugins.tables import Rows
from tract_cpu.draft.lowering import Site
from tract_cpu.kernels.sizes import EqualPlan
from tract_cpu.program.arguments import arguments
from tract_cpu.program.program import STATUS, Argument, NativeStep
from tract_cpu.table import MOVES

ROWS = Rows()


def refusing(pairs: Sequence[tuple[Dim, Dim]], result: View) -> list[NativeStep]:
    """The call that refuses where the sizes of a pair differ, before a result is written; none where none can."""
    unsure = [pair for pair in pairs if pair[0] != pair[1]]
    return [NativeStep(*equal(unsure), 1, (), (result.storage,))] if unsure else []


def equal(pairs: Sequence[tuple[Dim, Dim]]) -> tuple[EqualPlan, tuple[Argument, ...]]:
    """The kernel that refuses where the sizes of a pair differ, with its arguments."""
    plan = EqualPlan(len(pairs))
    return plan, arguments(plan, status=STATUS, pairs=[{"left": left, "right": right} for left, right in pairs])


@ROWS.row(MOVES, CheckShape)
def lower_check(op: CheckShape, site: Site) -> str | None:
    """A view, and a kernel that refuses where a size differs."""
    (x,) = site.known_inputs()
    pairs = [(size, wanted) for size, wanted in zip(x.shape, op.shape, strict=True) if wanted not in {None, size}]
    if any(wanted is not None and not symbols_of(wanted) <= site.lowering.given for _, wanted in pairs):
        return LATE
    site.lowering.place(site.outlet, replace(x, shape=tuple(site.node.facts[0].shape)))
    site.add_all(
        [NativeStep(*equal([(size, wanted) for size, wanted in pairs if wanted is not None]), 1, (), (x.storage,))]
    )
    return None


@ROWS.row(MOVES, Refuse)
def lower_refuse(op: Refuse, site: Site) -> str | None:
    """A kernel that always refuses: the host tells why."""
    storages = tuple(view.storage for view in site.results())
    site.add_all([NativeStep(*equal([(0, 1)]), 1, (), storages)])
    return None
