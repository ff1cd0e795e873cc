"""Numbers as bytes, in steps that fit the range of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import onnx
from onnx import helper

from tract_core.data import DatumType
from tract_onnx.writing.joining import JoinFn, Site
from tract_onnx.writing.patterns import Made, made, matched


def _scale_and_zero(*axes: str) -> tuple[Made, Made]:
    """How both are made. ``axes``: "axes", where those of reductions are a tensor."""
    low = made("Squeeze", made("Clip", made("ReduceMin", "x", *axes), "", 0), "all")
    high = made("Squeeze", made("Relu", made("ReduceMax", "x", *axes)), "all")
    span = made("Sub", high, low)
    scale = made("Where", made("Equal", span, 0), 1, made("Div", span, 255))
    return scale, made("QuantizeLinear", made("Neg", low), "scale", 0)


_FORMS: Final = (_scale_and_zero("axes"), _scale_and_zero())


def dynamic(site: Site) -> Sequence[onnx.NodeProto] | None:
    """DynamicQuantizeLinear: the least and the greatest of all elements give the scale and the zero point"""
    x, scale, *zeros = site.inputs
    of_scale, of_zero, fact = site.maker(scale), site.maker(zeros[0]) if zeros else None, site.fact(x)
    if of_scale is None or of_zero is None or fact is None or fact.datum_type is not DatumType.F32:
        return None
    point = site.fact(zeros[0])
    if point is None or point.datum_type is not DatumType.U8:
        return None
    for form in _FORMS:
        first, second = (matched(one, node, site) for one, node in zip(form, (of_scale, of_zero), strict=True))
        if first is None or second is None or second["scale"] != scale or not first["x"] == second["x"] == x:
            continue
        axes = site.ints(first["all"])
        if axes is not None and sorted(axes) == list(range(fact.rank)) and first.get("axes") in (None, first["all"]):
            return [helper.make_node("DynamicQuantizeLinear", [x], [site.result, scale, zeros[0]], name=site.node.name)]
    return None


JOINS: Final[Sequence[tuple[str, JoinFn]]] = (("QuantizeLinear", dynamic),)
