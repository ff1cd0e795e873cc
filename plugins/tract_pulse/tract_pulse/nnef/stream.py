"""The registry ``tract_pulse``: what the tract engines say of streams. What only we have is spelled by its fields."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import isnan
from typing import Final

import numpy as np
from tract_nnef.reading.call import Call
from tract_nnef.registry import NNEF_WRITE, reads
from tract_nnef.syntax.ast import Invocation
from tract_nnef.writing.spelling import Spelling

from tract_core.data import Constant
from tract_core.model.graph import OutletId
from tract_core.ops.cumsum import CumSum, neutral
from tract_core.ops.cumsum_loop import running_loop
from tract_core.ops.expect import element
from tract_core.ops.pad import PadConstant, PadEdge, PadMode
from tract_core.ops.wiring import wire_broadcast
from tract_core.plugins.tables import Rows
from tract_pulse.ops.delay import Delay
from tract_pulse.ops.mask import PulseMask
from tract_pulse.ops.pad import PulsePad

ROWS = Rows()

REGISTRY: Final = "tract_pulse"

_MODES: Final[Mapping[str, PadMode]] = {"replicate": PadEdge(), "replicated": PadEdge()}


@reads(
    ROWS,
    REGISTRY,
    "tract_pulse_delay(input: tensor<scalar>, axis: integer, delay: integer, overlap: integer)"
    " -> (output: tensor<scalar>)",
)
def read_delay(call: Call) -> OutletId:
    """A stream, some positions later."""
    x = call.input("input")
    return call.op(Delay(call.axis("axis", call.rank(x)), call.integer("delay"), call.integer("overlap")), x)


@ROWS.row(NNEF_WRITE, Delay)
def write_delay(op: Delay, node: Spelling) -> Invocation | None:
    """With all that it knows."""
    if not node.allows(REGISTRY):
        return None
    fields = {"axis": op.axis, "delay": op.delay, "overlap": op.overlap}
    return node.invoke("tract_pulse_delay", node.input(0), **fields, registry=REGISTRY)


@reads(
    ROWS,
    REGISTRY,
    "tract_pulse_mask(input: tensor<scalar>, axis: integer, begin: integer, end: integer, value: scalar = 0.0)"
    " -> (output: tensor<scalar>)",
)
def read_mask(call: Call) -> OutletId:
    """One value outside of the signal."""
    x = call.input("input")
    axis = call.axis("axis", call.rank(x))
    return call.op(PulseMask(axis, call.integer("begin"), call.dim("end"), _value(call, x)), x)


@ROWS.row(NNEF_WRITE, PulseMask)
def write_mask(op: PulseMask, node: Spelling) -> Invocation | None:
    """With all that it knows, where the value is a number."""
    value = op.value.array.item()
    if not node.allows(REGISTRY) or not _is_number(value):
        return None
    fields = {"axis": op.axis, "begin": op.begin, "end": op.end, "value": value}
    return node.invoke("tract_pulse_mask", node.input(0), **fields, registry=REGISTRY)


@reads(
    ROWS,
    REGISTRY,
    "tract_pulse_pulse_pad(input: tensor<scalar>, axis: integer, before: integer, after: integer, "
    "begin_input: integer, end_input: integer, border: string = 'constant', value: scalar = 0.0, "
    "overlap: integer = 0) -> (output: tensor<scalar>)",
)
def read_pad(call: Call) -> OutletId:
    """A stream with padding around its signal."""
    x = call.input("input")
    mode = _MODES.get(call.choice("border", ("constant", *_MODES))) or PadConstant(_value(call, x))
    pad = PulsePad(
        axis=call.axis("axis", call.rank(x)),
        before=call.integer("before"),
        after=call.dim("after"),
        begin=call.integer("begin_input"),
        end=call.dim("end_input"),
        mode=mode,
        overlap=call.integer("overlap"),
    )
    return call.op(pad, x)


@ROWS.row(NNEF_WRITE, PulsePad)
def write_pad(op: PulsePad, node: Spelling) -> Invocation | None:
    """With all that it knows, where the value is a number; reflections are not said there."""
    value = op.mode.value.array.item() if isinstance(op.mode, PadConstant) else 0.0
    border = "constant" if isinstance(op.mode, PadConstant) else "replicated"
    if not node.allows(REGISTRY) or not isinstance(op.mode, (PadConstant, PadEdge)) or not _is_number(value):
        return None
    fields = {"axis": op.axis, "before": op.before, "after": op.after, "begin_input": op.begin, "end_input": op.end}
    last = {"border": border, "value": value, "overlap": op.overlap}
    return node.invoke("tract_pulse_pulse_pad", node.input(0), **fields, **last, registry=REGISTRY)


@reads(
    ROWS,
    REGISTRY,
    "tract_pulse_cumsum(input: tensor<scalar>, axis: integer, exclusive: logical = false, skip: integer = 0)"
    " -> (output: tensor<scalar>)",
)
def read_cumsum(call: Call) -> OutletId:
    """Sums that go on from pulse to pulse, from the position ``skip`` of the stream on; before it, they are zero."""
    x = call.input("input")
    op, fact = CumSum(call.axis("axis", call.rank(x)), call.flag("exclusive")), call.fact(x)
    loop = replace(running_loop(op, fact), skip=call.integer("skip"), reset_every_turn=False)
    first = call.constant_array(neutral(op, fact.datum_type.storage).reshape((1,) * fact.rank))
    shape = (*fact.shape[: op.axis], 1, *fact.shape[op.axis + 1 :])
    return call.op(loop, x, wire_broadcast(call.model, call.unique("start"), first, shape))


def _value(call: Call, x: OutletId) -> Constant:
    return Constant(np.asarray(element(call.number("value"), call.dtype(x).storage)))


def _is_number(value: float) -> bool:
    return not isinstance(value, (bool, complex)) and not isnan(value)
