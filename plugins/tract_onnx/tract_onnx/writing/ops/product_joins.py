"""Products with what is added to them, and convolutions of what was left out of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import onnx

from tract_core.data import DatumType
from tract_onnx.writing.joining import JoinFn, Site, told

_WHOLE: Final = (DatumType.F32, DatumType.F64)
"""Types of which a product is not rounded before something is added."""


def with_bias(site: Site) -> Sequence[onnx.NodeProto] | None:
    """A convolution to whose channels constants are added has them as its bias"""
    for slot in (0, 1):
        value = site.value(site.inputs[1 - slot])
        maker = site.made_by("Conv", site.inputs[slot]) or site.made_by("ConvTranspose", site.inputs[slot])
        result = site.fact(site.result)
        if maker is None or len(maker.input) != 2 or value is None or result is None:
            continue
        full = (1,) * (result.rank - value.ndim) + value.shape
        if full[1] == result.shape[1] and value.size == full[1] and value.ndim > 1:
            return site.instead(maker.op_type, *maker.input, site.constant(value.reshape(-1)), **told(maker))
    return None


def scaled(site: Site) -> Sequence[onnx.NodeProto] | None:
    """A deconvolution whose channels are multiplied with constants has them in its weights"""
    for slot in (0, 1):
        maker, value = site.made_by("ConvTranspose", site.inputs[slot]), site.value(site.inputs[1 - slot])
        weights = None if maker is None or len(maker.input) != 2 else site.value(maker.input[1])
        if (
            maker is None
            or weights is None
            or value is None
            or weights.dtype != np.float32
            or value.ndim != weights.ndim
        ):
            continue
        channels = weights.shape[1]
        if told(maker).get("group", 1) == 1 and value.size == value.shape[1] == channels:
            moved = site.constant(weights * value.reshape(1, channels, *[1] * (weights.ndim - 2)))
            return site.instead("ConvTranspose", maker.input[0], moved, **told(maker))
    return None


def gemm(site: Site) -> Sequence[onnx.NodeProto] | None:
    """Gemm: a product of two matrices, and what is added to it"""
    for slot in (0, 1):
        maker, result = site.made_by("MatMul", site.inputs[slot]), site.fact(site.result)
        added = site.fact(site.inputs[1 - slot])
        if maker is None or result is None or added is None or result.datum_type not in _WHOLE or result.rank != 2:
            continue
        if _is_dequantised(site, maker.input[1]):
            continue
        a, b = (site.fact(name) for name in maker.input)
        if a is None or b is None or a.rank != 2 or b.rank != 2 or added.rank > 2:
            continue
        product = (a.shape[0], b.shape[1])
        ends = zip(added.shape[::-1], product[::-1], strict=False)
        if product == tuple(result.shape) and all(size in (1, whole) for size, whole in ends):
            return site.instead("Gemm", *maker.input, site.inputs[1 - slot])
    return None


def _is_dequantised(site: Site, weights: str) -> bool:
    """Whether weights are integers: which products of those are Gemm, `tract_onnx.writing.quantized` decides."""
    maker = site.maker(weights)
    return maker is not None and maker.op_type == "DequantizeLinear"


def strided(site: Site) -> Sequence[onnx.NodeProto] | None:
    """A convolution with windows of one place, of every so many places, has strides"""
    attributes = told(site.node)
    strides = list(attributes.get("strides", [1] * len(attributes["kernel_shape"])))
    if set(attributes["kernel_shape"]) != {1} or any(attributes.get("pads", [])) or "auto_pad" in attributes:
        return None
    x, found = site.inputs[0], False
    while (maker := site.made_by("Slice", x)) is not None and len(maker.input) == 5:
        start, end, axis, step = (site.ints(name) for name in maker.input[1:])
        if start != [0] or end is None or end[0] < 2**62 or not axis or axis[0] < 2 or not step or step[0] < 1:
            break
        strides[axis[0] - 2] *= step[0]
        x, found = maker.input[0], True
    if not found:
        return None
    return site.instead("Conv", x, *site.inputs[1:], **{**attributes, "strides": strides})


def of_parts(site: Site) -> Sequence[onnx.NodeProto] | None:
    """A product with the rows of a matrix in two parts, which are added"""
    makers = [site.made_by("MatMul", name) for name in site.inputs]
    result = site.fact(site.result)
    if makers[0] is None or makers[1] is None or result is None or result.datum_type not in _WHOLE:
        return None
    names = [one.input[0] for one in makers if one is not None]
    parts, weights = (
        [site.fact(name) for name in names],
        [site.value(one.input[1]) for one in makers if one is not None],
    )
    (a, b), (v, w) = parts, weights
    if a is None or b is None or v is None or w is None or a.rank != b.rank or a.rank < 2 or v.ndim != 2 or w.ndim != 2:
        return None
    if a.shape[:-1] != b.shape[:-1] or v.shape[1] != w.shape[1]:
        return None
    joined = site.before("Concat", *names, axis=a.rank - 1)
    return [joined, *site.instead("MatMul", joined.output[0], site.constant(np.concatenate([v, w])))]


def of_channels(site: Site) -> Sequence[onnx.NodeProto] | None:
    """A convolution of channels in two parts, which are added"""
    makers = [site.made_by("Conv", name) for name in site.inputs]
    (one, other), result = makers, site.fact(site.result)
    if one is None or other is None or result is None or told(one) != told(other) or told(one).get("group", 1) != 1:
        return None
    weights = [site.value(maker.input[1]) for maker in (one, other)]
    biases = [name for maker in (one, other) for name in maker.input[2:]]
    if weights[0] is None or weights[1] is None or weights[0].shape[0] != weights[1].shape[0] or len(biases) > 1:
        return None
    facts = [site.fact(maker.input[0]) for maker in (one, other)]
    shapes = [None if fact is None else [*fact.shape[:1], *fact.shape[2:]] for fact in facts]
    if shapes[0] is None or shapes[0] != shapes[1]:
        return None
    kernel = site.constant(np.concatenate([weights[0], weights[1]], 1))
    joined = site.before("Concat", one.input[0], other.input[0], axis=1)
    return [joined, *site.instead("Conv", joined.output[0], kernel, *biases, **told(one))]


JOINS: Final[Sequence[tuple[str, JoinFn]]] = (
    ("Mul", scaled),
    ("Add", with_bias),
    ("Add", gemm),
    ("Add", of_parts),
    ("Add", of_channels),
    ("Conv", strided),
)
