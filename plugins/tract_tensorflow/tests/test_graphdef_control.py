"""Branches and loops of TensorFlow 1 that are not of the form that TensorFlow writes; very many, and very deep ones."""

from __future__ import annotations

import numpy as np
import pytest
from graphdef_builder import const, function, graph, load, node, placeholder, refused, run, saved_model
from tract_tensorflow.graphdef.loader import TensorflowLoader

from tract_core.errors import CorruptModel, LimitExceeded, TractError, Unsupported
from tract_core.limits import LoadLimits
from tract_core.testing.hostile import bounded

X = placeholder("x", 3)
P = placeholder("p", code=10)
Q = placeholder("q", code=10)


def switch(name, data, predicate):
    return node("Switch", name, data, predicate)


def loop(start="x", *, body="s:1", condition="c", frame=b"f"):
    """A loop of one value. ``body``: what an iteration gives; ``condition``: what it goes on with."""
    return [
        node("Enter", "e", start, frame_name=frame),
        node("Merge", "m", "e", "n"),
        node("LoopCond", "l", condition),
        switch("s", "m", "l"),
        node("NextIteration", "n", body),
        node("Exit", "y", "s"),
    ]


FALSE = const("c", np.array(False))
UNRELATED = "what it joins is not what the branches of one predicate give"


# --- what is right ---


def test_a_loop_that_never_goes_round():
    x = np.float32([1, 2, 3])
    np.testing.assert_array_equal(run(load(X, FALSE, *loop()), x)[0], x)


def test_what_is_not_wanted_need_not_be_right():
    wrong = [node("Merge", "w", "x", "x"), node("Assert", "a", "w"), node("Relu", "y", "x", "^a", "^w")]
    np.testing.assert_array_equal(run(load(X, *wrong), np.float32([-1, 0, 1]))[0], [0, 0, 1])


def test_branches_without_the_nodes_that_say_which_they_are():
    nodes = [X, P, switch("s", "x", "p"), node("Relu", "r", "s:1"), node("Neg", "n", "s"), node("Merge", "y", "r", "n")]
    x = np.float32([-1, 0, 1])
    np.testing.assert_array_equal(run(load(*nodes), x, np.array(True))[0], [0, 0, 1])
    np.testing.assert_array_equal(run(load(*nodes), x, np.array(False))[0], [1, 0, -1])


def test_a_branch_that_is_not_taken_is_not_computed():
    """A division by zero, which a run refuses."""
    nodes = [
        placeholder("x", 3, code=3),
        P,
        const("z", np.int32(0)),
        switch("s", "x", "p"),
        node("FloorDiv", "d", "s:1", "z"),
        node("Merge", "y", "d", "s"),
    ]
    x = np.int32([1, 2, 3])
    np.testing.assert_array_equal(run(load(*nodes), x, np.array(False))[0], x)


def test_a_function_may_have_branches():
    body = function(
        "f",
        ["a", "p"],
        {"b": "m:output:0", "w": "m:value_index:0"},
        [
            switch("s", "a", "p"),
            node("Relu", "r", "s:output_true:0"),
            node("Merge", "m", "s:output_false:0", "r:activations:0"),
        ],
    )
    model = load(X, P, node("PartitionedCall", "y", "x", "p", f=("func", "f")), functions=[body], outputs="y,y:1")
    found, which = run(model, np.float32([-1, 0, 1]), np.array(True))
    np.testing.assert_array_equal(found, [0, 0, 1])
    assert which == 1


def test_a_signature_may_read_branches():
    nodes = [placeholder("x", -1), P, switch("s", "x", "p"), node("Neg", "n", "s:1"), node("Merge", "m", "s", "n")]
    saved = saved_model(graph(*nodes), {"y": "m:0", "which": "m:1"}, {"x": "x:0", "p": "p:0"})
    saved.meta_graphs[0].signature_def["serving_default"].inputs["p"].dtype = 10
    saved.meta_graphs[0].signature_def["serving_default"].inputs["p"].tensor_shape.ClearField("dim")
    model = TensorflowLoader().load_bytes(saved.SerializeToString())
    names = [model.outlet_name(outlet) for outlet in model.outputs]
    found = dict(zip(names, run(model, np.float32([1, 2]), np.array(True)), strict=True))
    np.testing.assert_array_equal(found["y"], [-1, -2])
    assert found["which"] == 1


# --- what is refused ---


@pytest.mark.parametrize(
    ("nodes", "said"),
    [
        ([X, node("Merge", "y", "x", "x")], UNRELATED),
        ([X, node("Merge", "y", "x")], "it joins 1 tensors, two or more are wanted"),
        ([X, P, switch("s", "x", "p"), node("Merge", "y", "s", "s")], UNRELATED),
        ([X, P, switch("s", "x", "p"), node("Merge", "y", "s", "x")], UNRELATED),
        (
            [X, P, Q, switch("s", "x", "p"), switch("t", "x", "q"), node("Merge", "y", "s", "t:1")],
            UNRELATED,
        ),
        ([X, P, switch("s", "x", "p"), node("AddV2", "y", "s", "s:1")], "a node reads tensors of two branches"),
        ([X, P, switch("s", "x", "p"), node("Relu", "y", "s:1")], "it is computed in one branch of a condition only"),
        ([X, switch("s", "x", "p"), node("Merge", "y", "s:1", "s")], "it reads 'p', which nothing computes"),
        ([X, node("Switch", "s", "x"), node("Relu", "y", "s:1")], "it has 1 inputs, two are wanted"),
        ([X, FALSE, switch("s", "x", "c"), node("Relu", "y", "s:1")], "it is computed in one branch"),
        ([X, node("Exit", "y", "x")], "it is not what leaves a loop"),
        ([X, FALSE, *loop(body="y")], "depend on each other in a circle"),
        ([X, FALSE, *loop(body="t"), switch("t", "s:1", "m")], "an iteration of its loop ends inside of a branch"),
        ([X, FALSE, *loop(), node("Relu", "z", "m:1")], "which input a loop's Merge takes is read"),
        ([X, FALSE, *loop(), node("Relu", "z", "s")], "what leaves a loop is read by no Exit"),
        ([X, FALSE, *loop(), node("Relu", "z", "n")], "what an iteration hands on is read by something else"),
        ([X, node("NextIteration", "y", "x")], "what an iteration hands on is read outside of a loop"),
        ([X, node("Merge", "y", "x", "n"), node("NextIteration", "n", "y")], "no Switch says whether it goes on"),
        ([X, node("Merge", "m", "x", "x", "n"), node("NextIteration", "n", "y"), FALSE,
          node("LoopCond", "l", "c"), switch("s", "m", "l"), node("Exit", "y", "s")],
         "one value to begin with, and one NextIteration"),
        ([X, node("LoopCond", "l", "c"), FALSE, switch("s", "x", "l"), node("Exit", "y", "s")],
         "what it reads is no Merge with a NextIteration"),
    ],
)  # fmt: skip
def test_what_tensorflow_does_not_write_is_refused(nodes, said):
    wanted = "z" if any(one.name == "z" for one in nodes) else "y"
    assert said in refused(TractError, *nodes, outputs=wanted)


def test_a_tensor_of_a_branch_is_no_output():
    nodes = [X, P, switch("s", "x", "p"), node("Relu", "r", "s:1"), node("Merge", "y", "r", "s")]
    message = refused(Unsupported, *nodes, outputs="r")
    assert "node 'r' (Relu): it is computed in one branch of a condition only, or inside of a loop" in message
    assert "take the Merge, or the Exit, that it leads to" in message


def test_an_iteration_that_ends_in_a_branch_is_refused():
    nodes = [X, P, FALSE, switch("t", "s:1", "p"), *loop(body="t:1")]
    assert "an iteration of its loop ends inside of a branch" in refused(Unsupported, *nodes, outputs="y")


def test_a_circle_without_an_iteration_is_refused():
    nodes = [
        X,
        P,
        node("Merge", "m", "x", "r"),
        switch("s", "m", "p"),
        node("Relu", "r", "s:1"),
        node("Exit", "y", "s"),
    ]
    assert "depend on each other in a circle" in refused(CorruptModel, *nodes)


# --- hostile ones ---


def nested(depth, code=1):
    """Branches in branches, all of one kind, with the predicates as inputs of the innermost too."""
    nodes, data, predicate = [X, P], "x", "p"
    for level in range(depth):
        nodes += [switch(f"s{level}", data, predicate), switch(f"p{level}", predicate, predicate)]
        data, predicate = f"s{level}:1", f"p{level}:1"
    nodes.append(node("Relu", "r", data))
    result = "r"
    for level in reversed(range(depth)):
        nodes.append(node("Merge", f"m{level}", f"s{level}", result))
        result = f"m{level}"
    return [*nodes, node("Identity", "y", result)]


def test_branches_in_branches():
    """Each level has a predicate of its own: what the Switch around it lets through."""
    found = run(load(*nested(8)), np.float32([-1, 0, 1]), np.array(True))
    np.testing.assert_array_equal(found[0], [0, 0, 1])


@pytest.mark.hostile
def test_a_thousand_branches_in_one_another_are_refused():
    with bounded():
        message = refused(LimitExceeded, *nested(1000))
    assert "branches and loops are more than 32 deep inside one another" in message


@pytest.mark.hostile
def test_a_thousand_loops_in_one_another_are_refused():
    nodes, start, after = [X, FALSE], "x", []
    for level in range(1000):
        nodes += [
            node("Enter", f"e{level}", start, frame_name=f"f{level}".encode()),
            node("Merge", f"m{level}", f"e{level}", f"n{level}"),
            node("LoopCond", f"l{level}", "c"),
            switch(f"s{level}", f"m{level}", f"l{level}"),
            node("Exit", f"y{level}", f"s{level}"),
        ]
        after.append(node("NextIteration", f"n{level}", f"y{level + 1}"))
        start = f"s{level}:1"
    nodes += [*after, node("Identity", "y1000", start)]
    with bounded():
        assert "more than 32 deep" in refused(LimitExceeded, *nodes, outputs="y0")


@pytest.mark.hostile
@pytest.mark.parametrize("chained", [False, True])
def test_thousands_of_switches_on_one_predicate(chained):
    nodes, last = [X, P], "x"
    for number in range(1000):
        nodes += [switch(f"s{number}", last if chained else "x", "p"), node("Neg", f"r{number}", f"s{number}:1")]
        nodes.append(node("Merge", f"m{number}", f"r{number}", f"s{number}"))
        last = f"m{number}"
    if not chained:
        nodes.append(node("AddN", "y", *(f"m{number}" for number in range(1000))))
        last = "y"
    with bounded():
        load(*nodes, outputs=last)


@pytest.mark.hostile
def test_thousands_of_values_in_one_loop():
    nodes = [X, const("c", np.array(False)), node("LoopCond", "l", "c")]
    for number in range(3000):
        nodes += [
            node("Enter", f"e{number}", "x", frame_name=b"f"),
            node("Merge", f"m{number}", f"e{number}", f"n{number}"),
            switch(f"s{number}", f"m{number}", "l"),
            node("NextIteration", f"n{number}", f"s{(number + 1) % 3000}:1"),
            node("Exit", f"y{number}", f"s{number}"),
        ]
    with bounded():
        load(*nodes, outputs="y0")


@pytest.mark.hostile
def test_a_long_row_of_switches_by_a_constant():
    nodes, last = [X, FALSE], "x"
    for number in range(10_000):
        nodes += [switch(f"s{number}", last, "c"), node("Neg", f"r{number}", f"s{number}")]
        last = f"s{number}"
    with bounded():
        load(*nodes, node("Merge", "y", last, "r9999"), outputs="r9999", limits=LoadLimits(max_nodes=200_000))
