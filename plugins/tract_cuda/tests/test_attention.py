"""Attention in models: what becomes one launch, and what it computes, on the emulator, against NumPy."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent / "kernels"))  # models that the emulator executes

from executed import kernels_of, run

from tract_core.data import DatumType
from tract_core.model.axes import AxesMapping
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.typed import TypedModel
from tract_core.ops.binary import Add, Mul
from tract_core.ops.einsum import EinSum
from tract_core.ops.iff import Iff
from tract_core.ops.softmax import Softmax
from tract_core.testing.networks import transformer

HEADS = "bqhd,bkhd->bhqk", "bhqk,bkhd->bqhd"
SHARED = "bhqd,bkd->bhqk", "bhqk,bkd->bhqd"


def wired(
    forms: Sequence[str], facts: Sequence[str], kind: str = "f32", *, seen: np.ndarray | None = None
) -> TypedModel:
    """The softmax of products, scaled, and with a mask if there is a fact for one, times values.

    ``seen``: which keys queries see; all others are -inf.
    """
    model, acc = TypedModel(), DatumType[kind.upper()]
    sources = [
        model.add_source(f"x{number}", parse_typed_fact(f"{fact},{kind}", model.symbols))
        for number, fact in enumerate(facts)
    ]
    (scores,) = model.wire_node("scores", EinSum(AxesMapping.parse(forms[0]), acc), sources[:2])
    scale = model.add_const("scale", np.full((1, 1, 1, 1), 0.5, acc.numpy))
    (scores,) = model.wire_node("scaled", Mul(), [scores, scale])
    for mask in sources[3:]:
        (scores,) = model.wire_node("masked", Add(), [scores, mask])
    if seen is not None:
        never = model.add_const("never", np.full((1, 1, 1, 1), -np.inf, acc.numpy))
        (scores,) = model.wire_node("seen", Iff(), [model.add_const("which", seen[None, None]), scores, never])
    (shares,) = model.wire_node("shares", Softmax((3,)), [scores])
    model.set_outputs(model.wire_node("mixed", EinSum(AxesMapping.parse(forms[1]), acc), [shares, sources[2]]))
    return model


def expected(forms: Sequence[str], arrays: Sequence[np.ndarray]) -> np.ndarray:
    queries, keys, values, *masks = (one.astype("f8") for one in arrays)
    scores = np.einsum(forms[0], queries, keys) * 0.5 + sum(masks)
    powers = np.exp(scores - scores.max(axis=3, keepdims=True))
    return np.einsum(forms[1], powers / powers.sum(axis=3, keepdims=True), values)


def arrays_for(forms: Sequence[str], sizes: dict[str, int], kind: str) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    terms = [*forms[0].split("->")[0].split(","), forms[1].split("->")[0].split(",")[1]]
    return [rng.normal(size=[sizes[name] for name in term]).astype(DatumType[kind.upper()].numpy) / 2 for term in terms]


def names_of(model: TypedModel) -> list[str]:
    return [plan.name for plan in kernels_of(model)]


@pytest.mark.parametrize("forms", [HEADS, SHARED], ids="-".join)
@pytest.mark.parametrize(("depth", "kind", "name"), [(20, "f32", "attention"), (16, "f16", "attention_mma")])
@pytest.mark.parametrize("symbolic", [False, True], ids=["fixed", "symbolic"])
def test_one_launch(forms, depth, kind, name, symbolic) -> None:
    sizes = {"b": 2, "h": 3, "q": 19, "k": 33, "d": depth}
    arrays = arrays_for(forms, sizes, kind)
    shown = {"b": "B", "q": "Q", "k": "K"} if symbolic else {}
    terms = [*forms[0].split("->")[0].split(","), forms[1].split("->")[0].split(",")[1]]
    facts = [",".join(str(shown.get(one, sizes[one])) for one in term) for term in terms]
    model = wired(forms, facts, kind)
    assert names_of(model) == [name]
    symbols = {"B": 2, "Q": 19, "K": 33} if symbolic else {}
    (found,) = run(model, *arrays, symbols=symbols)
    tolerance = 1e-5 if kind == "f32" else 4e-3
    np.testing.assert_allclose(found.astype("f8"), expected(forms, arrays), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("shape", [(2, 3, 19, 33), (1, 1, 19, 33), (2, 1, 1, 33), (1, 1, 1, 1)], ids=str)
def test_masks_are_added_along(shape) -> None:
    sizes = {"b": 2, "h": 3, "q": 19, "k": 33, "d": 8}
    arrays = [*arrays_for(HEADS, sizes, "f32"), np.random.default_rng(1).normal(size=shape).astype("f4")]
    model = wired(HEADS, [",".join(map(str, one.shape)) for one in arrays])
    assert names_of(model) == ["attention"]
    (found,) = run(model, *arrays)
    np.testing.assert_allclose(found, expected(HEADS, arrays), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("queries", "depth"), [(1, 8), (19, 256)])
def test_few_queries_and_long_ones_are_products(queries, depth) -> None:
    model = wired(HEADS, [f"2,{queries},3,{depth}", f"2,33,3,{depth}", f"2,33,3,{depth}"])
    assert not {"attention", "attention_mma"} & set(names_of(model))


@pytest.mark.parametrize(("kind", "depth"), [("f32", 8), ("f16", 16)])
def test_later_keys_are_left_out_by_booleans(kind, depth) -> None:
    """The first query sees one key; a query that sees none gives what is no number, as the softmax does."""
    arrays = arrays_for(HEADS, {"b": 1, "h": 2, "q": 35, "k": 35, "d": depth}, kind)
    seen = np.tri(35, dtype=bool)
    seen[7] = False
    model = wired(HEADS, [",".join(map(str, one.shape)) for one in arrays], kind, seen=seen)
    assert len(names_of(model)) == 1
    (found,) = run(model, *arrays)
    with np.errstate(invalid="ignore"):
        wanted = expected(HEADS, [*arrays, np.where(seen, 0, -np.inf)])
    tolerance = 1e-5 if kind == "f32" else 4e-3
    assert np.isnan(wanted).any(axis=(2, 3)).nonzero()[1].tolist() == [7]
    np.testing.assert_allclose(found.astype("f8"), wanted, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(("kind", "depth"), [("f32", 8), ("f16", 16)])
def test_positions_of_64_bits(kind, depth) -> None:
    arrays = arrays_for(HEADS, {"b": 1, "h": 2, "q": 17, "k": 20, "d": depth}, kind)
    model = wired(HEADS, [",".join(map(str, one.shape)) for one in arrays], kind)
    np.testing.assert_array_equal(run(model, *arrays, wide=True)[0], run(model, *arrays)[0])


def test_products_wait_for_masks_and_values() -> None:
    names = names_of(transformer(2))
    assert names.count("attention") == 2
