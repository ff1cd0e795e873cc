"""Deconvolutions, and their kind with a kernel of ones.

A filter has the output channels of all groups first, then the input channels of one, as the tract engines write it.
The standard has the input channels of all groups first, then the output channels of one: where only that fits the
data, it is taken so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

import numpy as np

from tract_core.data import DatumType
from tract_core.dims import Dim, is_symbolic, same_dim
from tract_core.errors import CorruptModel, Unwritable
from tract_core.model.graph import OutletId
from tract_core.ops.conv import sum_type
from tract_core.ops.deconv import Deconv
from tract_core.ops.expect import element
from tract_core.ops.pool_spec import Explicit, PoolSpec, SameLower, SameUpper
from tract_core.ops.wiring import wire_broadcast, wire_reshape, wire_transpose
from tract_core.plugins.tables import Rows
from tract_nnef.ops.conv import read_bias, read_groups, spatial_sizes, write_convolution
from tract_nnef.ops.pool_spec import WINDOW, all_axes, exact, padding_of, read_steps
from tract_nnef.ops.quantized import factors
from tract_nnef.reading.call import Call
from tract_nnef.registry import NNEF_WRITE, PY, STANDARD, fragments, reads
from tract_nnef.syntax import ast
from tract_nnef.writing.spelling import Spelling

ROWS = Rows()


@reads(
    ROWS,
    STANDARD,
    "deconv(input: tensor<scalar>, filter: tensor<scalar>, bias: tensor<scalar> = 0.0,"
    f" {WINDOW}, output_shape: integer[] = [], groups: integer = 1) -> (output: tensor<scalar>)",
)
def read_deconv(call: Call) -> OutletId:
    """A deconvolution; what lies beyond its border is nothing."""
    x, kernel = map(call.real, factors(call, "input", "filter"))
    sizes = spatial_sizes(call, x, kernel)
    group = read_groups(call, x)
    kernel = _outputs_first(call, kernel, call.shape(x)[1], group)
    bias = read_bias(call, sum_type(call.dtype(x).storage, call.dtype(kernel).storage), call.shape(kernel)[0])
    call.choice("border", ("constant", "ignore"))
    pool = read_steps(call, len(sizes)).pool(sizes)
    return bias.added(call, call.op(_to_shape(call, pool, call.shape(x), group), x, kernel, bias.inside))


def _outputs_first(call: Call, kernel: OutletId, channels: Dim, group: int) -> OutletId:
    """The filter as the operator wants it."""
    shape = call.shape(kernel)
    if same_dim(shape[1] * group, channels) or not same_dim(shape[0], channels) or is_symbolic(shape[0]):
        return kernel
    inputs, outputs = int(shape[0]) // group, shape[1]
    split, swapped = (group, inputs, *shape[1:]), (0, 2, 1, *range(3, len(shape) + 1))
    array = call.model.constant(kernel)
    if array is not None:
        array = array.reshape((group, inputs, *array.shape[1:])).transpose(swapped)
        return call.constant_array(np.ascontiguousarray(array.reshape((-1, inputs, *array.shape[3:]))))
    name = call.unique("filter")
    parts = wire_transpose(
        call.model, f"{name}.swap", wire_reshape(call.model, f"{name}.split", kernel, split), swapped
    )
    return wire_reshape(call.model, name, parts, (group * outputs, inputs, *shape[2:]))


def _to_shape(call: Call, pool: PoolSpec, shape: Sequence[Dim], group: int) -> Deconv:
    """The operator whose output has the shape that is asked for, if one is."""
    op = Deconv(pool, group=group)
    wanted = call.dims("output_shape")
    if not wanted:
        return op
    if len(wanted) not in (pool.rank, pool.rank + 2):
        raise CorruptModel(
            f"{call.name}: output_shape has {len(wanted)} sizes, wanted those of all axes, or the spatial"
        )
    wanted = wanted[len(wanted) - pool.rank :]
    if isinstance(pool.padding, SameUpper):
        pool = replace(pool, padding=_same(pool, wanted))
    plans = pool.transposed_plan(op, shape, (0,) * pool.rank)
    missing = [_number(call, size - plan.output) for size, plan in zip(wanted, plans, strict=True)]
    pairs = [(plan.before, plan.after + max(-more, 0)) for plan, more in zip(plans, missing, strict=True)]
    pool = replace(pool, padding=padding_of(pairs))
    return replace(op, pool=pool, adjustments=tuple(max(more, 0) for more in missing))


def _same(pool: PoolSpec, wanted: Sequence[Dim]) -> Explicit:
    """What a convolution of an input of that shape would be padded with, to give an output as large as it can."""
    ends = [SameUpper().ends(0, size, window) for size, window in zip(wanted, pool.windows, strict=True)]
    return Explicit(tuple(before for _, before, _ in ends), tuple(after for _, _, after in ends))


def _number(call: Call, size: Dim) -> int:
    if is_symbolic(size):
        raise CorruptModel(
            f"{call.name}: output_shape is {size} larger than what the input gives, wanted a number of elements"
        )
    return int(size)


@reads(
    ROWS,
    STANDARD,
    f"debox(input: tensor<scalar>, size: integer[], {WINDOW}, output_shape: integer[] = [],"
    " normalize: logical = false) -> (output: tensor<scalar>)",
)
def read_debox(call: Call) -> OutletId:
    """Each element written to all of its window and added up there, divided by the window's size with ``normalize``."""
    x = call.real(call.input("input"))
    call.choice("border", ("constant", "ignore"))
    (y,) = all_axes(call, x, lambda data, pool: [_spread(call, data, pool)], channels_last=False)
    return y


def _spread(call: Call, x: OutletId, pool: PoolSpec) -> OutletId:
    """Channel by channel; where their number is not known, each is an image of its own."""
    shape = call.shape(x)
    channels = shape[1]
    if is_symbolic(channels):
        flat = wire_reshape(call.model, call.unique("flat"), x, (shape[0] * channels, 1, *shape[2:]))
        y = _spread(call, flat, pool)
        return wire_reshape(call.model, call.unique("channels"), y, (*shape[:2], *call.shape(y)[2:]))
    kind = call.dtype(x).storage
    weight = 1 / prod(pool.kernel_shape) if call.flag("normalize") else 1
    one = call.constant_array(element(weight, kind).reshape([1] * (pool.rank + 2)))
    kernel = wire_broadcast(call.model, call.unique("filter"), one, (channels, 1, *pool.kernel_shape))
    bias = call.constant_array(np.asarray(element(0, sum_type(kind, kind))))
    return call.op(_to_shape(call, pool, shape, int(channels)), x, kernel, bias)


@ROWS.row(NNEF_WRITE, Deconv)
def write_deconv(op: Deconv, node: Spelling) -> ast.Invocation | None:
    """In the layout of files; with the shape of the output where the padding does not tell it.

    Files mean numbers by quantised tensors, and the operator the integers that are stored. Raises Unwritable for
    integers of 64 bits in archives for other engines.
    """
    kind = node.input_fact(0).datum_type
    if kind.is_integer() and kind.itemsize > DatumType.I32.itemsize and not node.allows(PY):
        raise Unwritable(
            f"{op.name} of {kind.short} is computed by no other engine",
            hint=f"let the model compute it in i32 or floats, or allow the registry {PY}",
        )
    if any(node.input_fact(slot).datum_type.is_quantized() for slot in (0, 1)):
        return None
    padding = op.pool.padding
    plans = op.pool.transposed_plan(op, node.input_fact(0).shape, op.adjustments)
    if isinstance(padding, SameUpper) and not any(op.adjustments):
        return write_convolution("deconv", op, node, exactly=True, padding=[])
    sized = isinstance(padding, (SameUpper, SameLower))
    return write_convolution(
        "deconv",
        op,
        node,
        exactly=not sized and exact(padding),
        padding=[(plan.before, plan.after) for plan in plans],
        output_shape=[plan.output for plan in plans] if sized or any(op.adjustments) else None,
    )


fragments(
    ROWS,
    STANDARD,
    f"""
fragment separable_conv(
    input: tensor<scalar>, plane_filter: tensor<scalar>, point_filter: tensor<scalar>, bias: tensor<scalar> = 0.0,
    {WINDOW}, groups: integer = 1
) -> (output: tensor<scalar>)
{{
    planes = conv(input, plane_filter, border = border, padding = padding, stride = stride, dilation = dilation,
                  groups = 0);
    output = conv(planes, point_filter, bias, groups = groups);
}}

fragment separable_deconv(
    input: tensor<scalar>, plane_filter: tensor<scalar>, point_filter: tensor<scalar>, bias: tensor<scalar> = 0.0,
    {WINDOW}, output_shape: integer[] = [], groups: integer = 1
) -> (output: tensor<scalar>)
{{
    points = deconv(input, point_filter, groups = groups);
    output = deconv(points, plane_filter, bias, border = border, padding = padding, stride = stride,
                    dilation = dilation, output_shape = output_shape, groups = 0);
}}
""",
)
