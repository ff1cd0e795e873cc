"""Features selected, scaled and put together (domain ``ai.onnx.ml``)."""

from __future__ import annotations

from typing import Final

import numpy as np

from tract_core.data import Constant, DatumType
from tract_core.dims import Dim, same_dim
from tract_core.errors import CorruptModel, FactError, LimitExceeded
from tract_core.model.conditions import may_equal
from tract_core.model.graph import OutletId
from tract_core.ops.concat import TypedConcat
from tract_core.ops.gather import Gather
from tract_core.ops.pad import Pad, PadConstant
from tract_core.ops.slice import Slice
from tract_core.ops.wired import Wired
from tract_core.plugins.keys import Array
from tract_core.plugins.tables import Rows
from tract_onnx.node import OnnxNode
from tract_onnx.ops.post_transform import as_rows
from tract_onnx.registry import ML_DOMAIN, onnx_op
from tract_onnx.wiring import Wiring

ROWS = Rows()

MAX_WIDTH: Final = 1 << 24
"""Features that FeatureVectorizer makes of one input."""


@onnx_op(ROWS, "ArrayFeatureExtractor", domain=ML_DOMAIN)
def array_feature_extractor(node: OnnxNode, wire: Wiring) -> OutletId:
    """The elements of the last axis at some places; a list is one row"""
    x, places = as_rows(wire, wire.input(0)), wire.input(1)
    if wire.rank(x) == 0:
        raise FactError(f"ArrayFeatureExtractor wants at least one axis, found {wire.fact(x)}")
    places = wire.reshape(places, (wire.shape(places).volume,))
    return wire.op(Gather(wire.rank(x) - 1), x, places)


@onnx_op(ROWS, "Binarizer", domain=ML_DOMAIN)
def binarizer(node: OnnxNode, wire: Wiring) -> Wired:
    """1 above the threshold, else 0"""
    x = wire.tensor(0)
    kind, threshold = x.dtype, node.number("threshold", 0.0)
    return ((x.cast(DatumType.F64) if kind.is_integer() else x) > threshold).cast(kind)


def _per_feature(node: OnnxNode, x: Wired, name: str, values: Array) -> Array:
    """One value for all features, or one for each, with as many axes as ``x``."""
    size: Dim = x.shape[-1] if x.rank else 1
    if len(values) != 1 and not may_equal(size, len(values)):
        raise CorruptModel(f"attribute {name!r} of {node.op_type} has {len(values)} numbers for {x.fact}")
    return values.reshape((1,) * (x.rank - 1) + (-1,) if x.rank else ())


@onnx_op(ROWS, "Scaler", domain=ML_DOMAIN)
def scaler(node: OnnxNode, wire: Wiring) -> Wired:
    """(x - offset) * scale, feature by feature, in f32"""
    x = wire.tensor(0).cast(DatumType.F32)
    offset, scale = (_per_feature(node, x, name, node.float_array(name)) for name in ("offset", "scale"))
    return (x - offset) * scale


@onnx_op(ROWS, "Imputer", domain=ML_DOMAIN)
def imputer(node: OnnxNode, wire: Wiring) -> Wired:
    """One value replaced by others, feature by feature"""
    x = wire.tensor(0)
    kind = x.dtype
    if kind.is_float():
        name, given, wanted = "imputed_value_floats", node.numbers("imputed_value_floats"), np.float32
        replaced = node.number("replaced_value_float", 0.0)
    else:
        name, given, wanted = "imputed_value_int64s", node.integers("imputed_value_int64s"), np.int64
        replaced = node.integer("replaced_value_int64", 0)
    values = np.array(given, wanted)
    if (values != values.astype(kind.numpy).astype(wanted))[~np.isnan(values)].any():
        raise CorruptModel(f"attribute {name!r} holds numbers that {kind.short} does not")
    missing = x.is_nan() if np.isnan(replaced) else x.eq(replaced)
    return missing.where(x.operand(_per_feature(node, x, name, values.astype(kind.numpy))), x)


@onnx_op(ROWS, "Normalizer", domain=ML_DOMAIN)
def normalizer(node: OnnxNode, wire: Wiring) -> Wired:
    """Each row divided by its greatest element, the sum of its magnitudes, or its length; by nothing where that is 0"""
    norm = node.choice("norm", ("MAX", "L1", "L2"), "MAX")
    x = wire.tensor(0).cast(DatumType.F32)
    last = (x.rank - 1,)
    divisor = x.max(last) if norm == "MAX" else abs(x).sum(last) if norm == "L1" else x.square().sum(last).sqrt()
    return x / divisor.eq(0).where(1, divisor)


@onnx_op(ROWS, "FeatureVectorizer", domain=ML_DOMAIN)
def feature_vectorizer(node: OnnxNode, wire: Wiring) -> OutletId:
    """All features beside each other, in f32; those of each input cut or filled up with zeros to a given number"""
    inputs = [wire.cast(as_rows(wire, x), DatumType.F32) for x in wire.all_inputs()]
    wanted = node.integers("inputdimensions", ())
    if wanted and (len(wanted) != len(inputs) or min(wanted) < 0):
        raise CorruptModel(f"'inputdimensions' is {list(wanted)[:50]}, wanted {len(inputs)} sizes")
    if sum(wanted) > MAX_WIDTH:
        raise LimitExceeded(f"'inputdimensions' asks for {sum(wanted)} features, at most {MAX_WIDTH} are allowed")
    parts = [_of_width(wire, x, width) for x, width in zip(inputs, wanted or [None] * len(inputs), strict=True)]
    return wire.op(TypedConcat(1), *parts)


def _of_width(wire: Wiring, x: OutletId, width: int | None) -> OutletId:
    if wire.rank(x) != 2:
        raise FactError(f"FeatureVectorizer wants matrices, found {wire.fact(x)}")
    size = wire.shape(x)[1]
    if width is None or same_dim(size, width):
        return x
    padded = wire.op(Pad(((0, 0), (0, width)), PadConstant(Constant(np.zeros((), np.float32)))), x)
    return wire.op(Slice(1, 0, width), padded)
