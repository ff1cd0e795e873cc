"""What a model says about itself, in a file of ONNX: fields of the file, and pairs of a key and a text."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import onnx

from tract_core.data import Constant
from tract_core.data.datum_type import DatumType
from tract_core.errors import TractError

_FIELDS: Final = ("domain", "doc_string", "model_version")
"""Of the file, which are kept; who wrote it, and in which format, is another matter with each file."""

_PAIR: Final = "onnx.metadata_props."
_OTHER: Final = "tract."
"""How the keys of pairs begin that hold properties of other formats: a JSON array of a type, a shape and elements."""

Array = np.ndarray[Any, Any]


def read_properties(proto: onnx.ModelProto) -> Mapping[str, Array]:
    """What the file says about itself, as ``onnx.producer_name`` and so on; and what models had in other formats."""
    found: dict[str, Array] = {}
    for field in ("producer_name", "producer_version", "domain", "doc_string"):
        if text := getattr(proto, field):
            found[f"onnx.{field}"] = np.array(text, dtype=object)
    for field in ("model_version", "ir_version"):
        found[f"onnx.{field}"] = np.array(getattr(proto, field), dtype=np.int64)
    for entry in proto.metadata_props:
        value = _value(entry.value) if entry.key.startswith(_OTHER) else None
        if value is None:
            found[f"{_PAIR}{entry.key}"] = np.array(entry.value, dtype=object)
        else:
            found[entry.key.removeprefix(_OTHER)] = value
    return found


def write_properties(proto: onnx.ModelProto, properties: Mapping[str, Array]) -> None:
    """Say in a file what a model says about itself."""
    for name, value in properties.items():
        field = name.removeprefix("onnx.")
        if name.startswith(_PAIR):
            proto.metadata_props.add(key=_valid(name.removeprefix(_PAIR)), value=_valid(str(value)))
        elif field in _FIELDS and field != name:
            said = value.item()
            setattr(proto, field, _valid(said) if isinstance(said, str) else said)
        elif not name.startswith("onnx."):
            kind = Constant(value).datum_type
            text = json.dumps([kind.short, [*value.shape], value.reshape(-1).tolist()])
            proto.metadata_props.add(key=_valid(f"{_OTHER}{name}"), value=text)


def _valid(text: str) -> str:
    """The text without what UTF-8 has no bytes for."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _value(text: str) -> Array | None:
    """The array that a text holds; ``None`` where it is no such text."""
    try:
        name, shape, elements = json.loads(text)
        kind = DatumType.parse(name)
        if kind is DatumType.STRING and not all(isinstance(one, str) for one in elements):
            return None
        return np.array(elements, kind.numpy).reshape(shape)
    except (ValueError, TypeError, AttributeError, RecursionError, OverflowError, TractError):
        return None
