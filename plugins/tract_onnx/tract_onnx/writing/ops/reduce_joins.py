"""Means, and axes that go once they are reduced."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import onnx

from tract_core.data import DatumType
from tract_core.dims import Dim, product
from tract_onnx.writing.joining import JoinFn, Site, told

_REDUCTIONS: Final = ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd")
_PLACES: Final = ("ArgMax", "ArgMin")


def mean(site: Site) -> Sequence[onnx.NodeProto] | None:
    """ReduceMean, or GlobalAveragePool: a sum divided by how many were added"""
    slots = (0, 1) if site.node.op_type == "Mul" else (0,)
    for slot in slots:
        total, by = site.inputs[slot], site.inputs[1 - slot]
        summed = site.made_by("ReduceSum", total)
        before = None if summed is None else site.fact(summed.input[0])
        if summed is None or before is None or not before.datum_type.is_float() or len(summed.input) != 2:
            continue
        axes = site.ints(summed.input[1])
        if axes is None or not _is_count(site, by, product(before.shape[axis] for axis in axes)):
            continue
        places = list(range(2, before.rank))
        if axes == places and told(summed).get("keepdims", 1) and before.datum_type is DatumType.F32:
            return site.instead("GlobalAveragePool", summed.input[0])
        if site.opset >= 18:
            return site.instead("ReduceMean", *summed.input, **told(summed))
        return site.instead("ReduceMean", summed.input[0], axes=axes, **told(summed))
    return None


def _is_count(site: Site, name: str, count: Dim) -> bool:
    """Whether dividing by a tensor, or multiplying with it, divides by a count."""
    value = site.value(name)
    if value is None:
        return site.node.op_type == "Div" and site.size(name) == count
    if not isinstance(count, int) or value.size != 1 or count == 0:
        return False
    kind = value.dtype.type
    exact = kind(1) / kind(count) if site.node.op_type == "Mul" else kind(count)
    return bool(value.reshape(-1)[0] == exact)


def without_axes(site: Site) -> Sequence[onnx.NodeProto] | None:
    """A reduction whose axes go"""
    x, *rest = site.inputs
    maker, gone = site.maker(x), site.ints(rest[0]) if rest else None
    if maker is None or gone is None or not site.is_alone(x):
        return None
    if maker.op_type in _PLACES and gone == [told(maker)["axis"]]:
        return site.instead(maker.op_type, *maker.input, **{**told(maker), "keepdims": 0})
    if maker.op_type not in _REDUCTIONS or not told(maker).get("keepdims", 1):
        return None
    axes = site.ints(maker.input[1]) if len(maker.input) == 2 else told(maker).get("axes")
    if axes is None or sorted(axes) != sorted(gone):
        return None
    return site.instead(maker.op_type, *maker.input, **{**told(maker), "keepdims": 0})


JOINS: Final[Sequence[tuple[str, JoinFn]]] = (("Mul", mean), ("Div", mean), ("Squeeze", without_axes))
