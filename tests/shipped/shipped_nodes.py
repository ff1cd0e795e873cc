"""Where two engines part: the nodes of a file that differ on the very inputs that ONNX Runtime had there.

Differences grow on the way through a network, and a difference at its end says nothing of its cause. So every node is
asked alone: here, with the tensors that ONNX Runtime computed in front of it, and where that gives something else, by
the reference evaluator of the ``onnx`` package in f64, which is neither of the two. Of operators that the evaluator
does not have, `MEANINGS` knows what is right.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import onnx
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from quantised_lstm import states_of
from shipped_inputs import Array
from tract_onnx.frontend import OnnxLoader
from tract_onnx.graph import captured
from tract_onnx.onnxruntime import run_in_onnxruntime

from tract_core.runtime.plan import TypedSimplePlan

NODE_TOLERANCE: Final = 2e-5
"""What one node may differ by, relative to the largest magnitude of its output: sums of thousands of f32."""

Arrays = Mapping[str, Array]


@dataclass(frozen=True)
class Parting:
    """A node on which the engines differ. ``ours``, ``theirs``: distances from f64; infinite if that cannot be had."""

    node: str
    op_type: str
    ours: float
    theirs: float

    @property
    def is_right_here(self) -> bool:
        """Whether what is computed here is right, whatever the other engine does."""
        return self.ours <= NODE_TOLERANCE

    @property
    def is_right_there(self) -> bool:
        """Whether the other engine is right."""
        return self.theirs <= NODE_TOLERANCE

    @property
    def is_tipped(self) -> bool:
        """Whether each step is right in both, but a state that they round fell on two sides, so that others differ."""
        return self.op_type in MEANINGS and self.is_right_here and self.is_right_there


def distance(found: Array, wanted: Array) -> float:
    """The largest difference, relative to the largest magnitude; infinite for another shape, or another finiteness.

    For arrays that are no floats: the share of the elements that differ.
    """
    if found.shape != wanted.shape:
        return np.inf
    if wanted.dtype.kind not in "fc":
        return float(np.mean(found != wanted)) if wanted.size else 0.0
    found, wanted = (np.asarray(array, np.complex128) for array in (found, wanted))
    finite = np.isfinite(wanted)
    if (np.isfinite(found) != finite).any() or not np.array_equal(found[~finite], wanted[~finite], equal_nan=True):
        return np.inf
    largest = np.abs(wanted[finite]).max(initial=0.0)
    return float(np.abs(found - wanted)[finite].max(initial=0.0) / max(largest, np.finfo(np.float32).tiny))


def partings(path: Path, given: Arrays) -> Iterator[Parting]:
    """The nodes of the main graph that differ on the same inputs, in order."""
    proto = onnx.load(path)
    constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in proto.graph.initializer}
    known = {**constants, **given, **run_in_onnxruntime(path, given)}
    for node in proto.graph.node:
        inputs = {name: known[name] for name in (*node.input, *captured(node)) if name}
        wanted = {name: known[name] for name in node.output if name in known}
        if not inputs or not wanted:
            continue
        model = alone(proto, node, inputs, list(wanted), constants)
        found = _here(model, inputs)
        if _worst(found, wanted) > NODE_TOLERANCE:
            meaning = MEANINGS.get(node.op_type, _in_float64)
            yield Parting(
                node.name or node.output[0], node.op_type, *(meaning(model, inputs, one) for one in (found, wanted))
            )


def alone(
    proto: onnx.ModelProto, node: onnx.NodeProto, inputs: Arrays, outputs: list[str], constants: Arrays
) -> onnx.ModelProto:
    """A model of one node; what is constant in the file is constant there."""
    graph = onnx.GraphProto(name="node", node=[node])
    for name, array in inputs.items():
        if name in constants:
            graph.initializer.append(numpy_helper.from_array(array, name))
        else:
            kind = helper.np_dtype_to_tensor_dtype(array.dtype)
            graph.input.append(helper.make_tensor_value_info(name, kind, array.shape))
    graph.output.extend(onnx.ValueInfoProto(name=name) for name in outputs)
    model = onnx.ModelProto(graph=graph, ir_version=proto.ir_version, functions=proto.functions)
    model.opset_import.extend(proto.opset_import)
    return model


def _here(model: onnx.ModelProto, inputs: Arrays) -> dict[str, Array]:
    typed = OnnxLoader().load_bytes(model.SerializeToString()).into_typed()
    given = [inputs[typed.outlet_name(outlet)] for outlet in typed.inputs]
    return dict(zip((one.name for one in model.graph.output), TypedSimplePlan(typed).run(given), strict=True))


def _in_float64(model: onnx.ModelProto, inputs: Arrays, found: Arrays) -> float:
    wide = onnx.ModelProto()
    wide.CopyFrom(model)
    del wide.graph.initializer[:]
    for attribute in (one for node in wide.graph.node for one in node.attribute if one.name in ("to", "dtype")):
        attribute.i = onnx.TensorProto.DOUBLE if attribute.i == onnx.TensorProto.FLOAT else attribute.i
    given = {name: array.astype(np.float64) if array.dtype == np.float32 else array for name, array in inputs.items()}
    for node in wide.graph.node:
        if node.op_type == "STFT" and given[node.input[0]].ndim == 2:  # the evaluator wants an axis for the parts
            given[node.input[0]] = given[node.input[0]][..., None]
    try:
        exact = ReferenceEvaluator(wide).run(list(found), given)
    except Exception:  # it raises what it likes for what it does not have
        return np.inf
    return _worst(found, dict(zip(found, map(np.asarray, exact), strict=True)))


def _from_its_own_states(model: onnx.ModelProto, inputs: Arrays, found: Arrays) -> float:
    """For DynamicQuantizeLSTM, with the options that its files have: none but a direction."""
    (node,) = model.graph.node
    options = {one.name: helper.get_attribute_value(one) for one in node.attribute}
    if node.output[0] not in found or not options.keys() <= {"direction", "hidden_size", "input_forget"}:
        return np.inf
    given = [inputs.get(name) for name in (*node.input, *[""] * (12 - len(node.input)))]
    states = found[node.output[0]]
    return distance(states, states_of(given, options.get("direction", b"forward").decode(), states))


MEANINGS: Final[Mapping[str, Callable[[onnx.ModelProto, Arrays, Arrays], float]]] = {
    "DynamicQuantizeLSTM": _from_its_own_states
}
"""For operators that round their own state: how far the outputs that an engine found are from what a step of it means.

Given: the model of the node, its inputs, the outputs.
"""


def _worst(found: Arrays, wanted: Arrays) -> float:
    return max(distance(found[name], wanted[name]) for name in wanted)
