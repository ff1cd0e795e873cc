"""What graph.quant says of tensors: inputs, variables and results are stored so, and operators see real numbers."""

from __future__ import annotations

import numpy as np
import pytest
from statements import graph, read, read_back, written
from tract_nnef.reading.quantized import quantized_types
from tract_nnef.syntax.printer import print_quantization

import tract_core as tract
from tract_core.data import DatumType, QuantizedType
from tract_core.model.const import Const
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.same import same_model
from tract_core.model.typed import TypedModel
from tract_core.ops.cast import Cast
from tract_core.runtime.plan import TypedSimplePlan

X = np.array([[-2.0, -0.3, 0.0], [0.25, 0.6, 9.0]], np.float32)
U8 = QuantizedType(DatumType.U8, 3, 0.5)
I8 = QuantizedType(DatumType.I8, -1, 0.25)
I32 = QuantizedType(DatumType.I32, 0, 1e-3)


def stored(x, kind):
    info = np.iinfo(kind.storage.numpy)
    return np.clip(np.rint(np.asarray(x, np.float64) / kind.scale) + kind.zero_point, info.min, info.max)


def real(x, kind):
    return (np.asarray(x, np.float64) - kind.zero_point) * kind.scale


def run(statements, inputs, quantized, tensors=None):
    model = read(graph(statements, inputs), tensors, quantized)
    (found,) = TypedSimplePlan(model).run(inputs)
    return model.outlet_fact(model.outputs[0]).datum_type, found


@pytest.mark.parametrize("kind", [U8, I8, I32], ids=str)
def test_a_result_is_rounded_to_its_type(kind) -> None:
    found, y = run("y = a * 1.5;", [X], {"y": kind})
    assert found == kind
    np.testing.assert_array_equal(y, stored(X * 1.5, kind))


@pytest.mark.parametrize("kind", [U8, I8, I32], ids=str)
def test_operators_see_the_numbers_that_a_tensor_stands_for(kind) -> None:
    seen = real(stored(X, kind), kind)
    for statement, expected in [
        ("y = q + 1.0;", seen + 1),
        ("y = q * b;", seen * X),
        ("y = max(q, 0.25);", np.maximum(seen, 0.25)),
        ("y = q < 1.0;", seen < 1),
        ("y = exp(q);", np.exp(seen)),
        ("y = -q;", -seen),
        ("y = sum_reduce(q, axes = [1]);", seen.sum(1, keepdims=True)),
        ("y = softmax(q);", np.exp(seen) / np.exp(seen).sum(1, keepdims=True)),
        ("y = select(b < 0.0, q, b);", np.where(X < 0, seen, X)),
        ("y = concat([q, b], axis = 0);", np.concatenate([seen, X])),
        ("y = leaky_relu(q, alpha = 0.5);", np.where(seen < 0, seen / 2, seen)),
        ("y = elu(q);", np.where(seen < 0, np.expm1(seen), seen)),
        ("y = cast<scalar>(q);", seen),
    ]:
        _, y = run(f"q = copy(a); {statement}", [X, X], {"q": kind})
        np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-6, err_msg=statement)


def test_what_only_orders_or_moves_elements_stays_as_it_is_stored() -> None:
    held = stored(X, U8)
    for statement, expected in [
        ("y = max(q, q);", held),
        ("y = transpose(q, axes = [1, 0]);", held.T),
        ("y = max_reduce(q, axes = [1]);", held.max(1, keepdims=True)),
        ("y = concat([q, q], axis = 0);", np.concatenate([held, held])),
        ("y = slice(q, axes = [1], begin = [1], end = [0]);", held[:, 1:]),
    ]:
        kind, y = run(f"q = copy(a); {statement}", [X], {"q": U8})
        assert kind == U8
        np.testing.assert_array_equal(y, expected)


def test_padding_is_given_as_a_real_number() -> None:
    kind, y = run("q = copy(a); y = pad(q, padding = [(0, 0), (1, 0)], value = 1.0);", [X], {"q": U8})
    assert kind == U8
    np.testing.assert_array_equal(y[:, 0], stored([1.0, 1.0], U8))


def test_a_copy_may_be_of_another_type() -> None:
    kind, y = run("q = copy(a); y = copy(q);", [X], {"q": U8, "y": I8})
    assert kind == I8
    np.testing.assert_array_equal(y, stored(real(stored(X, U8), U8), I8))


@pytest.mark.parametrize("kind", [U8, I8, I32], ids=str)
def test_a_variable_holds_what_is_stored(kind) -> None:
    held = np.array([0, 7, 100], kind.storage.numpy)
    statements = "q = variable(label = 'w', shape = [3]); y = copy(q);"
    found, y = run(statements, [], {"q": kind}, {"w": held})
    assert found == kind
    np.testing.assert_array_equal(y, held)
    _, y = run("q = variable(label = 'w', shape = [3]); y = q + 0.0;", [], {"q": kind}, {"w": held})
    np.testing.assert_allclose(y, real(held, kind), rtol=1e-6)


def test_an_input_may_be_quantized() -> None:
    text = graph("y = a + 0.0;", [X])
    model = read(text, None, {"a": U8})
    assert model.outlet_fact(model.inputs[0]).datum_type == U8
    held = stored(X, U8).astype(np.uint8)
    (y,) = TypedSimplePlan(model).run([held])
    np.testing.assert_allclose(y, real(held, U8), rtol=1e-6)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("zero_point_linear_quantize(zero_point = 3, scale = 0.5, bits = 8, signed = false, symmetric = false)", U8),
        ("zero_point_linear_quantize(scale = 0.25, bits = 8, zero_point = -1)", I8),
        ("zero_point_linear_quantize(0, 1e-3, 32, true, true)", I32),
        ("linear_quantize(max = 127.0, min = -0.5, bits = 8)", QuantizedType(DatumType.U8, 1, 0.5)),
        ("linear_quantize(0, 510, 8)", QuantizedType(DatumType.U8, 0, 2.0)),
        ("min_max_linear_quantize(-64.0, 63.5, 8, true, false)", QuantizedType(DatumType.I8, 0, 0.5)),
        (
            "min_max_linear_quantize(min = -63.5, max = 63.5, bits = 8, signed = true, symmetric = true)",
            QuantizedType(DatumType.I8, 0, 0.5),
        ),
    ],
    ids=lambda one: str(one)[:70],
)
def test_the_operators_of_the_standard_say_a_type(line, expected) -> None:
    assert quantized_types(f'"x": {line};') == {"x": expected}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("logarithmic_quantize(max = 2.0, bits = 8)", "logarithmic_quantize says how a tensor is quantised; known are"),
        ("linear_quantize(min = 0.0, max = 1.0, bits = 4)", "4 bits, unsigned: quantised values have 8 bits"),
        ("linear_quantize(min = 1.0, max = 1.0, bits = 8)", "the range is 1.0 to 1.0, wanted a lower and a higher"),
        ("linear_quantize(min = 1.0, bits = 8)", "linear_quantize wants 'max', which is not given"),
        ("linear_quantize(low = 1.0, bits = 8)", "an argument 'low' that it does not take, wanted min, max, bits"),
        ("zero_point_linear_quantize(0.5, 1.0, 8)", "the zero point is 0.5, wanted an integer"),
        ("zero_point_linear_quantize(0, 0.0, 8)", "the scale of quantised values is 0.0"),
    ],
)
def test_what_makes_no_sense_is_refused_with_its_line(line, message) -> None:
    with pytest.raises(tract.errors.TractError, match=message) as error:
        quantized_types(f'\n"x": {line};')
    assert "line 2" in str(error.value)


def test_integers_are_no_real_numbers() -> None:
    with pytest.raises(tract.errors.CorruptModel, match="'y' is i64, and graph"):
        run("y = argmax_reduce(a, axes = [0]);", [X], {"y": U8})


@pytest.mark.parametrize("scale", [0.1, 1 / 3, 1e-12, 3.4028234e38, 5e-324])
def test_scale_and_zero_point_come_back_digit_by_digit(scale) -> None:
    kind = QuantizedType(DatumType.I8, -128, scale)
    model = TypedModel()
    x = model.add_source("x", parse_typed_fact("3,f32"))
    model.set_outputs(model.wire_node("y", Cast(kind), [x]))
    assert quantized_types(print_quantization(written(model).quantization)) == {"y": kind}


@pytest.mark.parametrize(
    "kind", [U8, I8, QuantizedType(DatumType.U8, 7, 0.1), QuantizedType(DatumType.I32, -3, 1 / 3)], ids=str
)
def test_a_variable_is_what_the_file_holds_and_comes_back(kind) -> None:
    """Every byte; and integers that no f32 holds, with a zero point and a scale that it does not hold either."""
    ends = np.iinfo(kind.storage.numpy)
    held = np.array([ends.min, ends.max, 2**24 + 1, -(2**30) - 1], np.int32)
    held = held if kind.storage is DatumType.I32 else np.arange(256).astype(kind.storage.numpy)
    text = graph(f"y = variable(label = 'w', shape = [{held.size}]);", [])
    model = read(text, {"w": held}, {"y": kind})
    for found in (model, read_back(model), read_back(model).declutter()):
        (constant,) = [node.op.value for node in found.live_nodes() if isinstance(node.op, Const)]
        np.testing.assert_array_equal(constant.array, held)
        assert found.outlet_fact(found.outputs[0]).datum_type == kind
        np.testing.assert_array_equal(TypedSimplePlan(found).run([])[0], held)
        assert same_model(found, model)


def test_integers_that_are_computed_are_stored_as_they_are() -> None:
    held = np.array([2**24 + 1, -(2**31), 2**31 - 1], np.int64)
    kind = QuantizedType(DatumType.I32, 5, 0.3)
    found, y = run("y = tract_core_cast(a, to = 'i32');", [held], {"y": kind})
    assert found == kind
    np.testing.assert_array_equal(y, held)
