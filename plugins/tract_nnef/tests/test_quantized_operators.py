"""Every operator computes with the numbers that quantised tensors stand for, whichever of its tensors are quantised."""

from __future__ import annotations

import numpy as np
import pytest
from documents import read, run

from tract_core.data import QuantizedType

SHAPES = {"x": "1,4,6,6", "w": "1,4,1,1"}
KINDS = {"x": (7, 0.25, "u8"), "w": (-2, 0.5, "i8")}
"""Zero point, scale and storage."""

STATEMENTS = """
avg_pool(x, size = [1, 1, 2, 2], border = "ignore")
rms_pool(x, size = [1, 1, 2, 2])
max_pool(x, size = [1, 1, 3, 3], border = "replicate")
box(x, size = [1, 1, 3, 3], border = "reflect")
debox(x, size = [1, 1, 3, 3])
sample(x, argmax_pool(x, size = [1, 1, 1, 1]), size = [1, 1, 1, 1])
desample(x, argmax_pool(x, size = [1, 1, 1, 1]), size = [1, 1, 1, 1])
local_response_normalization(x, size = [1, 3, 1, 1])
local_contrast_normalization(x, size = [1, 1, 3, 3], epsilon = 0.1)
l2_normalization(x, axes = [1])
batch_normalization(x, w, 2.0, w, w, epsilon = 0.1)
mean_reduce(x, axes = [1])
argmax_reduce(x, axes = [2])
nearest_upsample(x, factor = [2, 2])
nearest_downsample(x, factor = [2, 2])
area_downsample(x, factor = [2, 2])
multilinear_upsample(x, factor = [2, 2])
multilinear_upsample(x, factor = [2, 2], border = "constant")
gelu(x)
softabs(x, epsilon = 0.1)
prelu(x, w)
clamp(x, 0.0, 1.0)
x ^ 2.0 / (abs(w) + 5.0)
select(x > 0.0, x, w)
pad(x, padding = [(0, 0), (0, 0), (1, 1), (1, 1)])
concat([x, w * x], axis = 1)
stack([x, x], axis = 0)
gather(x, [0, 2], axis = 1)
add_n([x, x, w])
matmul(x, x)
matmul(x, x + 0.0)
linear(reshape(x, shape = [24, 6]), reshape(x, shape = [24, 6]), 0.5)
conv(x, x)
conv(x, x, 0.25, border = "replicate")
conv(x, x, slice(squeeze(w, axes = [2, 3]), axes = [1], begin = [0], end = [1]))
conv(x, x + 0.0)
conv(x + 0.0, x)
deconv(x, transpose(x, axes = [1, 0, 2, 3]), padding = [(1, 1), (1, 1)])
separable_conv(x, transpose(x, axes = [1, 0, 2, 3]), w)
roi_resample(x, [[0.0, 0.0, 4.0, 4.0]], [0], output_size = [2, 2])
avg_roi_pool(x, [[0.0, 0.0, 4.0, 4.0]], [0], output_size = [2, 2])
max_roi_align(x, [[0.0, 0.0, 4.0, 4.0]], [0], output_size = [2, 2], sampling_rate = [2, 2])
"""


def line(name: str, zero: int, scale: float, kind: str) -> str:
    signed = str(kind[0] == "i").lower()
    known = f"bits = {kind[1:]}, signed = {signed}, symmetric = false"
    return f'"{name}": zero_point_linear_quantize(zero_point = {zero}, scale = {scale}, {known});\n'


def real(stored: np.ndarray, zero: float, scale: float) -> np.ndarray:
    return ((stored.astype(np.float64) - zero) * scale).astype(np.float32)


@pytest.mark.parametrize("said", STATEMENTS.strip().splitlines())
@pytest.mark.parametrize("quantized", ["x", "w", "xw"])
def test_numbers_are_what_quantised_tensors_stand_for(said: str, quantized: str) -> None:
    rng = np.random.default_rng(0)
    stored = {"x": rng.integers(0, 20, (1, 4, 6, 6), np.uint8), "w": rng.integers(-5, 9, (1, 4, 1, 1), np.int8)}
    numbers = {name: real(stored[name], *KINDS[name][:2]) for name in stored}
    expected = run(read(f"y = {said};", SHAPES), *numbers.values())
    lines = "".join(line(name, *KINDS[name]) for name in quantized)
    kinds = {name: KINDS[name][2] for name in quantized}
    model = read(f"y = {said};", SHAPES, kinds=kinds, quantization=lines)
    kind = model.typed.outlet_fact(model.typed.outputs[0]).datum_type
    found = run(model, *((stored if name in quantized else numbers)[name] for name in stored))
    if isinstance(kind, QuantizedType):
        found = real(found, kind.zero_point, kind.scale)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("scale", "step"), [(0.125, 0.125), (0.5, 0.5)])
def test_a_quantised_bias_is_in_steps_of_its_own_scale(scale: float, step: float) -> None:
    quantization = line("x", 1, 0.25, "u8") + line("w", 1, 0.5, "u8") + line("b", 0, scale, "i32")
    shapes, kinds = {"x": "1,2,4", "w": "3,2,3", "b": "1,3"}, {"x": "u8", "w": "u8", "b": "i32"}
    model = read("y = conv(x, w, b); z = cast<scalar>(y);", shapes, outputs="z", kinds=kinds, quantization=quantization)
    nothing = np.ones((1, 2, 4), np.uint8), np.ones((3, 2, 3), np.uint8)
    found = run(model, *nothing, np.array([[-2, 0, 7]], np.int32))
    np.testing.assert_array_equal(found, np.broadcast_to(np.array([[[-2], [0], [7]]]) * step, (1, 3, 4)))
