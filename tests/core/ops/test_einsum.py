from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from tract_core.data import DatumType
from tract_core.errors import FactError
from tract_core.model.axes import AxesMapping
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.typed import TypedModel
from tract_core.ops import einsum
from tract_core.ops.einsum import EinSum, accumulator, matmul_axes, wire_matmul
from tract_core.runtime.plan import TypedSimplePlan

F32, I32 = DatumType.F32, DatumType.I32


def op(expression: str, acc: DatumType = F32, q_output: DatumType | None = None) -> EinSum:
    return EinSum(AxesMapping.parse(expression), acc, q_output)


def facts(*texts: str) -> list[Any]:
    return [parse_typed_fact(text) for text in texts]


@pytest.mark.parametrize(
    ("expression", "inputs", "output"),
    [
        ("mk,kn->mn", ["B,S,f32", "S,3,f32"], "B,3,f32"),
        ("bmk,bkn->bmn", ["B,2,3,f16", "B,3,N,f16"], "B,2,N,f16"),
        ("amk,akn->amn", ["1,2,3,f32", "B,3,4,f32"], "B,2,4,f32"),
    ],
)
def test_facts_are_symbolic(expression: str, inputs: Sequence[str], output: str) -> None:
    (found,) = op(expression).output_facts(facts(*inputs))
    assert str(found) == output


def test_integers_give_the_accumulator() -> None:
    (found,) = op("mk,kn->mn", I32).output_facts(facts("2,3,u8", "3,4,i8"))
    assert str(found) == "2,4,i32"


@pytest.mark.parametrize(
    ("bad", "inputs", "message"),
    [
        (op("mk,kn->mn"), ["2,3,f32"], "EinSum takes 2 inputs, 1 were given"),
        (op("mk,kn->mn"), ["2,3,f32", "4,5,f32"], "axis k has size 4 in input 1, 3 in an earlier one"),
        (op("mk,kn->mn"), ["2,3,1,f32", "3,5,f32"], "input 0 is 2,3,1,f32, of rank 3, not 2"),
        (op("mk,kn->mq"), ["2,3,f32", "3,5,f32"], "every axis of the output comes from an input"),
        (op("mk->mm"), ["2,3,f32"], "every axis of the output comes from an input"),
        (op("mk,kn->mn"), ["2,3,f32", "3,5,f16"], "wants inputs of one element type, found f32, f16"),
        (op("mk,kn->mn"), ["2,3,i8", "3,5,i8"], "cannot sum products of i8, i8 in f32"),
        (op("mk,kn->mn", I32), ["2,3,f32", "3,5,f32"], "cannot sum products of f32, f32 in i32"),
        (op("mk,kn->mn", I32, DatumType.I8), ["2,3,i8", "3,5,i8"], "with q_output takes 9 inputs, 2 were given"),
        (op("a->a,a"), ["2,f32"], "one output is wanted, found 2"),
    ],
)
def test_refusals_say_what_was_found(bad: EinSum, inputs: Sequence[str], message: str) -> None:
    with pytest.raises(FactError, match=message):
        bad.output_facts(facts(*inputs))


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("mk,kn,,,k,,,,->mn", "bias, scales and c0 may only vary along axes of the output"),
        ("mk,kn,,n,,,,,->mn", "a zero point may only vary along axes of its tensor"),
    ],
)
def test_parameters_vary_where_they_may(expression: str, message: str) -> None:
    sizes = {"m": "2,", "k": "3,", "n": "4,", "": ""}
    terms = expression.partition("->")[0].split(",")
    kinds = ["i8", "i8", "i32", "i8", "f32", "i8", "f32", "i8", "f32"]
    inputs = facts(*("".join(map(sizes.get, term)) + kind for term, kind in zip(terms, kinds, strict=True)))
    with pytest.raises(FactError, match=message):
        op(expression, I32, DatumType.I8).output_facts(inputs)


@pytest.mark.parametrize(
    ("expression", "inputs", "count"),
    [
        ("mk,kn->mn", ["2,3,f32", "3,4,f32"], "24"),
        ("mk,kn->mn", ["B,3,f32", "3,4,f32"], "12*B"),
        ("bmk,kn->bmn", ["5,2,3,f32", "3,4,f32"], "120"),
        ("bmk,bkn->bmn", ["1,2,3,f32", "5,3,4,f32"], "120"),
        ("ab,bc,cd->ad", ["2,3,f32", "3,5,f32", "5,7,f32"], str(2 * 3 * 5 + 2 * 5 * 7)),
        ("ab->a", ["2,3,f32"], "6"),
    ],
)
def test_cost_is_exact(expression: str, inputs: Sequence[str], count: str) -> None:
    subject = op(expression)
    given = facts(*inputs)
    found = einsum.cost(subject, given, subject.output_facts(given))
    assert {kind: str(value) for kind, value in found.items()} == {"FMA(F32)": count}


def test_a_transposition_costs_nothing() -> None:
    subject, given = op("ab->ba"), facts("2,3,f32")
    assert einsum.cost(subject, given, subject.output_facts(given)) == {}


def test_a_stretched_axis_is_an_axis_of_its_own() -> None:
    subject, given = op("bmk,bkn->bmn"), facts("1,2,3,f32", "5,3,4,f32")
    mapping = einsum.axes(subject, given, subject.output_facts(given))
    assert mapping.track(("in", 1, 0), ("out", 0)) == 0
    assert mapping.track(("in", 0, 0), ("out", 0)) is None
    assert mapping.track(("in", 0, 2), ("in", 1)) == 1


@pytest.mark.parametrize("ranks", [(1, 1), (1, 2), (2, 1), (2, 2), (3, 2), (2, 4), (4, 3), (1, 3), (4, 1)])
def test_matmul_follows_numpy(ranks: tuple[int, int]) -> None:
    shapes = [(2, 3, 4, 5)[-ranks[0] :], (2, 3, 5, 6)[-ranks[1] :] if ranks[1] > 1 else (5,)]
    random = np.random.default_rng(7)
    arrays = [random.normal(size=shape).astype(np.float32) for shape in shapes]
    model = TypedModel()
    sources = [
        model.add_source(f"x{i}", parse_typed_fact(",".join(map(str, [*s, "f32"])))) for i, s in enumerate(shapes)
    ]
    model.set_outputs([wire_matmul(model, "product", *sources)])
    (found,) = TypedSimplePlan(model).run(arrays)
    wanted = np.matmul(*(array.astype(np.float64) for array in arrays))
    assert found.shape == wanted.shape
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)


def test_matmul_wants_axes() -> None:
    with pytest.raises(FactError, match="found ranks 0 and 2"):
        matmul_axes(0, 2)


@pytest.mark.parametrize(
    ("kind", "wanted"), [("f16", "f32"), ("bf16", "f32"), ("f64", "f64"), ("i8", "i32"), ("u16", "i32"), ("i64", "i64")]
)
def test_accumulators(kind: str, wanted: str) -> None:
    assert accumulator(DatumType.parse(kind)) is DatumType.parse(wanted)


def test_f16_sums_are_rounded_once() -> None:
    """4096 times 1/4096 of the largest step: summed in f16, nothing would be added beyond 2048."""
    model = TypedModel()
    x = model.add_source("x", parse_typed_fact("4096,f16"))
    ones = model.add_const("ones", np.ones(4096, np.float16))
    model.set_outputs([wire_matmul(model, "sum", x, ones)])
    (found,) = TypedSimplePlan(model).run([np.ones(4096, np.float16)])
    assert found.dtype == np.float16
    assert found == 4096


@pytest.mark.parametrize("signed", [False, True])
def test_quantised_product_agrees_with_onnx(
    run_op: Callable[..., Any], run_onnx: Callable[..., Any], signed: bool
) -> None:
    random = np.random.default_rng(3)
    kind = np.int8 if signed else np.uint8
    low, high = np.iinfo(kind).min, np.iinfo(kind).max
    a = random.integers(low, high, (5, 16), dtype=kind, endpoint=True)
    b = random.integers(low, high, (16, 7), dtype=kind, endpoint=True)
    a0, b0, c0 = (np.array(random.integers(0, 100), kind) for _ in range(3))
    scales = [np.array(value, np.float32) for value in (0.02, 0.03, 0.11)]
    wanted = run_onnx("QLinearMatMul", [a, scales[0], a0, b, scales[1], b0, scales[2], c0], opset=10)[0]
    subject = EinSum(AxesMapping.parse("mk,kn,,,,,,,->mn"), I32, DatumType.from_numpy(kind))
    (found,) = run_op(subject, [a, b, np.array(0, np.int32), a0, scales[0], b0, scales[1], c0, scales[2]])
    assert found.dtype == wanted.dtype
    np.testing.assert_array_equal(found, wanted)
