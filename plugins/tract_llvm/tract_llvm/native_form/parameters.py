"""Quantised convolutions and products, whatever is known of their parameters, as other operators.

These work on distances from the zero points, and then in steps of the output. Rules of `integers` make more of those
whose parameters are part of the model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tract_core.data import DatumType, QuantizedType
from tract_core.errors import FactError
from tract_core.model.axes import AxesMapping
from tract_core.model.declutter import declutter
from tract_core.model.fact import TypedFact
from tract_core.model.graph import OutletId
from tract_core.model.inline import inline_body
from tract_core.model.patch import ModelPatch
from tract_core.model.rewriter import rewrites
from tract_core.model.typed import TypedModel, TypedNode
from tract_core.ops.binary import Add, Div, Mul, Sub
from tract_core.ops.cast import AsQuantized
from tract_core.ops.conv import Conv
from tract_core.ops.einsum import QUANTIZED_INPUTS, EinSum
from tract_core.ops.elementwise import IsNan, RoundHalfToEven
from tract_core.ops.iff import Iff
from tract_core.ops.wiring import wire_binary, wire_cast, wire_one, wire_transpose, wire_unsqueeze


@rewrites(Conv, EinSum)
def by_parts(model: TypedModel, node: TypedNode, op: Conv | EinSum) -> ModelPatch | None:
    """Conv(q_output), EinSum(q_output) -> sums of distances, scaled and rounded. What is known of them is computed."""
    to = op.q_output
    if to is None:
        return None
    patch, parts = ModelPatch(model), TypedModel(model.symbols, model.registry)
    given = [one for one in node.inputs if model.outlet_fact(one).constant is None]
    try:
        inputs = [_part(model, parts, slot, outlet) for slot, outlet in enumerate(node.inputs)]
        result = wire_conv(op, parts, inputs) if isinstance(op, Conv) else wire_product(op, parts, inputs)
        parts.set_outputs([result])
        declutter(parts)
    except FactError:
        return None  # the node executor says what does not fit, if ever it runs
    taps = [_stored(patch, f"{node.name}.{slot}", outlet) for slot, outlet in enumerate(given)]
    (result,) = inline_body(patch.model, parts, taps, prefix=f"{node.name}.")
    if isinstance(to, QuantizedType):
        result = wire_one(patch.model, f"{node.name}.stored", AsQuantized(to), result)
    patch.shunt(OutletId(node.id), result)
    return patch


def _part(model: TypedModel, parts: TypedModel, slot: int, outlet: OutletId) -> OutletId:
    """An input of the operator among its parts: what is known of it, or a source, of integers that are stored."""
    fact, name = model.outlet_fact(outlet), QUANTIZED_INPUTS[slot]
    if fact.constant is not None:
        return parts.add_const(name, fact.constant)
    return parts.add_source(name, TypedFact.of(fact.datum_type.storage, tuple(fact.shape)))


def _stored(patch: ModelPatch, name: str, outlet: OutletId) -> OutletId:
    """The integers that are stored of a quantised tensor; another one itself."""
    x = patch.tap(outlet)
    return wire_cast(patch.model, name, x, patch.fact(x).datum_type.storage)


def wire_conv(op: Conv, model: TypedModel, inputs: Sequence[OutletId]) -> OutletId:
    """A quantised `Conv`: sums in i32, a factor in the type of the scales, steps in f64."""
    x, kernel, bias, x0, x_scale, kernel0, kernel_scale, y0, y_scale = inputs
    assert op.q_output is not None  # the caller asked
    rank, layout = model.outlet_fact(x).rank, op.pool.data_format
    by_output = rank - 1 - layout.c_axis(rank)
    by_kernel = model.outlet_fact(kernel).rank - 1 - op.kernel_format.o_axis(model.outlet_fact(kernel).rank)
    data = _centred(model, "data", x, x0)
    weights = _centred(model, "weights", kernel, _with_axes_behind(model, "kernel0", kernel0, by_kernel))
    sums = wire_one(model, "sums", replace(op, q_output=None), data, weights, bias)
    kinds = [model.outlet_fact(one).datum_type.storage.numpy for one in (x_scale, kernel_scale, y_scale)]
    factor = _ratio(model, (x_scale, kernel_scale, y_scale), DatumType.from_numpy(np.result_type(*kinds)))
    return _steps(
        model,
        wire_cast(model, "sums", sums, DatumType.F64),
        _with_axes_behind(model, "factor", factor, by_output),
        _with_axes_behind(model, "y0", y0, by_output),
        op.q_output.storage,
    )


def wire_product(op: EinSum, model: TypedModel, inputs: Sequence[OutletId]) -> OutletId:
    """A quantised `EinSum`: all in f64."""
    terms, (output,) = op.axes.inputs, op.axes.outputs
    assert op.q_output is not None  # the caller asked
    named: dict[str, tuple[OutletId, str]] = dict(zip(QUANTIZED_INPUTS, zip(inputs, terms, strict=True), strict=True))

    def along_output(name: str) -> OutletId:
        outlet, term = named[name]
        return wire_cast(model, f"{name}.wide", _aligned(model, name, outlet, term, output), DatumType.F64)

    def centred(name: str) -> OutletId:
        (outlet, term), (zero, of_zero) = named[name], named[f"{name}0"]
        far = _centred(model, name, outlet, _aligned(model, f"{name}0", zero, of_zero, term), DatumType.I64)
        return wire_cast(model, f"{name}.wide", far, DatumType.F64)

    product = EinSum(AxesMapping(terms[:2], op.axes.outputs), DatumType.F64)
    sums = wire_one(model, "sums", product, centred("a"), centred("b"))
    total = wire_one(model, "total", Add(), sums, along_output("bias"))
    scales = (along_output("a_scale"), along_output("b_scale"), along_output("c_scale"))
    return _steps(model, total, _ratio(model, scales, DatumType.F64), along_output("c0"), op.q_output.storage)


def _centred(model: TypedModel, name: str, x: OutletId, zero: OutletId, compute: DatumType = DatumType.I32) -> OutletId:
    """The distance from the zero point; narrow integers as they are, where that is known to be 0."""
    known, kind = model.constant(zero), model.outlet_fact(x).datum_type.storage
    if known is not None and not known.any() and kind.itemsize <= compute.itemsize:
        return x
    wide, far = wire_cast(model, name, x, compute), wire_cast(model, f"{name}.zero", zero, compute)
    return wire_binary(model, f"{name}.centred", Sub(), wide, far)


def _ratio(model: TypedModel, scales: Sequence[OutletId], compute: DatumType) -> OutletId:
    """``first * second / third``, in one type."""
    first, second, third = (wire_cast(model, f"scale{n}", one, compute) for n, one in enumerate(scales))
    return wire_binary(model, "ratio", Div(), wire_binary(model, "scales", Mul(), first, second), third)


def _steps(model: TypedModel, total: OutletId, factor: OutletId, zero: OutletId, to: DatumType) -> OutletId:
    """round(total * factor) + zero, halves to even, as `tract_core.ops.rounding.round_into` says it."""
    factor, zero = wire_cast(model, "factor", factor, DatumType.F64), wire_cast(model, "zero", zero, DatumType.F64)
    steps = wire_one(model, "steps", RoundHalfToEven(), wire_binary(model, "scaled", Mul(), total, factor))
    nothing = model.add_const("nothing", np.zeros((1,) * model.outlet_fact(steps).rank, np.float64))
    numbers = wire_one(model, "numbers", Iff(), wire_one(model, "strange", IsNan(), steps), nothing, steps)
    return wire_cast(model, "result", wire_binary(model, "shifted", Add(), numbers, zero), to)


def _with_axes_behind(model: TypedModel, name: str, x: OutletId, count: int) -> OutletId:
    """One number for all, or one per channel, behind which so many axes come."""
    return wire_unsqueeze(model, f"{name}.spread", x, range(1, 1 + count)) if model.outlet_fact(x).rank else x


def _aligned(model: TypedModel, name: str, x: OutletId, term: str, target: str) -> OutletId:
    """A tensor whose axes are ``term``, with an axis for every name in ``target``: of size 1 where it has none."""
    order = sorted(range(len(term)), key=lambda axis: target.index(term[axis]))
    turned = wire_transpose(model, f"{name}.turned", x, order)
    missing = [place for place, axis in enumerate(target) if axis not in term]
    return wire_unsqueeze(model, f"{name}.aligned", turned, missing)
