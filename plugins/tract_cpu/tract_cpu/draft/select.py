"""Go through a model, and have each node lowered."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from tract_llvm.elements.expressions import ELEMENTS
from tract_llvm.isa import Isa

from tract_core.errors import FactError
from tract_core.limits import check_time
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel
from tract_core.ops.axis import AxisOp
from tract_core.plugins.descriptor import CORE
from tract_core.plugins.keys import REFERENCE
from tract_core.plugins.registry import Registry
from tract_core.runtime.host import HostNode
from tract_cpu.draft.lowering import CPU, MOVES, LowerFn, Lowering, Site
from tract_cpu.elements.nest import NESTS
from tract_cpu.lower.elementwise import lower_element, lower_nest
from tract_cpu.program.program import Program

NO_ROW: Final = "there is no native code for this operator yet"


def lower(
    model: TypedModel,
    nodes: Sequence[HostNode],
    isa: Isa,
    known: frozenset[str] = frozenset(),
    *,
    threads: int = 1,
    winograd: bool = True,
) -> Program:
    """The program of a model. ``nodes``: in order of execution. ``known``: symbols that a run is given besides.

    ``threads``: how many there may be, which changes no result. ``winograd``: as in `Lowering`.
    """
    lowering = Lowering(model, isa, known=known, threads=threads, winograd=winograd)
    lowering.take_inputs()
    for node, why in visited(lowering, nodes):
        lowering.host(node, why)
    return lowering.program()


def visited(lowering: Lowering, nodes: Sequence[HostNode]) -> Iterator[tuple[HostNode, str]]:
    """Lower nodes, in order of execution. Gives those that native code cannot compute, with the reason.

    Raises LimitExceeded when the time to prepare the model is up.
    """
    by_number = {node.node: node for node in nodes}
    lowering.lower_early = lambda number: number in by_number and _early(lowering, by_number[number])
    for node in _in_turn(lowering, nodes):
        check_time()
        if node.node in lowering.taken or lowering.constant_array(OutletId(node.node)) is not None:
            continue
        if node.node in lowering.later:
            lowering.later[node.node](Site(lowering, node))
            continue
        row = _row(lowering.model.registry, type(node.op))
        if row is not None:
            lowering.read_sizes(node)
        try:
            why = (
                _why_no_row(lowering, node)
                if row is None
                else lowering.why_unfit(node.node) or row(node.op, Site(lowering, node))
            )
        except FactError as error:  # more is known now than when it was wired: every run is refused
            why = f"sizes do not fit: {error.problem}"
        if why is not None:
            yield node, why


def _early(lowering: Lowering, node: HostNode) -> bool:
    """Lower an element-wise operator, or one on axes, before its turn. Returns whether that was done."""
    registry, kind = lowering.model.registry, type(node.op)
    row = _row(registry, kind) if issubclass(kind, AxisOp) or registry[ELEMENTS].find(kind) is not None else None
    moves = node.node in lowering.later or node.node in lowering.waiting
    if row is None or moves or lowering.why_unfit(node.node) is not None:
        return False
    if node.node not in lowering.taken and row(node.op, Site(lowering, node)) is not None:
        return False
    lowering.taken.add(node.node)
    return True


def has_native_code(registry: Registry, op: type) -> bool:
    """Whether there is some for operators of a type."""
    return _row(registry, op) is not None


def _why_no_row(lowering: Lowering, node: HostNode) -> str:
    """Why an operator that native code has no row for is left to the host."""
    registry, kind = lowering.model.registry, type(node.op)
    if registry[REFERENCE].owner(kind) in (None, CORE):
        return NO_ROW
    from tract_cpu.tracing.meaning import meaning_of  # most models do without

    facts = [lowering.model.outlet_fact(outlet) for outlet in node.inputs]
    return meaning_of(lowering.model, node.op, facts).why or NO_ROW


def _row(registry: Registry, op: type) -> LowerFn | None:
    """How operators of a type are lowered, where native code knows it."""
    row = registry[CPU].find(op) or registry[MOVES].find(op)
    if row is None and registry[NESTS].find(op) is not None:
        return lower_nest
    if row is None and registry[ELEMENTS].find(op) is not None:
        return lower_element
    return row


def _in_turn(lowering: Lowering, nodes: Sequence[HostNode]) -> Iterator[HostNode]:
    """The nodes in order; those that wait for another one right before that one."""
    by_number = {node.node: node for node in nodes}
    for node in nodes:
        if node.node not in lowering.waiting:
            yield from (by_number[number] for number in lowering.awaited.get(node.node, ()))
            yield node
