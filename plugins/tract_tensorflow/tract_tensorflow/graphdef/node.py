"""A node as the functions of the table ``tensorflow`` see it: its attributes, typed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, ClassVar, Final, TypeVar

from tract_core.data import DatumType
from tract_core.errors import Unsupported
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
from tract_tensorflow.graphdef.file import TensorflowFile
from tract_tensorflow.graphdef.protos import Message
from tract_tensorflow.graphdef.tensors import element_type, sizes_of

T = TypeVar("T")


@frozen
class GraphNode(Attributes):
    """One node of a graph or a function.

    ``op_type``: what the file calls the operator; ``attributes``: as the file has them. ``name``: as the file has it,
    with those of the calls around it in front; ``own_name``: without them. ``output_names``: up to the last one that is
    read, empty for those that are not. ``scope``: the function that the node is in, empty for the graph itself.
    """

    op_type: str
    name: str
    attributes: Mapping[str, Message]
    output_names: tuple[str, ...]
    file: TensorflowFile
    scope: str = ""
    own_name: str = ""

    __eq__ = object.__eq__  # a node is itself alone
    __hash__ = object.__hash__

    @property
    def operator(self) -> str:
        """Its type."""
        return self.op_type

    @property
    def names(self) -> Collection[str]:
        """The attributes that the file gives, without those that only annotate the node."""
        return [name for name in sorted(self.attributes) if not name.startswith("_")]

    @property
    def place(self) -> str:
        """The node, as messages name it."""
        return f"node {self.name[:200]!r} ({self.op_type[:200]})"

    def wants_output(self, slot: int) -> bool:
        """Whether somebody reads the node's output ``slot``."""
        return slot < len(self.output_names) and bool(self.output_names[slot])

    def has(self, name: str) -> bool:
        """Whether the file gives that attribute."""
        return name in self.attributes

    def find(self, name: str, kind: AttributeKind[T]) -> T | None:
        """An attribute as one of a kind."""
        return self._READ[kind](self, name) if name in self.attributes else None

    def element_types(self, name: str) -> tuple[DatumType, ...]:
        """Several element types."""
        return tuple(element_type(code) for code in self._list(name, "type"))

    def shape(self, name: str) -> tuple[int | None, ...] | None:
        """The sizes of a shape; ``None`` for one of unknown rank, or where the attribute is absent."""
        return sizes_of(self._field(name, "shape")) if self.has(name) else None

    def array(self, name: str) -> Array:
        """An array."""
        return self.file.tensors.array(self._field(name, "tensor"), (self.scope, self.own_name, name), self.place)

    def function(self, name: str) -> Message:
        """The function of the library that the attribute names. Raises CorruptModel when there is none."""
        return self._function(name, self._field(name, "func").name)

    def functions(self, name: str) -> tuple[Message, ...]:
        """Several of these."""
        return tuple(self._function(name, one.name) for one in self._list(name, "func"))

    def _function(self, name: str, wanted: str) -> Message:
        found = self.file.functions.get(wanted)
        if found is None:
            raise self.misfit(name, f"is {wanted[:80]!r}, which the file does not define", "a function of the library")
        return found

    def _field(self, name: str, field: str) -> Any:
        """What the file has in the field of an attribute of that kind."""
        attribute = self.attributes.get(name)
        if attribute is None:
            raise self.missing(name)
        kind = attribute.WhichOneof("value")
        if kind == "placeholder":
            raise Unsupported(f"{self.about(name)} is left to the caller of the function")
        if kind != field:
            raise self.misfit(name, f"is {_KINDS.get(kind, kind)}", _KINDS[field])
        return getattr(attribute, field)

    def _list(self, name: str, field: str) -> Any:
        """The list in an attribute; the file does not tell an empty list of one kind from one of another."""
        return getattr(self._field(name, "list"), field)

    def _decoded(self, name: str, value: bytes) -> str:
        try:
            return value.decode()
        except UnicodeDecodeError:
            raise self.misfit(name, "is not UTF-8", TEXT.text) from None

    _READ: ClassVar[Mapping[AttributeKind[Any], Callable[[GraphNode, str], Any]]] = {
        INTEGER: lambda node, name: node._field(name, "i"),
        SIZE: lambda node, name: node._field(name, "i"),
        FLAG: lambda node, name: node._field(name, "b"),
        ELEMENT_TYPE: lambda node, name: element_type(node._field(name, "type")),
        NUMBER: lambda node, name: node._field(name, "f"),
        TEXT: lambda node, name: node._decoded(name, node._field(name, "s")),
        INTEGERS: lambda node, name: tuple(node._list(name, "i")),
        SIZES: lambda node, name: tuple(node._list(name, "i")),
        NUMBERS: lambda node, name: tuple(node._list(name, "f")),
        TEXTS: lambda node, name: tuple(node._decoded(name, text) for text in node._list(name, "s")),
    }
    """How attributes of each kind are read."""


_KINDS: Final[Mapping[str | None, str]] = {
    None: "nothing",
    "list": "a list",
    "s": "a text",
    "i": "an integer",
    "f": "a number",
    "b": "true or false",
    "type": "an element type",
    "shape": "a shape",
    "tensor": "a tensor",
    "func": "a function",
}


def node_place(proto: Message, prefix: str = "") -> str:
    """A node of a file, as messages name it."""
    return f"node {(prefix + proto.name)[:200]!r} ({proto.op[:200]})"
