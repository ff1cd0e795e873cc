"""A node as the functions of the table ``onnx`` see it: its attributes, typed, and the version of its operator."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, ClassVar, Final, TypeVar

import numpy as np
import onnx

from tract_core.errors import CorruptModel
from tract_core.frontend.node import (
    ELEMENT_TYPE,
    FLAG,
    INTEGER,
    INTEGERS,
    NUMBER,
    NUMBERS,
    SIZE,
    SIZES,
    TEXT,
    TEXTS,
    AttributeKind,
    Attributes,
)
from tract_core.frozen import frozen
from tract_core.plugins.keys import Array
from tract_onnx.file import OnnxFile
from tract_onnx.long_lists import ListKind, LongList
from tract_onnx.tensors import element_type

T = TypeVar("T")

_KIND = onnx.AttributeProto


@frozen
class OnnxNode(Attributes):
    """One node of a file. ``version``: that of its domain's operator set.

    ``output_names``: up to the last one that is read, empty for those that are not. ``output_count``: how many the file
    lists, read or not.

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

    @property
    def operator(self) -> str:
        """Its type."""
        return self.op_type

    @property
    def names(self) -> Collection[str]:
        """The attributes that the file gives."""
        return self.attributes

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

    def find(self, name: str, kind: AttributeKind[T]) -> T | None:
        """An attribute as one of a kind."""
        return self._READ[kind](self, name) if name in self.attributes else None

    def number(self, name: str, default: float | None = None) -> float:
        """A floating-point number: one of f32, and so is the default."""
        return self._get(name, NUMBER, None if default is None else float(np.float32(default)))

    def int_array(self, name: str, default: Sequence[int] | None = None) -> Array:
        """Integers, of which there may be millions: i64."""
        found = self._list(name, ListKind.INTS, default)
        if isinstance(found, LongList):
            return self.file.tensors.numbers(found)
        return np.fromiter(found, np.int64, len(found))

    def float_array(self, name: str, default: Sequence[float] | None = None) -> Array:
        """Floating-point numbers, of which there may be millions: f32."""
        found = self._list(name, ListKind.FLOATS, default)
        if isinstance(found, LongList):
            return self.file.tensors.numbers(found)
        return np.fromiter(found, np.float32, len(found))

    def distinct_texts(self, name: str) -> tuple[list[str], Array]:
        """The distinct texts of a list, of which there may be millions, and the place of each element's among them."""
        found = self._list(name, ListKind.STRINGS, None)
        if isinstance(found, LongList):
            texts, places = self.file.tensors.distinct_texts(found)
            return [self._decoded(name, text) for text in texts], places
        known: dict[str, int] = {}
        places = [known.setdefault(text, len(known)) for text in self.texts(name)]
        return list(known), np.array(places, np.int32)

    def array(self, name: str) -> Array:
        """An array."""
        return self.file.tensors.array(self._field(name, "TENSOR", "t"))

    def sparse_tensor(self, name: str) -> Array:
        """An array that the file holds as a few values and their places."""
        return self.file.tensors.sparse(self._field(name, "SPARSE_TENSOR", "sparse_tensor"))

    def graph(self, name: str) -> onnx.GraphProto:
        """A graph inside the node."""
        return self._field(name, "GRAPH", "g")

    def _list(self, name: str, kind: ListKind, default: Any) -> Any:
        """A list: as the ``onnx`` package holds it, the default, or one that was left in the file."""
        if default is not None and name not in self.attributes:
            return default
        found = self._field(name, kind.name, kind.name.lower())
        left = self.file.tensors.long_list(self.attributes[name])
        if left is not None and left.run.kind is not kind:  # an attribute without a kind
            raise self.misfit(name, f"is of kind {left.run.kind.name}", kind.name)
        return found if left is None else left

    def _field(self, name: str, kind: str, field: str) -> Any:
        """What the file has in the field of an attribute of that kind."""
        attribute = self.attributes.get(name)
        if attribute is None:
            raise self.missing(name)
        if attribute.ref_attr_name:
            raise CorruptModel(f"{self.about(name)} refers to one of a function, and the node is in none")
        # Files older than version 4 of the format leave the kind out.
        if attribute.type not in (_KIND.UNDEFINED, getattr(_KIND, kind)):
            raise self.misfit(name, f"is of kind {_NAMES.get(attribute.type, attribute.type)}", kind)
        if field == "s" and self.file.tensors.run(attribute) is not None:  # one without a kind
            raise self.misfit(name, "is a list", kind)
        return getattr(attribute, field)

    def _integer(self, name: str) -> int:
        return self._field(name, "INT", "i")

    def _numbers(self, name: str, kind: ListKind) -> tuple[Any, ...]:
        found = self._list(name, kind, None)
        if isinstance(found, LongList):
            return self.file.tensors.listed(found, lambda: tuple(found.numbers().tolist()))
        return tuple(found)

    def _texts(self, name: str) -> tuple[str, ...]:
        found = self._list(name, ListKind.STRINGS, None)

        def each() -> tuple[str, ...]:
            texts, places = self.distinct_texts(name)
            return tuple(map(texts.__getitem__, places.tolist()))

        if isinstance(found, LongList):
            return self.file.tensors.listed(found, each)
        return tuple(self._decoded(name, value) for value in found)

    def _decoded(self, name: str, value: bytes) -> str:
        try:
            return value.decode()
        except UnicodeDecodeError:
            raise self.misfit(name, "is not UTF-8", TEXT.text) from None

    _READ: ClassVar[Mapping[AttributeKind[Any], Callable[[OnnxNode, str], Any]]] = {
        INTEGER: lambda node, name: node._integer(name),
        SIZE: lambda node, name: node._integer(name),
        FLAG: lambda node, name: bool(node._integer(name)),
        ELEMENT_TYPE: lambda node, name: element_type(node._integer(name)),
        NUMBER: lambda node, name: node._field(name, "FLOAT", "f"),
        TEXT: lambda node, name: node._decoded(name, node._field(name, "STRING", "s")),
        INTEGERS: lambda node, name: node._numbers(name, ListKind.INTS),
        SIZES: lambda node, name: node._numbers(name, ListKind.INTS),
        NUMBERS: lambda node, name: node._numbers(name, ListKind.FLOATS),
        TEXTS: lambda node, name: node._texts(name),
    }
    """How attributes of each kind are read."""


_NAMES: Final[Mapping[int, str]] = {number: name for name, number in _KIND.AttributeType.items()}
