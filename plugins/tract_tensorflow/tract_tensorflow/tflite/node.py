"""An operator of a file as the functions of the table ``tflite`` see it: what it says, and its tensors."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from typing import Any, ClassVar, Final, TypeVar

from tract_core.errors import CorruptModel, Unsupported
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
    AttributeKind,
    Attributes,
)
from tract_core.frozen import frozen
from tract_core.plugins.keys import Array
from tract_core.texts import printable
from tract_tensorflow.tflite.calls import NOTHING_HANDED, Handed
from tract_tensorflow.tflite.file import TfliteFile, TfliteTensor, element_type
from tract_tensorflow.tflite.flatbuffer import FlatTable
from tract_tensorflow.tflite.flexbuffer import read_map
from tract_tensorflow.tflite.options import ENUMERATIONS
from tract_tensorflow.tflite.quantization import Quantization

T = TypeVar("T")


@frozen
class TfliteNode(Attributes):
    """One operator of a graph.

    ``op_type``: its name, as in `options.OPERATORS`, or ``custom/NAME``. ``inputs``: its tensors, ``None`` for one left
    out; ``outputs``: likewise. ``options``: what it says, ``None`` where it says nothing: then everything asked for is
    its default. ``custom``: the bytes that a custom operator says. ``intermediates``: tensors of which only the scales
    count, those of what its kernel computes on the way. ``calls``: what it hands to graphs besides tensors.
    """

    word: ClassVar[str] = "option"

    op_type: str
    inputs: tuple[TfliteTensor | None, ...]
    outputs: tuple[TfliteTensor, ...]
    options: FlatTable | None
    custom: Array
    file: TfliteFile
    intermediates: tuple[TfliteTensor, ...] = ()
    calls: Handed = NOTHING_HANDED

    __eq__ = object.__eq__  # a node is itself alone
    __hash__ = object.__hash__

    @property
    def operator(self) -> str:
        """Its name."""
        return self.op_type

    @property
    def names(self) -> Collection[str]:
        """The options that it can say."""
        return () if self.options is None else self.options.fields

    def has(self, name: str) -> bool:
        """Whether it is an option of the operator; what the file leaves out has the default of the format."""
        return name in self.names

    def find(self, name: str, kind: AttributeKind[T]) -> T | None:
        """An option as one of a kind."""
        return _READ[kind](self.options, name) if self.options is not None and self.has(name) else None

    def input(self, slot: int) -> TfliteTensor:
        """A tensor that it reads, which must be there. Raises CorruptModel."""
        found = self.inputs[slot] if slot < len(self.inputs) else None
        if found is None:
            given = sum(one is not None for one in self.inputs)
            raise CorruptModel(f"input {slot} is missing; the operator has {given} inputs")
        return found

    def output(self, slot: int = 0) -> TfliteTensor:
        """A tensor that it computes. Raises CorruptModel."""
        if slot >= len(self.outputs):
            raise CorruptModel(f"output {slot} is missing; the operator has {len(self.outputs)} outputs")
        return self.outputs[slot]

    def text_of(self, name: str) -> str:
        """A text that it says, which is no word of a list; an empty one where it says nothing."""
        return "" if self.options is None or not self.has(name) else self.options.text(name)

    @property
    def said(self) -> Mapping[str, Any]:
        """What a custom operator says, where that is a map of FlexBuffers. Raises ModelError."""
        return read_map(self.custom)

    def said_number(self, name: str, default: float | None = None) -> float:
        """A number, or a truth value, among that. Raises CorruptModel for another thing, or a missing one."""
        found = self.said.get(name, default)
        if isinstance(found, (bool, int, float)) and math.isfinite(found):
            return found
        raise CorruptModel(f"option {name} of {self.op_type[:200]!r} is {_shown(found)}, wanted a finite number")

    def said_size(self, name: str, default: int | None = None) -> int:
        """An integer among that, which is not negative and fits in 31 bits. Raises CorruptModel."""
        found = self.said_number(name, default)
        if found == int(found) and 0 <= found < 1 << 31:
            return int(found)
        raise CorruptModel(f"option {name} of {self.op_type[:200]!r} is {found}, wanted an integer from 0 on")

    @property
    def is_quantized(self) -> bool:
        """Whether its first input, or its first output, holds integers that stand for numbers."""
        ends = (*self.inputs[:1], *self.outputs[:1])
        return any(one is not None and one.is_quantized for one in ends)

    def quantization(self, slot: int) -> Quantization:
        """That of an input. Raises CorruptModel where it has none."""
        return _quantization(self.input(slot), f"input {slot}")

    def output_quantization(self, slot: int = 0) -> Quantization:
        """That of an output. Raises CorruptModel where it has none."""
        return _quantization(self.output(slot), f"output {slot}")

    @property
    def activation(self) -> str:
        """What is done to the result, as ``RELU6``."""
        return self.choice("fused_activation_function", ENUMERATIONS["fused_activation_function"], "NONE")


def _word(options: FlatTable, name: str) -> str:
    """The word that a number stands for. Raises CorruptModel."""
    words, number = ENUMERATIONS.get(name), options.integer(name)
    if words is None or not 0 <= number < len(words):
        wanted = "a text" if words is None else f"a number up to {len(words) - 1}"
        raise CorruptModel(f"{name} of {options.name} is {number}, wanted {wanted}")
    return words[number]


def _list(options: FlatTable, name: str) -> tuple[Any, ...]:
    return tuple(options.numbers(name).tolist())


_READ: Final[Mapping[AttributeKind[Any], Callable[[FlatTable, str], Any]]] = {
    INTEGER: lambda options, name: options.integer(name),
    SIZE: lambda options, name: options.integer(name),
    FLAG: lambda options, name: bool(options.number(name)),
    NUMBER: lambda options, name: float(options.number(name)),
    ELEMENT_TYPE: lambda options, name: element_type(options.integer(name)),
    INTEGERS: _list,
    SIZES: _list,
    NUMBERS: _list,
    TEXT: _word,
}
"""How options of each kind are read."""


def _shown(found: object) -> str:
    return "missing" if found is None else printable(repr(found)[:100])


def _quantization(tensor: TfliteTensor, what: str) -> Quantization:
    if tensor.blocks is not None:
        raise Unsupported(f"{what}, {tensor.name[:200]!r} of {tensor.type_name}, has scales by blocks")
    if tensor.quantization is None:
        raise CorruptModel(f"{what}, {tensor.name[:200]!r} of {tensor.type_name}, has no scale")
    return tensor.quantization
