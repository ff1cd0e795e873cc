"""A node as the functions of the table ``onnx`` see it: its attributes, typed, and the version of its operator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import onnx

from tract_core.data import DatumType
from tract_core.errors import CorruptModel, Unsupported
from tract_core.frozen import frozen
from tract_core.plugins.keys import Array
from tract_onnx.file import OnnxFile
from tract_onnx.long_lists import ListKind, LongList
from tract_onnx.tensors import element_type

_KIND = onnx.AttributeProto


@frozen
class OnnxNode:
    """One node of a file. ``version``: that of its domain's operator set.

    ``output_names``: up to the last one that is read, empty for those that are not. ``output_count``: how many the file
    lists, read or not.

    A getter returns the attribute, or the default, when one is given, for an attribute that is absent. It raises
    CorruptModel when the attribute is of another kind, or absent without a default.

    ``op_type``, ``name``: as the file has them. ``input_names``: the tensors that it reads, empty for those left
    out.
    """

    op_type: str
    domain: str
    version: int
    name: str
    input_names: tuple[str, ...]
    output_names: tuple[str, ...]
    output_count: int
    attributes: Mapping[str, onnx.AttributeProto]
    file: OnnxFile

    __eq__ = object.__eq__  # a node is itself alone
    __hash__ = object.__hash__

    def wants_output(self, slot: int) -> bool:
        """Whether the node's output ``slot`` has a name, so that somebody may read it."""
        return slot < len(self.output_names) and bool(self.output_names[slot])

    def has(self, name: str) -> bool:
        """Whether the file gives that attribute."""
        return name in self.attributes

    def holds_tensor(self, name: str) -> bool:
        """Whether the file gives that attribute, and it is a tensor."""
        return name in self.attributes and self.attributes[name].HasField("t")

    def length(self, name: str) -> int:
        """How many elements a list has; 0 for one that is absent."""
        attribute = self.attributes.get(name)
        if attribute is None:
            return 0
        left = self.file.tensors.run(attribute)
        if left is not None:
            return left.elements
        return max(len(attribute.ints), len(attribute.floats), len(attribute.strings))

    def int(self, name: str, default: int | None = None) -> int:
        """An integer."""
        return self._get(name, "INT", "i", default)

    def flag(self, name: str, default: bool = False) -> bool:
        """An integer that stands for yes or no."""
        return bool(self._get(name, "INT", "i", int(default)))

    def float(self, name: str, default: float | None = None) -> float:
        """A floating-point number: one of f32, and so is the default."""
        return self._get(name, "FLOAT", "f", None if default is None else float(np.float32(default)))

    def string(self, name: str, default: str | None = None) -> str:
        """A text."""
        value = self._get(name, "STRING", "s", default)
        return value if isinstance(value, str) else self._text(name, value)

    def choice(self, name: str, choices: Sequence[str], default: str | None = None) -> str:
        """A text that is one of ``choices``. Raises Unsupported for another one."""
        value = self.string(name, default)
        if value not in choices:
            raise Unsupported(f"attribute {name!r} is {value[:80]!r}, wanted one of {', '.join(map(repr, choices))}")
        return value

    def ints(self, name: str, default: Sequence[int] | None = None) -> tuple[int, ...]:
        """Integers."""
        return tuple(self.int_array(name, default).tolist())

    def int_array(self, name: str, default: Sequence[int] | None = None) -> Array:
        """Integers, of which there may be millions: i64."""
        found = self._list(name, ListKind.INTS, default)
        return found.numbers() if isinstance(found, LongList) else np.fromiter(found, np.int64, len(found))

    def floats(self, name: str, default: Sequence[float] | None = None) -> tuple[float, ...]:
        """Floating-point numbers."""
        return tuple(self.float_array(name, default).tolist())

    def float_array(self, name: str, default: Sequence[float] | None = None) -> Array:
        """Floating-point numbers, of which there may be millions: f32."""
        found = self._list(name, ListKind.FLOATS, default)
        return found.numbers() if isinstance(found, LongList) else np.fromiter(found, np.float32, len(found))

    def strings(self, name: str, default: Sequence[str] | None = None) -> tuple[str, ...]:
        """Texts."""
        found = self._list(name, ListKind.STRINGS, default)
        if isinstance(found, LongList):
            texts, places = self.distinct_strings(name)
            return tuple(map(texts.__getitem__, places.tolist()))
        return tuple(value if isinstance(value, str) else self._text(name, value) for value in found)

    def distinct_strings(self, name: str) -> tuple[list[str], Array]:
        """The distinct texts of a list, of which there may be millions, and the place of each element's among them."""
        found = self._list(name, ListKind.STRINGS, None)
        if isinstance(found, LongList):
            texts, places = found.distinct_texts()
            return [self._text(name, text) for text in texts], places
        known: dict[str, int] = {}
        places = [known.setdefault(text, len(known)) for text in self.strings(name)]
        return list(known), np.array(places, np.int32)

    def tensor(self, name: str) -> Array:
        """An array."""
        return self.file.tensors.array(self._get(name, "TENSOR", "t", None))

    def sparse_tensor(self, name: str) -> Array:
        """An array that the file holds as a few values and their places."""
        return self.file.tensors.sparse(self._get(name, "SPARSE_TENSOR", "sparse_tensor", None))

    def graph(self, name: str) -> onnx.GraphProto:
        """A graph inside the node."""
        return self._get(name, "GRAPH", "g", None)

    def element_type(self, name: str, default: DatumType | None = None) -> DatumType:
        """An element type, which files give by number."""
        if default is not None and not self.has(name):
            return default
        return element_type(self.int(name))

    def _list(self, name: str, kind: ListKind, default: Any) -> Any:
        """A list: as the ``onnx`` package holds it, the default, or one that was left in the file."""
        found = self._get(name, kind.name, kind.name.lower(), default)
        left = self.file.tensors.long_list(self.attributes[name]) if name in self.attributes else None
        if left is not None and left.run.kind is not kind:  # an attribute without a kind
            raise CorruptModel(
                f"attribute {name!r} of {self.op_type} is of kind {left.run.kind.name}, wanted {kind.name}"
            )
        return found if left is None else left

    def _get(self, name: str, kind: str, field: str, default: Any) -> Any:
        attribute = self.attributes.get(name)
        if attribute is None:
            if default is None:
                there = ", ".join(map(repr, self.attributes)) or "no attributes"
                raise CorruptModel(f"{self.op_type} wants an attribute {name!r}, the node has {there}")
            return default
        if attribute.ref_attr_name:
            raise CorruptModel(f"attribute {name!r} refers to one of a function, and the node is in none")
        # Files older than version 4 of the format leave the kind out.
        if attribute.type not in (_KIND.UNDEFINED, getattr(_KIND, kind)):
            found = _NAMES.get(attribute.type, str(attribute.type))
            raise CorruptModel(f"attribute {name!r} of {self.op_type} is of kind {found}, wanted {kind}")
        if field == "s" and self.file.tensors.run(attribute) is not None:  # one without a kind
            raise CorruptModel(f"attribute {name!r} of {self.op_type} is a list, wanted {kind}")
        return getattr(attribute, field)

    def _text(self, name: str, value: bytes) -> str:
        try:
            return value.decode()
        except UnicodeDecodeError:
            raise CorruptModel(f"attribute {name!r} of {self.op_type} is not UTF-8") from None


_NAMES: Final[Mapping[int, str]] = {number: name for name, number in _KIND.AttributeType.items()}
