"""One file: its operators, its buffers and its graphs, as tables, and what a tensor of it is."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from math import prod
from typing import Any, Final

import numpy as np

from tract_core.data import DatumType
from tract_core.data.stored import byte_count, checked_shape, from_bytes
from tract_core.errors import CorruptModel, LimitExceeded, TractError, Unsupported, VersionError
from tract_core.frozen import frozen
from tract_core.limits import LoadLimits
from tract_core.ops.rounding import limits as ends_of
from tract_core.plugins.keys import Array
from tract_core.plugins.tables import Table
from tract_tensorflow.tflite.flatbuffer import Flatbuffer, FlatTable
from tract_tensorflow.tflite.options import CUSTOM, MORE_OPTION_TABLES, OPERATORS, OPTION_TABLES
from tract_tensorflow.tflite.quantization import Quantization, read_blocks, read_quantization
from tract_tensorflow.tflite.schema import TENSOR_TYPES
from tract_tensorflow.tflite.sparsity import dense
from tract_tensorflow.tflite.strings import read_strings

ELEMENT_TYPES: Final[dict[str, DatumType]] = {
    "BOOL": DatumType.BOOL,
    "FLOAT16": DatumType.F16,
    "FLOAT32": DatumType.F32,
    "FLOAT64": DatumType.F64,
    "BFLOAT16": DatumType.BF16,
    "INT2": DatumType.I2,
    "INT4": DatumType.I4,
    "INT8": DatumType.I8,
    "INT16": DatumType.I16,
    "INT32": DatumType.I32,
    "INT64": DatumType.I64,
    "UINT4": DatumType.U4,
    "UINT8": DatumType.U8,
    "UINT16": DatumType.U16,
    "UINT32": DatumType.U32,
    "UINT64": DatumType.U64,
    "FLOAT8_E4M3FN": DatumType.F8E4M3FN,
    "FLOAT8_E5M2": DatumType.F8E5M2,
    "STRING": DatumType.STRING,
    "COMPLEX64": DatumType.COMPLEX_F32,
    "COMPLEX128": DatumType.COMPLEX_F64,
}
"""Element types by their names in TFLite. Resources and variants are none: `TfliteTensor.kind` has them as text."""


_QUANTIZED: Final = (DatumType.I8, DatumType.U8, DatumType.I16, DatumType.I4, DatumType.U4, DatumType.I2)
"""Types of data in integers. Wider ones have a scale as well, where they are biases."""


def element_type(number: int) -> DatumType:
    """An element type by its number. Raises ModelError."""
    name = type_name(number)
    if name not in ELEMENT_TYPES:
        raise Unsupported(f"an element type is {name}, wanted one of numbers or texts")
    return ELEMENT_TYPES[name]


def type_name(number: int) -> str:
    """What TFLite calls an element type. Raises CorruptModel for a number that is none."""
    if not 0 <= number < len(TENSOR_TYPES):
        raise CorruptModel(f"an element type has number {number}, numbers up to {len(TENSOR_TYPES) - 1} are known")
    return TENSOR_TYPES[number]


@frozen
class TfliteTensor:
    """What a graph says of one tensor.

    ``index``: its number in the graph. ``name``: as the file has it. ``type_name``: its element type, in TFLite.
    ``shape``: its sizes, ``None`` for one that is not known; ``has_rank``: whether the file says that it has so many
    axes. ``buffer``: the number of its content; 0 for none. ``is_variable``: whether it is kept from run to run.
    ``quantization``: what its integers stand for; ``blocks``: which tensors say so, by blocks. ``sparsity``: how its
    content leaves zeros out.
    """

    index: int
    name: str
    type_name: str
    shape: tuple[int | None, ...]
    has_rank: bool
    buffer: int
    is_variable: bool
    quantization: Quantization | None
    sparsity: FlatTable | None
    blocks: FlatTable | None = None

    __eq__ = object.__eq__  # a tensor is itself alone
    __hash__ = object.__hash__

    @property
    def kind(self) -> DatumType | None:
        """Its element type; ``None`` for a resource."""
        return ELEMENT_TYPES.get(self.type_name)

    @property
    def is_quantized(self) -> bool:
        """Whether its integers stand for numbers."""
        return self.quantization is not None and self.kind in _QUANTIZED


class TfliteFile:
    """One file. ``operators``: the functions that wire operators, by name. ``problems``: as of the ONNX frontend.

    ``entered``: the graphs that are being read, by number, the innermost last. ``touched``: what `calls.touched` found.

    Raises ModelError.
    """

    def __init__(
        self,
        content: Any,
        operators: Table[str, Callable[..., Any]],
        limits: LoadLimits,
        problems: list[TractError] | None = None,
    ) -> None:
        self.limits = limits
        self.operators = operators
        self.problems = problems
        self.flatbuffer = Flatbuffer(content)
        self.model = self.flatbuffer.root("Model")
        version = self.model.integer("version")
        if version != 3:
            raise VersionError(f"it is written in version {version} of the format, version 3 is read")
        self.codes = [_operator_name(code) for code in self.model.tables("operator_codes")]
        self.graphs = list(self.model.tables("subgraphs"))
        self.buffers = list(self.model.tables("buffers"))
        self.entered: tuple[int, ...] = ()
        self.touched: dict[tuple[int, tuple[str | None, ...]], Any] = {}
        self._arrays: dict[tuple[int, str, tuple[int, ...]], Array] = {}
        if not self.graphs:
            raise CorruptModel("the file has no graph")

    def refuse(self, error: TractError) -> None:
        """Raise ``error``; or note it, so that the caller goes on without what it concerns."""
        if self.problems is None:
            raise error
        self.problems.append(error)

    def graph(self, index: int) -> FlatTable:
        """A graph by its number. Raises CorruptModel."""
        if not 0 <= index < len(self.graphs):
            raise CorruptModel(f"graph {index} is asked for, the file has {len(self.graphs)}")
        return self.graphs[index]

    def op_type(self, operator: FlatTable) -> str:
        """What an operator of a graph is called. Raises CorruptModel."""
        code = operator.integer("opcode_index")
        if code >= len(self.codes):
            raise CorruptModel(f"operator code {code} is asked for, the file has {len(self.codes)}")
        return self.codes[code]

    def inside(self, index: int) -> TfliteFile:
        """The file as a graph of it is read from. Raises CorruptModel, or LimitExceeded when that is too deep."""
        self.graph(index)
        if index in self.entered:
            raise CorruptModel(f"graph {index} calls itself")
        if len(self.entered) > self.limits.max_depth:
            raise LimitExceeded(
                f"graphs call one another more than {self.limits.max_depth} deep",
                hint="a model that needs so many can be loaded with LoadLimits(max_depth=...)",
            )
        other = copy(self)
        other.entered = (*self.entered, index)
        return other

    def content_of(self, buffer: int) -> Array:
        """The bytes of a buffer, which are none for an empty one. Raises CorruptModel."""
        if not 0 <= buffer < len(self.buffers):
            raise CorruptModel(f"buffer {buffer} is asked for, the file has {len(self.buffers)}")
        table = self.buffers[buffer]
        if table.integer("offset") > 1:  # of a file above 2 GB, whose content lies behind the tables
            return self.flatbuffer.part(table.integer("offset"), table.integer("size"))
        return table.numbers("data")

    def custom_options(self, operator: FlatTable) -> Array:
        """The bytes that a custom operator says. Raises CorruptModel."""
        if operator.integer("large_custom_options_offset") > 1:  # as above
            start, size = (operator.integer(f"large_custom_options_{name}") for name in ("offset", "size"))
            return self.flatbuffer.part(start, size)
        return operator.numbers("custom_options")

    def has_content(self, tensor: TfliteTensor) -> bool:
        """Whether the file says what a tensor holds."""
        if tensor.is_variable or not tensor.buffer:
            return False
        empty = not tensor.shape or None in tensor.shape or prod(size or 0 for size in tensor.shape) > 0
        return bool(self.content_of(tensor.buffer).size) or not empty

    def array(self, tensor: TfliteTensor) -> Array:
        """What a tensor holds. Raises ModelError."""
        kind = tensor.kind
        if kind is None:
            raise Unsupported(f"a constant of type {tensor.type_name}", where=f"tensor {tensor.name!r}")
        shape = checked_shape([-1 if size is None else size for size in tensor.shape], self.limits)
        key = tensor.buffer, tensor.type_name, shape
        if key not in self._arrays or tensor.sparsity is not None:
            self._arrays[key] = self._read(tensor, kind, shape)
        return self._arrays[key]

    def _read(self, tensor: TfliteTensor, kind: DatumType, shape: tuple[int, ...]) -> Array:
        content = self.content_of(tensor.buffer)
        if kind is DatumType.STRING:
            return read_strings(content, shape)
        if tensor.sparsity is not None:
            return dense(tensor.sparsity, content, kind, shape, self.limits)
        wanted = byte_count(kind, shape)
        if content.size != wanted:
            raise CorruptModel(
                f"it has {content.size} bytes, wanted {wanted} for {kind.short} of shape {list(shape)}",
                where=f"tensor {tensor.name!r}",
            )
        return from_bytes(kind, shape, content, 0, wanted)


def options_of(operator: FlatTable) -> FlatTable | None:
    """What an operator says. Raises CorruptModel."""
    options = operator.union("builtin_options", OPTION_TABLES)
    return operator.union("builtin_options2", MORE_OPTION_TABLES) if options is None else options


def _operator_name(code: FlatTable) -> str:
    """What an operator is called. Numbers above 127 are in a field of their own."""
    number = max(code.integer("deprecated_builtin_code"), code.integer("builtin_code"))
    if not 0 <= number < len(OPERATORS):
        return f"operator {number}"
    return CUSTOM + code.text("custom_code") if OPERATORS[number] == "CUSTOM" else OPERATORS[number]


def read_tensor(index: int, table: FlatTable, limits: LoadLimits) -> TfliteTensor:
    """A tensor of a graph. Raises ModelError."""
    name = table.text("name")
    try:
        sizes, signature = table.numbers("shape").tolist(), table.numbers("shape_signature").tolist()
        given = signature if len(signature) == len(sizes) else sizes
        kind = type_name(table.integer("type"))
        _check_size(kind, checked_shape([max(size, 0) for size in given], limits), limits)
        quantization = read_quantization(table.table("quantization"))
        _check_zeros(kind, quantization)
        return TfliteTensor(
            index=index,
            name=name,
            type_name=kind,
            shape=tuple(None if size < 0 else size for size in given),
            has_rank=bool(given) or bool(table.number("has_rank")),
            buffer=table.integer("buffer"),
            is_variable=bool(table.number("is_variable")),
            quantization=quantization,
            sparsity=table.table("sparsity"),
            blocks=read_blocks(table.table("quantization")),
        )
    except TractError as error:
        raise error.at(f"tensor {index} {name[:200]!r}") from None


def _check_size(name: str, shape: tuple[int, ...], limits: LoadLimits) -> None:
    """Raises LimitExceeded for a tensor of too many bytes: what makes it would make as many before it is refused."""
    kind = ELEMENT_TYPES.get(name)
    size = prod(shape) * (1 if kind is None else kind.itemsize)
    if size > limits.max_tensor_bytes:
        raise LimitExceeded(
            f"{name} of shape {list(shape)} takes {size} bytes, {limits.max_tensor_bytes} are allowed",
            hint="a model that needs so many can be loaded with LoadLimits(max_tensor_bytes=...)",
        )


def _check_zeros(name: str, quantization: Quantization | None) -> None:
    """Raises CorruptModel for a zero point that is no integer of the tensor's type."""
    kind = ELEMENT_TYPES.get(name)
    if quantization is None or kind is None or not kind.is_integer():
        return
    low, high = ends_of(kind)
    outside = quantization.zeros[(quantization.zeros < low) | (quantization.zeros > high)]
    if outside.size:
        raise CorruptModel(f"a zero point is {outside[0]}, which is no {kind.short}")


def zeros(kind: DatumType, shape: tuple[int, ...]) -> Array:
    """A tensor of zeros, which takes no memory."""
    return np.broadcast_to(np.zeros((), kind.numpy), shape)
