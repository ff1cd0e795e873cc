"""Weights in blocks of four bits: packed by the transform, written as the established engine writes them, read back."""

from __future__ import annotations

import numpy as np
import pytest

import tract_core as tract
from tract_core.data.blocks import encode_q4_0
from tract_core.errors import ModelWarning
from tract_core.model.axes import AxesMapping
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.same import same_model
from tract_core.model.typed import TypedModel
from tract_core.ops.blocks import FORMATS, UnpackBlocks
from tract_core.ops.einsum import EinSum

RNG = np.random.default_rng(7)
X = RNG.standard_normal((3, 64)).astype(np.float32)


def product(weights: np.ndarray, expression: str = "mk,kn->mn", fact: str = "B,64,f32") -> tract.Model:
    graph = TypedModel()
    x = graph.add_source("x", parse_typed_fact(fact, graph.symbols))
    w = graph.add_const("w", weights)
    graph.set_outputs(graph.wire_node("y", EinSum(AxesMapping.parse(expression), tract.DatumType.F32), [x, w]))
    return tract.Model.from_typed(graph)


def operators(model: tract.Model) -> list[str]:
    return [node.op.name for node in model.typed.live_nodes() if node.op.name not in ("Const", "TypedSource")]


@pytest.mark.parametrize("expression", ["mk,kn->mn", "mk,nk->mn"])
def test_the_axis_that_is_summed_over_is_packed(expression) -> None:
    weights = RNG.standard_normal((64, 5) if "kn" in expression else (5, 64)).astype(np.float32)
    model = product(weights, expression)
    model.transform("block_quant")
    assert operators(model) == ["UnpackBlocks", "EinSum"]
    matrix = weights.T if "kn" in expression else weights
    rounded = encode_q4_0(np.ascontiguousarray(matrix)).to_f32()
    assert np.abs(rounded - matrix).max() <= np.abs(matrix).max() / 8 * 1.01
    (y,) = model.into_runnable().run([X])
    np.testing.assert_allclose(y.to_numpy(), X.astype(np.float64) @ rounded.T, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    "weights",
    [
        RNG.standard_normal((40, 5)).astype(np.float32),  # no whole blocks
        np.full((64, 5), np.nan, np.float32),
        np.full((64, 5), 1e6, np.float32),  # f16 does not hold the scale
        RNG.standard_normal((64, 5)),  # f64
    ],
    ids=["40", "nan", "large", "f64"],
)
def test_what_cannot_be_packed_stays(weights) -> None:
    kind = "f64" if weights.dtype == np.float64 else "f32"
    model = product(weights, fact=f"B,{len(weights)},{kind}")
    model.transform("block_quant")
    assert "UnpackBlocks" not in operators(model)


def test_small_matrices_may_stay() -> None:
    model = product(np.ones((64, 5), np.float32))
    model.transform("block_quant(elements=321)")
    assert operators(model) == ["EinSum"]
    with pytest.raises(tract.errors.TransformError, match="'elements' is 0, wanted 1 or more"):
        model.transform("block_quant(elements=0)")


@pytest.mark.parametrize("name", ["m.nnef.tgz", "m.tar", "m.nnef"])
def test_archives_hold_blocks(name, tmp_path) -> None:
    model = product(RNG.standard_normal((64, 5)).astype(np.float32))
    model.transform("block_quant")
    tract.nnef().write_model_to_dir(model, tmp_path / "folder")
    assert (tmp_path / "folder" / "w.bq.dat").stat().st_size == 128 + 5 * 2 * 18
    text = (tmp_path / "folder" / "graph.nnef").read_text()
    assert 'w_bq = variable<scalar>(label = "w.bq", shape = [5, 64]);' in text
    model.save(tmp_path / name)
    found = tract.load(tmp_path / name)
    assert same_model(found.typed, model.typed)


def test_a_variable_of_more_axes_and_one_that_does_not_fit(tmp_path) -> None:
    model = product(RNG.standard_normal((64, 6)).astype(np.float32))
    model.transform("block_quant")
    tract.nnef().write_model_to_dir(model, tmp_path / "m")
    path = tmp_path / "m" / "graph.nnef"
    text = path.read_text()
    path.write_text(text.replace("shape = [6, 64]", "shape = [2, 3, 64]").replace('"mk,nk->mn"', '"mk,gnk->mgn"'))
    (y,) = tract.load(tmp_path / "m").into_runnable().run([X])
    (flat,) = model.into_runnable().run([X])
    np.testing.assert_allclose(y.to_numpy().reshape(3, 6), flat.to_numpy(), rtol=1e-5, atol=1e-5)
    for shape in ("[6, 32]", "[64, 6]"):
        path.write_text(text.replace("shape = [6, 64]", f"shape = {shape}"))
        with pytest.raises(tract.errors.CorruptModel, match="in blocks of 32, the graph wants"):
            tract.load(tmp_path / "m")


def test_formats_that_archives_do_not_have_are_written_as_floats(tmp_path) -> None:
    graph = TypedModel()
    x = graph.add_source("x", parse_typed_fact("B,32,f32", graph.symbols))
    packed = np.random.default_rng(1).integers(0, 60, (5, 1, FORMATS["q5_1"].size), np.uint8)
    (weights,) = graph.wire_node("w", UnpackBlocks("q5_1"), [graph.add_const("blocks", packed)])
    graph.set_outputs(graph.wire_node("y", EinSum(AxesMapping.parse("mk,nk->mn"), tract.DatumType.F32), [x, weights]))
    model = tract.Model.from_typed(graph)
    with pytest.warns(ModelWarning, match="in blocks of q5_1 are written as f32: archives have no such blocks"):
        model.save(tmp_path / "m.nnef")
    assert (tmp_path / "m.nnef" / "w.dat").stat().st_size == 128 + 5 * 32 * 4
    found = tract.load(tmp_path / "m.nnef")
    assert operators(found) == ["EinSum"]
    (y,), (want,) = (one.into_runnable().run([X[:, :32]]) for one in (found, model))
    np.testing.assert_allclose(y.to_numpy(), want.to_numpy(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("form", ["f16", "bf16"])
def test_floats_of_16_bits_are_written_as_they_are(form, tmp_path) -> None:
    graph = TypedModel()
    x = graph.add_source("x", parse_typed_fact("B,32,f32", graph.symbols))
    stored = RNG.standard_normal((5, 32)).astype(tract.DatumType[form.upper()].numpy)
    packed = graph.add_const("blocks", stored[..., None].view(np.uint8))
    (weights,) = graph.wire_node("w", UnpackBlocks(form), [packed])
    graph.set_outputs(graph.wire_node("y", EinSum(AxesMapping.parse("mk,nk->mn"), tract.DatumType.F32), [x, weights]))
    model = tract.Model.from_typed(graph)
    model.save(tmp_path / "m.nnef")
    assert (tmp_path / "m.nnef" / "w.stored.dat").stat().st_size == 128 + 5 * 32 * 2
    (y,) = tract.load(tmp_path / "m.nnef").into_runnable().run([X[:, :32]])
    wanted = X[:, :32].astype(np.float64) @ stored.astype(np.float64).T
    np.testing.assert_allclose(y.to_numpy(), wanted, rtol=1e-5, atol=1e-5)
