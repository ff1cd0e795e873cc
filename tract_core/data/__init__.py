"""Element types and the values that are known before a model runs."""

from tract_core.data.constant import Constant, SymbolicArray, Value, known
from tract_core.data.datum_type import DatumType, DType, QuantizedType, parse_dtype

__all__ = ["Constant", "DType", "DatumType", "QuantizedType", "SymbolicArray", "Value", "known", "parse_dtype"]
