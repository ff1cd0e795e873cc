"""Branches, loops and submodels stream where no stream decides what is run; written as ONNX files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from stream_runs import assert_agrees, pulsed

import tract_core as tract
from tract_core.errors import TransformError
from tract_core.model.typed import TypedModel
from tract_core.ops.submodel import SubmodelOp

LENGTHS = (3, 4, 9, 17)


class Graph:
    """The nodes and constants of a graph as it grows."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []

    def __call__(self, op: str, *inputs: str, count: int = 1, **attributes: Any) -> Any:
        names = [f"{op.lower()}{len(_NAMES)}_{place}" for place in range(count)]
        _NAMES.append(op)
        self.nodes.append(helper.make_node(op, list(inputs), names, **attributes))
        return names[0] if count == 1 else names

    def const(self, value: Any, dtype: Any = np.float32) -> str:
        _NAMES.append("const")
        self.constants.append(numpy_helper.from_array(np.asarray(value, dtype), f"const{len(_NAMES)}"))
        return f"const{len(_NAMES)}"

    def conv(self, x: str, kernel: int, pads: tuple[int, int]) -> str:
        weights = np.random.default_rng(kernel).normal(size=(2, 2, kernel))
        return self("Conv", x, self.const(weights), pads=list(pads))

    def proto(self, name: str, inputs: Sequence[Any], outputs: Sequence[str]) -> Any:
        """A graph that gives tensors of floats."""
        infos = [helper.make_tensor_value_info(one, TensorProto.FLOAT, None) for one in outputs]
        return helper.make_graph(self.nodes, name, list(inputs), infos, self.constants)


_NAMES: list[str] = []
"""Of everything so far, as names in branches must differ from those around them."""


def typed(graph: Graph, outputs: Sequence[str], *inputs: Any) -> TypedModel:
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 2, "S"])
    proto = graph.proto("network", [x, *inputs], outputs)
    model = helper.make_model(proto, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    return tract.onnx().load_bytes(model.SerializeToString()).into_model().typed


FLAG = helper.make_tensor_value_info("flag", TensorProto.BOOL, [])
COUNT = helper.make_tensor_value_info("count", TensorProto.INT64, [])


def branch(kind: str, x: str) -> Any:
    """What a branch computes of ``x``."""
    graph = Graph()
    found = {
        "double": lambda: graph("Mul", x, graph.const(2.0)),
        "causal": lambda: graph.conv(x, 3, (2, 0)),
        "symmetric": lambda: graph.conv(x, 3, (1, 1)),
        "shorter": lambda: graph.conv(x, 3, (0, 0)),
        "deep": lambda: graph.conv(graph("Tanh", graph.conv(x, 5, (2, 2))), 3, (1, 1)),
        "sums": lambda: graph("CumSum", x, graph.const(2, np.int64)),
        "reversed": lambda: graph("Slice", x, *(graph.const([n], np.int64) for n in (-1, -(2**31), 2, -1))),
        "same": lambda: graph("Identity", x),
    }[kind]()
    return graph.proto(kind, [], [found])


def choosing(then: str, other: str, condition: Any = None) -> TypedModel:
    graph = Graph()
    x = graph.conv("x", 3, (1, 1))
    flag = "flag" if condition is None else condition(graph, x)
    found = graph("If", flag, then_branch=branch(then, x), else_branch=branch(other, x))
    return typed(graph, [graph("Relu", found)], *([FLAG] if condition is None else []))


def signal(length: int) -> Any:
    return np.random.default_rng(length).normal(size=(1, 2, length)).astype(np.float32)


@pytest.mark.parametrize("runtime", ["reference", "cpu"])
@pytest.mark.parametrize("pulse", [1, 4])
@pytest.mark.parametrize(
    ("then", "other"),
    [("double", "same"), ("causal", "same"), ("symmetric", "deep"), ("shorter", "shorter"), ("sums", "deep")],
)
def test_a_branch_streams_where_the_signal_does_not_choose(then: str, other: str, pulse: int, runtime: str):
    model = choosing(then, other)
    streaming = pulsed(model, pulse)
    for length in LENGTHS:
        for flag in (True, False):
            assert_agrees(model, streaming, [signal(length), np.array(flag)], runtime=runtime)


@pytest.mark.parametrize(
    ("then", "other", "said"),
    [
        ("symmetric", "shorter", "branches do not give streams of one length"),
        ("same", "reversed", "in its else branch, node .*turns the signal around"),
    ],
)
def test_branches_that_do_not_stream_are_refused(then: str, other: str, said: str):
    with pytest.raises(TransformError, match=said):
        pulsed(choosing(then, other), 4)


def test_what_is_whole_may_have_other_sizes_in_the_other_branch():
    graph, then, other = Graph(), Graph(), Graph()
    parts = [
        one.proto(name, [], [one("Mul", "x", one.const(factor)), one.const(np.ones(size))])
        for name, one, factor, size in (("then", then, 2.0, 3), ("else", other, 3.0, 5))
    ]
    stream, whole = graph("If", "flag", then_branch=parts[0], else_branch=parts[1], count=2)
    model = typed(graph, [stream, whole], FLAG)
    streaming = pulsed(model, 4)
    for flag in (True, False):
        assert_agrees(model, streaming, [signal(9), np.array(flag)])


def test_a_branch_that_the_signal_chooses_is_refused():
    def loud(graph: Graph, x: str) -> str:
        return graph("Greater", graph("ReduceMax", x, keepdims=0), graph.const(1.0))

    with pytest.raises(TransformError, match=r"ReduceMax|takes the max over the whole signal"):
        pulsed(choosing("double", "same", loud), 4)


def looping(kind: str, *, until: bool = False) -> TypedModel:
    """``count`` times, or until a number that is handed on is large enough."""
    graph, body = Graph(), Graph()
    inputs = [
        helper.make_tensor_value_info("i", TensorProto.INT64, []),
        helper.make_tensor_value_info("going", TensorProto.BOOL, []),
        helper.make_tensor_value_info("y", TensorProto.FLOAT, None),
        helper.make_tensor_value_info("n", TensorProto.FLOAT, None),
    ]
    more = body("Add", "n", body.const(1.0))
    found = {
        "by itself": lambda: body("Tanh", body("Mul", "y", body.const(1.5))),
        "outside": lambda: body("Add", "y", body("Mul", "x", more)),
        "conv": lambda: body.conv("y", 3, (2, 0)),
    }[kind]()
    going = body("Less", more, body.const(3.0)) if until else body("Identity", "going")
    outputs = [(going, TensorProto.BOOL), (found, 1), (more, 1), (body("Neg", found), 1)]
    infos = [helper.make_tensor_value_info(name, one, None) for name, one in outputs]
    proto = helper.make_graph(body.nodes, "body", inputs, infos, body.constants)
    start = graph.conv("x", 3, (1, 1))
    last, _, every = graph("Loop", "count", "", start, graph.const(0.0), body=proto, count=3)
    return typed(graph, [last, every], COUNT)


@pytest.mark.parametrize("until", [False, True])
@pytest.mark.parametrize("kind", ["by itself", "outside"])
def test_a_loop_across_the_signal_streams(kind: str, until: bool):
    model = looping(kind, until=until)
    streaming = pulsed(model, 4)
    for length in LENGTHS:
        for count in (1, 5):
            assert_agrees(model, streaming, [signal(length), np.array(count)])


def test_a_loop_whose_iterations_look_at_other_positions_is_refused():
    with pytest.raises(TransformError, match="its iterations look at other positions"):
        pulsed(looping("conv"), 4)


@pytest.mark.parametrize("runtime", ["reference", "cpu"])
def test_a_submodel_streams(runtime: str):
    graph = Graph()
    inner = typed(graph, [graph.conv(graph("Tanh", graph.conv("x", 5, (2, 2))), 3, (0, 0))])
    model = TypedModel()
    x = model.add_source("x", inner.outlet_fact(inner.inputs[0]))
    model.symbols.add("S")
    model.set_outputs(model.wire_node("inner", SubmodelOp(inner), [x]))
    for length in LENGTHS:
        assert_agrees(model, pulsed(model, 4), [signal(length)], runtime=runtime)
