"""Element types, constants and facts as ONNX has them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import onnx
from onnx import TensorProto, helper

from tract_core.data import Constant, DatumType, DType
from tract_core.data.containers import OptionalType, SequenceType
from tract_core.data.stored import BITS, pack
from tract_core.dims import Dim, TDim, parse_dim, symbol, symbols_of
from tract_core.errors import DimError, Unwritable
from tract_core.model.fact import TypedFact
from tract_onnx.tensors import ELEMENT_TYPES

_CODES: Final[Mapping[DatumType, int]] = {
    **{kind: code for code, kind in ELEMENT_TYPES.items()},
    DatumType.TDIM: TensorProto.INT64,
}


def code_of(kind: DType) -> int:
    """The number of an element type; sizes are i64. Raises Unwritable for one that the format does not have."""
    found = _CODES.get(kind) if isinstance(kind, DatumType) else None
    if found is None:
        raise Unwritable(f"the format has no elements of type {kind.short}", hint="convert them in the model")
    return found


def is_narrow(kind: DType) -> bool:
    """Whether floats of a type are computed in f32, and rounded once."""
    return kind.is_float() and kind.storage.itemsize < 4


def tensor_of(name: str, value: Constant) -> TensorProto:
    """A constant, with its elements in it."""
    array, kind = value.array, value.datum_type
    made = TensorProto(name=name, data_type=code_of(kind), dims=array.shape)
    if kind is DatumType.STRING:
        made.string_data.extend(text.encode("utf-8", "surrogateescape") for text in array.reshape(-1).tolist())
    else:
        made.raw_data = bytes_of(array, kind)
    return made


def bytes_of(array: np.ndarray[Any, Any], kind: DatumType) -> bytes:
    """The elements as files have them: row-major, little end first, those below a byte packed."""
    return (pack(kind, array) if kind in BITS else np.ascontiguousarray(array)).tobytes()


def value_info(name: str, fact: TypedFact) -> onnx.ValueInfoProto:
    """A value's name and type; of a tensor the shape, in which a size that is an expression is named by its text."""
    return helper.make_value_info(name, type_of(fact.datum_type, fact.shape))


def type_of(kind: DType, shape: Sequence[Dim | None] | None) -> onnx.TypeProto:
    """The type of a value, with as much of its shape as is known. Raises Unwritable."""
    if isinstance(kind, SequenceType):
        return helper.make_sequence_type_proto(type_of(kind.item.datum_type, kind.item.shape))
    if isinstance(kind, OptionalType):
        return helper.make_optional_type_proto(type_of(kind.item.datum_type, kind.item.shape))
    sizes = (
        None if shape is None else [size if isinstance(size, int) or size is None else _named(size) for size in shape]
    )
    return helper.make_tensor_type_proto(code_of(kind), sizes)


def _named(size: TDim) -> str:
    """The name of a symbol, as it is, where nobody takes it for an expression; else the text of the size."""
    (name, *others) = symbols_of(size) or ("",)
    if others or size != symbol(name):
        return str(size)
    try:
        parse_dim(name)
    except DimError:
        return name
    return str(size)
