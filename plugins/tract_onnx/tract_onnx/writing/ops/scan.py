"""A body that is run once for each slice."""

from __future__ import annotations

from typing import Any

from tract_core.ops.scan import FullOutput, Scan, ScannedInput, StateInput
from tract_core.plugins.tables import Rows
from tract_onnx.writing.graph import BodyInput
from tract_onnx.writing.ops.recurrent_network import network
from tract_onnx.writing.spelling import Spelling
from tract_onnx.writing.table import ONNX_WRITE

ROWS = Rows()


@ROWS.row(ONNX_WRITE, Scan)
def scan(op: Scan, node: Spelling) -> list[str] | None:
    """LSTM, GRU or RNN; else Scan, with the states first; whatever else iterations see is around the body"""
    whole = network(op, node)
    return _looped(op, node) if whole is None else whole


def _looped(op: Scan, node: Spelling) -> list[str] | None:
    states = [slot for slot, one in enumerate(op.inputs) if isinstance(one, StateInput)]
    cuts = [(slot, one) for slot, one in enumerate(op.inputs) if isinstance(one, ScannedInput)]
    kept = [slot for slot, one in enumerate(op.outputs) if one.state]
    joined = [(slot, one.full) for slot, one in enumerate(op.outputs) if one.full is not None]
    ends = [slot for slot, one in enumerate(op.outputs) if one.last is not None]
    sizes = [cut.chunk for _, cut in cuts] + [full.chunk for _, full in joined]
    if op.skip or any(abs(size) != 1 for size in sizes) or not set(ends) <= set(kept):
        return None
    made = node.several(
        "Scan",
        len(kept) + len(joined),
        *(node.input(slot) for slot in [*states, *(slot for slot, _ in cuts)]),
        body=_body(op, node, [*states, *(slot for slot, _ in cuts)], [*kept, *(slot for slot, _ in joined)]),
        num_scan_inputs=len(cuts),
        scan_input_axes=[cut.axis for _, cut in cuts],
        scan_input_directions=[int(cut.chunk < 0) for _, cut in cuts],
        **(_told(joined) if joined else {}),
    )
    results = {full.slot: name for (_, full), name in zip(joined, made[len(kept) :], strict=True)}
    for slot, name in zip(kept, made, strict=False):
        last = op.outputs[slot].last
        if last is not None:
            results[last] = name
    return [results[slot] for slot in range(len(node.node.outputs))]


def _told(joined: list[tuple[int, FullOutput]]) -> dict[str, Any]:
    return {
        "scan_output_axes": [full.axis for _, full in joined],
        "scan_output_directions": [int(full.chunk < 0) for _, full in joined],
    }


def _body(op: Scan, node: Spelling, given: list[int], taken: list[int]) -> Any:
    """``given``: the inputs of the body that come from the operator, in order; ``taken``: the outputs, in order.

    An output may be a state, and joined as well: then it comes twice.
    """
    body = op.body.clone()
    axes = [None if full is None else full.axis for full in (op.outputs[slot].full for slot in taken)]
    count = sum(1 for slot in taken if op.outputs[slot].state)
    body.set_outputs(op.body.outputs[slot] for slot in taken)
    ports = [
        BodyInput(None if slot in given else node.input(slot), axis=_axis(one)) for slot, one in enumerate(op.inputs)
    ]
    made = node.body(body, ports, [None] * count + axes[count:])
    came = [slot for slot in range(len(op.inputs)) if slot in given]
    inputs = list(made.input)
    del made.input[:]
    made.input.extend(inputs[came.index(slot)] for slot in given)
    return made


def _axis(one: object) -> int | None:
    return one.axis if isinstance(one, ScannedInput) else None
