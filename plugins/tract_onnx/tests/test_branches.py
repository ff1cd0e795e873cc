"""Branches of If that do not go together, against ONNX Runtime wherever the branch that is taken can be computed."""

from __future__ import annotations

import time

import numpy as np
import pytest
from onnx_check import expected, load
from onnx_containers import assert_same, give, model_of, plan_of

from tract_core.analysis import look_at_all
from tract_core.analysis.findings import findings_of
from tract_core.errors import FactError, MissingOperator, RunError
from tract_core.model.fact_text import parse_inference_fact

W = np.random.default_rng(3).standard_normal((4, 5)).astype(np.float32)


def x_of(*shape):
    return np.random.default_rng(7).standard_normal(shape).astype(np.float32)


def squeezed(source, result, axis=2):
    """What PyTorch exports for ``squeeze(axis)`` of a size that it does not know."""
    return f"""
        {result}_shape = Shape({source})
        {result}_axis = Constant<value_int: int = {axis}>()
        {result}_size = Gather({result}_shape, {result}_axis)
        {result}_one = Constant<value_int: int = 1>()
        {result}_is_one = Equal({result}_size, {result}_one)
        {result} = If ({result}_is_one) <
            then_branch = {result}_t () => (float[] {result}_then) {{
                {result}_axes = Constant<value_ints: ints = [{axis}]>()
                {result}_then = Squeeze ({source}, {result}_axes)
            }},
            else_branch = {result}_e () => (float[] {result}_else) {{ {result}_else = Identity ({source}) }}
        >"""


def plans_of(text, functions="", **facts):
    """Plans as wired and decluttered; ``facts`` for inputs, by name."""
    model = model_of(text, functions=functions)
    plans = []
    for declutter in (False, True):
        untyped = load(model)
        for outlet in untyped.inputs:
            if untyped.outlet_name(outlet) in facts:
                fact = parse_inference_fact(facts[untyped.outlet_name(outlet)], untyped.symbols)
                untyped.set_outlet_fact(outlet, fact)
        typed = untyped.into_typed()
        typed.check_consistency()
        plans.append(plan_of_typed(typed, declutter))
    return model, plans


def plan_of_typed(typed, declutter):
    from tract_core.runtime.plan import TypedSimplePlan

    return TypedSimplePlan(typed.declutter() if declutter else typed)


def check(text, *turns, functions="", **facts):
    """One plan gives what ONNX Runtime gives in every turn, as wired and decluttered; returns the plans."""
    model, plans = plans_of(text, functions, **facts)
    names = [info.name for info in model.graph.input]
    for inputs in turns:
        wanted = expected(model, dict(zip(names, inputs, strict=True)))
        for plan in plans:
            assert_same(give(plan, inputs), wanted)
    return plans


def check_refused(plans, inputs, *parts):
    for plan in plans:
        with pytest.raises(RunError) as caught:
            give(plan, inputs)
        for part in parts:
            assert part in str(caught.value)


GEMM = "w = Constant<value = float[4,2] {1, 2, 3, 4, 5, 6, 7, 8}>()\n y = Gemm (s, w)"
CONV = "w = Constant<value = float[1,4,1] {1, 2, 3, 4}>()\n y = Conv (s, w)"


def test_what_reads_the_result_wants_the_rank_of_the_then_branch():
    text = f"f (float[N,4,S] x) => (float[N,2] y) {{ {squeezed('x', 's')} {GEMM} }}"
    plans = check(text, [x_of(3, 4, 1)], [x_of(1, 4, 1)])
    refusal = "the else branch gives N,4,S,f32, and what reads it takes N,4,f32"
    check_refused(plans, [x_of(3, 4, 2)], refusal, "; N is 3, S is 2", "give sizes for which (S==1) is true")


def test_what_reads_the_result_wants_the_rank_of_the_else_branch():
    text = f"f (float[N,4,S] x) => (float[N,1,S] y) {{ {squeezed('x', 's')} {CONV} }}"
    plans = check(text, [x_of(3, 4, 2)], [x_of(2, 4, 7)])
    refusal = "the then branch gives N,4,f32, and what reads it takes N,4,S,f32"
    check_refused(plans, [x_of(3, 4, 1)], refusal, "give sizes for which (S==1) is false")


def test_the_reader_may_be_far_behind():
    chain = " ".join(f"r{count + 1} = Relu (r{count})" for count in range(50)).replace("(r0)", "(q)")
    text = f"""f (float[N,4,S] x) => (float[N,1,S] y) {{
        {squeezed("x", "q")} {chain} s = Neg (r50) {CONV}
    }}"""
    check(text, [x_of(3, 4, 2)])


def test_where_any_rank_will_do_it_is_that_of_the_then_branch():
    """``squeeze`` was written to remove an axis."""
    text = f"f (float[N,4,S] x) => (float y) {{ {squeezed('x', 's')} y = ReduceSum<keepdims = 0>(s) }}"
    plans = check(text, [x_of(3, 4, 1)])
    check_refused(plans, [x_of(3, 4, 2)], "the else branch gives N,4,S,f32")


def test_a_branch_is_refused_also_where_only_the_rank_of_the_result_is_read():
    text = f"""f (float[N,4,S] x) => (int64[R] y, float[N,4,S] z) {{
        {squeezed("x", "s")} y = Shape (s) z = Relu (x)
    }}"""
    _, plans = plans_of(text)
    for plan in plans:
        np.testing.assert_array_equal(give(plan, [x_of(3, 4, 1)])[0], [3, 4])
    check_refused(plans, [x_of(3, 4, 2)], "the else branch gives N,4,S,f32")


def test_the_rank_that_the_file_gives_the_output_decides():
    text = f"f (float[N,4,S] x) => (float[N,4,S] y) {{ {squeezed('x', 's')} y = Relu (s) }}"
    plans = check(text, [x_of(3, 4, 2)])
    check_refused(plans, [x_of(3, 4, 1)], "the then branch gives")


def test_sizes_that_are_known_settle_it():
    text = f"f (float[N,4,S] x) => (float y) {{ {squeezed('x', 's')} y = ReduceSum<keepdims = 0>(s) }}"
    for fact, shape in (("N,4,1,f32", (3, 4, 1)), ("N,4,2*S+2,f32", (3, 4, 6))):
        for plan in check(text, [x_of(*shape)], x=fact):
            assert "IfThenElse" not in {node.op.name for node in plan.model.live_nodes()}


def test_one_choice_after_the_other():
    text = f"""f (float[N,4,S,T] x) => (float[N,1,S] y) {{
        {squeezed("x", "q", axis=3)} {squeezed("q", "s", axis=2)} {CONV}
    }}"""
    plans = check(text, [x_of(3, 4, 2, 1)])
    check_refused(plans, [x_of(3, 4, 1, 1)], "give sizes for which (S==1) is false")
    check_refused(plans, [x_of(3, 4, 2, 2)], "give sizes for which (T==1) is true")


@pytest.mark.parametrize("order", [("x", "z"), ("z", "x")])
def test_branches_of_one_condition_go_together(order):
    """What needs one of the branches decides for all, whether it comes first or last: else no run would be right."""
    squeezes = {"x": squeezed("x", "s") + CONV.replace("y =", "p ="), "z": squeezed("z", "r") + "q = Neg (r)"}
    text = f"""f (float[N,4,S] x, float[N,4,S] z) => (float[N,1,S] y) {{
        {" ".join(squeezes[name] for name in order)}
        t = ReduceSum<keepdims = 0>(q) y = Add (p, t)
    }}"""
    plans = check(text, [x_of(3, 4, 2), x_of(3, 4, 2)])
    check_refused(plans, [x_of(3, 4, 1), x_of(3, 4, 1)], "(S==1) is false")


def test_branches_of_one_condition_inside_a_branch():
    text = f"""f (bool c, float[N,4,S] x) => (float y) {{
        {squeezed("x", "s")} {CONV.replace("y =", "p =")}
        q = If (c) <
            then_branch = t () => (float u) {{ {squeezed("x", "r")} u = ReduceSum<keepdims = 0>(r) }},
            else_branch = e () => (float v) {{ v = ReduceMax<keepdims = 0>(x) }}
        >
        o = ReduceSum<keepdims = 0>(p) y = Add (o, q)
    }}"""
    check(text, [np.array(True), x_of(3, 4, 2)], [np.array(False), x_of(3, 4, 2)])


def test_two_choices_that_must_agree():
    text = f"""f (float[N,4,S] x, float[N,4,T] z) => (float[N,M] y) {{
        {squeezed("x", "a")} {squeezed("z", "b")} s = Concat<axis = 1>(a, b) t = Concat<axis = 2>(a, b) y = Add (s, t)
    }}"""
    with pytest.raises(FactError):
        plans_of(text)  # no choice will do: axis 2 wants three axes, the sum of both two
    text = f"""f (float[N,4,S] x, float[N,4,T] z) => (float[N,8] y) {{
        {squeezed("x", "a")} {squeezed("z", "b")} y = Concat<axis = 1>(a, b)
    }}"""
    check(text, [x_of(3, 4, 1), x_of(3, 4, 1)])


def network(name, window):
    """A network for chunks of one window: a convolution, the squeeze, and layers that take two axes."""
    return f"""
        {name}_k = Constant<value_ints: ints = [1, 1, {window}]>()
        {name}_ones = ConstantOfShape<value = float[1] {{0.01}}>({name}_k)
        {name}_four = Constant<value_ints: ints = [1, 4, 1]>()
        {name}_kernel4 = Expand ({name}_ones, {name}_four)
        {name}_kernel = Transpose<perm = [1, 0, 2]>({name}_kernel4)
        {name}_axes = Constant<value_ints: ints = [1]>()
        {name}_x3 = Unsqueeze (x, {name}_axes)
        {name}_c = Conv<strides = [{window}]>({name}_x3, {name}_kernel)
        {squeezed(name + "_c", name + "_s")}
        {name}_w = Constant<value = float[4,2] {{1, 2, 3, 4, 5, 6, 7, 8}}>()
        {name}_g = Gemm ({name}_s, {name}_w)
        {name}_y = Add ({name}_g, h)
        {name}_h = Neg ({name}_y)"""


TWO_RATES = f"""f (float[B,S] x, float[B,2] h, int64 sr) => (float[B,2] y, float[B,2] k) {{
    rate = Constant<value_int: int = 16000>()
    fast = Equal (sr, rate)
    y, k = If (fast) <
        then_branch = t () => (float[B,2] a_y, float[B,2] a_h) {{ {network("a", 16)} }},
        else_branch = e () => (float[B,2] b_y, float[B,2] b_h) {{ {network("b", 8)} }}
    >
}}"""

FAST, SLOW = np.array(16000), np.array(8000)


def test_two_networks_that_take_chunks_of_different_lengths():
    turns = [
        [x_of(b, s), x_of(b, 2), rate] for b, s, rate in ((1, 16, FAST), (1, 8, SLOW), (3, 16, FAST), (2, 8, SLOW))
    ]
    plans = check(TWO_RATES, *turns)
    check_refused(plans, [x_of(1, 32), x_of(1, 2), FAST], "(S/16==1) is true")
    check_refused(plans, [x_of(1, 16), x_of(1, 2), SLOW], "(S/8==1) is true")


def test_a_branch_that_cannot_be_typed_is_refused_alone():
    plans = check(TWO_RATES, [x_of(2, 16), x_of(2, 2), FAST], x="B,16,f32")
    parts = "the else branch cannot be computed: node 'b_g' (Gemm)", "give inputs for which 'sr' == 16000 is true"
    check_refused(plans, [x_of(2, 16), x_of(2, 2), SLOW], *parts)
    check(TWO_RATES, [x_of(2, 8), x_of(2, 2), SLOW], x="2,8,f32", h="2,2,f32")


def test_branches_of_which_none_can_be_typed():
    with pytest.raises(FactError, match=r"the then branch: node 'a_g'.*; the else branch: node 'b_g'"):
        plans_of(TWO_RATES, x="B,64,f32")


def test_the_report_remarks_what_a_run_must_not_take():
    untyped = load(model_of(TWO_RATES))
    untyped.set_outlet_fact(untyped.inputs[0], parse_inference_fact("B,16,f32", untyped.symbols))
    found = findings_of(untyped, look_at_all(untyped))
    (branch,) = [finding for finding in found if finding.kind == "branch"]
    assert branch.severity == "remark"
    assert branch.places == ("node 'y' (IfThenElse)",)
    assert "the else branch cannot be computed" in branch.problem
    assert "'sr' == 16000 is true; a run that takes the branch is refused" in branch.hint


def test_what_is_wrong_whatever_the_sizes_is_no_matter_of_one_branch():
    text = """f (bool c, float[N] x) => (float[N] y) {
        y = If (c) <
            then_branch = t () => (float[N] a) { a = Nonsense (x) },
            else_branch = e () => (float[N] b) { b = Neg (x) }
        >
    }"""
    with pytest.raises(MissingOperator, match="'Nonsense'"):
        plan_of(model_of(text))


@pytest.mark.parametrize("reader", ["Gemm", "Conv"])
def test_a_choice_inside_a_function_is_settled_by_what_reads_its_result(reader):
    function = f"""
        <domain: "local", opset_import: ["": 17]>
        Squeezed (x) => (s) {{ {squeezed("x", "s")} }}
    """
    tail = (GEMM if reader == "Gemm" else CONV).replace("y =", "z =")
    text = f"""f (float[N,4,S] x) => (float y) {{
        s = local.Squeezed (x) {tail} y = ReduceSum<keepdims = 0>(z)
    }}"""
    check(text, [x_of(3, 4, 1 if reader == "Gemm" else 2)], functions=function)


def test_a_choice_in_a_branch_is_settled_by_the_other_branch():
    text = f"""f (bool c, float[N,4,S] x) => (float y) {{
        s = If (c) <
            then_branch = t () => (float[] a) {{ {squeezed("x", "q")} a = Neg (q) }},
            else_branch = e () => (float[] b) {{ b = Abs (x) }}
        >
        y = ReduceSum<keepdims = 0>(s)
    }}"""
    yes, no = np.array(True), np.array(False)
    plans = check(text, [yes, x_of(3, 4, 2)], [no, x_of(3, 4, 2)], [no, x_of(3, 4, 1)])
    check_refused(plans, [yes, x_of(3, 4, 1)], "(S==1) is false")


def test_a_choice_in_a_loop_is_settled_by_what_the_loop_carries():
    text = f"""f (int64 n, float[N,4,S] x) => (float[N,4,S] y) {{
        go = Constant<value = bool {{1}}>()
        y = Loop (n, go, x) <body = l (int64 i, bool c, float[N,4,S] p) => (bool d, float[N,4,S] r) {{
            d = Identity (c)
            {squeezed("p", "q")}
            r = Neg (q)
        }}>
    }}"""
    check(text, [np.array(3), x_of(2, 4, 3)])


def test_a_choice_in_the_body_of_a_scan():
    text = f"""f (float[T,N,4,S] x) => (float[T,N,2] y) {{
        y = Scan<num_scan_inputs = 1, body = l (float[N,4,S] p) => (float[N,2] y) {{ {squeezed("p", "s")} {GEMM} }}>(x)
    }}"""
    plans = check(text, [x_of(3, 2, 4, 1)])
    check_refused(plans, [x_of(3, 2, 4, 2)], "give sizes for which (S==1) is true")


ONE_ELEMENT = """f (bool c, float[N] x) => (float[K] y) {{
    s = If (c) <
        then_branch = t () => (float a) {{ a = ReduceSum<keepdims = 0>(x) }},
        else_branch = e () => (float[1] b) {{ b = ReduceMax<keepdims = 1>(x) }}
    >
    {reader}
}}"""


@pytest.mark.parametrize(
    "reader",
    [
        "t = Constant<value_floats: floats = [1.0, 2.0]>() y = Add (s, t)",
        "z = Constant<value_ints: ints = [0]>() q = Unsqueeze (s, z) y = Identity (q)",
        "y = Concat<axis = 0>(s, x)",
    ],
)
def test_branches_of_one_element_each_join_as_what_reads_them_wants(reader):
    """Neither is refused, also where only one of the two ranks will do."""
    _, plans = plans_of(ONE_ELEMENT.format(reader=reader))
    x = np.array([1, 2, 5], np.float32)
    for plan in plans:
        for condition, value in ((True, 8), (False, 5)):
            (found,) = give(plan, [np.array(condition), x])
            wanted = [value + 1, value + 2] if "Add" in reader else [value, *(x if "Concat" in reader else [])]
            np.testing.assert_array_equal(found, np.array(wanted, np.float32))


def test_branches_that_differ_in_type():
    text = """f (bool c, float[N] x, int64[M] i) => (float[M] y) {
        s = If (c) <
            then_branch = t () => (float[M] a) { a = Cast<to = 1>(i) },
            else_branch = e () => (int64[M] b) { b = Identity (i) }
        >
        y = Gather (x, s)
    }"""
    _, plans = plans_of(text)
    x, index = x_of(4), np.array([3, 0])
    for plan in plans:
        np.testing.assert_array_equal(give(plan, [np.array(False), x, index])[0], x[index])
    check_refused(plans, [np.array(True), x, index], "the then branch gives M,f32, and what reads it takes M,i64")


def test_branches_of_which_one_gives_a_sequence():
    text = """f (bool c, float[N] x) => (float[M] y) {
        s = If (c) <
            then_branch = t () => (float[N] a) { a = Identity (x) },
            else_branch = e () => (seq(float[N]) b) { b = SequenceConstruct (x, x) }
        >
        y = ConcatFromSequence<axis = 0>(s)
    }"""
    _, plans = plans_of(text)
    for plan in plans:
        np.testing.assert_array_equal(give(plan, [np.array(False), x_of(2)])[0], np.tile(x_of(2), 2))
    check_refused(plans, [np.array(True), x_of(2)], "the then branch gives N,f32")


def test_no_rank_that_will_do_is_an_error_of_what_reads_it():
    text = f"""f (float[N,4,S] x) => (float[N,1,S] y) {{
        {squeezed("x", "q")} axes = Constant<value_ints: ints = [0]>() r = Unsqueeze (q, axes) s = Unsqueeze (r, axes)
        {CONV}
    }}"""
    with pytest.raises(FactError, match="node 'y'"):
        plans_of(text)


@pytest.mark.parametrize("count", [100, 200])
def test_many_choices_take_a_time_that_grows_with_their_number(count):
    """Each is made the wrong way first, and found out right behind it."""
    chain = [f"{squeezed(f'x{at}', f's{at}')} c{at} = Conv (s{at}, w) x{at + 1} = Relu (c{at})" for at in range(count)]
    text = f"""f (float[N,4,S] x0) => (float[N,4,S] x{count}) {{
        k = Constant<value_ints: ints = [4, 4, 1]>() w = ConstantOfShape<value = float[1] {{0.25}}>(k)
        {" ".join(chain)}
    }}"""
    begin = time.perf_counter()
    plan = plan_of(model_of(text), declutter=False)
    assert time.perf_counter() - begin < count / 10
    assert give(plan, [x_of(1, 4, 3)])[0].shape == (1, 4, 3)


def test_many_choices_that_nothing_settles_and_that_fit_nowhere():
    """Every choice depends on all before it, and what comes last is right for none: that ends soon, in an error."""
    chain = " ".join(squeezed(f"x{at}", f"x{at + 1}", axis=1) for at in range(12))
    begin = time.perf_counter()
    with pytest.raises(FactError):
        plan_of(model_of(f"f (float[{','.join('ABCDEFGHIJKLMN')}] x0) => (float y) {{ {chain} y = Conv (x12, x12) }}"))
    assert time.perf_counter() - begin < 30


def test_a_value_that_a_loop_hands_on_keeps_its_rank_if_it_is_one_element():
    """As the exporter of PaddlePaddle has it, which writes ``[1]`` and ``[]`` alike."""
    text = """f (int64 n, float x) => (float y) {
        go = Constant<value = bool {1}>()
        one = Constant<value_floats: floats = [1.0]>()
        y = Loop (n, go, x) <body = l (int64 i, bool c, float p) => (bool d, float q) {
            d = Identity (c)
            q = Add (p, one)
        }>
    }"""
    _, plans = plans_of(text)
    for plan in plans:
        for times in (0, 1, 4):
            found = give(plan, [np.array(times), np.array(2, np.float32)])[0]
            np.testing.assert_array_equal(found, np.array(2 + times, np.float32))
            assert found.shape == ()


def test_a_value_that_a_loop_makes_and_does_not_take():
    """Exporters let a variable that gets its value in the loop begin as anything."""
    text = """f (int64 n, float[N] x) => (float[N] y, float[M,N] all) {
        go = Constant<value = bool {1}>()
        nothing = Constant<value_float: float = 0.0>()
        y, all = Loop (n, go, nothing) <body = l (int64 i, bool c, float p) => (bool d, float[N] q, float[N] r) {
            d = Identity (c)
            f = Cast<to = 1>(i)
            q = Add (x, f)
            r = Neg (q)
        }>
    }"""
    plans = check(text, [np.array(1), x_of(3)], [np.array(4), x_of(3)])
    check_refused(plans, [np.array(0), x_of(3)], "the loop makes no iteration")


def test_a_value_that_a_loop_makes_and_that_nobody_reads():
    text = """f (int64 n, float[N] x) => (float[N] y) {
        go = Constant<value = bool {1}>()
        nothing = Constant<value_float: float = 0.0>()
        y, unread = Loop (n, go, x, nothing) <
            body = l (int64 i, bool c, float[N] p, float u) => (bool d, float[N] q, float[N] v) {
                d = Identity (c)
                q = Neg (p)
                v = Abs (p)
            }
        >
    }"""
    check(text, [np.array(0), x_of(3)], [np.array(3), x_of(3)])


@pytest.mark.parametrize(
    ("logic", "holds"),
    [
        ("Not (one)", True),
        ("And (one, two)", False),
        ("Or (big, one)", True),
        ("And (big, some)", None),
        ("Not (two)", None),
    ],
)
def test_conditions_on_sizes_that_are_known_are_settled(logic, holds):
    """Of sizes of which it is only known that there are two or more."""
    text = f"""f (float[N,M] x) => (float[N,M] y) {{
        shape = Shape (x)
        at = Constant<value_int: int = 0>() size = Gather (shape, at)
        c0 = Constant<value_int: int = 0>() c1 = Constant<value_int: int = 1>() c2 = Constant<value_int: int = 2>()
        one = Equal (size, c1) two = Equal (size, c2) big = Greater (size, c1)
        m = Gather (shape, c1) some = Greater (m, c0)
        condition = {logic}
        y = If (condition) <
            then_branch = t () => (float[N,M] a) {{ a = Neg (x) }},
            else_branch = e () => (float[N,M] b) {{ b = Abs (x) }}
        >
    }}"""
    for plan in check(text, [x_of(2, 3)], [x_of(5, 1)], x="S+2,M,f32"):
        operators = {node.op.name for node in plan.model.live_nodes()}
        assert operators & {"IfThenElse", "Neg", "Abs"} == (
            {"IfThenElse"} if holds is None else {"Neg" if holds else "Abs"}
        )
