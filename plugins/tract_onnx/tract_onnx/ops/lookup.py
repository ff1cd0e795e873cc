"""Categories: texts and numbers that stand for each other (domain ``ai.onnx.ml``)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np

from tract_core.data import Constant, DatumType
from tract_core.errors import CorruptModel
from tract_core.model.graph import OutletId
from tract_core.ops.expect import element
from tract_core.ops.lookup import Lookup
from tract_core.plugins.keys import Array
from tract_core.plugins.tables import Rows
from tract_onnx.node import OnnxNode
from tract_onnx.onnx_only.lookup import OneHotLookup
from tract_onnx.onnx_only.strings import as_objects
from tract_onnx.registry import ML_DOMAIN, onnx_op
from tract_onnx.wiring import Wiring

ROWS = Rows()

UNUSED: Final = "_Unused"
"""The standard's text for what has no category."""

_Getter = Callable[[OnnxNode, str], Array]

_LISTS: Final[Mapping[str, _Getter]] = {
    "strings": lambda node, name: as_objects(node.texts(name)),
    "int64s": lambda node, name: node.int_array(name),
    "floats": lambda node, name: node.float_array(name),
    "tensor": lambda node, name: node.array(name).reshape(-1),
}
"""The attributes that may hold a list, by the end of their names."""


def given_list(node: OnnxNode, names: Mapping[str, str]) -> tuple[str, Array]:
    """Which one of some attributes is there, and the list that it holds. Raises CorruptModel unless it is just one.

    ``names``: the kind of list, a key of the table of kinds, for each attribute.
    """
    found = [name for name in names if node.has(name)]
    if len(found) != 1:
        listed = ", ".join(found) or "none"
        raise CorruptModel(f"{node.op_type} wants one of the attributes {', '.join(names)}, found {listed}")
    return found[0], _LISTS[names[found[0]]](node, found[0])


def _kinds(prefix: str) -> dict[str, str]:
    return {f"{prefix}_{kind}": kind for kind in _LISTS}


@onnx_op(ROWS, "LabelEncoder", domain=ML_DOMAIN)
def label_encoder_1(node: OnnxNode, wire: Wiring) -> OutletId:
    """The place of each text in a list, or the text at each place"""
    texts = as_objects(node.texts("classes_strings"))
    places = np.arange(len(texts))
    return _between(node, wire, texts, places)


@onnx_op(ROWS, "CategoryMapper", domain=ML_DOMAIN)
def category_mapper(node: OnnxNode, wire: Wiring) -> OutletId:
    """The number of each text, or the text of each number, from two lists"""
    texts, numbers = as_objects(node.texts("cats_strings")), node.int_array("cats_int64s")
    if len(texts) != len(numbers):
        raise CorruptModel(f"{len(texts)} texts do not go with {len(numbers)} numbers")
    return _between(node, wire, texts, numbers)


def _between(node: OnnxNode, wire: Wiring, texts: Array, numbers: Array) -> OutletId:
    x = wire.input(0)
    if wire.dtype(x) is DatumType.STRING:
        default = np.array(node.integer("default_int64", -1), np.int64)
        return wire.op(Lookup(Constant(texts), Constant(numbers), Constant(default)), x)
    unknown = np.array(node.text("default_string", UNUSED), dtype=object)
    return wire.op(Lookup(Constant(numbers), Constant(texts), Constant(unknown)), x)


@onnx_op(ROWS, "LabelEncoder", since=2, domain=ML_DOMAIN)
def label_encoder_2(node: OnnxNode, wire: Wiring) -> OutletId:
    """The value at the place where a list of keys has the element, or a default"""
    _, keys = given_list(node, _kinds("keys"))
    _, values = given_list(node, _kinds("values"))
    if len(keys) != len(values):
        raise CorruptModel(f"{len(keys)} keys do not go with {len(values)} values")
    return wire.op(Lookup(Constant(keys), Constant(values), Constant(_default(node, values))), wire.input(0))


def _default(node: OnnxNode, values: Array) -> Array:
    """What stands for elements that are no key, in the type of the values."""
    if node.has("default_tensor"):
        given = node.array("default_tensor").reshape(-1)
        if len(given) != 1 or given.dtype != values.dtype:
            raise CorruptModel(f"'default_tensor' is {Constant(given)}, wanted one element of type {values.dtype}")
        return given.reshape(())
    if values.dtype.kind == "O":
        return np.array(node.text("default_string", UNUSED), dtype=object)
    if DatumType.from_numpy(values.dtype).is_integer():
        return element(node.integer("default_int64", -1), DatumType.from_numpy(values.dtype))
    return np.array(node.number("default_float", -0.0), values.dtype)


@onnx_op(ROWS, "OneHotEncoder", domain=ML_DOMAIN)
def one_hot_encoder(node: OnnxNode, wire: Wiring) -> OutletId:
    """A one at the place of the category on a new last axis, zeros elsewhere"""
    name, categories = given_list(node, {"cats_int64s": "int64s", "cats_strings": "strings"})
    x = wire.input(0)
    if name == "cats_int64s" and wire.dtype(x) is not DatumType.STRING:
        x = wire.i64(x)
    return wire.op(OneHotLookup(Constant(categories), not node.flag("zeros", True)), x)


def class_labels(node: OnnxNode, names: Sequence[str]) -> Array:
    """The labels of a classifier: texts or 64-bit integers. ``names``: those attributes that may hold them."""
    kinds = {name: "strings" if name.endswith("strings") else "int64s" for name in names}
    _, labels = given_list(node, kinds)
    if not len(labels):
        raise CorruptModel(f"{node.op_type} has no classes")
    return labels
