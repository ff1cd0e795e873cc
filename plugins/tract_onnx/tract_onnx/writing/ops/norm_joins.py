"""Normalisations: less the mean, and divided by the standard deviation, scaled and moved."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import onnx

from tract_core.data import DatumType
from tract_core.frozen import frozen
from tract_core.model.fact import TypedFact
from tract_onnx.writing.joining import JoinFn, Site, told
from tract_onnx.writing.patterns import Values, made, matched

_ROOT: Final = made("Sqrt", made("Add", "variance", "eps"))
_DIVIDED: Final = made("Div", "centred", _ROOT)
_MULTIPLIED: Final = made("Mul", "centred", made("Reciprocal", _ROOT))

LARGEST: Final = 1 << 14
"""Elements that a scale of ones may have."""


@frozen
class Standard:
    """``x``, of ``fact``, standardised over ``axes``; ``eps`` is added to the variance."""

    x: str
    fact: TypedFact
    axes: tuple[int, ...]
    eps: float


def standard(site: Site) -> Sequence[onnx.NodeProto] | None:
    """LayerNormalization, or InstanceNormalization: what is less its mean, divided by the root of its mean square"""
    found = matched(_DIVIDED, site.node, site) or matched(_MULTIPLIED, site.node, site)
    one = None if found is None else _standardised(site, found)
    if one is None:
        return None
    sizes = [one.fact.shape[axis] for axis in one.axes]
    is_last = one.axes == tuple(range(one.fact.rank - len(sizes), one.fact.rank))
    numbers = [size for size in sizes if isinstance(size, int)]
    is_small = len(numbers) == len(sizes) and np.prod(numbers, dtype=np.float64) <= LARGEST
    channels = one.fact.shape[1] if one.fact.rank >= 3 else None
    if one.axes == tuple(range(2, one.fact.rank)) and isinstance(channels, int) and not (is_small and len(sizes) == 1):
        ones, zeros = (site.constant(np.full(channels, number, np.float32)) for number in (1, 0))
        return site.instead("InstanceNormalization", one.x, ones, zeros, epsilon=one.eps)
    if is_last and is_small:
        ones = site.constant(np.ones(numbers, np.float32))
        return site.instead("LayerNormalization", one.x, ones, axis=-len(sizes), epsilon=one.eps)
    return None


def _standardised(site: Site, found: Values) -> Standard | None:
    """What is standardised, where it is f32: other types would be computed in another one."""
    centred, squares = site.maker(found["centred"]), site.maker(found["variance"])
    eps = site.number(found["eps"])
    if centred is None or squares is None or eps is None or centred.op_type != "Sub":
        return None
    x, away = centred.input
    mean, fact = site.maker(away), site.fact(x)
    if mean is None or fact is None or fact.datum_type is not DatumType.F32:
        return None
    squared = site.maker(squares.input[0])
    if squared is None or squared.op_type != "Mul" or set(squared.input) != {found["centred"]}:
        return None
    axes = _mean_axes(site, mean, x)
    if not axes or axes != _mean_axes(site, squares, squares.input[0]):
        return None
    return Standard(x, fact, tuple(axes), eps)


def _mean_axes(site: Site, node: onnx.NodeProto, x: str) -> list[int] | None:
    """The axes, where a node is the mean of ``x`` with these kept."""
    if node.input[0] != x:
        return None
    fact = site.fact(x)
    if node.op_type == "GlobalAveragePool":
        shape = fact or site.fact(node.output[0])
        return None if shape is None else list(range(2, shape.rank))
    if node.op_type != "ReduceMean" or not told(node).get("keepdims", 1):
        return None
    axes = site.ints(node.input[1]) if len(node.input) == 2 else told(node).get("axes")
    return None if axes is None else sorted(axes)


def scaled(site: Site) -> Sequence[onnx.NodeProto] | None:
    """The scale of a normalisation that has ones"""
    for slot in (0, 1):
        maker, scale = site.maker(site.inputs[slot]), site.value(site.inputs[1 - slot])
        if maker is None or scale is None or not site.is_alone(site.inputs[slot]) or not _has_ones(site, maker):
            continue
        x = site.fact(maker.input[0])
        if x is None:
            continue
        axis, eps = told(maker).get("axis", 2), told(maker)["epsilon"]
        whole = _last(scale, x, axis) if maker.op_type == "LayerNormalization" else None
        if whole is not None:
            return site.instead("LayerNormalization", maker.input[0], site.constant(whole), axis=axis, epsilon=eps)
        by_channel = _channels(scale, x)
        if by_channel is not None and axis in (2, 2 - x.rank):
            zeros = site.constant(np.zeros_like(by_channel))
            return site.instead("InstanceNormalization", maker.input[0], site.constant(by_channel), zeros, epsilon=eps)
    return None


def moved(site: Site) -> Sequence[onnx.NodeProto] | None:
    """The bias of a normalisation that has none"""
    for slot in (0, 1):
        maker, bias = site.maker(site.inputs[slot]), site.value(site.inputs[1 - slot])
        if maker is None or bias is None or not site.is_alone(site.inputs[slot]):
            continue
        x = site.fact(maker.input[0])
        if x is None:
            continue
        if maker.op_type == "LayerNormalization" and len(maker.input) == 2:
            whole = _last(bias, x, told(maker)["axis"])
            if whole is not None:
                return site.instead("LayerNormalization", *maker.input, site.constant(whole), **told(maker))
        if maker.op_type == "InstanceNormalization" and not _any(site, maker.input[2]):
            by_channel = _channels(bias, x)
            if by_channel is not None:
                inputs = [*maker.input[:2], site.constant(by_channel)]
                return site.instead("InstanceNormalization", *inputs, **told(maker))
    return None


def _has_ones(site: Site, node: onnx.NodeProto) -> bool:
    """Whether a normalisation has nothing but ones as its scale, and no bias."""
    if node.op_type not in ("LayerNormalization", "InstanceNormalization"):
        return False
    scale = site.value(node.input[1])
    is_plain = len(node.input) == 2 or not _any(site, node.input[2])
    return scale is not None and is_plain and bool((scale == 1).all())


def _any(site: Site, name: str) -> bool:
    value = site.value(name)
    return value is None or bool(value.any())


def _last(value: np.ndarray, x: TypedFact, axis: int) -> np.ndarray | None:
    """A constant in the shape of the axes from ``axis``, a negative number, on, where it has one number for each."""
    wanted, lead = x.shape[axis:], value.shape[: value.ndim + axis]
    shape = value.shape[max(value.ndim + axis, 0) :]
    if set(lead) - {1} or value.ndim > x.rank or value.size == 0:
        return None
    full = (1,) * (-axis - len(shape)) + shape
    if not all(size in (1, whole) for size, whole in zip(full, wanted, strict=True)):
        return None
    sizes = tuple(size for size in wanted if isinstance(size, int))
    return np.ascontiguousarray(np.broadcast_to(value.reshape(full), sizes)) if len(sizes) == -axis else None


def _channels(value: np.ndarray, x: TypedFact) -> np.ndarray | None:
    """One number for each channel, [channels], of a constant [(1,) channels, 1, ...]."""
    full = (1,) * (x.rank - value.ndim) + value.shape
    channels = x.shape[1]
    if len(full) != x.rank or x.rank < 3 or full[0] != 1 or set(full[2:]) != {1}:
        return None
    if not isinstance(channels, int) or full[1] not in (1, channels):
        return None
    return np.ascontiguousarray(np.broadcast_to(value.reshape(-1), (channels,)))


JOINS: Final[Sequence[tuple[str, JoinFn]]] = (
    ("Div", standard),
    ("Mul", standard),
    ("Mul", scaled),
    ("Add", moved),
)
