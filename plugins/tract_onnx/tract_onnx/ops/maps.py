"""Maps (domain ``ai.onnx.ml``)."""

from __future__ import annotations

from typing import Final

from tract_core.data import Constant, DatumType
from tract_core.errors import CorruptModel, LimitExceeded
from tract_core.model.graph import OutletId
from tract_core.plugins.tables import Rows
from tract_onnx.node import OnnxNode
from tract_onnx.onnx_only.maps import CastMap, DictVectorizer, ZipMap, map_type
from tract_onnx.ops.lookup import class_labels, given_list
from tract_onnx.registry import ML_DOMAIN, onnx_op
from tract_onnx.wiring import Wiring

ROWS = Rows()

MAX_PLACES: Final = 1 << 24
"""Elements of a row that CastMap makes."""

_TO: Final = {"TO_FLOAT": DatumType.F32, "TO_STRING": DatumType.STRING, "TO_INT64": DatumType.I64}


@onnx_op(ROWS, "ZipMap", domain=ML_DOMAIN)
def zip_map(node: OnnxNode, wire: Wiring) -> OutletId:
    """For each row, a map from labels to its elements"""
    labels = class_labels(node, ("classlabels_strings", "classlabels_int64s"))
    if len(set(labels.tolist())) < len(labels):
        raise CorruptModel("a label of ZipMap is there twice")
    return wire.op(ZipMap(Constant(labels)), wire.input(0))


@onnx_op(ROWS, "DictVectorizer", domain=ML_DOMAIN)
def dict_vectorizer(node: OnnxNode, wire: Wiring) -> OutletId:
    """The values of a map, each at its key's place in a vocabulary"""
    _, vocabulary = given_list(node, {"string_vocabulary": "strings", "int64_vocabulary": "int64s"})
    x = wire.input(0)
    kind = map_type("DictVectorizer", wire.fact(x)).item.datum_type
    return wire.op(DictVectorizer(Constant(vocabulary), kind.storage), x)


@onnx_op(ROWS, "CastMap", domain=ML_DOMAIN)
def cast_map(node: OnnxNode, wire: Wiring) -> OutletId:
    """The values of a map in the order of their keys, or at the places that these are"""
    to = _TO[node.choice("cast_to", _TO, "TO_FLOAT")]
    if node.choice("map_form", ("DENSE", "SPARSE"), "DENSE") == "DENSE":
        return wire.op(CastMap(to, sparse=False, count=wire.symbol("entries")), wire.input(0))
    places = node.integer("max_map", 1)
    if not 1 <= places <= MAX_PLACES:
        raise LimitExceeded(f"'max_map' is {places}, wanted 1 to {MAX_PLACES}")
    return wire.op(CastMap(to, sparse=True, count=places), wire.input(0))
