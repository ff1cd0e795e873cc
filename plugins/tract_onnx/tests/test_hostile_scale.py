"""Graphs whose nodes are many, long in a row or wide: what is done with them takes no more than their number says."""

from __future__ import annotations

import time
from contextlib import suppress
from cProfile import Profile

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx_hostile import any_info, model_of, node, refused, taken, tensor_info

from tract_core.errors import LimitExceeded, Unsupported
from tract_core.limits import LoadLimits
from tract_core.runtime.plan import TypedSimplePlan
from tract_core.testing.hostile import bounded

pytestmark = pytest.mark.hostile

X = np.arange(3, dtype=np.float32)


@pytest.fixture(autouse=True)
def _patches_are_not_checked(monkeypatch):
    """A check of the whole model after every patch takes the square of the time, as it says."""
    monkeypatch.delenv("TRACT_CHECK_PATCHES")


def row(op_type, count, *more, **attributes):
    """Nodes one behind the other, from ``x`` to ``y``."""
    names = ["x", *(f"t{index}" for index in range(1, count)), "y"]
    return [node(op_type, [names[index], *more], [names[index + 1]], **attributes) for index in range(count)]


def concat_in_a_row(count):
    return row("Concat", count, "x", axis=0), np.concatenate([X] * (count + 1))


def one_sum(count):
    return [node("Sum", ["x"] * count)], X * count


def one_concat(count):
    return [node("Concat", ["x"] * count, axis=0)], np.concatenate([X] * count)


def tensor_that_many_read(count):
    nodes = [node("Exp", "x", "e"), *(node("Neg", "e", [f"n{index}"]) for index in range(count))]
    return [*nodes, node("Sum", [f"n{index}" for index in range(count)])], -np.exp(X) * count


def transposed_back_and_forth(count):
    nodes = [node("Unsqueeze", ["x", "zero"], ["t0"])]
    for index in range(count):
        nodes.append(node("Transpose", [f"t{index}"], [f"s{index}"], perm=[1, 0]))
        nodes.append(node("Neg", [f"s{index}"], [f"t{index + 1}"]))
    return [*nodes, node("Squeeze", [f"t{count}", "zero" if count % 2 == 0 else "one"])], X * (-1) ** count


FAMILIES = [concat_in_a_row, one_sum, one_concat, tensor_that_many_read, transposed_back_and_forth]
INDICES = [numpy_helper.from_array(np.array([value]), name) for value, name in ((0, "zero"), (1, "one"))]


def calls(family, count):
    """How many functions are called to load, type, simplify and plan, those of C among them: on any machine alike."""
    nodes, wanted = family(count)
    model = model_of(nodes, ["x"], constants=INDICES)
    with Profile() as profile:
        plan = TypedSimplePlan(taken(model))
    np.testing.assert_allclose(plan.run([X])[0], wanted, rtol=1e-3)
    return sum(one.callcount for one in profile.getstats())


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.__name__)
def test_eight_times_the_nodes_take_eight_times_the_work(family):
    """What takes the square of the work takes 64 times as much, and what does so in part is over the bound too."""
    calls(family, 10)
    with bounded():
        assert calls(family, 800) < 9 * calls(family, 100)


def split_and_joined(count):
    names = [f"p{index}" for index in range(count)]
    nodes = [node("Split", "x", names, num_outputs=count), node("Concat", names, axis=0)]
    return model_of(nodes, [tensor_info("x", [count])], opset=18), np.arange(count, dtype=np.float32)


def test_pieces_are_put_together_at_once():
    model, x = split_and_joined(3000)
    with bounded():
        typed = taken(model)
        assert len(list(typed.live_nodes())) <= 2
        np.testing.assert_array_equal(TypedSimplePlan(typed).run([x])[0], x)


def test_interfaces_that_are_too_wide():
    names = [f"y{index}" for index in range(5000)]
    model = model_of([node("Relu", "x", [name]) for name in names], ["x"], names)
    refused(model, LimitExceeded, "the graph has 5000 outputs, 4096 are allowed")
    refused(model_of([node("Sum", names)], names), LimitExceeded, "the graph has 5000 inputs, 4096 are allowed")
    with bounded():
        few = LoadLimits(max_outputs=5000)
        assert len(taken(model_of([node("Sum", names)], names), few).inputs) == 5000


def test_old_files_list_their_constants_among_the_inputs():
    names = [f"c{index}" for index in range(5000)]
    constants = [helper.make_tensor(name, TensorProto.FLOAT, [3], [1.0, 2.0, 3.0]) for name in names]
    with bounded():
        assert len(taken(model_of([node("Add", ["x", "c0"])], ["x", *names], constants=constants)).inputs) == 1


def test_many_problems_are_one_short_report():
    nodes = [node(f"Nope{index}", "x", [f"y{index}"]) for index in range(3000)]
    error = refused(model_of(nodes, ["x"], [f"y{index}" for index in range(3000)]), Unsupported, "3000 nodes")
    assert "and 2950 more problems" in str(error)


def loop(body_nodes, declared, outputs):
    counter = [tensor_info("i", [], TensorProto.INT64), tensor_info("c", [], TensorProto.BOOL)]
    inner = [any_info(name) for name in declared]
    return helper.make_graph(
        [node("Identity", "c", "d"), *body_nodes], "b", [*counter, *inner], [any_info(name) for name in ["d", *outputs]]
    )


def test_loops_whose_sizes_settle_slowly():
    """Each iteration hands every value on to its neighbour, and the last of them grows."""
    count = 100
    nodes = [node("Identity", [f"v{index + 1}"], [f"w{index}"]) for index in range(count - 1)]
    nodes.append(node("Concat", ["v0", "v0"], [f"w{count - 1}"], axis=0))
    body = loop(nodes, [f"v{index}" for index in range(count)], [f"w{index}" for index in range(count)])
    outputs = [f"y{index}" for index in range(count)]
    many = tensor_info("m", [], TensorProto.INT64)
    model = model_of([node("Loop", ["m", "", *["x"] * count], outputs, body=body)], ["x", many], outputs)
    refused(model, LimitExceeded, "did not settle the sizes that the loop carries")


def test_loops_inside_loops_whose_sizes_settle_slowly():
    def body(depth):
        inner = node("Concat", [f"v{depth}"] * 2, [f"w{depth}"], axis=0)
        if depth:
            inner = node("Loop", ["m", "", f"v{depth}"], [f"w{depth}"], body=body(depth - 1))
        counter = [tensor_info(f"i{depth}", [], TensorProto.INT64), tensor_info(f"c{depth}", [], TensorProto.BOOL)]
        nodes = [node("Identity", [f"c{depth}"], [f"d{depth}"]), inner]
        outputs = [any_info(f"d{depth}"), any_info(f"w{depth}")]
        return helper.make_graph(nodes, "b", [*counter, any_info(f"v{depth}")], outputs)

    inputs = ["x", tensor_info("m", [], TensorProto.INT64)]
    refused(model_of([node("Loop", ["m", "", "x"], body=body(14))], inputs), LimitExceeded, "loops inside loops")
    with bounded():
        plan = TypedSimplePlan(taken(model_of([node("Loop", ["m", "", "x"], body=body(2))], inputs)))
        assert plan.run([X, np.array(1)])[0].shape == (6,)


def test_functions_whose_calls_double():
    """Thirty functions that call the next one twice; the limits of the file count, not some of their own."""
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("f", 1)]
    functions = [helper.make_function("f", "F30", ["x"], ["y"], [node("Relu", "x")], opsets)]
    for index in range(30):
        twice = [node(f"F{index + 1}", "x", "a", domain="f"), node(f"F{index + 1}", "a", domain="f")]
        functions.append(helper.make_function("f", f"F{index}", ["x"], ["y"], twice, opsets))
    calls = model_of([node("F0", "x", domain="f")], ["x"], functions=functions, more_opsets=[("f", 1)])
    refused(calls, LimitExceeded, "stands for more than 1000000 nodes")
    refused(calls, LimitExceeded, "stands for more than 500 nodes", limits=LoadLimits(max_nodes=500))
    refused(calls, LimitExceeded, "more than 5 deep", limits=LoadLimits(max_depth=5))


def test_the_deadline_is_kept_wherever_the_time_goes():
    for family in FAMILIES:
        nodes, _ = family(20_000)
        model = model_of(nodes, ["x"], constants=INDICES)
        start = time.monotonic()
        with bounded(), suppress(LimitExceeded):  # unless it is quicker
            taken(model, LoadLimits(deadline_s=0.2))
        assert time.monotonic() - start < 5
