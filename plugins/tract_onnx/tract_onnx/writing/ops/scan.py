"""A body that is run once for each slice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tract_core.data import DatumType
from tract_core.dims import Dim
from tract_core.model.fact import TypedFact
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel
from tract_core.ops.axis import AddAxis
from tract_core.ops.binary import Add, Ge
from tract_core.ops.iff import Iff
from tract_core.ops.scan import FullOutput, OutputMapping, Scan, ScannedInput, StateInput
from tract_core.ops.wiring import wire_one
from tract_core.plugins.tables import Rows
from tract_onnx.writing.graph import BodyInput
from tract_onnx.writing.ops.recurrent_network import network
from tract_onnx.writing.spelling import Spelling
from tract_onnx.writing.table import ONNX_WRITE

ROWS = Rows()


@ROWS.row(ONNX_WRITE, Scan)
def scan(op: Scan, node: Spelling) -> list[str] | None:
    """LSTM, GRU or RNN; else Scan, with the states first; whatever else iterations see is around the body"""
    names = node.inputs
    goes_on = node.is_stream and op.keeps
    kept: list[str] = []
    if goes_on:
        op, names = _counting(op, node, names)
        kept = [node.state(f"state{place}", _fact(op, node, slot)) for place, slot in enumerate(op.state_inputs)]
        for slot, state in zip(op.state_inputs, kept, strict=True):
            names[slot] = _begun(node, names[slot], state)
    elif op.skip:
        op, names = _counting(op, node, names)
    found = network(op, node, names) or _looped(op, node, names)
    if found is None:
        return None
    results, states = found
    for state, name in zip(kept, states, strict=bool(kept)):
        node.keep(state, name)
    return results


def _fact(op: Scan, node: Spelling, slot: int) -> TypedFact:
    """What is known of a state at the start."""
    if slot < len(node.node.inputs):
        return node.fact(slot)
    return op.body.outlet_fact(op.body.inputs[slot])


def _begun(node: Spelling, start: str, state: str) -> str:
    """The state of the run before; in the first run, what the loop starts with, unless that is 0 as well."""
    known = node.value(start)
    if known is not None and known.array.dtype.kind in "fiub" and not known.array.any():
        return state
    is_first = node.add("Equal", node.position(1), node.ints([0]))
    return node.add("Where", is_first, start, state)


def _counting(op: Scan, node: Spelling, names: list[str]) -> tuple[Scan, list[str]]:
    """A loop that does not skip, but leaves its states alone in the first iterations, which it counts."""
    if not op.skip:
        return op, names
    body = op.body.clone()
    count = body.add_source(body.unique_name("count"), TypedFact.of(DatumType.I64, ()))
    skipped = body.add_const(body.unique_name("skipped"), np.array(op.skip))
    runs = wire_one(body, body.unique_name("runs"), Ge(), count, skipped)
    outputs: list[OutletId] = []
    befores = iter(op.state_inputs)
    for outlet, mapping in zip(body.outputs, op.outputs, strict=True):
        before = body.inputs[next(befores)] if mapping.state else None
        outputs.append(outlet if before is None else _unless(body, runs, outlet, before))
    one = body.add_const(body.unique_name("one"), np.array(1))
    outputs.append(wire_one(body, body.unique_name("counted"), Add(), count, one))
    body.set_outputs(outputs)
    inputs, mappings = (*op.inputs, StateInput()), (*op.outputs, OutputMapping(state=True))
    counting = replace(op, body=body, inputs=inputs, outputs=mappings, skip=0)
    return counting, [*names, node.constant(0, DatumType.I64)]


def _unless(body: TypedModel, runs: OutletId, new: OutletId, before: OutletId) -> OutletId:
    """The new state where the iteration runs."""
    for _ in range(body.outlet_fact(new).rank):
        runs = wire_one(body, body.unique_name("runs"), AddAxis(0), runs)
    return wire_one(body, body.unique_name("state"), Iff(), runs, new, before)


def _looped(op: Scan, node: Spelling, names: list[str]) -> tuple[list[str], list[str]] | None:
    """The results and the states at the end."""
    states = list(op.state_inputs)
    cuts = [(slot, one) for slot, one in enumerate(op.inputs) if isinstance(one, ScannedInput)]
    kept = list(op.state_outputs)
    joined = [(slot, one.full) for slot, one in enumerate(op.outputs) if one.full is not None]
    ends = [slot for slot, one in enumerate(op.outputs) if one.last is not None and slot not in kept]
    if (ends and not _has_iterations(op, node)) or not all(_fits(node, slot, cut) for slot, cut in cuts):
        return None
    gathered = [*joined, *((slot, None) for slot in ends)]
    given, names = [*states, *(slot for slot, _ in cuts)], list(names)
    for slot, cut in cuts:
        if abs(cut.chunk) != 1:
            names[slot] = node.reshaped(names[slot], _cut(node.fact(slot).shape, cut.axis, abs(cut.chunk)))
    made = node.several(
        "Scan",
        len(kept) + len(gathered),
        *(names[slot] for slot in given),
        body=_body(op, node, names, given, taken=(kept, gathered)),
        num_scan_inputs=len(cuts),
        scan_input_axes=[cut.axis for _, cut in cuts],
        scan_input_directions=[int(cut.chunk < 0) for _, cut in cuts],
        **(_told(gathered) if gathered else {}),
    )
    results: dict[int, str] = {}
    for (_, full), name in zip(joined, made[len(kept) :], strict=False):
        whole = node.result(full.slot).shape
        results[full.slot] = name if abs(full.chunk) == 1 else node.reshaped(name, whole)
    last = [node.add("Gather", name, node.constant(-1, DatumType.I64), axis=0) for name in made[-len(ends) :] if ends]
    for slot, name in [*zip(kept, made, strict=False), *zip(ends, last, strict=True)]:
        place = op.outputs[slot].last
        if place is not None:
            results[place] = name
    return [results[slot] for slot in range(len(node.node.outputs))], list(made[: len(kept)])


def _has_iterations(op: Scan, node: Spelling) -> bool:
    """Whether there is surely one, which gives a last value."""
    count = op.iterations([node.fact(slot) for slot in range(len(op.inputs))])
    return isinstance(count, int) and count > op.skip


def _fits(node: Spelling, slot: int, cut: ScannedInput) -> bool:
    """Whether there are slices of one size alone."""
    size = node.fact(slot).shape[cut.axis]
    return abs(cut.chunk) == 1 or (isinstance(size, int) and size % cut.chunk == 0)


def _cut(shape: Sequence[Dim], axis: int, chunk: int) -> list[Dim]:
    """The shape with an axis in pieces: how many there are, and what each of them has."""
    return [*shape[:axis], shape[axis] // chunk, chunk, *shape[axis + 1 :]]


_Gathered = Sequence[tuple[int, FullOutput | None]]
"""Outputs of a body that become more than the last state: joined, or, for ``None``, each one in its whole shape."""


def _told(gathered: _Gathered) -> dict[str, Any]:
    return {
        "scan_output_axes": [0 if full is None else full.axis for _, full in gathered],
        "scan_output_directions": [int(full is not None and full.chunk < 0) for _, full in gathered],
    }


def _body(
    op: Scan, node: Spelling, names: list[str], given: list[int], *, taken: tuple[Sequence[int], _Gathered]
) -> Any:
    """``given``: the inputs of the body that come from the operator, in order; ``taken``: states, and what else.

    An output may be a state, and joined as well: then it comes twice.
    """
    kept, gathered = taken
    body = op.body.clone()
    axes = [None if full is None or abs(full.chunk) != 1 else full.axis for _, full in gathered]
    body.set_outputs(op.body.outputs[slot] for slot in (*kept, *(slot for slot, _ in gathered)))
    ports = [BodyInput(None if slot in given else names[slot], axis=_axis(one)) for slot, one in enumerate(op.inputs)]
    made = node.body(body, ports, [None] * len(kept) + axes)
    came = [slot for slot in range(len(op.inputs)) if slot in given]
    inputs = list(made.input)
    del made.input[:]
    made.input.extend(inputs[came.index(slot)] for slot in given)
    return made


def _axis(one: object) -> int | None:
    return one.axis if isinstance(one, ScannedInput) and abs(one.chunk) == 1 else None
