"""Graphs that go in circles, name things twice, nest too deeply, call themselves, or are larger than they look."""

from __future__ import annotations

from itertools import pairwise
from math import prod

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx_hostile import any_info, gives, model_of, node, refused, taken, tensor_info, tried
from tract_onnx.frontend import OnnxLoader

from tract_core.dims import symbol
from tract_core.errors import CorruptModel, LimitExceeded, ModelError, ModelWarning
from tract_core.limits import LoadLimits
from tract_core.model.const import Const
from tract_core.testing.hostile import bounded

pytestmark = pytest.mark.hostile

BOOL, INT64 = TensorProto.BOOL, TensorProto.INT64


def constant(name, array):
    return numpy_helper.from_array(np.asarray(array), name)


def branch(nodes, output, constants=()):
    return helper.make_graph(nodes, "b", [], [any_info(output)], list(constants))


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        ([node("Relu", "y")], "in a circle"),
        ([node("Relu", "a"), node("Relu", "y", "a")], "in a circle"),
        ([node("Add", "xa"), node("Relu", "y", "b"), node("Relu", "b", "a")], "in a circle"),
        ([node("Relu", "x"), node("Abs", "x")], "two tensors are named 'y'"),
        ([node("Relu", "x", "x"), node("Relu", "x")], "two tensors are named 'x'"),
        ([node("Split", "x", "yy")], "two tensors are named 'y'"),
        ([node("Relu", "z")], "reads 'z', which nothing computes"),
        ([], "nothing computes the output 'y'"),
        ([node("Relu", "x", "z")], "nothing computes the output 'y'"),
        ([node("Relu", "x", "y", alpha=1.0), node("Relu", ["nowhere"], "z")], "reads 'nowhere'"),
    ],
)
def test_names_and_circles(nodes, message):
    refused(model_of(nodes, ["x"]), CorruptModel, message)


def test_names_of_inputs_and_constants():
    refused(model_of([node("Relu", "x")], ["x", "x"]), CorruptModel, "two tensors are named 'x'")
    refused(model_of([node("Relu", "x")], [tensor_info("")]), CorruptModel, "no name|nothing computes")
    twice = [constant("c", np.ones(3, np.float32))] * 2
    refused(model_of([node("Add", "xc")], ["x"], constants=twice), CorruptModel, "two tensors are named 'c'")


def test_attributes_given_twice():
    given = node("LeakyRelu", "x", alpha=0.5)
    given.attribute.append(given.attribute[0])
    refused(model_of([given], ["x"]), CorruptModel, "an attribute is given twice")


def test_a_long_circle():
    nodes = [node("Relu", [f"t{index}"], [f"t{index + 1}"]) for index in range(20_000)]
    nodes.append(node("Relu", ["t20000"], ["t0"]))
    refused(model_of(nodes, ["x"], ["t5"]), CorruptModel, "in a circle")


def test_names_inside_branches():
    """A graph inside a node sees the names around it, and may not give one of them to something else."""
    inner = branch([node("Relu", "x", "x")], "x")
    fine = branch([node("Relu", "x", "z")], "z")
    chosen = node("If", "c", then_branch=inner, else_branch=fine)
    refused(model_of([chosen], ["x", tensor_info("c", [], BOOL)]), CorruptModel, "circle|two tensors are named 'x'")
    missing = node("If", "c", then_branch=branch([node("Relu", ["nope"], "z")], "z"), else_branch=fine)
    refused(model_of([missing], ["x", tensor_info("c", [], BOOL)]), CorruptModel, "reads 'nope'")
    own = node("If", "c", then_branch=branch([node("Relu", "y", "z")], "z"), else_branch=fine)
    refused(model_of([own], ["x", tensor_info("c", [], BOOL)]), CorruptModel, "in a circle")


def branches_inside(depth):
    graph = branch([node("Relu", "x", "t")], "t")
    for level in range(depth):
        other = branch([node("Abs", "x", [f"e{level}"])], f"e{level}")
        inner = node("If", "c", [f"d{level}"], then_branch=graph, else_branch=other)
        graph = branch([inner], f"d{level}")
    return model_of(list(graph.node), ["x", tensor_info("c", [], BOOL)], [graph.output[0].name])


def test_branches_inside_branches():
    x, condition = np.array([-1, 0, 2], np.float32), np.array(True)
    np.testing.assert_array_equal(gives(branches_inside(12), [x, condition])[0], [0, 0, 2])
    refused(branches_inside(5), LimitExceeded, "nested more than 4 deep", limits=LoadLimits(max_depth=4))


def test_deep_chains_are_no_deep_graphs(monkeypatch):
    monkeypatch.delenv("TRACT_CHECK_PATCHES")
    nodes = [node("Relu", [f"t{index}"], [f"t{index + 1}"]) for index in range(3000)]
    untyped = onnx.ValueInfoProto(name="t0")
    declared = tensor_info("t3000", [2, 3])
    with bounded():
        taken(model_of(nodes, [tensor_info("t0")], ["t3000"]))
        taken(model_of(nodes, [untyped], [declared]))  # the rank of the input is found from the other end


def test_diamonds_are_looked_at_once():
    """From the end of twenty diamonds there are a million ways back to the input."""
    nodes = []
    for index in range(20):
        nodes += [node("Relu", [f"t{index}"], [f"a{index}"]), node("Abs", [f"t{index}"], [f"b{index}"])]
        nodes.append(node("Add", [f"a{index}", f"b{index}"], [f"t{index + 1}"]))
    with bounded():
        refused(model_of(nodes, [onnx.ValueInfoProto(name="t0")], ["t20"]), ModelError, "is not known")


def function(name, nodes, inputs=("x",), outputs=("y",)):
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("f", 1)]
    return helper.make_function("f", name, list(inputs), list(outputs), nodes, opsets)


def call(name, inputs="x", outputs="y"):
    return node(name, inputs, outputs, domain="f")


def with_functions(functions, nodes=None):
    return model_of(nodes or [call("F")], ["x"], functions=functions, more_opsets=[("f", 1)])


def chain(count):
    """Functions that each call the next one, the last one first in the file."""
    functions = [function(f"F{index}", [call(f"F{index + 1}")]) for index in range(count)]
    return [function(f"F{count}", [node("Relu", "x")]), *reversed(functions)]


def test_functions_that_call_themselves():
    refused(with_functions([function("F", [call("F")])]), CorruptModel, "in a circle: function f.F -> function f.F")
    mutual = [function("F", [call("G")]), function("G", [call("H")]), function("H", [call("F")])]
    refused(with_functions(mutual), CorruptModel, "in a circle")
    through = node(
        "If", "c", then_branch=branch([call("F", "x", "z")], "z"), else_branch=branch([call("F", "x", "w")], "w")
    )
    hidden = function("F", [node("Constant", [], "c", value=constant("", np.array(True))), through])
    refused(with_functions([hidden]), CorruptModel, "in a circle")


@pytest.mark.parametrize("order", [1, -1])
def test_functions_in_functions_in_functions(order):
    refused(with_functions(chain(500)[::order], [call("F0")]), LimitExceeded, "deep")
    with bounded():
        taken(with_functions(chain(10)[::order], [call("F0")]))


def test_functions_that_grow_exponentially():
    """Each function calls the next one ten times: ten thousand million nodes in a file of a few kilobytes."""
    functions = [function("F9", [node("Relu", "x")])]
    for index in range(9):
        names = ["x", *(f"t{step}" for step in range(9)), "y"]
        nodes = [call(f"F{index + 1}", [a], [b]) for a, b in pairwise(names)]
        functions.append(function(f"F{index}", nodes))
    refused(with_functions(functions, [call("F0")]), LimitExceeded, "nodes")
    refused(with_functions(functions, [call("F5")]), LimitExceeded, "nodes", limits=LoadLimits(max_nodes=5000))


def test_functions_with_two_definitions():
    refused(with_functions([function("F", [node("Relu", "x")])] * 2), CorruptModel, "twice")


def test_too_many_nodes():
    nodes = [node("Relu", [f"t{index}"], [f"t{index + 1}"]) for index in range(100)]
    model = model_of(nodes, [tensor_info("t0")], ["t100"])
    refused(model, LimitExceeded, "more than 90 nodes", limits=LoadLimits(max_nodes=90))
    with bounded():
        taken(model, LoadLimits(max_nodes=1000))


def test_one_node_that_becomes_many():
    axes = constant("axes", np.arange(10_000))
    refused(model_of([node("Unsqueeze", ["x", "axes"])], ["x"], constants=[axes]), LimitExceeded, "axes")


def test_too_much_time():
    nodes = [node("Relu", [f"t{index}"], [f"t{index + 1}"]) for index in range(3000)]
    model = model_of(nodes, [tensor_info("t0", ["N", 4])], ["t3000"])
    refused(model, LimitExceeded, "longer than 0.01 seconds", limits=LoadLimits(deadline_s=0.01))


NAMES = (
    "a.b",
    "a b",
    "class",
    "N-1",
    "__class__",
    "{0}",
    "%s",
    "é",
    "\x00",
    "N,M",
    "-1",
    "1e9",
    "None",
    "?",
    "",
    "f(N)",
)


@pytest.mark.parametrize("name", NAMES)
def test_names_of_sizes(name):
    (found,) = gives(
        model_of([node("Relu", "x")], [tensor_info("x", [name, 2])]), [np.array([[-1, 1]] * 3, np.float32)]
    )
    np.testing.assert_array_equal(found, [[0, 1]] * 3)


@pytest.mark.parametrize(
    "name",
    ["__import__('os').system('false')", "().__class__", "N/0", "N//0", "N%0", "lambda: 0", "9" * 30, "min(" * 50],
)
def test_sizes_that_are_code_are_names(name):
    """Nothing is evaluated: a text that is no expression over other sizes is the name of a size of its own."""
    assert taken(model_of([node("Relu", "x")], [tensor_info("x", [name])])).symbols.names == (name,)


def test_names_that_are_too_long():
    refused(model_of([node("Relu", "x")], [tensor_info("x", ["N" * 10_000_000])]), CorruptModel, "at most 256")
    refused(model_of([node("Relu", "x")], [tensor_info("x", ["(" * 5000])]), CorruptModel, "at most 256")


def test_expressions_over_other_sizes():
    inputs = [tensor_info("a", ["N"]), tensor_info("b", ["M"]), tensor_info("x", ["N+M"])]
    typed = taken(model_of([node("Relu", "x")], inputs))
    assert typed.outlet_fact(typed.inputs[2]).shape == (symbol("N") + symbol("M"),)
    refused(model_of([node("Add", "xz")], [tensor_info("x", [2]), tensor_info("z", [3])]), ModelError, "sizes 2 and 3")


def test_sizes_that_contradict_each_other():
    model = model_of([node("Relu", "x")], [tensor_info("x", ["N", "N"])])
    with bounded():
        taken(model)
    declared = model_of([node("Relu", "x")], [tensor_info("x", [3])], [tensor_info("y", [4])])
    with bounded(), pytest.warns(ModelWarning, match="the file says 4,f32, its operators give 3,f32"):
        taken(declared)


@pytest.mark.parametrize("op_type", ["Mul", "Add", "Concat"])
def test_sizes_that_grow_without_end(op_type):
    """A size that is doubled or squared again and again."""
    nodes = [node("Shape", "x", "s0")]
    for index in range(70):
        extra = {"axis": 0} if op_type == "Concat" else {}
        nodes.append(node(op_type, [f"s{index}"] * 2, [f"s{index + 1}"], **extra))
    nodes.append(node("Expand", ["c", "s70"]))
    inputs = [tensor_info("x", ["N"]), tensor_info("c", [1])]
    tried(model_of(nodes, inputs), LoadLimits(deadline_s=8))


def test_sums_of_many_sizes_multiplied():
    """The product of sums of fifty sizes each has hundreds of millions of terms."""
    nodes = [node("Shape", [f"x{index}"], [f"s{index}"]) for index in range(50)]
    nodes += [node("Sum", [f"s{index}" for index in range(50)], "p0")]
    nodes += [node("Mul", [f"p{index}", f"p{index}"], [f"p{index + 1}"]) for index in range(5)]
    nodes.append(node("Expand", ["c", "p5"]))
    inputs = [tensor_info(f"x{index}", [f"N{index}"]) for index in range(50)] + [tensor_info("c", [1])]
    tried(model_of(nodes, inputs), LoadLimits(deadline_s=8))


HUGE = np.array([1 << 20, 1 << 20])
ONE = constant("one", np.ones((1, 1), np.float32))
INTEGER = constant("one", np.ones((1, 1), np.int64))
BOMBS = {
    "ConstantOfShape": ([node("ConstantOfShape", ["n"], "z")], [constant("n", HUGE)]),
    "ConstantOfShape of integers": (
        [node("ConstantOfShape", ["n"], "z", value=constant("", np.ones(1, np.int64)))],
        [constant("n", HUGE)],
    ),
    "Expand": ([node("Expand", ["one", "n"], "z")], [ONE, constant("n", HUGE)]),
    "Expand of integers": ([node("Expand", ["one", "n"], "z")], [INTEGER, constant("n", HUGE)]),
    "Tile": ([node("Tile", ["one", "n"], "z")], [ONE, constant("n", HUGE)]),
    "Tile of integers": ([node("Tile", ["one", "n"], "z")], [INTEGER, constant("n", HUGE)]),
    "Pad": ([node("Pad", ["one", "n"], "z")], [ONE, constant("n", np.array([0, 0, 1 << 20, 1 << 20]))]),
    "Pad by 2^62": ([node("Pad", ["one", "n"], "z")], [ONE, constant("n", np.array([0, 0, 0, 1 << 62]))]),
    "Range": (
        [node("Range", "abc", "z")],
        [constant(n, np.array(v)) for n, v in zip("abc", (0, 1 << 40, 1), strict=True)],
    ),
    "Range of floats": (
        [node("Range", "abc", "z")],
        [constant(n, np.array(v, np.float32)) for n, v in zip("abc", (0, 1e12, 1), strict=True)],
    ),
    "OneHot": (
        [node("OneHot", ["i", "n", "v"], "z")],
        [constant("i", np.array([0])), constant("n", np.array(1 << 40)), constant("v", np.array([0, 1]))],
    ),
    "EyeLike": (
        [node("ConstantOfShape", ["n"], "e"), node("EyeLike", "e", "z")],
        [constant("n", HUGE)],
    ),
    "Resize": (
        [node("Resize", ["one", "", "n"], "z")],
        [ONE, constant("n", np.array([1e6, 1e6], np.float32))],
    ),
    "Resize to sizes": ([node("Resize", ["one", "", "", "n"], "z")], [ONE, constant("n", HUGE)]),
    "RandomNormal": ([node("RandomNormal", [], "z", shape=HUGE.tolist())], []),
    "RandomUniformLike": (
        [node("ConstantOfShape", ["n"], "e"), node("RandomUniformLike", "e", "z")],
        [constant("n", HUGE)],
    ),
    "an outer product": (
        [node("ConstantOfShape", "n", "e"), node("Reshape", "en", "f"), node("MatMul", ["e", "f"], "z")],
        [constant("n", np.array([1 << 20, 1]))],
    ),
    "HannWindow": ([node("HannWindow", "n", "z")], [constant("n", np.array(1 << 40))]),
    "MelWeightMatrix": (
        [node("MelWeightMatrix", "abcde", "z")],
        [constant(n, np.array(v)) for n, v in zip("abc", (1 << 30, 1 << 40, 8000), strict=True)]
        + [constant(n, np.array(v, np.float32)) for n, v in zip("de", (0, 4000), strict=True)],
    ),
    "a sum of many": (
        [node("Expand", ["one", "n"], "e"), node("ReduceSum", "e", "z", keepdims=0)],
        [INTEGER, constant("n", HUGE)],
    ),
    "Einsum": (
        [node("Einsum", "aaaaa", "z", equation="i,j,k,l,m->")],
        [constant("a", np.ones(4096, np.int64))],
    ),
    "MaxPool": (
        [node("MaxPool", "p", "z", kernel_shape=[1 << 40], pads=[1 << 39, 1 << 39])],
        [constant("p", np.ones((1, 1, 1), np.int8))],
    ),
    "Conv": (
        [node("Conv", "pw", "z", dilations=[1 << 40], pads=[1 << 39, 1 << 39])],
        [constant("p", np.ones((1, 1, 1), np.float32)), constant("w", np.ones((1, 1, 2), np.float32))],
    ),
}


def held_by(typed):
    """Bytes that the constants of a model take, those that are repeated by strides of 0 once."""
    arrays = [one.op.value.array for one in typed.live_nodes() if isinstance(one.op, Const)]
    return sum(prod(n for n, stride in zip(a.shape, a.strides, strict=True) if stride) * a.itemsize for a in arrays)


@pytest.mark.parametrize("name", BOMBS)
def test_constants_that_are_larger_than_they_look(name):
    """Nothing of the size is made while the model is loaded; it is refused, or made by nobody until it runs."""
    nodes, constants = BOMBS[name]
    cast = [node("Shape", "z", "s"), node("Cast", "s", "c", to=TensorProto.FLOAT), node("Add", "xc")]
    model = model_of([*nodes, *cast], [tensor_info("x", [1])], ["y", "z"], constants)
    tried(model, memory=256 << 20)


def test_many_constants_that_are_each_within_the_budget(monkeypatch):
    """Each of a thousand constants takes 4 MB when it is unfolded: together they are not."""
    monkeypatch.delenv("TRACT_CHECK_PATCHES")
    constants, nodes, previous = [constant("one", np.float32(1))], [], "x"
    for index in range(1000):
        constants += [constant(f"a{index}", np.float32(index)), constant(f"b{index}", np.float32(index + (1 << 20)))]
        nodes.append(node("Range", [f"a{index}", f"b{index}", "one"], [f"r{index}"]))
        nodes.append(node(("Mul", "Max")[index % 2], [previous, f"r{index}"], [f"t{index}"]))
        previous = f"t{index}"
    model = model_of(nodes, [tensor_info("x", [1 << 20])], [previous], constants)
    with bounded(memory=400 << 20):
        typed = taken(model, LoadLimits(max_fold_bytes=64 << 20))
    assert 16 << 20 < held_by(typed) <= 65 << 20


def test_many_integers_that_are_each_computed_early(monkeypatch):
    monkeypatch.delenv("TRACT_CHECK_PATCHES")
    nodes, previous = [], "c"
    for index in range(3000):
        nodes.append(node("Add", [previous, "c"], [f"t{index}"]))
        previous = f"t{index}"
    c = constant("c", np.arange(4096))
    model = model_of(nodes, [], [previous], [c])
    with bounded(memory=200 << 20):
        typed = (
            OnnxLoader(limits=LoadLimits(max_fold_bytes=16 << 20)).load_bytes(model.SerializeToString()).into_typed()
        )
    values = {id(outlet.fact.value): outlet.fact.value for one in typed.nodes for outlet in one.outputs}
    assert 8 << 20 < sum(value.nbytes for value in values.values() if value is not None) <= 17 << 20
