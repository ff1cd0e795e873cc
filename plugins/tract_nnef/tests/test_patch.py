"""The transform ``patch``: names are those of tensors, and what is assigned to one takes its place."""

from __future__ import annotations

import json

import numpy as np
import pytest

import tract_core as tract
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.typed import TypedModel
from tract_core.ops.binary import Mul
from tract_core.ops.elementwise import Exp, Neg, Square

X = np.array([[0.5, -1.0, 2.0], [0.0, 1.5, -0.25]], np.float32)


def model() -> tract.Model:
    """a = exp(x), b = -a, y = b * b"""
    graph = TypedModel()
    x = graph.add_source("x", parse_typed_fact("N,3,f32", graph.symbols))
    a = graph.wire_node("a", Exp(), [x])
    b = graph.wire_node("b", Neg(), a)
    graph.set_outputs(graph.wire_node("y", Square(), b))
    return tract.Model.from_typed(graph)


def patched(body: str, *new_outputs: str) -> dict[str, np.ndarray]:
    found = model()
    found.transform(json.dumps({"name": "patch", "body": body, "new_outputs": list(new_outputs)}))
    names = [found.output_name(slot) for slot in range(found.output_count())]
    return dict(zip(names, (one.to_numpy() for one in found.into_runnable().run([X])), strict=True))


WIDE = X.astype(np.float64)
A = np.exp(WIDE)


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        ("b = a * 2.0;", (2 * A) ** 2),
        ("b = b * 10.0;", (10 * A) ** 2),
        ("a = a + 1.0;", (A + 1) ** 2),
        ("a = exp(x) + 1.0;", (A + 1) ** 2),
        ("x = x * 10.0;", np.exp(10 * WIDE) ** 2),
        ("y = y * 10.0;", 10 * A**2),
        ("b = a;", A**2),
        ("b = x;", WIDE**2),
        ("w = a * 2.0; b = w + 1.0;", (2 * A + 1) ** 2),
        ("a = a + 1.0; b = a * 3.0;", (3 * (A + 1)) ** 2),
        ("b = tract_core_cast(tract_core_cast(a, to = 'f64'), to = 'f32');", A**2),
        ("b = a * [[1.0, 2.0, 3.0]];", (A * [1, 2, 3]) ** 2),
        ("b = a * scalar(shape_of(a)[1]);", (A * 3) ** 2),
        ("a = silu(a); y = a;", A / (1 + np.exp(-A))),
    ],
)
def test_what_is_assigned_takes_the_place_of_the_tensor(body, wanted) -> None:
    found = patched(body)
    assert [*found] == ["y"]
    np.testing.assert_allclose(found["y"], wanted, rtol=1e-5)


def test_more_outputs() -> None:
    found = patched("b = b * 10.0; z = b + 1.0;", "z", "a", "y")
    assert [*found] == ["y", "z", "a"]
    np.testing.assert_allclose(found["z"], 1 - 10 * A, rtol=1e-5)
    np.testing.assert_allclose(found["a"], A, rtol=1e-5)
    same = patched("c = a * 2.0; d = c;", "d")
    np.testing.assert_allclose(same["d"], 2 * A, rtol=1e-5)


def test_an_input_that_statements_add() -> None:
    found = model()
    found.transform('{"name": "patch", "body": "c = external<scalar>(shape = [1, 3]); b = a * c;"}')
    assert [found.input_name(slot) for slot in range(found.input_count())] == ["x", "c"]
    (y,) = found.into_runnable().run([X, np.array([[1, 2, 3]], np.float32)])
    np.testing.assert_allclose(y.to_numpy(), (A * [1, 2, 3]) ** 2, rtol=1e-5)


def test_names_that_are_no_identifiers() -> None:
    graph = TypedModel()
    x = graph.add_source("in/0", parse_typed_fact("2,3,f32", graph.symbols))
    graph.set_outputs(graph.wire_node("a/b", Exp(), [x]))
    found = tract.Model.from_typed(graph)
    found.transform('{"name": "patch", "body": "i\'a/b\' = i\'a/b\' * 2.0;"}')
    assert found.output_name(0) == "a/b"
    np.testing.assert_allclose(found.into_runnable().run([X])[0].to_numpy(), 2 * A, rtol=1e-5)


@pytest.mark.parametrize(
    ("body", "outputs", "problem"),
    [
        ("q = nope * 10.0;", [], "'nope' is not defined"),
        ("c = a * 2.0;", [], "'c' is assigned, and nothing reads it"),
        ("", ["c"], "there is no tensor 'c' to be an output"),
        ("b = a * 2.0", [], "the text ends, wanted an operator or ';'"),
        ("a = b * 2.0;", [], "'a' would be computed from itself"),
        ("b = y + 1.0;", [], "'b' would be computed from itself"),
        ("b = sum_reduce(a, axes = [1]);", [], "'b' is N,3,f32, and what is put in its place is N,1,f32"),
        ("b = variable(label = 'w', shape = [2, 3]);", [], "a patch has no tensors beside it, and asks for 'w'"),
        ("b = nopw(a);", [], "there is no operator 'nopw'"),
    ],
)
def test_what_cannot_be_is_refused_and_the_model_stays(body, outputs, problem) -> None:
    found = model()
    with pytest.raises(tract.errors.TransformError) as error:
        found.transform(json.dumps({"name": "patch", "body": body, "new_outputs": outputs}))
    assert problem in str(error.value)
    assert (
        "hint" in str(error.value)
        or "is N,3" in problem
        or "itself" in problem
        or "variable" in body
        or body == "b = a * 2.0"
    )
    np.testing.assert_allclose(found.into_runnable().run([X])[0].to_numpy(), A**2, rtol=1e-5)


def test_a_name_that_is_nearly_one_of_the_model_is_guessed() -> None:
    found = model()
    with pytest.raises(tract.errors.TransformError) as error:
        found.transform('{"name": "patch", "body": "aa = a * 2.0;"}')
    assert "hint" in str(error.value)


def test_what_was_known_of_a_constant_is_forgotten() -> None:
    graph = TypedModel()
    x = graph.add_source("x", parse_typed_fact("2,3,f32", graph.symbols))
    c = graph.add_const("c", np.full((1, 3), 2, np.float32))
    (d,) = graph.wire_node("d", Exp(), [c])
    graph.set_outputs(graph.wire_node("y", Mul(), [x, d]))
    found = tract.Model.from_typed(graph)
    found.transform('{"name": "patch", "body": "c = [[0.0, 1.0, 0.0]];"}')
    np.testing.assert_allclose(found.into_runnable().run([X])[0].to_numpy(), WIDE * [1, np.e, 1], rtol=1e-6)
