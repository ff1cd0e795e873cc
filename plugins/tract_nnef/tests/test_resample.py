"""Images made larger or smaller by whole factors, against NumPy, ONNX Runtime and the established engine."""

from __future__ import annotations

from typing import Any

import established
import numpy as np
import pytest
from documents import compute, read, run
from established import interchange
from onnx_node import onnx_node

import tract_core as tract
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.same import same_model
from tract_core.model.typed import TypedModel
from tract_core.ops.interpolate import Interpolator
from tract_core.ops.resize import Coordinates, NearestMode, Resize, Sampling, Scales

RNG = np.random.default_rng(9)
SHAPES = [((2, 3, 5), (2,)), ((1, 2, 4, 3), (3, 2)), ((1, 1, 1, 1), (4, 1)), ((1, 2, 3, 2, 4), (2, 3, 1))]
SYMBOLS = "N,C,D,H,W"

WHERE = {
    "symmetric": lambda j, _, f: (j + 0.5) / f - 0.5,
    "asymmetric": lambda j, _, f: j / f,
    "aligned": lambda j, n, f: j * (n - 1) / max(n * f - 1, 1),
}


def floats(*shape: int) -> np.ndarray[Any, Any]:
    return RNG.normal(size=shape).astype(np.float32)


def interpolated(x: np.ndarray[Any, Any], factors: tuple[int, ...], method: str, border: str) -> np.ndarray[Any, Any]:
    """Axis by axis, each output element by its definition."""
    for axis, factor in enumerate(factors, start=2):
        size = x.shape[axis]
        parts = []
        for j in range(size * factor):
            at = WHERE[method](j, size, factor)
            low = int(np.floor(at))
            part = np.zeros_like(x.take(0, axis), dtype=np.float64)
            for i, weight in ((low, low + 1 - at), (low + 1, at - low)):
                inside = 0 <= i < size
                value = x.take(min(max(i, 0), size - 1), axis)
                part = part + weight * (value if inside or border == "replicate" else 0)
            parts.append(part)
        x = np.stack(parts, axis)
    return x


@pytest.mark.parametrize(("shape", "factors"), SHAPES)
@pytest.mark.parametrize("method", WHERE)
@pytest.mark.parametrize("border", ["replicate", "constant"])
def test_elements_are_interpolated(shape, factors, method, border) -> None:
    x = floats(*shape)
    body = f"y = multilinear_upsample(x, factor = {list(factors)}, method = '{method}', border = '{border}');"
    expected = interpolated(x, factors, method, border)
    np.testing.assert_allclose(compute(body, x=x), expected, rtol=1e-5, atol=1e-5)
    symbols = ",".join(SYMBOLS.split(",")[: len(shape)])
    np.testing.assert_allclose(run(read(body, {"x": symbols}), x), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("shape", "factors"), SHAPES)
def test_nearest_and_area(shape, factors) -> None:
    x = floats(*shape)
    symbols = ",".join(SYMBOLS.split(",")[: len(shape)])
    larger, thinner = x, x
    for axis, factor in enumerate(factors, start=2):
        larger = larger.repeat(factor, axis)
        thinner = thinner[(slice(None),) * axis + (slice(None, None, factor),)]
    for shapes in (symbols, ",".join(map(str, shape))):
        for name, expected in (("nearest_upsample", larger), ("nearest_downsample", thinner)):
            found = run(read(f"y = {name}(x, factor = {list(factors)});", {"x": shapes}), x)
            np.testing.assert_array_equal(found, expected)
    found = compute(f"y = area_downsample(x, factor = {list(factors)});", x=larger)
    np.testing.assert_allclose(found, x, rtol=1e-6, atol=1e-6)


def test_the_means_of_blocks_leave_out_what_does_not_fill_one() -> None:
    x = floats(1, 2, 7, 5)
    expected = onnx_node("AveragePool", [x], kernel_shape=[3, 2], strides=[3, 2])
    np.testing.assert_allclose(compute("y = area_downsample(x, factor = [3, 2]);", x=x), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ("nearest_upsample(x, factor = [2])", r"factors \[2\] for 1,1,4,4,f32, wanted one per axis behind batch"),
        ("area_downsample(x, factor = [2, 0])", r"factors \[2, 0\] .* 1 or more"),
        (
            "multilinear_upsample(x, factor = [2, 2], method = 'cubic')",
            "argument 'method' of multilinear_upsample is 'cubic', wanted one of 'symmetric'",
        ),
        (
            "multilinear_upsample(x, factor = [2, 2], border = 'reflect')",
            "argument 'border' of multilinear_upsample is 'reflect', wanted one of 'replicate'",
        ),
    ],
)
def test_what_does_not_fit_is_refused(body, problem) -> None:
    with pytest.raises(tract.errors.ModelError, match=problem):
        read(f"y = {body};", {"x": "1,1,4,4"})


@pytest.mark.parametrize("method", [*WHERE, "nearest"])
@pytest.mark.parametrize("registries", [(), ("tract_core",)])
def test_it_is_written_by_its_name(method, registries) -> None:
    from tract_nnef.documents.writer import Writer
    from tract_nnef.syntax.printer import print_document

    model = TypedModel()
    x = model.add_source("x", parse_typed_fact("1,2,3,4,f32", model.symbols))
    sampling = Sampling(Interpolator.LINEAR, Coordinates(_COORDINATES[method])) if method != "nearest" else _NEAREST
    model.set_outputs(model.wire_node("y", Resize((2, 3), Scales((3.0, 2.0)), sampling), [x]))
    text = print_document(Writer(model, registries).write().document)
    name = "nearest_upsample(x, factor = [3, 2]" if method == "nearest" else "multilinear_upsample(x, factor = [3, 2]"
    assert f"y = {name}" in text
    assert ("tract_registry" in text) == bool(registries)


_NEAREST = Sampling(Interpolator.NEAREST, Coordinates.ASYMMETRIC, NearestMode.FLOOR)
_COORDINATES = {"symmetric": "half_pixel", "asymmetric": "asymmetric", "aligned": "align_corners"}


@interchange
@pytest.mark.parametrize("method", [*WHERE, "nearest"])
def test_what_is_written_means_the_same_there(method, tmp_path) -> None:
    x = floats(1, 2, 3, 4)
    name = "nearest_upsample" if method == "nearest" else "multilinear_upsample"
    more = "" if method == "nearest" else f", method = '{method}'"
    model = read(f"y = {name}(x, factor = [3, 2]{more});", {"x": "1,2,3,4"})
    model.save(tmp_path / "m.tar", format_name="nnef")
    assert same_model(tract.load(tmp_path / "m.tar").typed, model.typed)
    (found,) = established.run(tmp_path / "m.tar", [x])
    np.testing.assert_allclose(found, run(model, x), rtol=1e-5, atol=1e-5)
