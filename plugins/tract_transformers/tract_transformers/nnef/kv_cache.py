"""Caches of keys and values, and attention with one inside, as the registry ``tract_transformers`` spells them."""

from __future__ import annotations

from typing import Final

from tract_nnef.reading.call import Call
from tract_nnef.registry import NNEF_WRITE, TRANSFORMERS, reads
from tract_nnef.syntax.ast import Invocation
from tract_nnef.writing.spelling import Spelling

from tract_core.dims import Dim
from tract_core.errors import CorruptModel
from tract_core.model.graph import OutletId
from tract_core.plugins.tables import Rows
from tract_transformers.ops.kv_attention import QuantizedKvSdpa, WindowKvSdpa
from tract_transformers.ops.kv_cache import DynKvCache
from tract_transformers.ops.quantised_kv_cache import QuantizedDynKvCache

ROWS = Rows()

_SHAPES: Final = "datum_type: string, past_sequence_shape: integer[], input_sequence_shape: integer[]"


@reads(
    ROWS,
    TRANSFORMERS,
    f"tract_transformers_dyn_kv_cache(input: tensor<scalar>, name: string, axis: integer, {_SHAPES})"
    " -> (output: tensor<scalar>)",
)
def read_cache(call: Call) -> OutletId:
    """All positions so far. Raises CorruptModel where the shapes are others than the input's."""
    x = call.input("input")
    axis = call.axis("axis", call.rank(x))
    return call.op(DynKvCache(call.text("name"), axis, _past(call, x, axis)), x)


@ROWS.row(NNEF_WRITE, DynKvCache)
def write_cache(op: DynKvCache, node: Spelling) -> Invocation | None:
    """With the shapes of what came before and of what comes."""
    return node.invoke(
        "tract_transformers_dyn_kv_cache",
        node.input(0),
        name=op.key,
        axis=op.axis,
        **_shapes(node, op.axis, op.past),
        registry=TRANSFORMERS,
    )


@reads(
    ROWS,
    TRANSFORMERS,
    "tract_transformers_quantized_dyn_kv_cache(input: tensor<scalar>, name: string, axis: integer, bits: integer,"
    f" per_channel: integer, {_SHAPES}) -> (output: tensor<scalar>)",
)
def read_quantised_cache(call: Call) -> OutletId:
    """All positions so far, kept in a few bits. Raises CorruptModel where the shapes are others than the input's."""
    x = call.input("input")
    axis = call.axis("axis", call.rank(x))
    op = QuantizedDynKvCache(
        key=call.text("name"),
        axis=axis,
        past=_past(call, x, axis),
        bits=call.integer("bits"),
        per_channel=call.integer("per_channel") != 0,
    )
    return call.op(op, x)


@ROWS.row(NNEF_WRITE, QuantizedDynKvCache)
def write_quantised_cache(op: QuantizedDynKvCache, node: Spelling) -> Invocation | None:
    """With the shapes of what came before and of what comes."""
    return node.invoke(
        "tract_transformers_quantized_dyn_kv_cache",
        node.input(0),
        name=op.key,
        axis=op.axis,
        bits=op.bits,
        per_channel=int(op.per_channel),
        **_shapes(node, op.axis, op.past),
        registry=TRANSFORMERS,
    )


def _past(call: Call, x: OutletId, axis: int) -> Dim:
    """How many positions came before, once type and shapes are those of the input."""
    fact, past, coming = call.fact(x), call.dims("past_sequence_shape"), call.dims("input_sequence_shape")
    if call.element_type("datum_type") != fact.datum_type.storage:
        raise CorruptModel(f"{call.about('datum_type')} is {call.text('datum_type')!r:.80}, and the input is {fact}")
    if len(past) != fact.rank:
        raise CorruptModel(f"{call.about('past_sequence_shape')} has {len(past)} sizes, and the input is {fact}")
    call.wire.require_shape("input", x, coming)
    call.wire.require_shape("input", x, (*past[:axis], fact.shape[axis], *past[axis + 1 :]))
    return past[axis]


def _shapes(node: Spelling, axis: int, past: Dim) -> dict[str, object]:
    fact = node.input_fact(0)
    before = [past if place == axis else size for place, size in enumerate(fact.shape)]
    return {
        "datum_type": fact.datum_type.storage.short,
        "past_sequence_shape": before,
        "input_sequence_shape": list(fact.shape),
    }


@reads(
    ROWS,
    TRANSFORMERS,
    "tract_transformers_window_kv_sdpa(q: tensor<scalar>, k: tensor<scalar>, v: tensor<scalar>, axis: integer,"
    " window: integer, scale: scalar = false) -> (output: tensor<scalar>)",
)
def read_window_attention(call: Call) -> OutletId:
    """Attention over the last positions."""
    q, k, v = (call.input(name) for name in ("q", "k", "v"))
    return call.op(WindowKvSdpa(call.axis("axis", call.rank(k)), call.integer("window"), _scale(call)), q, k, v)


@ROWS.row(NNEF_WRITE, WindowKvSdpa)
def write_window_attention(op: WindowKvSdpa, node: Spelling) -> Invocation | None:
    """With all that it knows."""
    fields = {"axis": op.axis, "window": op.window, "scale": op.scale}
    return node.invoke("tract_transformers_window_kv_sdpa", *node.inputs, **fields, registry=TRANSFORMERS)


@reads(
    ROWS,
    TRANSFORMERS,
    "tract_transformers_quantized_kv_sdpa(q: tensor<scalar>, k: tensor<scalar>, v: tensor<scalar>, axis: integer,"
    " scale: scalar = false) -> (output: tensor<scalar>)",
)
def read_quantised_attention(call: Call) -> OutletId:
    """Attention over all positions, kept in 8 bits."""
    q, k, v = (call.input(name) for name in ("q", "k", "v"))
    return call.op(QuantizedKvSdpa(call.axis("axis", call.rank(k)), _scale(call)), q, k, v)


@ROWS.row(NNEF_WRITE, QuantizedKvSdpa)
def write_quantised_attention(op: QuantizedKvSdpa, node: Spelling) -> Invocation | None:
    """With all that it knows."""
    fields = {"axis": op.axis, "scale": op.scale}
    return node.invoke("tract_transformers_quantized_kv_sdpa", *node.inputs, **fields, registry=TRANSFORMERS)


def _scale(call: Call) -> float | None:
    return call.number("scale") if call.has("scale") else None
