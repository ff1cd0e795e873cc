"""Attention in one kernel, on every instruction set of this machine, against NumPy in float64."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import pytest
from tract_cpu.kernels.attention import AttentionPlan
from tract_cpu.plan import CpuPlan
from tract_cpu.program.program import NativeStep
from tract_llvm.isa import Isa

from tract_core.data import DatumType
from tract_core.model.axes import AxesMapping
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel
from tract_core.ops.axis import AddAxis, Reshape
from tract_core.ops.binary import Add, Mul
from tract_core.ops.broadcast import MultiBroadcastTo
from tract_core.ops.einsum import EinSum
from tract_core.ops.elementwise import IsNan
from tract_core.ops.iff import Iff
from tract_core.ops.softmax import Softmax

HEADS = "bqhd,bkhd->bhqk", "bhqk,bkhd->bqhd"
PLAIN = "qd,kd->qk", "qk,kd->qd"
SHARED = "bhqd,bkd->bhqk", "bhqk,bkd->bhqd"


def wired(
    forms: Sequence[str],
    facts: Sequence[str],
    *,
    mask: str | None = None,
    axis: int = -1,
    kind: DatumType,
    zeroes: bool = False,
) -> TypedModel:
    """The softmax of products, scaled, and masked if asked for, times values; ``zeroes``: NaN in it become 0."""
    model = TypedModel()
    names = ["queries", "keys", "values", *(["mask"] if mask else [])]
    sources = [
        model.add_source(name, parse_typed_fact(fact, model.symbols))
        for name, fact in zip(names, [*facts, *([mask] if mask else [])], strict=True)
    ]
    (scores,) = model.wire_node("scores", EinSum(AxesMapping.parse(forms[0]), kind), sources[:2])
    rank = len(model.outlet_fact(scores).shape)
    scale = model.add_const("scale", np.full((1,) * rank, 0.5, kind.numpy))
    (scores,) = model.wire_node("scaled", Mul(), [scores, scale])
    if mask:
        (scores,) = model.wire_node("masked", Add(), [scores, sources[3]])
    (shares,) = model.wire_node("shares", Softmax((axis % rank,)), [scores])
    if zeroes:
        (missing,) = model.wire_node("missing", IsNan(), [shares])
        zero = model.add_const("zero", np.zeros((1,) * rank, kind.numpy))
        (shares,) = model.wire_node("kept", Iff(), [missing, zero, shares])
    operands = [shares, sources[2]]
    model.set_outputs(model.wire_node("mixed", EinSum(AxesMapping.parse(forms[1]), kind), operands))
    return model


def expected(forms: Sequence[str], arrays: Sequence[np.ndarray], axis: int = -1, *, zeroes: bool = False) -> np.ndarray:
    queries, keys, values, *masks = (one.astype("f8") for one in arrays)
    with np.errstate(all="ignore"):
        scores = np.einsum(forms[0], queries, keys) * 0.5
        for mask in masks:
            scores = scores + mask
        powers = np.exp(scores - scores.max(axis=axis, keepdims=True, initial=-np.inf))
        shares = powers / powers.sum(axis=axis, keepdims=True)
        return np.einsum(forms[1], np.where(np.isnan(shares) & zeroes, 0, shares), values)


def fact(shape: Sequence[object], kind: DatumType) -> str:
    return ",".join([*map(str, shape), kind.short])


def hows(plan: CpuPlan) -> list[str]:
    return [placement.how for placement in plan.explain().placements]


def same(found: np.ndarray, wanted: np.ndarray, tolerance: float = 1e-5) -> None:
    np.testing.assert_allclose(found.astype("f8"), wanted, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("sizes", [(16, 1, 1, 1), (16, 2, 64, 64), (37, 29, 5, 3), (33, 128, 8, 70), (70, 65, 64, 1)])
@pytest.mark.parametrize("forms", [HEADS, SHARED], ids="-".join)
def test_sizes_fixed_and_symbolic(isa: Isa, forms: Sequence[str], sizes: tuple[int, int, int, int]) -> None:
    queries, keys, depth, width = sizes
    letters = {"b": 2, "h": 3, "q": queries, "k": keys, "d": depth, "w": width}
    forms = [forms[0], forms[1].replace("d", "w")]
    terms = [*forms[0].split("->")[0].split(","), forms[1].split("->")[0].split(",")[1]]
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal([letters[name] for name in term]).astype("f4") for term in terms]
    symbols = {"b": "B", "q": "Q", "k": "K"}
    for shown in (letters, letters | symbols):
        facts = [fact([shown[name] for name in term], DatumType.F32) for term in terms]
        plan = CpuPlan(wired(forms, facts, kind=DatumType.F32), isa, threads=2)
        assert hows(plan)[-1] == "attention" or keys == 1
        same(plan.spawn().run(arrays)[0], expected(forms, arrays))


@pytest.mark.parametrize("count", [0, 1, 2, 15, 16, 17, 33])
@pytest.mark.parametrize("keys", [0, 1, 3])
def test_any_number_of_queries_and_keys(isa: Isa, count: int, keys: int) -> None:
    plan = CpuPlan(wired(PLAIN, ["Q,5,f32", "K,5,f32", "K,5,f32"], kind=DatumType.F32), isa)
    assert hows(plan)[-1] == "attention"
    rng = np.random.default_rng(1)
    arrays = [rng.standard_normal((size, 5)).astype("f4") for size in (count, keys, keys)]
    wanted = expected(PLAIN, arrays) if keys else np.zeros((count, 5))
    same(plan.spawn().run(arrays)[0], wanted)


@pytest.mark.parametrize(
    "mask", [(1, 1, 1, 19), (2, 1, 1, 19), (1, 1, 40, 19), (2, 3, 40, 19), (2, 3, 40, 1), (1, 1, 1, 1)]
)
def test_masks_of_any_shape(isa: Isa, mask: tuple[int, ...]) -> None:
    """Where all keys of a query are masked by -inf, no share is a number, as the definition gives."""
    rng = np.random.default_rng(2)
    arrays = [rng.standard_normal((2, size, 3, 8)).astype("f4") for size in (40, 19, 19)]
    kept = rng.integers(0, 2, mask) if mask[-1] > 1 else np.ones(mask)
    arrays.append(np.where(kept > 0, 0.25, -np.inf).astype("f4"))
    arrays[-1].reshape(-1, mask[-1])[0] = -np.inf if mask[-2] > 1 else 0
    facts = [fact(one.shape, DatumType.F32) for one in arrays]
    plan = CpuPlan(wired(HEADS, facts[:3], mask=facts[3], kind=DatumType.F32), isa)
    assert hows(plan)[-1] == "attention"
    same(plan.spawn().run(arrays)[0], expected(HEADS, arrays))


@pytest.mark.parametrize("queries", [1, 2, "Q"])
@pytest.mark.parametrize("element", ["f32", "f16"])
def test_queries_that_see_no_key_get_zeros_where_the_model_says_so(isa: Isa, queries: object, element: str) -> None:
    """As PyTorch writes it: where(is_nan(shares), 0, shares); times a value that is infinite, 0 is NaN."""
    kind = DatumType[element.upper()]
    shapes: list[list[object]] = [[2, 3, queries, 64], [2, 3, "K", 64], [2, 3, "K", 64], [2, 1, queries, "K"]]
    facts = [fact(shape, kind) for shape in shapes]
    forms = "bhqd,bhkd->bhqk", "bhqk,bhkd->bhqd"
    plan = CpuPlan(wired(forms, facts[:3], mask=facts[3], kind=kind, zeroes=True), isa)
    assert hows(plan)[-1] == "attention"
    rng = np.random.default_rng(8)
    for count, keys in ((1, 1), (1, 33), (2, 17), (19, 16)):
        if queries not in ("Q", count):
            continue
        sizes = {"Q": count, "K": keys}
        arrays = [rng.standard_normal([sizes.get(str(one), one) for one in shape]).astype("f4") for shape in shapes]
        arrays[3] = np.where(arrays[3] > 0, 0.25, -np.inf).astype("f4")
        arrays[3][0, 0, 0], arrays[3][1, 0, :, 0] = -np.inf, 0
        arrays = [one.astype(kind.numpy) for one in arrays]
        same(plan.spawn().run(arrays)[0], expected(forms, arrays, zeroes=True), 1e-5 if element == "f32" else 0.02)
        arrays[0][1, 2, -1, 0], arrays[2][0, 1, 0, 5] = np.nan, np.inf
        same(plan.spawn().run(arrays)[0], expected(forms, arrays, zeroes=True), 1e-5 if element == "f32" else 0.02)


@pytest.mark.parametrize("queries", [1, 2])
@pytest.mark.parametrize("mask", [None, (1, 1, 1, "K"), (2, 3, "q", 1), (2, 1, "q", "K")], ids=str)
def test_few_queries(isa: Isa, queries: int, mask: Sequence[object] | None) -> None:
    """A step of decoding: queries one by one, with any number of keys; nothing but the keys is symbolic."""
    forms = "bhqd,bhkd->bhqk", "bhqk,bhkd->bhqd"
    facts = [f"2,3,{queries},64,f32", "2,3,K,64,f32", "2,3,K,32,f32"]
    shown = None if mask is None else fact([queries if one == "q" else one for one in mask], DatumType.F32)
    plan = CpuPlan(wired(forms, facts, mask=shown, kind=DatumType.F32), isa)
    assert hows(plan)[-1] == "attention"
    rng = np.random.default_rng(7)
    for keys in (1, 2, 15, 16, 17, 100):
        shapes = [(2, 3, queries, 64), (2, 3, keys, 64), (2, 3, keys, 32)]
        arrays = [rng.standard_normal(shape).astype("f4") for shape in shapes]
        if mask is not None:
            shape = [{"q": queries, "K": keys}.get(one, one) for one in mask]
            kept = np.where(rng.integers(0, 4, shape) > 0, 0.25, -np.inf)
            kept[..., 0] = 0.5
            arrays.append(kept.astype("f4"))
        same(plan.spawn().run(arrays)[0], expected(forms, arrays))
    arrays[0][0, 0, 0, 3], arrays[1][1, 2, 4], arrays[2][1, 0, 5, 7] = np.nan, np.inf, -np.inf
    same(plan.spawn().run(arrays)[0], expected(forms, arrays))


@pytest.mark.parametrize("mask", [None, (1, 1, 1, "K"), (2, 3, "Q", 1), (2, 1, "Q", "K"), (1, 1, 1, 1)], ids=str)
def test_of_symbolic_queries_there_may_be_one(isa: Isa, mask: Sequence[object] | None) -> None:
    """One is computed with vectors along its numbers, in the same kernel as many."""
    facts = ["2,Q,3,64,f32", "2,K,3,64,f32", "2,K,3,64,f32"]
    masked = None if mask is None else fact(mask, DatumType.F32)
    plan = CpuPlan(wired(HEADS, facts, mask=masked, kind=DatumType.F32), isa)
    kernels = [one.kernel for one in plan.steps if isinstance(one, NativeStep)]
    assert [all(one.single) for one in kernels if isinstance(one, AttentionPlan)] == [True]
    rng, state = np.random.default_rng(4), plan.spawn()
    for queries, keys in ((1, 1), (1, 19), (2, 8), (1, 33), (9, 33), (0, 3), (1, 64)):
        sizes = {"Q": queries, "K": keys}
        arrays = [rng.standard_normal((2, size, 3, 64)).astype("f4") for size in (queries, keys, keys)]
        if mask is not None:
            shape = [sizes.get(str(one), one) for one in mask]
            arrays.append(np.where(rng.integers(0, 4, shape) > 0, 0.25, -30).astype("f4"))
        same(state.run(arrays)[0], expected(HEADS, arrays))


def test_a_query_without_keys(isa: Isa) -> None:
    plan = CpuPlan(
        wired(("hd,hkd->hk", "hk,hkd->hd"), ["2,16,f32", "2,K,16,f32", "2,K,16,f32"], kind=DatumType.F32), isa
    )
    assert hows(plan) == ["attention"]
    arrays = [np.ones(shape, "f4") for shape in ((2, 16), (2, 0, 16), (2, 0, 16))]
    same(plan.spawn().run(arrays)[0], np.zeros((2, 16)))


def test_what_is_no_number_reaches_its_query_alone(isa: Isa) -> None:
    rng = np.random.default_rng(3)
    queries, keys, values = (rng.standard_normal((size, 6)).astype("f4") for size in (35, 20, 20))
    queries[4, 2], queries[20, 0], queries[34] = np.nan, np.inf, 1e20
    plan = CpuPlan(wired(PLAIN, ["35,6,f32", "20,6,f32", "20,6,f32"], kind=DatumType.F32), isa)
    found = plan.spawn().run([queries, keys, values])[0]
    same(found, expected(PLAIN, [queries, keys, values]))
    assert np.isnan(found).all(axis=1).nonzero()[0].tolist() == [4, 20]
    values[3] = np.inf
    same(plan.spawn().run([queries, keys, values])[0], expected(PLAIN, [queries, keys, values]))


APART = "dq,dk->qk", "qk,kw->wq"
BESIDE = "qd,kd->qk", "qk,kw->qw"
NEIGHBOURS = {BESIDE: ("Q,D", "Q,W"), APART: ("D,Q", "W,Q")}


@pytest.mark.parametrize("kind", ["f32", "bf16"])
@pytest.mark.parametrize("forms", NEIGHBOURS, ids="-".join)
def test_numbers_of_queries_and_results_beside_each_other_and_apart(
    isa: Isa, forms: tuple[str, str], kind: str
) -> None:
    """Those that are beside each other are turned in squares, what squares leave over one by one."""
    element = DatumType[kind.upper()]
    keys = "K,D" if forms is BESIDE else "D,K"
    plan = CpuPlan(wired(forms, [f"{NEIGHBOURS[forms][0]},{kind}", f"{keys},{kind}", f"K,W,{kind}"], kind=element), isa)
    assert hows(plan)[-1] == "attention"
    rng, state = np.random.default_rng(11), plan.spawn()
    for queries, depth, width in itertools.product((1, 3, 4, 5, 16, 23), (1, 4, 7, 16), (1, 3, 16, 21)):
        sizes = {"q": queries, "k": 5, "d": depth, "w": width}
        terms = [*forms[0].split("->")[0].split(","), "kw"]
        arrays = [rng.standard_normal([sizes[name] for name in term]).astype(element.numpy) for term in terms]
        same(state.run(arrays)[0], expected(forms, arrays), 1e-5 if kind == "f32" else 5e-2)


@pytest.mark.parametrize(("kind", "tolerance"), [(DatumType.F64, 1e-13), (DatumType.F16, 4e-3), (DatumType.BF16, 3e-2)])
def test_other_floats(isa: Isa, kind: DatumType, tolerance: float) -> None:
    rng = np.random.default_rng(4)
    arrays = [rng.standard_normal((size, 24)).astype(kind.numpy) for size in (37, 21, 21)]
    model = wired(PLAIN, [fact(one.shape, kind) for one in arrays], kind=kind)
    plan = CpuPlan(model, isa)
    assert hows(plan)[-1] == "attention" or kind is DatumType.F16
    same(plan.spawn().run(arrays)[0], expected(PLAIN, arrays), tolerance)


def test_softmax_along_the_other_axis_and_scores_that_others_read(isa: Isa) -> None:
    """Neither is attention along the keys; results are right all the same."""
    forms = "qd,kd->kq", "kq,qd->kd"
    rng = np.random.default_rng(5)
    arrays = [rng.standard_normal((size, 8)).astype("f4") for size in (33, 34, 33)]
    facts = [fact(one.shape, DatumType.F32) for one in arrays]
    plan = CpuPlan(wired(forms, facts, kind=DatumType.F32), isa)
    assert hows(plan)[-1] == "attention"  # queries and keys have changed places
    same(plan.spawn().run(arrays)[0], expected(forms, arrays))
    facts[2] = facts[1]
    across = CpuPlan(wired(PLAIN, facts, axis=0, kind=DatumType.F32), isa)
    assert "attention" not in hows(across)
    arrays[2] = arrays[1]
    same(across.spawn().run(arrays)[0], expected(PLAIN, arrays, axis=0))
    model = wired(PLAIN, facts, kind=DatumType.F32)
    scores = next(node.outlets()[0] for node in model.nodes if node.name == "shares")
    model.set_outputs([*model.outputs, scores])
    shown = CpuPlan(model, isa)
    assert "attention" not in hows(shown)
    same(shown.spawn().run(arrays)[0], expected(PLAIN, arrays))


def test_masks_may_come_later_than_products(isa: Isa) -> None:
    """The mask of the scores, and values, are computed by nodes that come behind the first product."""
    model = TypedModel()
    facts = ["20,8,f32", "9,8,f32", "9,8,f32", "9,f32"]
    queries, keys, values, mask = (model.add_source(f"x{n}", parse_typed_fact(one)) for n, one in enumerate(facts))
    half, one = (model.add_const(f"c{n}", np.full((1, 1), number, "f4")) for n, number in enumerate((0.5, -1.0)))
    (scores,) = model.wire_node("scores", EinSum(AxesMapping.parse("qd,kd->qk"), DatumType.F32), [queries, keys])
    (scores,) = model.wire_node("scaled", Mul(), [scores, half])
    (mask,) = model.wire_node("row", AddAxis(0), [mask])
    (mask,) = model.wire_node("negated", Mul(), [mask, one])
    (scores,) = model.wire_node("masked", Add(), [scores, mask])
    (shares,) = model.wire_node("shares", Softmax((1,)), [scores])
    (values,) = model.wire_node("doubled", Add(), [values, values])
    mix = EinSum(AxesMapping.parse("qk,kd->qd"), DatumType.F32)
    model.set_outputs(model.wire_node("mixed", mix, [shares, values]))
    plan = CpuPlan(model, isa)
    assert hows(plan).count("attention") == 1
    rng = np.random.default_rng(8)
    arrays = [rng.standard_normal(shape).astype("f4") for shape in ((20, 8), (9, 8), (9, 8), (9,))]
    same(plan.spawn().run(arrays)[0], expected(PLAIN, [*arrays[:2], 2 * arrays[2], -arrays[3][None]]))


def test_scores_of_two_products(isa: Isa) -> None:
    """As of keys, and of how far away they are: one of the products waits for the softmax, the other one is there."""
    model = TypedModel()
    facts = ["20,8,f32", "9,8,f32", "20,9,8,f32", "9,8,f32"]
    queries, keys, places, values = (model.add_source(f"x{n}", parse_typed_fact(one)) for n, one in enumerate(facts))
    wire = model.wire_node
    (scores,) = wire("scores", EinSum(AxesMapping.parse("qd,kd->qk"), DatumType.F32), [queries, keys])
    (places,) = wire("far", EinSum(AxesMapping.parse("qd,qkd->qk"), DatumType.F32), [queries, places])
    (scores,) = wire("both", Add(), [scores, places])
    (shares,) = wire("shares", Softmax((1,)), [scores])
    model.set_outputs(wire("mixed", EinSum(AxesMapping.parse("qk,kd->qd"), DatumType.F32), [shares, values]))
    rng = np.random.default_rng(9)
    arrays = [rng.standard_normal(shape).astype("f4") for shape in ((20, 8), (9, 8), (20, 9, 8), (9, 8))]
    far = 2 * np.einsum("qd,qkd->qk", *(arrays[one].astype("f8") for one in (0, 2)))
    wanted = expected(PLAIN, [2 * arrays[0], arrays[1], arrays[3], far / 2])
    same(CpuPlan(model, isa).spawn().run(arrays)[0], wanted)


def repeated(model: TypedModel, outlet: OutletId, axis: int, times: int) -> OutletId:
    """Each position along an axis several times, one after the other, as exporters write shared keys."""
    shape = list(model.outlet_fact(outlet).shape)
    (apart,) = model.wire_node(f"apart {outlet.node}", AddAxis(axis + 1), [outlet])
    (stretched,) = model.wire_node(
        f"stretched {outlet.node}", MultiBroadcastTo((*shape[: axis + 1], times, *shape[axis + 1 :])), [apart]
    )
    both = (shape[axis], times)
    (joined,) = model.wire_node(f"joined {outlet.node}", Reshape(axis, both, (shape[axis] * times,)), [stretched])
    return joined


@pytest.mark.parametrize("count", [1, 3, 19])
@pytest.mark.parametrize(("heads", "keys"), [(1, "7"), (2, "33"), (3, "N")])
@pytest.mark.parametrize("shared", ["keys", "values", "both"])
def test_heads_that_share_keys_and_values_read_them_where_they_are(
    isa: Isa, count: int, heads: int, keys: str, shared: str
) -> None:
    model, lengths = TypedModel(), {"7": 7, "33": 33, "N": 11}
    shapes = [[2, count, 4 * heads, 64]]
    shapes += [[2, keys, heads if shared in {one, "both"} else 4 * heads, 64] for one in ("keys", "values")]
    sources = [
        model.add_source(f"x{place}", parse_typed_fact(fact(shape, DatumType.F32), model.symbols))
        for place, shape in enumerate(shapes)
    ]
    q, k, v = (
        repeated(model, one, 2, 4) if one != sources[0] and shape[2] == heads else one
        for one, shape in zip(sources, shapes, strict=True)
    )
    (scores,) = model.wire_node("scores", EinSum(AxesMapping.parse(HEADS[0]), DatumType.F32), [q, k])
    scale = model.add_const("scale", np.full((1,) * 4, 0.5, "f4"))
    (scores,) = model.wire_node("scaled", Mul(), [scores, scale])
    (shares,) = model.wire_node("shares", Softmax((3,)), [scores])
    model.set_outputs(model.wire_node("mixed", EinSum(AxesMapping.parse(HEADS[1]), DatumType.F32), [shares, v]))
    plan = CpuPlan(model, isa)
    assert [how for how in hows(plan) if how != "view"] == ["attention"]
    rng = np.random.default_rng(heads)
    arrays = [rng.standard_normal([lengths.get(str(one), one) for one in shape]).astype("f4") for shape in shapes]
    whole = [np.repeat(one, 4 * heads // one.shape[2], axis=2) for one in arrays]
    same(plan.spawn().run(arrays)[0], expected(HEADS, whole))


def test_what_is_repeated_is_written_where_others_than_loops_read_it(isa: Isa) -> None:
    model = TypedModel()
    x = model.add_source("x", parse_typed_fact("3,5,f32"))
    y = model.add_source("y", parse_typed_fact("6,5,f32"))
    axes = AxesMapping.parse("ak,bk->ab")
    model.set_outputs(model.wire_node("product", EinSum(axes, DatumType.F32), [y, repeated(model, x, 0, 2)]))
    a, b = (np.random.default_rng(1).standard_normal(shape).astype("f4") for shape in ((3, 5), (6, 5)))
    plan = CpuPlan(model, isa)
    assert "numpy" not in hows(plan)
    same(plan.spawn().run([a, b])[0], b.astype("f8") @ np.repeat(a, 2, axis=0).T)
    assert {node for one in plan.timed_run([a, b]) for node in one.part.nodes} >= {2, 3, 4, 5}


def test_threads_change_no_bit(isa: Isa) -> None:
    rng = np.random.default_rng(6)
    arrays = [rng.standard_normal((2, size, 3, 64)).astype("f4") for size in (130, 150, 150)]
    facts = [fact(one.shape, DatumType.F32) for one in arrays]
    one, two = (CpuPlan(wired(HEADS, facts, kind=DatumType.F32), isa, threads) for threads in (1, 2))
    assert np.array_equal(one.spawn().run(arrays)[0], two.spawn().run(arrays)[0])
