"""The protocol's names of element types (Open Inference Protocol, "Tensor Data Types")."""

from __future__ import annotations

from typing import Any, Final

from tract_core.data import DatumType
from tract_core.errors import Unsupported
from tract_serve.errors import BadRequest
from tract_serve.messages import ENUMS
from tract_serve.texts import shown

TYPES: Final[dict[str, DatumType]] = {
    "BOOL": DatumType.BOOL,
    "UINT8": DatumType.U8,
    "UINT16": DatumType.U16,
    "UINT32": DatumType.U32,
    "UINT64": DatumType.U64,
    "INT8": DatumType.I8,
    "INT16": DatumType.I16,
    "INT32": DatumType.I32,
    "INT64": DatumType.I64,
    "FP16": DatumType.F16,
    "FP32": DatumType.F32,
    "FP64": DatumType.F64,
    "BF16": DatumType.BF16,
    "BYTES": DatumType.STRING,
}
_NUMBERED: Final = {ENUMS["DataType"][f"TYPE_{name.replace('BYTES', 'STRING')}"]: name for name in TYPES}
_NAMES: Final = {kind: name for name, kind in TYPES.items()}


def type_of(name: object, where: str) -> DatumType:
    """The element type of that name. Raises BadRequest for a name that the protocol does not have."""
    found = TYPES.get(name) if isinstance(name, str) else None
    if found is None:
        raise BadRequest(f"datatype is {shown(name)}, wanted one of {', '.join(TYPES)}", where=where)
    return found


def datatype_of(number: int) -> str:
    """The name for a number of `DataType`, as configurations say types; an empty text for ``TYPE_INVALID``."""
    return _NUMBERED.get(number, "")


def type_name(kind: Any) -> str:
    """The protocol's name of an element type; of a quantised one, of the integers that it is stored as.

    Raises Unsupported for a type that it has no name for.
    """
    found = _NAMES.get(kind.storage)
    if found is None:
        hint = "convert it in the model, as by a cast to f32"
        raise Unsupported(f"the protocol has no name for the element type {kind}", hint=hint)
    return found
