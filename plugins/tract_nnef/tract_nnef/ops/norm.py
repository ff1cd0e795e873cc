"""Normalisation."""

from __future__ import annotations

from typing import Final

from tract_core.data import DatumType
from tract_core.dims import is_one
from tract_core.model.graph import OutletId
from tract_core.ops.binary import Add, Div, Mul, Sub
from tract_core.ops.elementwise import Sqrt
from tract_core.ops.expect import element
from tract_core.ops.norm import RmsNorm, wire_batch_norm
from tract_core.ops.wiring import require_shape, wire_binary, wire_cast, wire_reshape, wire_squeeze
from tract_core.plugins.tables import Rows
from tract_nnef.reading.call import Call
from tract_nnef.registry import CORE, NNEF_WRITE, STANDARD, TRANSFORMERS, fragments, reads
from tract_nnef.syntax.ast import Invocation
from tract_nnef.writing.spelling import Spelling

ROWS = Rows()

fragments(
    ROWS,
    STANDARD,
    """
fragment local_response_normalization(
    input: tensor<scalar>, size: integer[], alpha: scalar = 1.0, beta: scalar = 0.5, bias: scalar = 1.0
) -> (output: tensor<scalar>)
{
    spread = bias + alpha * box(sqr(input), size = size, normalize = true);
    output = input / spread ^ beta;
}

fragment local_mean_normalization(input: tensor<scalar>, size: integer[]) -> (output: tensor<scalar>)
{
    output = input - box(input, size = size, normalize = true);
}

fragment local_variance_normalization(
    input: tensor<scalar>, size: integer[], bias: scalar = 0.0, epsilon: scalar = 0.0
) -> (output: tensor<scalar>)
{
    spread = sqrt(box(sqr(input), size = size, normalize = true));
    output = input / max(spread + bias, epsilon);
}

fragment local_contrast_normalization(
    input: tensor<scalar>, size: integer[], bias: scalar = 0.0, epsilon: scalar = 0.0
) -> (output: tensor<scalar>)
{
    centred = local_mean_normalization(input, size = size);
    output = local_variance_normalization(centred, size = size, bias = bias, epsilon = epsilon);
}

fragment l1_normalization(input: tensor<scalar>, axes: integer[], bias: scalar = 0.0, epsilon: scalar = 0.0)
    -> (output: tensor<scalar>)
{
    output = input / max(sum_reduce(abs(input), axes = axes) + bias, epsilon);
}

fragment l2_normalization(input: tensor<scalar>, axes: integer[], bias: scalar = 0.0, epsilon: scalar = 0.0)
    -> (output: tensor<scalar>)
{
    output = input / max(sqrt(sum_reduce(sqr(input), axes = axes)) + bias, epsilon);
}
""",
)

_PARAMETERS = ("mean", "variance", "offset", "scale")


@reads(
    ROWS,
    STANDARD,
    "batch_normalization(input: tensor<scalar>, mean: tensor<scalar>, variance: tensor<scalar>, "
    "offset: tensor<scalar>, scale: tensor<scalar>, epsilon: scalar) -> (output: tensor<scalar>)",
)
def read_batch_norm(call: Call) -> OutletId:
    """``offset + scale * (input - mean) / sqrt(variance + epsilon)``.

    With parameters of one number per channel (axis 1), that is one product and one sum.
    """
    x, mean, variance, offset, scale = map(call.real, call.aligned("input", *_PARAMETERS))
    eps, rank = call.number("epsilon"), call.rank(x)
    others = [axis for axis in range(rank) if axis != 1]
    parameters = (mean, variance, offset, scale)
    if rank > 1 and all(_per_channel(call, x, parameter) for parameter in parameters):
        mean, variance, offset, scale = (
            wire_squeeze(call.model, call.unique("channels"), parameter, others) for parameter in parameters
        )
        name = call.unique("norm")
        return wire_batch_norm(call.model, name, x, scale=scale, bias=offset, mean=mean, variance=variance, eps=eps)
    small = call.constant_array(element(eps, call.dtype(variance)))
    spread = call.op(Sqrt(), wire_binary(call.model, call.unique("safe"), Add(), variance, small))
    scaled = call.op(Mul(), scale, call.op(Sub(), x, mean))
    return call.op(Add(), offset, call.op(Div(), scaled, spread))


def _per_channel(call: Call, x: OutletId, parameter: OutletId) -> bool:
    sizes = call.shape(parameter)
    return sizes[1] == call.shape(x)[1] and all(is_one(size) for axis, size in enumerate(sizes) if axis != 1)


_RMS_NORM: Final = "(input: tensor<scalar>, axis: integer, eps: scalar = 1e-6) -> (output: tensor<scalar>)"


@reads(ROWS, CORE, f"tract_core_rms_norm{_RMS_NORM}", f"tract_transformers_rms_norm{_RMS_NORM}")
@reads(ROWS, TRANSFORMERS, f"tract_transformers_rms_norm{_RMS_NORM}")
def read_rms_norm(call: Call) -> OutletId:
    """By the root of the mean of squares."""
    x = call.input("input")
    return call.op(RmsNorm(call.axis("axis", call.rank(x)), call.number("eps")), x)


@reads(
    ROWS,
    CORE,
    "tract_core_scaled_rms_norm(input: tensor<scalar>, scale: tensor<scalar>, axis: integer, eps: scalar = 1e-6,"
    " out_dt: string = '', scale_dt: string = '') -> (output: tensor<scalar>)",
)
def read_scaled_rms_norm(call: Call) -> OutletId:
    """The same times ``scale``, a list with an element for each position of ``axis``, in f32.

    What is scaled is rounded to ``scale_dt`` before, and the result is of the type ``out_dt``, if not of the input's.
    """
    model, x, scale = call.model, call.input("input"), call.input("scale")
    axis, to = call.axis("axis", call.rank(x)), call.element_type("out_dt") if call.text("out_dt") else call.dtype(x)
    x, scale = (wire_cast(model, call.unique("wide"), one, DatumType.F32) for one in (x, scale))
    y = call.op(RmsNorm(axis, call.number("eps")), x)
    if call.text("scale_dt"):
        y = wire_cast(model, call.unique("rounded"), y, call.element_type("scale_dt"))
        y = wire_cast(model, call.unique("rounded"), y, DatumType.F32)
    sizes = [1] * axis + [call.shape(y)[axis]] + [1] * (call.rank(y) - axis - 1)
    require_shape(model, call.node, "scale", scale, [call.shape(y)[axis]])
    y = call.op(Mul(), y, wire_reshape(model, call.unique("scale"), scale, sizes))
    return wire_cast(model, call.unique("narrow"), y, to)


@ROWS.row(NNEF_WRITE, RmsNorm)
def write_rms_norm(op: RmsNorm, node: Spelling) -> Invocation | None:
    """By axis and epsilon."""
    return node.invoke("tract_core_rms_norm", node.input(0), axis=op.axis, eps=op.eps, registry=CORE)
