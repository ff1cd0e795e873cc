"""Filters of rank 1 over the last steps: a vector of weights for the input, and one for the time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tract_core.errors import CorruptModel
from tract_core.model.axes import AxesMapping
from tract_core.ops.einsum import EinSum, accumulator
from tract_core.ops.wired import Wired
from tract_core.plugins.tables import Rows
from tract_tensorflow.tflite.activation import activated
from tract_tensorflow.tflite.dynamic import dequantised, product, weights_of
from tract_tensorflow.tflite.kept import nothing_yet, over_time
from tract_tensorflow.tflite.node import TfliteNode
from tract_tensorflow.tflite.registry import tflite_op
from tract_tensorflow.tflite.wiring import Wiring

ROWS = Rows()


@tflite_op(ROWS, "SVDF")
def svdf(node: TfliteNode, wire: Wiring) -> Wired:
    """Weights [filters, inputs] of the input and [filters, steps] of the time; ``rank`` filters are added up"""
    x, rank = wire.tensor(0), node.integer("rank", 0)
    features = product(x, *weights_of(wire, [1], is_asymmetric=node.flag("asymmetric_quantize_inputs")))
    time = dequantised(wire, 2)
    if time.rank != 2:
        raise CorruptModel(f"the weights of the time are {time.fact}, wanted two axes")
    filters, steps = time.shape
    if rank < 1 or not isinstance(filters, int) or filters % rank or x.rank != 2:
        raise CorruptModel(f"{filters} filters of rank {rank} on {x.fact}")

    def step(given: Sequence[Wired], held: Mapping[str, Wired], states: Sequence[Wired]) -> _Step:
        batch = given[0].shape[0]
        past = states[0].reshape((batch, filters, steps))
        past = past.part(2, 1, steps).concat([given[0].unsqueeze([2])], 2)
        axes = AxesMapping.parse("bfs,fs->bf")
        found = past.op(EinSum(axes, accumulator(past.dtype)), held["time"])
        summed = found.reshape((batch, filters // rank, rank)).sum([2]).squeeze([2])
        return [summed], [past.reshape((batch, filters * steps))]

    start = nothing_yet(wire, x.shape[0], filters * steps)
    (found,) = over_time(wire, [features], {"time": time}, [start], step, axis=None)
    bias = wire.optional_tensor(3)
    return activated(found if bias is None else found + bias, node)


_Step = tuple[Sequence[Wired], Sequence[Wired]]
