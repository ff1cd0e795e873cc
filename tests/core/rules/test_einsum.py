from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tract_core.data import DatumType
from tract_core.dims import Dim, symbol
from tract_core.model.axes import AxesMapping
from tract_core.ops.axis import AddAxis, AxisOp, MoveAxis, Reshape, RmAxis
from tract_core.ops.binary import Mul
from tract_core.ops.broadcast import MultiBroadcastTo
from tract_core.ops.einsum import EinSum
from tract_core.ops.wiring import wire_one, wire_reshape, wire_transpose
from tract_core.testing.declutter import checked_declutter, operators, sources

B, S = symbol("B"), symbol("S")
SIZES = {"B": 2, "S": 3}


def _einsum(expression: str) -> EinSum:
    return EinSum(AxesMapping.parse(expression), DatumType.F32)


def _weights(*shape: int) -> Any:
    return np.random.default_rng(5).uniform(-1, 1, shape).astype(np.float32)


@pytest.mark.parametrize(
    ("fact", "change", "expression", "wanted"),
    [
        ("B,S,4,f32", MoveAxis(0, 2), "skb,kn->bsn", ["EinSum"]),
        ("4,B,S,f32", MoveAxis(0, 2), "bsk,kn->bsn", ["EinSum"]),
        ("B,S,4,f32", AddAxis(1), "bxsk,kn->bsn", ["EinSum"]),
        ("B,S,4,f32", AddAxis(1), "bxsk,kn->bxsn", ["EinSum", "AddAxis"]),
        ("B,1,S,4,f32", RmAxis(1), "bsk,kn->bsn", ["EinSum"]),
        ("B,S,2,2,f32", Reshape(2, (2, 2), (4,)), "bsk,kn->bsn", ["EinSum"]),
        ("B,S,4,f32", Reshape(0, (B, S), (B * S,)), "bk,kn->bn", ["EinSum", "Reshape"]),
        ("B,S,16,f32", Reshape(2, (16,), (4, 4)), "bshk,kn->bshn", ["Reshape", "EinSum"]),
    ],
    ids=str,
)
def test_axis_operators_in_front(fact: str, change: AxisOp, expression: str, wanted: list[str]) -> None:
    model, (x,) = sources(fact)
    y = wire_one(model, "change", change, x)
    model.set_outputs([wire_one(model, "out", _einsum(expression), y, model.add_const("w", _weights(4, 5)))])
    simple = checked_declutter(model, SIZES)
    assert operators(simple) == wanted
    assert simple.outlet_name(simple.outputs[0]) == "out"


def test_both_operands_of_attention() -> None:
    model, (q, k) = sources("B,S,2,4,f32", "B,S,2,4,f32")
    left = wire_transpose(model, "left", q, (0, 2, 1, 3))
    right = wire_transpose(model, "right", k, (0, 2, 3, 1))
    model.set_outputs([wire_one(model, "out", _einsum("bhmk,bhkn->bhmn"), left, right)])
    assert operators(checked_declutter(model, SIZES)) == ["EinSum"]


def test_an_axis_merged_from_a_tensor_on_both_sides_stays_merged() -> None:
    model, (a, b) = sources("B,2,2,f32", "4,S,f32")
    merged = wire_reshape(model, "merged", a, (B, 4))
    model.set_outputs([wire_one(model, "out", _einsum("bk,ks->bs"), merged, b)])
    assert operators(checked_declutter(model, SIZES)) == ["Reshape", "EinSum"]


def test_flattened_around_a_product_is_not_flattened() -> None:
    model, (x,) = sources("B,S,4,f32")
    flat = wire_reshape(model, "flat", x, (B * S, 4))
    product = wire_one(model, "product", _einsum("bk,kn->bn"), flat, model.add_const("w", _weights(4, 5)))
    model.set_outputs([wire_reshape(model, "out", product, (B, S, 5))])
    assert operators(checked_declutter(model, SIZES)) == ["EinSum"]


@pytest.mark.parametrize(
    ("expression", "change", "wanted"),
    [
        ("bsk,kn->bsn", MoveAxis(0, 2), ["EinSum"]),
        ("bsk,kn->bsn", AddAxis(1), ["EinSum", "AddAxis"]),
        ("bsk,kx->bsx", RmAxis(2), ["EinSum"]),
    ],
    ids=str,
)
def test_axis_operators_behind(expression: str, change: AxisOp, wanted: list[str]) -> None:
    model, (x,) = sources("B,S,4,f32")
    weights = model.add_const("w", _weights(4, 1 if "x" in expression else 5))
    model.set_outputs([wire_one(model, "out", change, wire_one(model, "sum", _einsum(expression), x, weights))])
    assert operators(checked_declutter(model, SIZES)) == wanted


@pytest.mark.parametrize(
    ("narrow", "wide", "expression", "wanted"),
    [
        ("1,4,f32", (B, 4), "bk,bn->kn", ["EinSum"]),
        ("4,f32", (B, 4), "bk,bn->kn", ["EinSum"]),
        ("1,4,f32", (S, 4), "sk,bn->sb", ["MultiBroadcastTo", "EinSum"]),
        ("1,4,f32", (S, 4), "sk,bn->kb", ["MultiBroadcastTo", "EinSum"]),
    ],
    ids=str,
)
def test_stretched_operands(narrow: str, wide: tuple[Dim, ...], expression: str, wanted: list[str]) -> None:
    model, (x, y, _) = sources(narrow, "B,3,f32", "S,f32")
    stretched = wire_one(model, "stretched", MultiBroadcastTo(wide), x)
    model.set_outputs([wire_one(model, "out", _einsum(expression), stretched, y)])
    assert operators(checked_declutter(model, SIZES)) == wanted


@pytest.mark.parametrize(
    ("expression", "wanted"),
    [("bxs->sb", ["RmAxis", "MoveAxis"]), ("bxs->bxs", ["Identity"]), ("bxs->bx", ["EinSum"])],
)
def test_one_operand(expression: str, wanted: list[str]) -> None:
    model, (x,) = sources("B,1,S,f32")
    model.set_outputs([wire_one(model, "out", _einsum(expression), x)])
    assert operators(checked_declutter(model, SIZES)) == wanted


def _scaled_sum(fact: str, factors: tuple[float, float], *, kind: type = np.float32, read: bool = False) -> Any:
    """Queries and keys, each times a number, summed; keys are shared by two heads, as where heads repeat them."""
    model, (q, k) = sources(f"B,4,S,3,{fact}", f"B,2,T,3,{fact}")
    q = wire_one(model, "q", Mul(), q, model.add_const("a", np.full((1,) * 4, factors[0], kind)))
    k = wire_one(model, "k", Mul(), k, model.add_const("b", np.full((1,) * 4, factors[1], kind)))
    wide = wire_one(model, "wide", MultiBroadcastTo((B, 2, 2, symbol("T"), 3)), wire_one(model, "new", AddAxis(2), k))
    wide = wire_one(model, "joined", Reshape(1, (2, 2), (4,)), wide)
    acc = DatumType.F32 if kind is np.float16 else DatumType[fact.upper()]
    out = wire_one(model, "out", EinSum(AxesMapping.parse("bhsd,bhtd->bhst"), acc), q, wide)
    model.set_outputs([out, k] if read else [out])
    return model


def test_of_two_factors_of_a_sum_one_stays() -> None:
    simple = checked_declutter(_scaled_sum("f32", (0.5, 0.25)), SIZES | {"T": 5})
    assert operators(simple).count("Mul") == 1
    (mul,) = (node for node in simple.nodes if isinstance(node.op, Mul))
    assert mul.inputs[0] == simple.inputs[0]
    factor = simple.outlet_fact(mul.inputs[1]).constant
    assert factor is not None
    assert factor.item() == 0.125


def test_two_factors_stay_where_sums_round_late_or_others_read_a_factor() -> None:
    """Of f16, products of tensors that are not scaled yet may be too large."""
    narrow = _scaled_sum("f16", (0.5, 0.25), kind=np.float16)
    for model in (narrow, _scaled_sum("f32", (0.5, 0.25), read=True)):
        assert operators(checked_declutter(model, SIZES | {"T": 5})).count("Mul") == 2
