"""Filters of rank 1 over the last steps, of integers: data in i8, states and weights of the time in i16."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tract_core.data import DatumType
from tract_core.errors import CorruptModel, Unsupported
from tract_core.model.axes import AxesMapping
from tract_core.ops.einsum import EinSum
from tract_core.ops.wired import Wired
from tract_core.plugins.tables import Rows
from tract_tensorflow.tflite.kept import nothing_yet, over_time
from tract_tensorflow.tflite.node import TfliteNode
from tract_tensorflow.tflite.registry import quantized_op
from tract_tensorflow.tflite.steps import centred, scaled
from tract_tensorflow.tflite.wiring import Wiring

ROWS = Rows()


@quantized_op(ROWS, "SVDF")
def svdf(node: TfliteNode, wire: Wiring) -> Wired:
    """Weights [filters, inputs] of the input and [filters, steps] of the time; ``rank`` filters are added up"""
    x, weights, time, rank = wire.tensor(0), wire.tensor(1), wire.tensor(2), node.integer("rank", 0)
    kinds = x.dtype, weights.dtype, time.dtype, wire.node.output().kind
    if kinds != (DatumType.I8, DatumType.I8, DatumType.I16, DatumType.I8):
        raise Unsupported(f"SVDF of integers of {x.fact}, {weights.fact} and {time.fact}, wanted i8, i8 and i16")
    if x.rank != 2 or weights.rank != 2 or time.rank != 2:
        raise CorruptModel(f"SVDF of {x.fact}, {weights.fact} and {time.fact}, wanted two axes of each")
    filters, steps = time.shape
    if rank < 1 or not isinstance(filters, int) or filters % rank:
        raise CorruptModel(f"{filters} filters of rank {rank}")
    state = node.quantization(4).scale
    product = EinSum(AxesMapping.parse("bi,fi->bf"), DatumType.I32)
    factor = node.quantization(0).scale * node.quantization(1).scale / state
    sums = centred(wire, 0, DatumType.I16).op(product, weights.cast(DatumType.I16))
    features = scaled(sums, np.asarray(factor, np.float64)).maximum(-(1 << 15)).minimum((1 << 15) - 1)

    def step(given: Sequence[Wired], held: Mapping[str, Wired], states: Sequence[Wired]) -> _Step:
        batch = given[0].shape[0]
        past = states[0].reshape((batch, filters, steps)).part(2, 1, steps).concat([given[0].unsqueeze([2])], 2)
        found = past.op(EinSum(AxesMapping.parse("bfs,fs->bf"), DatumType.I32), held["time"])
        summed = found.reshape((batch, filters // rank, rank)).sum([2]).squeeze([2])
        return [summed], [past.reshape((batch, filters * steps))]

    start = nothing_yet(wire, x.shape[0], filters * steps, DatumType.I16)
    (found,) = over_time(wire, [features.cast(DatumType.I16)], {"time": time}, [start], step, axis=None)
    bias = wire.optional_tensor(3)
    total = found if bias is None else found + bias
    factor = state * node.quantization(2).scale / node.output_quantization().scale
    zero = node.output_quantization().zero
    moved = scaled(total, np.asarray(factor, np.float64)) + zero
    return moved.maximum(-128).minimum(127).cast(DatumType.I8)


_Step = tuple[Sequence[Wired], Sequence[Wired]]
