"""Products of matrices and sums of products, against NumPy and the established engine."""

from __future__ import annotations

from typing import Any

import established
import numpy as np
import pytest
from cycles import cycle_of_cases
from documents import compute, read, run
from established import interchange

import tract_core as tract
from tract_core.model.axes import AxesMapping
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.same import same_model
from tract_core.model.typed import TypedModel
from tract_core.ops.einsum import EinSum

RNG = np.random.default_rng(5)


def floats(*shape: int) -> np.ndarray[Any, Any]:
    return RNG.normal(size=shape).astype(np.float32)


PRODUCTS = [
    ((2, 3), (3, 4)),
    ((2, 0), (0, 4)),
    ((5, 2, 3), (5, 3, 4)),
    ((1, 2, 3), (5, 3, 4)),
    ((5, 1, 1, 3), (1, 2, 3, 1)),
]


@pytest.mark.parametrize(("a", "b"), PRODUCTS)
@pytest.mark.parametrize("swapped_a", [False, True])
@pytest.mark.parametrize("swapped_b", [False, True])
def test_it_is_a_product_of_matrices_either_way_around(a, b, swapped_a, swapped_b) -> None:
    x, y = floats(*a), floats(*b)
    given = {"a": x.swapaxes(-1, -2) if swapped_a else x, "b": y.swapaxes(-1, -2) if swapped_b else y}
    flags = f"transposeA = {str(swapped_a).lower()}, transposeB = {str(swapped_b).lower()}"
    found = compute(f"y = matmul(a, b, {flags});", **given)
    np.testing.assert_allclose(found, x.astype(np.float64) @ y, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", [np.float16, np.float64])
def test_products_keep_the_type(kind) -> None:
    x, y = floats(3, 5).astype(kind), floats(5, 2).astype(kind)
    found = compute("y = matmul(a, b);", a=x, b=y)
    assert found.dtype == kind
    np.testing.assert_allclose(found, x.astype(np.float64) @ y.astype(np.float64), rtol=2e-3)


def test_linear_is_a_product_and_a_bias() -> None:
    x, w, b = floats(4, 3), floats(2, 3), floats(1, 2)
    np.testing.assert_allclose(compute("y = linear(x, w, b);", x=x, w=w, b=b), x @ w.T + b, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(compute("y = linear(x, w);", x=x, w=w), x @ w.T, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("a", "b", "problem"),
    [
        ("2,3", "4,3", "the inner sizes of 2,3,f32 and 4,3,f32 are 3 and 4"),
        ("2,1", "4,3", "the inner sizes of 2,1,f32 and 4,3,f32 are 1 and 4"),
        ("2,3", "1,3,4", "2,3,f32 and 1,3,4,f32, wanted two tensors of one rank, 2 or more"),
        ("3", "3", "3,f32 and 3,f32, wanted two tensors of one rank, 2 or more"),
    ],
)
def test_what_does_not_fit_is_refused(a, b, problem) -> None:
    with pytest.raises(tract.errors.ModelError, match=problem):
        read("y = matmul(a, b);", {"a": a, "b": b})


def test_inner_sizes_that_are_symbols_must_be_equal_in_every_run() -> None:
    model = read("y = matmul(a, b);", {"a": "2,S", "b": "K,4"})
    assert run(model, floats(2, 3), floats(3, 4)).shape == (2, 4)
    with pytest.raises(tract.errors.TractError):
        run(model, floats(2, 1), floats(3, 4))


test_cases = cycle_of_cases("einsum", others=["EinSum-bytes into i32", "EinSum-i64"])  # see test_integers_for_others


@pytest.mark.parametrize(
    ("axes", "spelled"),
    [
        ("ab,bc->ac", "matmul(x, w, transposeA = false, transposeB = false)"),
        ("ab,cb->ac", "matmul(x, w, transposeA = false, transposeB = true)"),
        ("cab,cbd->cad", "tract_core_einsum"),
        ("abc,acd->abd", "matmul"),
        ("mk,kn->mn", "tract_core_einsum"),
        ("ab,bc->ca", "tract_core_einsum"),
    ],
)
def test_a_product_is_written_as_such_where_it_comes_back_the_same(axes, spelled) -> None:
    mapping = AxesMapping.parse(axes)
    model = TypedModel()
    sizes = [",".join("5" for _ in term) for term in mapping.inputs]
    x, w = (
        model.add_source(name, parse_typed_fact(f"{size},f32", model.symbols))
        for name, size in zip("xw", sizes, strict=True)
    )
    model.set_outputs(model.wire_node("y", EinSum(mapping, tract.DatumType.F32), [x, w]))
    assert f"y = {spelled}" in text_of(model)


def text_of(model: TypedModel) -> str:
    from tract_nnef.documents.saver import NnefWriter
    from tract_nnef.syntax.printer import print_document

    return print_document(NnefWriter().document(model).document)


@interchange
@pytest.mark.parametrize(("a", "b"), [one for one in PRODUCTS if 0 not in one[0]])
@pytest.mark.parametrize("swapped", [False, True])
def test_what_is_written_means_the_same_there(a, b, swapped, tmp_path) -> None:
    x, y = floats(*a), floats(*b)
    given = [x, y.swapaxes(-1, -2).copy() if swapped else y]
    shapes = {"a": ",".join(map(str, a)), "b": ",".join(map(str, given[1].shape))}
    model = read(f"y = matmul(a, b, transposeB = {str(swapped).lower()});", shapes)
    model.save(tmp_path / "m.tar", format_name="nnef")
    (found,) = established.run(tmp_path / "m.tar", given)
    np.testing.assert_allclose(found, x @ y, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("acc", "wanted"), [("f32", np.float32), ("f16", np.float16), ("f64", np.float64)])
def test_the_result_is_of_the_type_that_sums_are_in(acc, wanted) -> None:
    x, w = np.array([[1.5, 2.25]], np.float16), np.array([[2049.0], [3.0]], np.float16)
    found = compute(f"y = tract_core_einsum([x, w], expr = 'mk,kn->mn', acc = '{acc}');", x=x, w=w)
    assert found.dtype == wanted
    np.testing.assert_array_equal(found, (x.astype(np.float64) @ w.astype(np.float64)).astype(wanted))


@interchange
@pytest.mark.parametrize("expression", ["bhqd,bkhd->bhqk", "mk,kn->mn"])
def test_halves_that_are_summed_in_f32_stay_halves_there(expression, tmp_path) -> None:
    model = TypedModel()
    shapes = ("2,2,3,4", "2,5,2,4") if "b" in expression else ("3,4", "4,5")
    given = [
        model.add_source(f"x{i}", parse_typed_fact(f"{shape},f16", model.symbols)) for i, shape in enumerate(shapes)
    ]
    op = EinSum(AxesMapping.parse(expression), tract.DatumType.F32)
    model.set_outputs(model.wire_node("y", op, given))
    tract.Model.from_typed(model).save(tmp_path / "m.tar", format_name="nnef")
    assert same_model(tract.load(tmp_path / "m.tar").typed, model)
    arrays = [floats(*map(int, shape.split(","))).astype(np.float16) for shape in shapes]
    (found,) = established.run(tmp_path / "m.tar", arrays)
    assert found.dtype == np.float16
    np.testing.assert_allclose(found, np.einsum(expression, *(one.astype(float) for one in arrays)), atol=0.03)


@interchange
def test_sums_of_products_mean_the_same_there(tmp_path) -> None:
    model = read(
        "y = tract_core_einsum([a, b], expr = 'bhqd,bkhd->bhqk', acc = 'f32');", {"a": "B,2,3,4", "b": "B,5,2,4"}
    )
    model.save(tmp_path / "m.tar", format_name="nnef")
    a, b = floats(2, 2, 3, 4), floats(2, 5, 2, 4)
    (found,) = established.run(tmp_path / "m.tar", [a, b])
    np.testing.assert_allclose(found, np.einsum("bhqd,bkhd->bhqk", a, b), rtol=1e-5, atol=1e-6)
    assert same_model(tract.load(tmp_path / "m.tar").typed, model.typed)


@pytest.mark.parametrize(
    ("expr", "shape"), [("mk,kn->mxn", (2, 1, 4)), ("mk,kn->xmny", (1, 2, 4, 1)), ("ab,cd->z", (1,))]
)
def test_an_axis_that_only_the_result_has_is_of_size_one(expr, shape) -> None:
    a, b = RNG.normal(size=(2, 3)).astype(np.float32), RNG.normal(size=(3, 4)).astype(np.float32)
    found = compute(f"y = tract_core_einsum([a, b], expr = '{expr}', acc = 'f32');", a=a, b=b)
    expected = np.einsum("".join(one for one in expr if one not in "xyz"), a.astype(float), b.astype(float))
    np.testing.assert_allclose(found, expected.reshape(shape), rtol=1e-5)
