"""Sequences, against ONNX Runtime where it takes them, else against written-down results."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import onnx
import pytest
from onnx_check import load
from onnx_containers import check_text, give, model_of, outputs_of, plan_of

import tract_core
from tract_core.errors import FactError, InputError, RunError, TractError, Unsupported
from tract_core.model.source import TypedSource
from tract_core.ops.loop import Loop
from tract_core.ops.slice import Slice


def f32(*values):
    return np.array(values, np.float32)


ITEMS = [f32(1, 2), f32([3.0], [4.0]), f32(5)]


def test_construct_insert_erase_at_length():
    check_text(
        """f (float[N] x, float[2,M] y) => (seq(float[]) s, float[] a, float[] b, int64 n) {
            one = Constant<value_int: int = 1>()
            back = Constant<value_int: int = -1>()
            s0 = SequenceConstruct (x, y)
            s1 = SequenceInsert (s0, x, one)
            s2 = SequenceInsert (s1, y)
            s = SequenceErase (s2, one)
            a = SequenceAt (s2, one)
            b = SequenceAt (s2, back)
            n = SequenceLength (s)
        }""",
        f32(1, 2, 3),
        f32([1, 2], [3, 4]),
    )


def test_sequence_as_input():
    check_text(
        "f (seq(float[M]) s, int64 i) => (float[M] y, int64 n) { y = SequenceAt (s, i)\n n = SequenceLength (s) }",
        [f32(1, 2), f32(3), f32(4, 5, 6)],
        np.array(-2),
    )


def test_empty_takes_its_type():
    (found,) = outputs_of("f () => (seq(int64[]) s) { s = SequenceEmpty<dtype: int = 7>() }")
    assert found == []
    with pytest.raises(FactError, match=r"a value of 2,f32 does not go into sequence\(\.\.,i64\)"):
        load(
            model_of(
                """f (float[2] x) => (seq(int64[]) s) {
                    e = SequenceEmpty<dtype: int = 7>()
                    s = SequenceInsert (e, x)
                }"""
            )
        ).into_typed()


def test_default_type_is_f32():
    typed = load(model_of("f () => (seq(float[]) s) { s = SequenceEmpty() }")).into_typed()
    assert str(typed.outlet_fact(typed.outputs[0])) == "sequence(..,f32)"


@pytest.mark.parametrize(
    ("sizes", "pieces"),
    [
        ("split = Constant<value_ints: ints = [1, 3]>()", [1, 3]),
        ("split = Constant<value_int: int = 3>()", [3, 1]),
        ("split = Constant<value_int: int = 5>()", [4]),
    ],
)
def test_split_of_known_sizes_is_slices(sizes, pieces):
    x = np.arange(8, dtype=np.float32).reshape(4, 2)
    body = f"f (float[4,B] x) => (seq(float[]) s) {{ {sizes}\n s = SplitToSequence<axis: int = -2>(x, split) }}"
    ends = np.cumsum([0, *pieces])
    check_text(body, x, wanted=[[x[a:b] for a, b in pairwise(ends)]])
    typed = load(model_of(body)).into_typed()
    assert sum(isinstance(node.op, Slice) for node in typed.nodes) == len(pieces)


def test_split_of_sizes_that_a_run_tells():
    body = "f (float[A,B] x, int64[N] split) => (seq(float[]) s) { s = SplitToSequence<axis: int = 1>(x, split) }"
    x = np.arange(12, dtype=np.float32).reshape(2, 6)
    check_text(body, x, np.array([1, 2, 3]), wanted=[[x[:, :1], x[:, 1:3], x[:, 3:]]])
    with pytest.raises(RunError, match=r"axis 1 of size 6 cannot be cut into pieces of sizes \[1, 2\]"):
        outputs_of(body, x, np.array([1, 2]))


def test_split_without_sizes():
    x = np.arange(6, dtype=np.float32).reshape(3, 2)
    for symbol in ("3", "N"):
        lost = f"f (float[{symbol},2] x) => (seq(float[]) s) {{ s = SplitToSequence<keepdims: int = 0>(x) }}"
        check_text(lost, x, wanted=[list(x)])
        kept = f"f (float[{symbol},2] x) => (seq(float[]) s) {{ s = SplitToSequence(x) }}"
        check_text(kept, x, wanted=[[x[:1], x[1:2], x[2:]]])


@pytest.mark.parametrize(("axis", "new_axis"), [(0, 0), (-1, 0), (1, 1), (-1, 1)])
def test_concat_from(axis, new_axis):
    body = f"""f (seq(float[2,M]) s) => (float[] y) {{
        y = ConcatFromSequence<axis: int = {axis}, new_axis: int = {new_axis}>(s)
    }}"""
    check_text(body, [f32([1, 2], [3, 4]), f32([5, 6], [7, 8])])


def test_concat_from_nothing():
    body = "f (seq(float[2]) s) => (float[] y) { y = ConcatFromSequence<axis: int = 0>(s) }"
    with pytest.raises(RunError, match="the sequence is empty, there is nothing to join"):
        outputs_of(body, [])


def test_known_sequences_leave_no_trace():
    body = """f (float[4,B] x) => (float[] y) {
        s = SplitToSequence (x)
        i = Constant<value_int: int = 2>()
        a = SequenceAt (s, i)
        b = ConcatFromSequence<axis: int = 0>(s)
        y = Add (a, b)
    }"""
    x = np.arange(8, dtype=np.float32).reshape(4, 2)
    check_text(body, x, wanted=[x[2:3] + x])
    plan = plan_of(model_of(body))
    assert str(plan.model.outlet_fact(plan.outputs[0])) == "4,B,f32"
    assert {node.op.name for node in plan.model.nodes} == {"TypedSource", "Slice", "Add"}


def test_sizes_of_an_item_at_a_known_position():
    body = """f (float[N] x, float[2,M] y, int64 p) => (float[] a, float[] b) {
        one = Constant<value_int: int = 1>()
        s = SequenceConstruct (x, y)
        t = SequenceErase (s, p)
        a = SequenceAt (s, one)
        zero = Constant<value_int: int = 0>()
        u = SequenceConstruct (x, x)
        b = SequenceAt (u, p)
    }"""
    typed = load(model_of(body)).into_typed()
    assert [str(typed.outlet_fact(outlet)) for outlet in typed.outputs] == ["2,M,f32", "N,f32"]


def test_unknown_rank_asks_for_a_fact():
    body = "f (seq(float[]) s, int64 i) => (float[] y) { y = SequenceAt (s, i) }"
    with pytest.raises(
        Unsupported, match=r"the rank of what 's' \(sequence\(\.\.,f32\)\) holds is not known"
    ) as caught:
        load(model_of(body)).into_typed()
    assert "sequence(_,_,f32)" in str(caught.value)
    only_passed_on = "f (seq(float[]) s, float[2] x) => (seq(float[]) t) { t = SequenceInsert (s, x) }"
    check_text(only_passed_on, ITEMS, f32(8, 9), wanted=[[*ITEMS, f32(8, 9)]])


def test_a_fact_given_for_a_sequence(tmp_path):
    body = "f (seq(float[]) s, int64 i) => (float[] y) { y = SequenceAt (s, i) }"
    onnx.save(model_of(body), tmp_path / "model.onnx")
    model = tract_core.onnx().load(tmp_path / "model.onnx")
    model.set_input_fact(0, "sequence(_,2,f32)")
    runnable = tract_core.runtime_for_name("default").prepare(model.into_model())
    (found,) = runnable.run([[f32([1, 2]), f32([3, 4], [5, 6])], np.array(1)])
    assert found.to_numpy().tolist() == [[3, 4], [5, 6]]


def test_lists_through_the_public_interface(tmp_path):
    body = """f (seq(float[]) s, float[2] x) => (seq(float[]) t, int64 n) {
        t = SequenceInsert (s, x)
        n = SequenceLength (t)
    }"""
    onnx.save(model_of(body), tmp_path / "model.onnx")
    model = tract_core.onnx().load(tmp_path / "model.onnx").into_model()
    assert str(model.input_fact(0)) == "sequence(..,f32)"
    runnable = tract_core.runtime_for_name("default").prepare(model)
    given = f32(1, 2)
    found, count = runnable.run([[given, tract_core.Tensor.from_numpy(f32(3))], f32(8, 9)])
    assert [one.to_numpy().tolist() for one in found] == [[1, 2], [3], [8, 9]]
    assert count.to_numpy() == 3
    given[0] = 7
    assert found[0].to_numpy().tolist() == [1, 2]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([np.array([1, 2])], r"item 0: it is i64, 2,_,f32 is wanted"),
        ([f32([1], [2]), f32(1, 2)], r"item 1: it has rank 1 \(shape \(2,\)\), 2,_,f32 is wanted"),
        ([f32([1], [2], [3])], r"item 0: axis 0 has size 3, 2,_,f32 is wanted"),
        (None, r"it is a nothing \(None\), a list is wanted for sequence\(2,_,f32\)"),
        ({}, r"it is a dict, a list is wanted for sequence\(2,_,f32\)"),
        ([[1]], r"item 0: it is a list, an array is wanted for 2,_,f32"),
    ],
)
def test_what_does_not_fit_a_sequence(value, message):
    with pytest.raises(InputError, match=message) as caught:
        outputs_of("f (seq(float[2,M]) s) => (int64 n) { n = SequenceLength (s) }", value)
    assert caught.value.where == "input 's'"


@pytest.mark.parametrize("position", [3, -4])
def test_position_outside(position):
    body = "f (seq(float[M]) s, int64 i) => (float[M] y) { y = SequenceAt (s, i) }"
    with pytest.raises(RunError, match=f"position {position} is outside a sequence of 3 values"):
        outputs_of(body, [f32(1), f32(2), f32(3)], np.array(position))
    known = f"""f (float[2] x) => (float[] y) {{
        i = Constant<value_int: int = {position}>()
        s = SequenceConstruct (x, x, x)
        y = SequenceAt (s, i)
    }}"""
    with pytest.raises(FactError, match=f"position {position} is outside a sequence of 3 values"):
        load(model_of(known)).into_typed()


def test_numbers_are_no_sequence_and_sequences_no_numbers():
    for body, message in (
        ("f (float[2] x) => (int64 n) { n = SequenceLength (x) }", "SequenceLength wants a sequence, found 2,f32"),
        ("f (seq(float[]) s) => (float y) { y = Neg (s) }", r"sequence\(\.\.,f32\)"),
        ("f (seq(float[]) s, seq(float[]) t) => (float y) { y = Add (s, t) }", r"sequence\(\.\.,f32\)"),
    ):
        with pytest.raises(TractError, match=message):
            load(model_of(body)).into_typed()


def test_mixed_types_are_refused():
    with pytest.raises(FactError, match=r"SequenceConstruct wants values of type f32, input 1 is 2,i64"):
        load(model_of("f (float[2] x, int64[2] y) => (seq(float[]) s) { s = SequenceConstruct (x, y) }")).into_typed()


def test_if_of_sequences_knows_what_both_have_in_common():
    body = """f (bool c, float[2,A] x, float[2,B] y) => (seq(float[]) s, float[] e) {
        s = If (c) <then_branch = t () => (seq(float[]) r) { r = SequenceConstruct (x) },
                    else_branch = e () => (seq(float[]) r) { r = SequenceConstruct (y, y) }>
        i = Constant<value_int: int = -1>()
        e = SequenceAt (s, i)
    }"""
    x, y = np.ones((2, 3), np.float32), np.full((2, 1), 5, np.float32)
    check_text(body, np.array(True), x, y, wanted=[[x], x])
    check_text(body, np.array(False), x, y, wanted=[[y, y], y])
    typed = load(model_of(body)).into_typed()
    sequence, item = (typed.outlet_fact(outlet) for outlet in typed.outputs)
    assert str(sequence) == "sequence(2,_,f32)"
    assert item.shape[0] == 2
    assert not isinstance(item.shape[1], int)


def test_if_of_different_sequences_gives_one_of_them():
    body = """f (bool c, float[2] x, int64[2] y) => (seq(float[]) s) {
        s = If (c) <then_branch = t () => (seq(float[]) r) { r = SequenceConstruct (x) },
                    else_branch = e () => (seq(int64[]) r) { r = SequenceConstruct (y) }>
    }"""
    plan = plan_of(model_of(body))
    x, y = np.ones(2, np.float32), np.ones(2, np.int64)
    ((found,),) = give(plan, [np.array(True), x, y])
    np.testing.assert_array_equal(found, x)
    with pytest.raises(RunError, match=r"the else branch gives sequence\(2,i64\)"):
        give(plan, [np.array(False), x, y])


def test_sequence_map():
    body = """f (seq(float[M,2]) s, float[2] w) => (seq(float[]) y, seq(int64[]) n) {
        y, n = SequenceMap (s, w) <body = b (float[M,2] x, float[2] v) => (float[] r, int64[] k) {
            z = Mul (x, v)
            axes = Constant<value_ints: ints = [0]>()
            r = ReduceSum<keepdims: int = 0>(z, axes)
            k = Shape (x)
        }>
    }"""
    w, items = f32(2, 3), [f32([1, 2]), f32([1, 2], [3, 4], [5, 6])]
    check_text(body, items, w, wanted=[[f32(2, 6), f32(18, 36)], [np.array([1, 2]), np.array([3, 2])]])
    check_text(body, [], w, wanted=[[], []])


def test_sequence_map_sees_what_is_around_it():
    body = """f (seq(float[M]) s, seq(float[M]) t, float[1] k) => (seq(float[M]) y) {
        y = SequenceMap (s, t) <body = b (float[M] x, float[M] z) => (float[M] r) {
            a = Add (x, z)
            r = Mul (a, k)
        }>
    }"""
    check_text(body, [f32(1, 2), f32(3)], [f32(10, 20), f32(30)], f32(2), wanted=[[f32(22, 44), f32(66)]])


def test_sequence_map_of_values_with_symbolic_sizes():
    body = """f (float[M,N] x, float[K,N] z) => (float[L,N] y) {
        s = SequenceConstruct (x, z)
        t = SequenceMap (s) <body = b (float[A,B] v) => (float[A,B] r) {
            minus = Constant<value_ints: ints = [-1]>()
            size = Shape (v)
            flat = Reshape (v, minus)
            twice = Add (flat, flat)
            r = Reshape (twice, size)
        }>
        y = ConcatFromSequence<axis: int = 0>(t)
    }"""
    check_text(body, f32([1, 2, 3]), f32([4, 5, 6], [7, 8, 9]), wanted=[f32([2, 4, 6], [8, 10, 12], [14, 16, 18])])


def test_sequence_map_is_one_loop():
    body = """f (seq(float[M]) s) => (seq(float[M]) y) {
        y = SequenceMap (s) <body = b (float[M] x) => (float[M] r) { r = Neg (x) }>
    }"""
    typed = load(model_of(body)).into_typed()
    assert [type(node.op) for node in typed.nodes].count(Loop) == 1
    assert isinstance(typed.nodes[0].op, TypedSource)
    assert str(typed.outlet_fact(typed.outputs[0])) == "sequence(_,f32)"
