"""Nodes that MLX has one function for: found where they are that, and the same numbers."""

from __future__ import annotations

import numpy as np
import pytest
from on_mlx import parsed, plan_of, wanted

RNG = np.random.default_rng(0)


def kinds(plan) -> list[str]:
    return [one.group.kind for one in plan.placed if len(one.group.nodes) > 1]


def same(graph: str, *inputs: np.ndarray, tolerance: float = 2e-6) -> list[str]:
    """The groups of several nodes. All outputs are those of the node executor."""
    model = parsed(graph)
    plan = plan_of(model)
    for found, right in zip(plan.run(list(inputs)), wanted(model, inputs), strict=True):
        np.testing.assert_allclose(found.astype("f8"), right.astype("f8"), rtol=tolerance, atol=tolerance)
    return kinds(plan)


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype("f4")


HEADS = "(float[B,2,S,8] q, float[B,2,T,8] k, float[B,2,T,4] v{extra}) => (float[B,2,S,4] y)"
SCORES = "kt = Transpose<perm=[0,1,3,2]>(k) s = MatMul(q, kt)"
SCALE = "c = Constant<value = float {{0.25}}>() sc = Mul(s, c)"


@pytest.mark.parametrize(("b", "s", "t"), [(1, 1, 1), (2, 5, 7), (1, 3, 0), (0, 2, 2), (3, 0, 4), (1, 16, 33)])
def test_attention(b: int, s: int, t: int) -> None:
    nodes = f"{SCORES} {SCALE} p = Softmax<axis=-1>(sc) y = MatMul(p, v)".replace("{{", "{").replace("}}", "}")
    graph = HEADS.format(extra="") + f"{{ {nodes} }}"
    assert same(graph, normal(b, 2, s, 8), normal(b, 2, t, 8), normal(b, 2, t, 4)) == ["attention"]


@pytest.mark.parametrize("mask", ["float[B,1,1,T]", "float[B,1,S,T]", "float[1,2,S,T]"])
def test_attention_with_a_mask(mask: str) -> None:
    nodes = f"{SCORES} {SCALE} m2 = Add(sc, m) p = Softmax<axis=-1>(m2) y = MatMul(p, v)"
    graph = HEADS.format(extra=f", {mask} m") + f"{{ {nodes} }}".replace("{{", "{").replace("}}", "}")
    shape = {"float[B,1,1,T]": (3, 1, 1, 7), "float[B,1,S,T]": (3, 1, 5, 7), "float[1,2,S,T]": (1, 2, 5, 7)}[mask]
    hidden = np.where(RNG.random(shape) < 0.3, -10000, 0).astype("f4")
    assert same(graph, normal(3, 2, 5, 8), normal(3, 2, 7, 8), normal(3, 2, 7, 4), hidden) == ["attention"]


def test_scores_that_somebody_else_reads_are_no_attention() -> None:
    nodes = f"{SCORES} p = Softmax<axis=-1>(s) y = MatMul(p, v) z = Neg(s)"
    graph = HEADS.format(extra="").replace("y)", "y, float[B,2,S,T] z)") + f"{{ {nodes} }}"
    assert same(graph, normal(1, 2, 3, 8), normal(1, 2, 4, 8), normal(1, 2, 4, 4)) == []


@pytest.mark.parametrize("shape", [(2, 3, 8), (1, 1, 8), (0, 3, 8), (2, 0, 8)])
def test_layer_norm(shape: tuple[int, ...]) -> None:
    weights = "<float[8] w = {1,2,3,4,5,6,7,8}, float[8] b = {0,1,0,1,0,1,0,1}>"
    graph = f"(float[A,B,8] x) => (float[A,B,8] y) {weights} {{ y = LayerNormalization<axis=-1>(x, w, b) }}"
    assert same(graph, normal(*shape), tolerance=1e-5) == ["normed"]


def test_layer_norm_without_a_shift_of_halves() -> None:
    graph = "(float16[3,8] x, float16[8] w) => (float16[3,8] y) { y = LayerNormalization<axis=-1>(x, w) }"
    same(graph, normal(3, 8).astype("f2"), normal(8).astype("f2"), tolerance=2e-3)


def test_rows_of_equal_numbers() -> None:
    """Nothing is left once the mean is taken off."""
    graph = "(float[2,8] x, float[8] w) => (float[2,8] y) { y = LayerNormalization<axis=-1>(x, w) }"
    same(graph, np.full((2, 8), 3, "f4"), normal(8))


def test_a_chain_of_convolutions_is_not_transposed_in_between() -> None:
    import mlx.core as mx

    first = "a = Conv<pads=[1,1,1,1]>(x, w) b = Relu(a) c = Add(b, k)"
    nodes = f"{first} d = Conv<pads=[1,1,1,1]>(c, w) e = MaxPool<kernel_shape=[2,2]>(d) y = Relu(e)"
    graph = f"(float[1,4,6,6] x, float[4,4,3,3] w, float[1,4,1,1] k) => (float[1,4,5,5] y) {{ {nodes} }}"
    inputs = normal(1, 4, 6, 6), normal(4, 4, 3, 3), normal(1, 4, 1, 1)
    plan, moved = plan_of(parsed(graph)), []
    transpose = mx.transpose
    try:
        mx.transpose = lambda x, axes: moved.append(x.shape) or transpose(x, axes)
        plan.run(list(inputs))
    finally:
        mx.transpose = transpose
    images = [shape for shape in moved if shape[0] == 1 and len(shape) == 4 and max(shape) > 4]
    assert images == [(1, 4, 6, 6), (1, 5, 5, 4)]
    same(graph, *inputs, tolerance=1e-5)
