"""Files of TFLite of a few operators, made by hand, and what the reference kernels of LiteRT compute with them.

Runs in an environment of its own, with ``ai-edge-litert``: see `make.py` beside it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import flatbuffers
import numpy as np
from ai_edge_litert import interpreter
from ai_edge_litert import schema_py_generated as schema

NAMES = {
    number: name for name, number in vars(schema.TensorType).items() if isinstance(number, int)
}  # fmt: skip
DTYPES = {
    "FLOAT32": np.float32, "FLOAT16": np.float16, "FLOAT64": np.float64, "INT8": np.int8, "UINT8": np.uint8,
    "INT16": np.int16, "UINT16": np.uint16, "INT32": np.int32, "UINT32": np.uint32, "INT64": np.int64,
    "UINT64": np.uint64, "BOOL": np.bool_, "COMPLEX64": np.complex64, "STRING": np.object_,
}  # fmt: skip


@dataclass
class Tensor:
    """A tensor of a graph. ``data``: of a constant; ``scale``, ``zero``: one number, or one for each place of ``axis``.

    ``type``: as `schema.TensorType` has it, or taken from the data. ``signature``: sizes, -1 for one that is not known.
    """

    shape: tuple[int, ...] = ()
    type: str = "FLOAT32"
    data: Any = None
    scale: Any = None
    zero: Any = 0
    axis: int = 0
    is_variable: bool = False
    signature: tuple[int, ...] | None = None
    raw: bytes | None = None
    """The bytes of a constant, where they are not those of ``data``."""
    blocks: tuple[int, int, int] | None = None
    """The tensors of scales and of zero points (0 for none), and how many elements a block has."""


def const(data: Any, type: str | None = None, **more: Any) -> Tensor:  # noqa: A002 - as the schema calls it
    """A constant."""
    array = np.asarray(data) if type is None else np.asarray(data, DTYPES[type])
    kind = type or next(name for name, one in DTYPES.items() if array.dtype == one)
    return Tensor(array.shape, kind, array, **more)


def nibbles(data: Any, **more: Any) -> Tensor:
    """A constant of integers of four bits: two in a byte, the first in the low half."""
    array = np.asarray(data, np.int64)
    flat = np.append(array.reshape(-1), np.zeros(array.size % 2, np.int64)) & 15
    raw = (flat[::2] | (flat[1::2] << 4)).astype(np.uint8).tobytes()
    return Tensor(array.shape, "INT4", array, raw=raw, **more)


@dataclass
class Op:
    """An operator. ``options``: the fields of its table of options, ``table`` that table's name."""

    name: str
    inputs: list[int]
    outputs: list[int]
    table: str = ""
    options: dict[str, Any] = field(default_factory=dict)
    custom: bytes = b""
    intermediates: list[int] = field(default_factory=list)
    version: int = 1


@dataclass
class Graph:
    """A graph of tensors and operators; ``inputs``, ``outputs``: numbers of tensors."""

    tensors: list[Tensor]
    ops: list[Op]
    inputs: list[int]
    outputs: list[int]


def behind(content: bytes) -> bytes:
    """A file with what constants hold, and what custom operators say, behind the tables, as in files above 2 GB."""
    model = schema.ModelT.InitFromPackedBuf(content)
    places: list[tuple[Any, str, str, bytes]] = []
    for buffer in model.buffers[1:]:
        places.append((buffer, "offset", "size", bytes(buffer.data)))
        buffer.data = None
    for op in [op for graph in model.subgraphs for op in graph.operators if op.customOptions is not None]:
        places.append((op, "largeCustomOptionsOffset", "largeCustomOptionsSize", bytes(op.customOptions)))
        op.customOptions = None
    length = 0
    for _ in range(2):  # the first time to learn how long the tables are
        at = -(-length // 16) * 16 + 16
        rest = b""
        for one, start, size, held in places:
            setattr(one, start, at + len(rest))
            setattr(one, size, len(held))
            rest += held + bytes(-len(held) % 16)
        builder = flatbuffers.Builder(1024)
        builder.Finish(model.Pack(builder), file_identifier=b"TFL3")
        tables = bytes(builder.Output())
        length = len(tables)
    return tables + bytes(at - length) + rest


def file(*graphs: Graph, signatures: list[Any] | None = None) -> bytes:
    """The content of a file with these graphs."""
    model = schema.ModelT()
    model.version = 3
    model.description = "a case"
    model.buffers = [schema.BufferT()]
    model.operatorCodes, model.subgraphs = [], []
    codes: dict[str, int] = {}
    for graph in graphs:
        part = schema.SubGraphT()
        part.tensors = [_tensor(index, tensor, model.buffers) for index, tensor in enumerate(graph.tensors)]
        part.operators = [_operator(op, codes, model.operatorCodes) for op in graph.ops]
        part.inputs, part.outputs = graph.inputs, graph.outputs
        model.subgraphs.append(part)
    model.signatureDefs = signatures
    builder = flatbuffers.Builder(1024)
    builder.Finish(model.Pack(builder), file_identifier=b"TFL3")
    return bytes(builder.Output())


def _tensor(index: int, tensor: Tensor, buffers: list[Any]) -> Any:
    made = schema.TensorT()
    made.shape, made.name = list(tensor.shape), f"t{index}".encode()
    made.type = getattr(schema.TensorType, tensor.type)
    made.isVariable = tensor.is_variable
    made.hasRank = True
    if tensor.signature is not None:
        made.shapeSignature = list(tensor.signature)
    raw = tensor.raw if tensor.raw is not None else None if tensor.data is None else np.asarray(tensor.data).tobytes()
    if raw is not None:
        buffer = schema.BufferT()
        buffer.data = np.frombuffer(raw, np.uint8)
        made.buffer = len(buffers)
        buffers.append(buffer)
    if tensor.scale is not None:
        made.quantization = schema.QuantizationParametersT()
        scales = np.atleast_1d(np.asarray(tensor.scale, np.float32))
        made.quantization.scale = scales
        made.quantization.zeroPoint = np.broadcast_to(np.asarray(tensor.zero, np.int64), scales.shape)
        made.quantization.quantizedDimension = tensor.axis
    if tensor.blocks is not None:
        made.quantization = schema.QuantizationParametersT()
        made.quantization.detailsType = schema.QuantizationDetails.BlockwiseQuantization
        details = made.quantization.details = schema.BlockwiseQuantizationT()
        details.scales, details.zeroPoints, details.blockSize = tensor.blocks
    return made


def _operator(op: Op, codes: dict[str, int], listed: list[Any]) -> Any:
    if op.name not in codes:
        code = schema.OperatorCodeT()
        number = getattr(schema.BuiltinOperator, op.name, schema.BuiltinOperator.CUSTOM)
        code.builtinCode, code.deprecatedBuiltinCode, code.version = number, min(number, 127), op.version
        if number == schema.BuiltinOperator.CUSTOM:
            code.customCode = op.name.encode()
        codes[op.name] = len(listed)
        listed.append(code)
    made = schema.OperatorT()
    made.opcodeIndex, made.inputs, made.outputs = codes[op.name], op.inputs, op.outputs
    if op.table:
        union = "BuiltinOptions" if hasattr(schema.BuiltinOptions, op.table) else "BuiltinOptions2"
        options = getattr(schema, f"{op.table}T")()
        for name, value in op.options.items():
            assert hasattr(options, name), f"{op.table} has no {name}"
            setattr(options, name, value)
        setattr(made, f"{union[0].lower()}{union[1:]}Type", getattr(getattr(schema, union), op.table))
        setattr(made, f"{union[0].lower()}{union[1:]}", options)
    if op.intermediates:
        made.intermediates = op.intermediates
    if op.custom:
        made.customOptions = np.frombuffer(op.custom, np.uint8)
    return made


ORDINARY = {schema.BuiltinOperator.LOCAL_RESPONSE_NORMALIZATION}
"""Operators whose reference kernel leaves something out: here the last element of each window."""


def _sums_signed(model: Any) -> bool:
    """Whether it is SUM of i8 or i16, whose reference kernel reads memory that is not its own."""
    kinds = (schema.TensorType.INT8, schema.TensorType.INT16)
    sums = any(code.builtinCode == schema.BuiltinOperator.SUM for code in model.operatorCodes)
    return sums and any(tensor.type in kinds for tensor in model.subgraphs[0].tensors)


def _ready(content: bytes, inputs: list[Any], kernels: Any) -> Any:
    engine = interpreter.Interpreter(model_content=content, experimental_op_resolver_type=kernels)
    for detail, given in zip(engine.get_input_details(), inputs, strict=True):
        engine.resize_tensor_input(detail["index"], np.shape(given))
    engine.allocate_tensors()
    return engine


def computed(content: bytes, inputs: list[Any], runs: int = 1) -> list[list[Any]]:
    """What the reference kernels compute: for each of ``runs`` runs one after the other, the outputs.

    Of an operator that has none there, as CEIL, or a wrong one (`ORDINARY`), the kernel that runs by default.
    """
    kinds = interpreter.OpResolverType
    found = schema.ModelT.InitFromPackedBuf(content)
    try:
        is_ordinary = any(code.builtinCode in ORDINARY for code in found.operatorCodes) or _sums_signed(found)
        engine = _ready(content, inputs, kinds.BUILTIN_WITHOUT_DEFAULT_DELEGATES if is_ordinary else kinds.BUILTIN_REF)
    except ValueError as error:
        if "Didn't find op" not in str(error):
            raise
        engine = _ready(content, inputs, kinds.BUILTIN_WITHOUT_DEFAULT_DELEGATES)
    results = []
    for _ in range(runs):
        for detail, given in zip(engine.get_input_details(), inputs, strict=True):
            engine.set_tensor(detail["index"], given)
        engine.invoke()
        results.append([engine.get_tensor(detail["index"]).copy() for detail in engine.get_output_details()])
    return results
