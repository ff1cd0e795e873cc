"""Quantisation as operators: real numbers become those that integers of some bits can stand for.

Which tensors are stored so is another thing, and stands in ``graph.quant``: see `tract_nnef.reading.quantized`.
"""

from __future__ import annotations

from tract_core.plugins.tables import Rows
from tract_nnef.registry import STANDARD, fragments

ROWS = Rows()

fragments(
    ROWS,
    STANDARD,
    """
fragment min_max_linear_quantize(
    x: tensor<scalar>, min: tensor<scalar>, max: tensor<scalar>, bits: integer, signed: logical, symmetric: logical
) -> (y: tensor<scalar>)
{
    steps = scalar(2 ^ bits - 1 - integer(signed && symmetric));
    lowest = scalar(2 ^ (bits - 1) - integer(symmetric) if signed else 0);
    stored = round((clamp(x, min, max) - min) / (max - min) * steps) - lowest;
    y = (stored + lowest) / steps * (max - min) + min;
}

fragment zero_point_linear_quantize(
    x: tensor<scalar>, zero_point: tensor<integer>, scale: tensor<scalar>, bits: integer, signed: logical,
    symmetric: logical
) -> (y: tensor<scalar>)
{
    zero = cast<scalar>(zero_point);
    highest = scalar(2 ^ (bits - 1) - 1 if signed else 2 ^ bits - 1);
    lowest = 0.0 if !signed else -highest if symmetric else -highest - 1.0;
    stored = clamp(round(x / scale) + zero, lowest, highest);
    y = (stored - zero) * scale;
}

fragment linear_quantize(x: tensor<scalar>, min: tensor<scalar>, max: tensor<scalar>, bits: integer)
    -> (y: tensor<scalar>)
{
    y = min_max_linear_quantize(x, min = min, max = max, bits = bits, signed = false, symmetric = false);
}

fragment logarithmic_quantize(x: tensor<scalar>, max: tensor<scalar>, bits: integer) -> (y: tensor<scalar>)
{
    highest = ceil(log2(max));
    steps = scalar(2 ^ bits - 1);
    stored = round(clamp(log2(abs(x)), highest - steps, highest));
    y = sign(x) * 2.0 ^ stored;
}
""",
)
