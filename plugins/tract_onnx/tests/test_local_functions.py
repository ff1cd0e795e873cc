"""Operators that a file defines itself."""

from __future__ import annotations

import numpy as np
import pytest
from onnx_check import check, load
from onnx_containers import model_of

from tract_core.errors import CorruptModel, LimitExceeded

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def function(name, inputs, outputs, nodes, attributes=""):
    return f'<domain: "local", opset_import: ["": 17, "local": 1]> {name}{attributes} ({inputs}) => ({outputs}) {{ {nodes} }}'


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
                y = If (c) <then_branch = t () => (r) { r = local.A (x) }, else_branch = e () => (r) { r = Neg (x) }>""",
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
