"""Attention without its matrix, on the emulator, against NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import ml_dtypes
import numpy as np
import pytest
from executed import SM_80
from tract_cuda.kernels.attention import AttentionPlan, AttentionTile
from tract_cuda.kernels.attention_mma import AttentionMmaPlan
from tract_cuda.ptx import Ptx, written
from tract_cuda.testing.emulator import Emulator, run
from tract_llvm.elements.expressions import Apply, Expression, element_of
from tract_llvm.language.types import BF16, F16, F32, F64, ElementType

from tract_core.ops.binary import Add, Sub
from tract_core.ops.elementwise import Exp
from tract_core.plugins import default_registry

KINDS = {F16: np.dtype("f2"), BF16: np.dtype(ml_dtypes.bfloat16), F32: np.dtype("f4"), F64: np.dtype("f8")}
SMALL = AttentionTile(16, 32, 4, 4)
LARGE = AttentionTile(64, 64, 8, 4)


def expression_of(*steps: tuple[object, int, int], inputs: Sequence[ElementType]) -> Expression:
    """Operators on numbers of values, in the type of the first input."""
    element, found = inputs[0], []
    for op, *operands in steps:
        kinds = (element,) * len([one for one in operands if one >= 0])
        one = element_of(default_registry(), op, kinds)
        assert one is not None
        found.append(Apply(op, tuple(one for one in operands if one >= 0), element, one.emit))
    return Expression(tuple(inputs), tuple(found))


def powers(element: ElementType) -> Expression:
    return expression_of((Sub(), 0, 1), (Exp(), 2, -1), inputs=(element.computed,) * 2)


def masked(element: ElementType) -> Expression:
    return expression_of((Add(), 0, 1), inputs=(element, element))


@cache
def kernel(plan) -> tuple[Ptx, Emulator]:
    ptx = written(plan, SM_80)
    return ptx, Emulator(ptx.text)


def attended(plan, *tensors: np.ndarray):
    """What a kernel computes for [batch, heads, rows, numbers]; masks are broadcast, as keys and values of heads."""
    q, k, v, *masks = tensors
    around, (queries, keys) = q.shape[:2], (q.shape[2], k.shape[2])
    result = np.full((*around, queries, v.shape[3]), 7, KINDS[plan.result])
    shapes = [(q, (*around, queries, q.shape[3])), (k, (*around, *k.shape[2:])), (v, (*around, *v.shape[2:]))]
    shapes += [(mask, (*around, queries, keys)) for mask in masks]
    arguments: list = [*around, queries, keys]
    for array, shape in [*shapes, (result, result.shape)]:
        seen = np.broadcast_to(array, shape)
        arguments += [array, *(stride // array.itemsize for stride in seen.strides)]
    ptx, emulator = kernel(plan)
    grid = around[0] * around[1] * -(-queries // getattr(plan, "tile", plan).queries)
    arrays = run(ptx, grid, arguments, emulator=emulator)
    return arrays[-1]


def wanted(q, k, v, mask=None) -> np.ndarray:
    """The same in f64; scores have no more digits than their type holds."""
    kind = q.dtype
    q, k, v = (one.astype("f8") for one in (q, k, v))
    with np.errstate(all="ignore"):
        scores = (q @ np.swapaxes(k, 2, 3)).astype(kind).astype("f8") + (0 if mask is None else mask.astype("f8"))
        scores = np.exp(scores - scores.max(-1, keepdims=True))
        return scores / scores.sum(-1, keepdims=True) @ v


def tensor(shape: Sequence[int], element: ElementType, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype(KINDS[element])


def tensors(element: ElementType, *sizes: int, heads: int = 2) -> list[np.ndarray]:
    queries, keys, depth, width = sizes
    shapes = [(1, heads, queries, depth), (1, 1, keys, depth), (1, 1, keys, width)]
    first, *others = (tensor(shape, element, seed) for seed, shape in enumerate(shapes))
    return [first / KINDS[element].type(4), *others]


def plan_for(element: ElementType, depth: int, width: int, wide: int, *, tile=SMALL, expression=None) -> AttentionPlan:
    expression = expression or Expression((element,))
    return AttentionPlan(tile, element, depth, width, wide, 2, expression, powers(element), element)


def close(found: np.ndarray, right: np.ndarray, element: ElementType) -> None:
    eps = {F16: 2**-10, BF16: 2**-7, F32: 2**-20, F64: 2**-48}[element]
    np.testing.assert_allclose(found.astype("f8"), right, rtol=2 * eps, atol=2 * eps)


@pytest.mark.parametrize(("queries", "keys"), [(1, 1), (2, 3), (15, 33), (16, 32), (17, 31), (33, 70)])
@pytest.mark.parametrize(("depth", "width", "wide"), [(8, 64, 4), (5, 3, 1), (12, 20, 2)])
def test_any_number_of_queries_and_keys(queries, keys, depth, width, wide) -> None:
    given = tensors(F32, queries, keys, depth, width)
    close(attended(plan_for(F32, depth, width, wide), *given), wanted(*given), F32)


@pytest.mark.parametrize("element", [F16, BF16, F64], ids=lambda one: one.name)
def test_types(element) -> None:
    given = tensors(element, 18, 40, 16, 16)
    close(attended(plan_for(element, 16, 16, 2), *given), wanted(*given), element)


def test_a_large_tile() -> None:
    given = tensors(F32, 70, 130, 64, 64, heads=1)
    close(attended(plan_for(F32, 64, 64, 4, tile=LARGE), *given), wanted(*given), F32)


def special_mask(queries: int, keys: int) -> np.ndarray:
    """Rows where all is masked, the first tile, the last one, all but one; where there is +inf, and no number."""
    mask = np.zeros((1, 1, queries, keys))
    mask[..., 0, :], mask[..., 1, :34], mask[..., 2, 2:], mask[..., 3, :-1] = (-np.inf,) * 4
    mask[..., 4, 5], mask[..., 5, 40], mask[..., 6, 3] = np.inf, np.nan, np.nan
    mask[..., 6, 33:] = -np.inf
    return mask


def test_masks_infinities_and_what_is_no_number() -> None:
    given, mask = tensors(F32, 9, 67, 8, 8), special_mask(9, 67).astype("f4")
    found = attended(plan_for(F32, 8, 8, 4, expression=masked(F32)), *given, mask)
    right = wanted(*given, mask)
    assert np.isnan(right).any(axis=-1).sum() == 8
    close(found, right, F32)


@pytest.mark.parametrize("shape", [(1, 1, 1, 40), (2, 1, 18, 40), (2, 2, 18, 1), (1, 1, 1, 1)], ids=str)
def test_masks_are_stretched(shape) -> None:
    queries, (keys, values) = tensor((2, 2, 18, 8), F32, 0), (tensor((2, 1, 40, 8), F32, seed) for seed in (1, 2))
    mask = tensor(shape, F32, 3)
    found = attended(plan_for(F32, 8, 8, 4, expression=masked(F32)), queries, keys, values, mask)
    close(found, wanted(queries, keys, values, mask), F32)


def test_without_keys_sums_are_zero() -> None:
    given = tensors(F32, 3, 0, 8, 8)
    assert not attended(plan_for(F32, 8, 8, 4), *given).any()


# ---- on tensor cores


def mma_plan(element: ElementType, depth: int, width: int, expression=None, warps: int = 2) -> AttentionMmaPlan:
    expression = expression or Expression((element,))
    return AttentionMmaPlan(warps, 32, element, depth, width, 2, expression, powers(element), element)


@pytest.mark.parametrize(("queries", "keys"), [(1, 1), (2, 3), (31, 33), (32, 32), (33, 31), (40, 70)])
@pytest.mark.parametrize(("depth", "width"), [(16, 32), (80, 16)])
def test_halves_on_tensor_cores(queries, keys, depth, width) -> None:
    given = tensors(F16, queries, keys, depth, width)
    plan = mma_plan(F16, depth, width)
    close(attended(plan, *given), wanted(*given), F16)


def test_bfloats_on_tensor_cores() -> None:
    given, plan = tensors(BF16, 70, 130, 64, 64, heads=1), mma_plan(BF16, 64, 64, warps=4)
    close(attended(plan, *given), wanted(*given), BF16)


def test_masks_infinities_and_what_is_no_number_on_tensor_cores() -> None:
    given, mask = tensors(F16, 9, 67, 16, 16), special_mask(9, 67).astype("f2")
    plan = mma_plan(F16, 16, 16, masked(F16))
    close(attended(plan, *given, mask), wanted(*given, mask), F16)


def test_without_keys_sums_are_zero_on_tensor_cores() -> None:
    given, plan = tensors(F16, 3, 0, 16, 16), mma_plan(F16, 16, 16)
    assert not attended(plan, *given).any()
