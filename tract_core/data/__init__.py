"""Element types and the values that are known before a model runs."""

from tract_core.data.constant import Constant, SymbolicArray, Value, value_of
from tract_core.data.containers import Container, DType, ItemFact, MapType, OptionalType, SequenceType, parse_dtype
from tract_core.data.datum_type import DatumType, QuantizedType, widened

__all__ = [
    "Constant",
    "Container",
    "DType",
    "DatumType",
    "ItemFact",
    "MapType",
    "OptionalType",
    "QuantizedType",
    "SequenceType",
    "SymbolicArray",
    "Value",
    "parse_dtype",
    "value_of",
    "widened",
]
