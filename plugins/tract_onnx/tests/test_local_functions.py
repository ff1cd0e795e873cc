"""Operators that a file defines itself."""

from __future__ import annotations

import numpy as np
import pytest
from onnx_check import assert_close, check, load, run
from onnx_containers import model_of

from tract_core.errors import CorruptModel, LimitExceeded

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def function(name, inputs, outputs, nodes, attributes=""):
    header = '<domain: "local", opset_import: ["": 17, "local": 1]>'
    return f"{header} {name}{attributes} ({inputs}) => ({outputs}) {{ {nodes} }}"


def test_called_twice_with_other_attributes():
    scale = function(
        "Scale", "x", "y", "a = Constant<value_float: float = @alpha>()\n y = Mul (x, a)", attributes=" <alpha>"
    )
    body = """f (float[N,3] x) => (float[N,3] z) {
        y = local.Scale<alpha: float = 0.5>(x)
        z = local.Scale<alpha: float = 3.0>(y)
    }"""
    check(model_of(body, functions=scale), {"x": X})


def test_default_of_an_attribute_and_an_input_left_out():
    add = function(
        "AddOne",
        "x, lo, hi",
        "y",
        "a = Constant<value_float: float = @by>()\n s = Add (x, a)\n y = Clip (s, lo, hi)",
        attributes=" <by: float = 1.5>",
    )
    body = 'f (float[N,3] x, float hi) => (float[N,3] y) { y = local.AddOne (x, "", hi) }'
    check(model_of(body, functions=add), {"x": X, "hi": np.array(4, np.float32)})


def test_a_function_calls_another_inside_a_branch():
    functions = "\n".join(
        [
            function(
                "Choose",
                "x, c",
                "y",
                """t = Neg (x)
                y = If (c) <then_branch = t () => (r) { r = local.Twice (t) }, else_branch = e () => (r) {
                    x2 = local.Twice (x)
                    r = local.Twice (x2)
                }>""",
            ),
            function("Twice", "x", "y", "y = Add (x, x)"),
        ]
    )
    body = "f (float[N,3] x, bool c) => (float[N,3] t) { t = local.Choose (x, c) }"
    for chosen in (True, False):
        check(model_of(body, functions=functions), {"x": X, "c": np.array(chosen)})


def test_names_inside_do_not_meet_names_outside():
    square = function("Square", "a", "b", "x = Mul (a, a)\n b = Neg (x)")
    body = """f (float[N,3] x, float[N,3] a) => (float[N,3] y, float[N,3] b) {
        b = local.Square (a)
        y = Add (x, b)
    }"""
    check(model_of(body, functions=square), {"x": X, "a": X + 1})


def test_circles_are_refused():
    functions = "\n".join(
        [
            function("A", "x", "y", "y = local.B (x)"),
            function(
                "B",
                "x",
                "y",
                """c = Constant<value = bool {1}>()
                y = If (c) <then_branch = t () => (r) { r = local.A (x) },
                            else_branch = e () => (r) { r = Neg (x) }>""",
            ),
        ]
    )
    body = "f (float[N,3] x) => (float[N,3] y) { y = local.A (x) }"
    with pytest.raises(CorruptModel, match=r"in a circle: function local\.A -> function local\.B -> function local\.A"):
        load(model_of(body, functions=functions))


def test_a_function_twice():
    twice = function("A", "x", "y", "y = Neg (x)")
    with pytest.raises(CorruptModel, match=r"function local\.A: it is defined twice"):
        load(model_of("f (float[N,3] x) => (float[N,3] y) { y = local.A (x) }", functions=f"{twice}\n{twice}"))


def test_functions_that_unfold_without_bounds():
    """Each calls the one before it ten times: a billion nodes in a file of a few kilobytes."""
    functions = [function("F0", "x0", "y", "y = Neg (x0)")]
    for level in range(1, 10):
        calls = "\n".join(f"x{place + 1} = local.F{level - 1} (x{place})" for place in range(10))
        functions.append(function(f"F{level}", "x0", "y", f"{calls}\n y = Neg (x10)"))
    body = "f (float[N,3] x) => (float[N,3] y) { y = local.F9 (x) }"
    with pytest.raises(LimitExceeded, match="stands for more than 1000000 nodes"):
        load(model_of(body, functions="\n".join(functions)))


def test_functions_that_call_too_deeply():
    functions = [function("F0", "x", "y", "y = Neg (x)")]
    functions += [function(f"F{level}", "x", "y", f"y = local.F{level - 1} (x)") for level in range(1, 60)]
    body = "f (float[N,3] x) => (float[N,3] y) { y = local.F59 (x) }"
    with pytest.raises(LimitExceeded, match="functions call each other more than 32 deep"):
        load(model_of(body, functions="\n".join(reversed(functions))))


def test_a_failure_inside_names_the_node():
    wrong = function("Wrong", "x", "y", "y = MatMul (x, x)")
    with pytest.raises(Exception, match=r"node 'y' \(local\.Wrong\)"):
        load(model_of("f (float[2,3] x) => (float[] y) { y = local.Wrong (x) }", functions=wrong)).into_typed()


def test_a_function_in_another_version_of_the_operator_set():
    """Up to version 12, Softmax took all axes from ``axis`` on together; Squeeze had its axes as an attribute."""
    old = """<domain: "local", opset_import: ["": 11]> Old (x) => (y) {
        s = Softmax<axis = 1>(x)
        u = Unsqueeze<axes = [0]>(s)
        y = Squeeze<axes = [0]>(u)
    }"""
    body = """f (float[2,3,2] x) => (float[2,3,2] y, float[2,3,2] z) {
        y = local.Old (x)
        z = Softmax<axis = 1>(x)
    }"""
    x = np.random.default_rng(0).standard_normal((2, 3, 2)).astype(np.float32)
    powers = np.exp(x.astype(np.float64))
    wanted = [powers / powers.sum(axes, keepdims=True) for axes in ((1, 2), 1)]
    for declutter in (False, True):
        found = run(model_of(body, functions=old), {"x": x}, declutter=declutter)
        assert_close(found, [one.astype(np.float32) for one in wanted], 1e-6)


def test_a_loop_inside_reads_an_attribute_and_what_is_around_it():
    repeat = function(
        "Repeat",
        "x, n",
        "y",
        """step = Constant<value_float: float = @by>()
        double = Add (step, step)
        yes = Constant<value = bool {1}>()
        y = Loop (n, yes, x) <body = once (int64 i, bool c, float[N,3] before) => (bool again, float[N,3] after) {
            again = Identity (c)
            scaled = LeakyRelu<alpha: float = @by>(before)
            after = Add (scaled, double)
        }>""",
        attributes=" <by: float = 0.5>",
    )
    body = """f (float[N,3] x, int64 n) => (float[N,3] y, float[N,3] z) {
        y = local.Repeat (x, n)
        z = local.Repeat<by: float = 0.25>(x, n)
    }"""
    for count in (0, 1, 3):
        wanted = []
        for by in (0.5, 0.25):
            y = X - 3
            for _ in range(count):
                y = np.where(y < 0, y * by, y) + 2 * by
            wanted.append(y.astype(np.float32))
        for declutter in (False, True):
            found = run(model_of(body, functions=repeat), {"x": X - 3, "n": np.array(count)}, declutter=declutter)
            assert_close(found, wanted, 1e-6)


def test_an_input_that_is_an_output():
    both = function("Both", "x", "same, y", "same = Identity (x)\n y = Neg (x)")
    straight = function("Straight", "x", "x", "z = Neg (x)")
    body = """f (float[N,3] x) => (float[N,3] a, float[N,3] b, float[N,3] c) {
        a, b = local.Both (x)
        c = local.Straight (b)
    }"""
    for declutter in (False, True):
        found = run(model_of(body, functions=f"{both}\n{straight}"), {"x": X}, declutter=declutter)
        assert_close(found, [X, -X, -X], 1e-6)


def test_more_inputs_or_outputs_than_the_function_has():
    neg = function("Neg", "x", "y", "y = Neg (x)")
    body = "f (float[N,3] x) => (float[N,3] y) { y = local.Neg (x, x) }"
    with pytest.raises(CorruptModel, match="2 inputs are given, the function takes 1"):
        load(model_of(body, functions=neg)).into_typed()
    body = "f (float[N,3] x) => (float[N,3] y, float[N,3] z) { y, z = local.Neg (x) }"
    with pytest.raises(CorruptModel, match="2 outputs are read, the function has 1"):
        load(model_of(body, functions=neg)).into_typed()


def test_what_no_node_of_a_function_computes():
    lost = function("Lost", "x", "y", "z = Neg (x)")
    with pytest.raises(CorruptModel, match="nothing computes the output"):
        load(model_of("f (float[N,3] x) => (float[N,3] y) { y = local.Lost (x) }", functions=lost)).into_typed()


def test_an_attribute_that_is_neither_given_nor_has_a_default():
    scale = function("Leaky", "x", "y", "y = LeakyRelu<alpha: float = @alpha>(x)", attributes=" <alpha>")
    body = "f (float[N,3] x) => (float[N,3] y) { y = local.Leaky (x) }"
    (y,) = run(model_of(body, functions=scale), {"x": X - 3})
    np.testing.assert_allclose(y, np.where(X < 3, 0.01 * (X - 3), X - 3), rtol=1e-6)


def test_overloads_are_different_functions():
    model = model_of(
        "f (float[N,3] x) => (float[N,3] y, float[N,3] z) { y = local.F (x)\n z = local.F (x) }",
        functions=function("F", "x", "y", "y = Neg (x)") + "\n" + function("G", "x", "y", "y = Abs (x)"),
    )
    model.functions[1].name, model.functions[1].overload = "F", "other"
    model.graph.node[1].overload = "other"
    model.ir_version = 10
    assert_close(run(model, {"x": X - 3}), [3 - X, np.abs(X - 3)], 1e-6)
