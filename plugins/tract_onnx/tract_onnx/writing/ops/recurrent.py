"""The gates of recurrent networks."""

from __future__ import annotations

from tract_core.data import DatumType
from tract_core.ops.recurrent import GruEpilogue, LstmEpilogue
from tract_core.plugins.tables import Rows
from tract_onnx.writing.elements import is_narrow
from tract_onnx.writing.spelling import Spelling
from tract_onnx.writing.table import ONNX_WRITE

ROWS = Rows()


@ROWS.row(ONNX_WRITE, LstmEpilogue)
def lstm(op: LstmEpilogue, node: Spelling) -> tuple[str, str] | None:
    """What the gates are made of, in f32 at least"""
    if not isinstance(op.hidden, int):
        return None
    kind, (preact, before) = node.fact(1).datum_type, _wide(node)
    i, o, f, g = _gates(node, preact, 4, op.hidden)
    kept = node.add("Mul", node.add("Sigmoid", f), before)
    cell = node.add("Add", kept, node.add("Mul", node.add("Sigmoid", i), node.add("Tanh", g)))
    hidden = node.add("Mul", node.add("Sigmoid", o), node.add("Tanh", cell))
    return (node.cast(hidden, kind), node.cast(cell, kind)) if is_narrow(node.result().datum_type) else (hidden, cell)


@ROWS.row(ONNX_WRITE, GruEpilogue)
def gru(op: GruEpilogue, node: Spelling) -> str | None:
    """What the gates are made of, in f32 at least"""
    if not isinstance(op.hidden, int):
        return None
    given, again, before = _wide(node)
    pairs = zip(_gates(node, given, 3, op.hidden), _gates(node, again, 3, op.hidden), strict=True)
    (x_z, r_z), (x_r, r_r), (x_g, r_g) = pairs
    z, r = (node.add("Sigmoid", node.add("Add", a, b)) for a, b in ((x_z, r_z), (x_r, r_r)))
    g = node.add("Tanh", node.add("Add", x_g, node.add("Mul", r, r_g)))
    rest = node.add("Sub", node.constant(1, _kind(node)), z)
    made = node.add("Add", node.add("Mul", rest, g), node.add("Mul", z, before))
    return node.cast(made, node.fact(2).datum_type) if is_narrow(node.result().datum_type) else made


def _kind(node: Spelling) -> DatumType:
    return DatumType.F32 if is_narrow(node.result().datum_type) else node.result().datum_type.storage


def _wide(node: Spelling) -> list[str]:
    """The inputs in the type that is computed in."""
    return (
        [node.cast(name, DatumType.F32) for name in node.inputs] if is_narrow(node.result().datum_type) else node.inputs
    )


def _gates(node: Spelling, name: str, count: int, hidden: int) -> tuple[str, ...]:
    """The parts of the last axis."""
    return node.several("Split", count, name, node.ints([hidden] * count), axis=-1)
