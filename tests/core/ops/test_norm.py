from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tract_core.data import DatumType
from tract_core.errors import FactError
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel
from tract_core.ops import norm
from tract_core.ops.norm import RmsNorm, wire_batch_norm, wire_group_norm, wire_instance_norm, wire_layer_norm
from tract_core.runtime.plan import TypedSimplePlan

Array = np.ndarray[Any, Any]
Wire = Callable[[TypedModel, OutletId, dict[str, OutletId]], OutletId]


def computed(fact: str, x: Array, wire: Wire, *, declutter: bool = False, **parameters: Array) -> Array:
    model = TypedModel()
    source = model.add_source("x", parse_typed_fact(fact, model.symbols))
    constants = {name: model.add_const(name, array) for name, array in parameters.items()}
    outlet = wire(model, source, constants)
    model.set_outputs([outlet])
    assert model.outlet_fact(outlet) == model.outlet_fact(source)
    if declutter:
        model.declutter()
    return TypedSimplePlan(model).run([x])[0]


def data(*shape: int, dtype: Any = np.float32) -> Array:
    return np.random.default_rng(len(shape)).normal(3, 2, shape).astype(dtype)


def standard(x: Array, axes: tuple[int, ...], eps: float) -> Array:
    x = x.astype(np.float64)
    mean = x.mean(axis=axes, keepdims=True)
    return (x - mean) / np.sqrt(((x - mean) ** 2).mean(axis=axes, keepdims=True) + eps)


@pytest.mark.parametrize("declutter", [False, True])
@pytest.mark.parametrize(("dtype", "kind", "bound"), [(np.float32, "f32", 1e-5), (np.float16, "f16", 1e-2)])
def test_layer_norm(dtype: Any, kind: str, bound: float, declutter: bool) -> None:
    x, scale, bias = data(2, 5, 8, dtype=dtype), data(8, dtype=dtype), data(1, 8, dtype=dtype)[0]
    found = computed(
        f"B,S,8,{kind}",
        x,
        lambda model, x, p: wire_layer_norm(model, "norm", x, 2, eps=1e-3, scale=p["scale"], bias=p["bias"]),
        declutter=declutter,
        scale=scale,
        bias=bias,
    )
    assert found.dtype == dtype
    wanted = standard(x, (2,), 1e-3) * scale.astype(np.float64) + bias.astype(np.float64)
    np.testing.assert_allclose(found, wanted, rtol=bound, atol=bound)


def test_layer_norm_over_two_axes_without_parameters() -> None:
    x = data(2, 5, 8)
    found = computed("B,S,8,f32", x, lambda model, x, _: wire_layer_norm(model, "norm", x, 1, eps=1e-5))
    np.testing.assert_allclose(found, standard(x, (1, 2), 1e-5), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("declutter", [False, True])
def test_batch_norm(declutter: bool) -> None:
    x = data(2, 3, 4, 5)
    scale, bias, mean, variance = (
        np.array(values, np.float32) for values in ([1, 2, 3], [0, 1, 2], [3, 2, 1], [1, 4, 9])
    )
    found = computed(
        "B,3,H,W,f32",
        x,
        lambda model, x, p: wire_batch_norm(model, "norm", x, **p, eps=1e-2),
        declutter=declutter,
        scale=scale,
        bias=bias,
        mean=mean,
        variance=variance,
    )
    wanted = np.empty(x.shape)
    for channel in range(3):
        shifted = x[:, channel].astype(np.float64) - mean[channel]
        wanted[:, channel] = shifted / np.sqrt(variance[channel] + 1e-2) * scale[channel] + bias[channel]
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)


def test_instance_norm_keeps_the_items_of_a_batch_apart(run_onnx: Callable[..., Any]) -> None:
    x, scale, bias = data(3, 2, 4, 5) * np.array([1, 10, 100], np.float32)[:, None, None, None], data(2), data(1, 2)[0]
    found = computed(
        "B,2,H,W,f32",
        x,
        lambda model, x, p: wire_instance_norm(model, "norm", x, **p, eps=1e-3),
        scale=scale,
        bias=bias,
    )
    wanted = np.empty(x.shape)
    for item, channel in np.ndindex(3, 2):
        wanted[item, channel] = standard(x[item, channel], (0, 1), 1e-3) * scale[channel] + bias[channel]
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)
    onnx = run_onnx("InstanceNormalization", [x, scale, bias], epsilon=1e-3)[0]
    np.testing.assert_allclose(found, onnx, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("groups", [1, 2, 6])
def test_group_norm(groups: int) -> None:
    x, scale, bias = data(2, 6, 4, 5), data(6), data(1, 6)[0]
    found = computed(
        "B,6,H,5,f32",
        x,
        lambda model, x, p: wire_group_norm(model, "norm", x, groups, **p, eps=1e-5),
        scale=scale,
        bias=bias,
    )
    wanted, size = np.empty(x.shape), 6 // groups
    for item, group in np.ndindex(2, groups):
        channels = slice(group * size, (group + 1) * size)
        wanted[item, channels] = standard(x[item, channels], (0, 1, 2), 1e-5)
    wanted = wanted * scale[:, None, None] + bias[:, None, None]
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)


def test_group_norm_wants_whole_groups() -> None:
    x, one = data(2, 6, 4), np.ones(6, np.float32)
    with pytest.raises(FactError, match="6 channels are not a multiple of 4 groups; the input is B,6,4,f32"):
        computed(
            "B,6,4,f32",
            x,
            lambda model, x, p: wire_group_norm(model, "norm", x, 4, **p, eps=1e-5),
            scale=one,
            bias=one,
        )


def test_rms_norm_facts_axes_and_cost() -> None:
    op, x = RmsNorm(1, 1e-5), parse_typed_fact("B,8,f32")
    output = op.output_facts([x])
    mapping = norm.axes(op, [x], output)
    assert [mapping.track(("in", 0, axis), ("out", 0)) for axis in range(2)] == [0, None]
    found = norm.cost(op, [x], output)
    assert {kind: str(count) for kind, count in found.items()} == {"FMA(F32)": "16*B", "DIV(F32)": "B"}
    with pytest.raises(FactError, match="RmsNorm wants floating-point numbers, found 2,8,i32"):
        op.output_facts([x.with_type(DatumType.I32).with_shape((2, 8))])
