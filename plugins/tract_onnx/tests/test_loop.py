"""Loops, against ONNX Runtime where it agrees with the standard, else written-down results."""

from __future__ import annotations

import time

import numpy as np
import pytest
from onnx_check import load
from onnx_containers import check_text, model_of, outputs_of, plan_of

from tract_core.errors import CorruptModel, FactError, LimitExceeded, RunError, Unsupported
from tract_core.limits import LoadLimits
from tract_core.ops.loop import Loop
from tract_core.runtime.plan import TypedSimplePlan

HUGE = np.array(2**63 - 1)


def f32(*values):
    return np.array(values, np.float32)


def loop(
    graph, *, inputs="int64 n, float[A] x", outputs="float[A] y, float[N,A] all", results="y, all", start="n, go, x"
):
    """A model that is one loop; ``graph`` is its body."""
    return f"""f ({inputs}) => ({outputs}) {{
        go = Constant<value = bool {{1}}>()
        one = Constant<value_float: float = 1.0>()
        {results} = Loop ({start}) <body = {graph}>
    }}"""


COUNTED = """b (int64 i, bool c, float[A] p) => (bool d, float[A] q, float[A] r) {
    d = Identity (c)
    f = Cast<to: int = 1>(i)
    q = Add (p, f)
    r = Mul (p, p)
}"""


@pytest.mark.parametrize("times", [1, 5])
def test_counted(times):
    check_text(loop(COUNTED), np.array(times), f32(1, 2))


@pytest.mark.parametrize("times", [0, -3])
def test_no_iterations(times):
    # ONNX Runtime collects a tensor of shape (0, 0), though the size is known.
    check_text(loop(COUNTED), np.array(times), f32(1, 2), wanted=[f32(1, 2), np.zeros((0, 2), np.float32)])


def test_until_a_condition():
    body = loop(
        """b (int64 i, bool c, float[A] p) => (bool d, float[A] q, float[A] r) {
            q = Add (p, p)
            r = Identity (q)
            sum = ReduceMax<keepdims: int = 0>(q)
            limit = Constant<value_float: float = 50.0>()
            d = Less (sum, limit)
        }"""
    )
    check_text(body, HUGE, f32(1, 3))
    check_text(body, np.array(2), f32(1, 3))


def test_as_often_as_the_condition_says_though_there_is_no_limit():
    graph = """b (int64 i, bool c, float[A] p) => (bool d, float[A] q) {
        q = Add (p, one)
        five = Constant<value_int: int = 5>()
        d = Less (i, five)
    }"""
    check_text(loop(graph, results="y", outputs="float[A] y", inputs="float[A] x", start='"", go, x'), f32(1, 2))


def test_without_a_condition_the_one_of_the_body_does_not_count():
    graph = """b (int64 i, bool c, float[A] p) => (bool d, float[A] q) {
        q = Add (p, one)
        d = Constant<value = bool {0}>()
    }"""
    # The standard: "input (trip_count, "") // Note: this is like a for loop; cond is ignored". ONNX Runtime stops.
    body = loop(graph, results="y", outputs="float[A] y", start='n, "", x')
    check_text(body, np.array(3), f32(1, 2), wanted=[f32(4, 5)])


def test_neither_limit_nor_condition():
    body = loop(COUNTED, inputs="float[A] x", start='"", "", x')
    with pytest.raises(Unsupported, match="neither a number of iterations nor a condition: it would not end"):
        load(model_of(body)).into_typed()


def test_a_huge_limit_and_a_false_condition():
    body = loop(COUNTED, inputs="int64 n, bool start, float[A] x", start="n, start, x")
    check_text(body, HUGE, np.array(False), f32(1, 2), wanted=[f32(1, 2), np.zeros((0, 2), np.float32)])


def test_a_huge_limit_and_a_condition_that_stays_true():
    began = time.monotonic()
    with pytest.raises(RunError, match="would run 9223372036854775807 times: its condition never becomes false"):
        outputs_of(loop(COUNTED), HUGE, f32(1, 2))
    assert time.monotonic() - began < 5


def test_what_is_collected_has_a_limit():
    graph = """b (int64 i, bool c, float[A] p) => (bool d, float[A] q, float[] r) {
        big = Constant<value_ints: ints = [100, 100]>()
        r = Expand (one, big)
        q = Add (p, one)
        zero = Constant<value_int: int = -1>()
        d = Greater (i, zero)
    }"""
    model = load(model_of(loop(graph, outputs="float[A] y, float[] all"))).into_typed()
    model.limits = LoadLimits(max_tensor_bytes=1 << 20)
    with pytest.raises(RunError, match=r"shape \[27,100,100\] would take 1080000 bytes, 1048576 are allowed"):
        TypedSimplePlan(model).run([np.array(2**40), f32(1)])


def test_a_loop_that_would_collect_too_much_does_not_begin():
    began = time.monotonic()
    with pytest.raises(RunError, match=r"shape \[4000000000,1000\] would take 16000000000000 bytes"):
        outputs_of(loop(COUNTED), np.array(4 * 10**9), np.ones(1000, np.float32))
    assert time.monotonic() - began < 5


GROWING = """b (int64 i, bool c, float[] p) => (bool d, float[] q, float[] r) {
    d = Identity (c)
    last = Constant<value_ints: ints = [-1]>()
    f = Cast<to: int = 1>(i)
    g = Reshape (f, last)
    q = Concat<axis: int = 0>(p, g)
    r = ReduceSum<keepdims: int = 0>(p)
}"""


@pytest.mark.parametrize("size", [0, 3])
def test_a_carried_tensor_grows(size):
    check_text(loop(GROWING, outputs="float[B] y, float[N] all"), np.array(4), np.ones(size, np.float32))


def test_sizes_of_a_loop_of_known_length():
    times = "n = Constant<value_int: int = 3>()"
    body = loop(GROWING, inputs="float[A] x", outputs="float[B] y, float[N] all").replace("go =", f"{times}\n go =")
    typed = load(model_of(body)).into_typed()
    assert [str(typed.outlet_fact(outlet)) for outlet in typed.outputs] == ["A+3,f32", "3,f32"]
    check_text(body, f32(1, 2))


def test_the_length_of_a_loop_may_be_the_size_of_an_input():
    body = """f (float[S,D] x, float[D] h) => (float[] y, float[] all) {
        go = Constant<value = bool {1}>()
        n = Shape<start: int = 0, end: int = 1>(x)
        y, all = Loop (n, go, h) <body = b (int64 i, bool c, float[D] p) => (bool d, float[D] q, float[D] r) {
            d = Identity (c)
            row = Gather<axis: int = 0>(x, i)
            q = Add (p, row)
            r = Identity (q)
        }>
    }"""
    typed = load(model_of(body)).into_typed()
    assert [str(typed.outlet_fact(outlet)) for outlet in typed.outputs] == ["D,f32", "S,D,f32"]
    check_text(body, np.arange(12, dtype=np.float32).reshape(4, 3), f32(1, 2, 3))


def test_two_tensors_that_grow_alike_stay_alike():
    body = """f (int64 n, float[1,D] k) => (float[] y, float[] z) {
        go = Constant<value = bool {1}>()
        y, z = Loop (n, go, k, k) <body = b (int64 i, bool c, float[] p, float[] q) => (bool d, float[] r, float[] s) {
            d = Identity (c)
            both = Add (p, q)
            r = Concat<axis: int = 0>(both, k)
            s = Concat<axis: int = 0>(k, q)
        }>
    }"""
    check_text(body, np.array(3), f32([1, 2]))
    typed = load(model_of(body)).into_typed()
    y, z = (typed.outlet_fact(outlet).shape for outlet in typed.outputs)
    assert y[0] == z[0]


def test_a_size_that_depends_on_the_iteration():
    body = loop(
        """b (int64 i, bool c, float[] p) => (bool d, float[] q) {
            d = Identity (c)
            zero = Constant<value_ints: ints = [0]>()
            unit = Constant<value_ints: ints = [1]>()
            end = Add (i, unit)
            q = Slice (x, zero, end)
        }""",
        outputs="float[B] y",
        results="y",
    )
    for times in (0, 1, 3):
        check_text(body, np.array(times), f32(1, 2, 3, 4))


def test_collected_sizes_that_change():
    graph = """b (int64 i, bool c, float[] p) => (bool d, float[] q, float[] r) {
        d = Identity (c)
        q = Concat<axis: int = 0>(p, p)
        r = Identity (q)
    }"""
    with pytest.raises(
        RunError, match=r"collected value 0 has shape \(2,\) in the first iteration, and \(4,\) in a later"
    ):
        outputs_of(loop(graph), np.array(2), f32(1))


def test_a_rank_that_changes():
    graph = """b (int64 i, bool c, float[] p) => (bool d, float[] q) {
        d = Identity (c)
        zero = Constant<value_ints: ints = [0]>()
        q = Unsqueeze (p, zero)
    }"""
    with pytest.raises(FactError, match=r"the carried value 0 is A,f32 at first, the body gives 1,A,f32 back"):
        load(model_of(loop(graph, outputs="float[A] y", results="y"))).into_typed()


def test_an_element_type_that_changes():
    graph = "b (int64 i, bool c, float[] p) => (bool d, int64[] q) { d = Identity (c)\n q = Cast<to: int = 7>(p) }"
    with pytest.raises(FactError, match=r"the carried value 0 is A,f32 at first, the body gives A,i64 back"):
        load(model_of(loop(graph, outputs="float[A] y", results="y"))).into_typed()


def test_a_loop_in_a_loop_in_a_branch_sees_everything_around():
    body = """f (int64 n, bool c, float[A] x, float[A] w) => (float[A] y) {
        go = Constant<value = bool {1}>()
        y = If (c) <then_branch = t () => (float[A] r) {
            r = Loop (n, go, x) <body = b (int64 i, bool d, float[A] p) => (bool e, float[A] q) {
                e = Identity (d)
                s = Add (p, w)
                q = Loop (i, go, s) <body = bb (int64 j, bool d2, float[A] p2) => (bool e2, float[A] q2) {
                    e2 = Identity (d2)
                    f = Cast<to: int = 1>(j)
                    g = Add (p2, f)
                    q2 = Mul (g, w)
                }>
            }>
        }, else_branch = e () => (float[A] r) { r = Neg (x) }>
    }"""
    for chosen in (True, False):
        check_text(body, np.array(4), np.array(chosen), f32(1, 2), f32(0.5, 2))


def test_a_value_that_the_body_hands_on_is_no_carried_one():
    graph = """b (int64 i, bool c, float[A] p, float[A] w) => (bool d, float[A] q, float[A] v) {
        d = Identity (c)
        q = Mul (p, w)
        v = Identity (w)
    }"""
    body = loop(graph, outputs="float[A] y, float[A] z", results="y, z", start="n, go, x, x")
    check_text(body, np.array(3), f32(1, 2))
    (op,) = [node.op for node in plan_of(model_of(body)).model.nodes if isinstance(node.op, Loop)]
    assert op.carried == 1


def test_an_output_that_nobody_reads():
    body = loop(COUNTED, outputs="float[A] y", inputs="float[A] x").replace(
        "go =", "n = Constant<value_int: int = 3>()\n go ="
    )
    check_text(body, f32(1, 2))
    (op,) = [node.op for node in plan_of(model_of(body)).model.nodes if isinstance(node.op, Loop)]
    assert len(op.shapes) == 1


def test_the_number_of_the_iteration_may_have_an_axis():
    graph = """b (int64[1] i, bool[1] c, float[A] p) => (bool[1] d, float[A] q) {
        d = Identity (c)
        f = Cast<to: int = 1>(i)
        q = Add (p, f)
    }"""
    body = loop(graph, inputs="int64[1] n, float[A] x", outputs="float[A] y", results="y")
    check_text(body, np.array([3]), f32(1, 2), wanted=[f32(4, 5)])


def test_a_recurrent_layer_in_a_loop_begins_afresh():
    body = """f (int64 n, float[3,1,2] x, float[1,2,2] w, float[1,2,2] r) => (float[1,1,2] y) {
        go = Constant<value = bool {1}>()
        shape = Constant<value_ints: ints = [1, 1, 2]>()
        zero = ConstantOfShape (shape)
        y = Loop (n, go, zero) <body = b (int64 i, bool c, float[1,1,2] p) => (bool d, float[1,1,2] q) {
            d = Identity (c)
            all, last = RNN<hidden_size: int = 2>(x, w, r)
            q = Add (p, last)
        }>
    }"""
    random = np.random.default_rng(3)
    given = [random.normal(size=shape).astype(np.float32) for shape in ((3, 1, 2), (1, 2, 2), (1, 2, 2))]
    check_text(body, np.array(3), *given)


def test_carried_sequence():
    body = """f (int64 n, float[4,A] x) => (seq(float[]) y, float[] z) {
        go = Constant<value = bool {1}>()
        none = SequenceEmpty ()
        y = Loop (n, go, none) <body = b (int64 i, bool c, seq(float[]) p) => (bool d, seq(float[]) q) {
            d = Identity (c)
            row = Gather<axis: int = 0>(x, i)
            q = SequenceInsert (p, row)
        }>
        z = ConcatFromSequence<axis: int = 0, new_axis: int = 1>(y)
    }"""
    x = np.arange(8, dtype=np.float32).reshape(4, 2)
    check_text(body, np.array(3), x)
    typed = load(model_of(body)).into_typed()
    sequence, stacked = (str(typed.outlet_fact(outlet)) for outlet in typed.outputs)
    assert sequence == "sequence(A,f32)"
    assert stacked.endswith(",A,f32")


def test_items_of_a_carried_sequence_may_differ():
    body = """f (int64 n, float[A] x) => (seq(float[]) y, float[] z) {
        go = Constant<value = bool {1}>()
        first = SequenceConstruct (x)
        y = Loop (n, go, first) <body = b (int64 i, bool c, seq(float[]) p) => (bool d, seq(float[]) q) {
            d = Identity (c)
            last = SequenceAt (p, minus)
            twice = Concat<axis: int = 0>(last, last)
            q = SequenceInsert (p, twice)
        }>
        z = SequenceAt (y, minus)
    }""".replace("go =", "minus = Constant<value_int: int = -1>()\n go =")
    check_text(body, np.array(3), f32(1, 2))
    typed = load(model_of(body)).into_typed()
    assert str(typed.outlet_fact(typed.outputs[0])) == "sequence(_,f32)"


def test_a_sequence_is_not_collected():
    graph = """b (int64 i, bool c) => (bool d, seq(float[]) q) { d = Identity (c)\n q = SequenceConstruct (x) }"""
    with pytest.raises(FactError, match=r"Loop cannot collect values of sequence\(A,f32\): only tensors can be joined"):
        load(model_of(loop(graph, outputs="seq(float[]) y", results="y", start="n, go"))).into_typed()


def test_a_body_of_other_arity():
    graph = "b (int64 i, bool c) => (bool d, float[A] q) { d = Identity (c)\n q = Neg (x) }"
    with pytest.raises(CorruptModel, match="Loop carries 1 values, its body has 2 inputs and 2 outputs; 3 inputs and"):
        load(model_of(loop(graph, outputs="float[A] y", results="y"))).into_typed()


def nested(depth):
    """Loops inside loops, each of which makes a tensor of its own grow in both of its dimensions."""
    inner = "q0 = Concat<axis: int = 0>(p0, p0)" if depth == 0 else nested(depth - 1)
    return f"""x{depth} = Loop (n, go, x) <body = b{depth} (int64 i{depth}, bool c{depth}, float[] p{depth}) =>
        (bool d{depth}, float[] q{depth}) {{
            d{depth} = Identity (c{depth})
            {inner}
            {"" if depth == 0 else f"q{depth} = Concat<axis: int = 0>(p{depth}, x{depth - 1}, p{depth})"}
        }}>"""


def test_deeply_nested_loops_end(monkeypatch):
    def text(depth):
        return (
            f"f (int64 n, float[A] x) => (float[] x{depth}) {{ go = Constant<value = bool {{1}}>()\n {nested(depth)} }}"
        )

    check_text(text(2), np.array(2), f32(1))
    monkeypatch.setattr("tract_core.ops.loop.MAX_ROUNDS", 50)
    with pytest.raises(LimitExceeded, match="loops inside loops: 50 attempts did not settle their sizes"):
        load(model_of(text(8))).into_typed()
