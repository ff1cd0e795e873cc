"""Numbers in steps."""

from __future__ import annotations

from tract_core.data import DatumType
from tract_core.dims import is_symbolic
from tract_core.model.graph import OutletId
from tract_core.ops.range import Range
from tract_core.ops.wiring_dyn import wire_range
from tract_core.plugins.tables import Rows
from tract_nnef.reading.call import Call
from tract_nnef.registry import CORE, NNEF_WRITE, PY, reads
from tract_nnef.syntax.ast import Invocation
from tract_nnef.writing.spelling import Spelling

ROWS = Rows()


@reads(
    ROWS,
    CORE,
    "tract_core_range(start: tensor<?>, end: tensor<?>, step: tensor<?>, announced: integer[] = false)"
    " -> (output: tensor<?>)",
)
def read_range(call: Call) -> OutletId:
    """From ``start`` up to and without ``end``; ``announced`` says how many there will be."""
    bounds = [call.without_axes(bound) for bound in call.aligned("start", "end", "step")]
    announced = call.announced(1)
    if announced is None:
        return wire_range(call.model, call.unique("range"), *bounds)
    return call.op(Range(announced[0]), *bounds)


@ROWS.row(NNEF_WRITE, Range)
def write_range(op: Range, node: Spelling) -> Invocation | None:
    """With the number of elements that it announces, which other engines pass over.

    They want three bounds of one type, and see how many numbers there are where these are sizes: then it is a range of
    sizes, which is cast. Where version 0.23.9 sees that masks are made of such numbers, it gives wrong shapes, or does
    not run: in an archive that is not for this project, it does not see through the absolute value of each.
    """
    facts = [node.input_fact(slot) for slot in range(3)]
    sizes = [fact.dims[0] for fact in facts if fact.dims is not None and len(fact.dims) == 1]
    kind = facts[0].datum_type
    if kind is not DatumType.I64 or len(sizes) < 3 or not any(map(is_symbolic, sizes)):
        return node.invoke("tract_core_range", *node.inputs, announced=[op.length], registry=CORE)
    found = node.invoke("tract_core_range", *sizes, announced=[op.length], registry=CORE)
    cast = node.invoke("tract_core_cast", found, to=kind.short, registry=CORE)
    holds = node.writer.model.known.less_or_equal
    if node.allows(PY) or not (holds(0, sizes[0]) and holds(0, sizes[2])):
        return cast
    return node.invoke("abs", cast)
