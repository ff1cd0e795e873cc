"""Change a model at random: its bytes, and, with knowledge of the format, its fields.

Nothing here knows what is right or wrong: numbers become those that programs stumble over, names become other names,
parts are removed, repeated and exchanged.
"""

from __future__ import annotations

import contextlib
import random
import struct
from collections.abc import Callable, Iterator
from typing import Any

import onnx
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import EncodeError, Message
from grafts import GRAFTS

INTEGERS = (
    0,
    1,
    2,
    3,
    7,
    -1,
    -2,
    64,
    255,
    1000,
    10**9,
    1 << 31,
    (1 << 31) - 1,
    1 << 40,
    1 << 62,
    (1 << 63) - 1,
    -(1 << 63),
)
FLOATS = (0.0, -0.0, 1.0, -1.0, 0.5, 1e-30, 1e30, float("inf"), float("-inf"), float("nan"))
TEXTS = (
    "",
    "x",
    "N",
    "N+1",
    "2*N",
    "N/0",
    "a b",
    "a.b",
    "../x",
    "/dev/zero",
    "class",
    "x" * 300,
    "é",
    "\x00",
    "min(N,2)",
)

_INTEGER_TYPES = {FieldDescriptor.TYPE_INT32: 32, FieldDescriptor.TYPE_INT64: 64, FieldDescriptor.TYPE_UINT64: -64}
_FLOAT_TYPES = (FieldDescriptor.TYPE_FLOAT, FieldDescriptor.TYPE_DOUBLE)


def mutated(models: list[onnx.ModelProto], chance: random.Random) -> bytes:
    """The content of a file: one of the models with a few changes, in one case of ten also in its bytes."""
    model = chance.choice(models)
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    for _ in range(chance.choice((0, 1, 1, 2, 3))):
        with contextlib.suppress(ValueError, TypeError, OverflowError):  # what the format does not take is left out
            chance.choice(GRAFTS)(changed, chance, models)
    for _ in range(chance.choice((0, 1, 1, 1, 2, 3, 6))):
        with contextlib.suppress(ValueError, TypeError):  # the same
            chance.choice(_STRUCTURAL)(changed, chance)
    try:
        content = changed.SerializeToString()
    except (EncodeError, ValueError):
        content = model.SerializeToString()
    return bytes_changed(content, chance) if chance.random() < 0.1 else content


def bytes_changed(content: bytes, chance: random.Random) -> bytes:
    """Bytes with some of them changed, left out or repeated."""
    data = bytearray(content)
    for _ in range(chance.choice((1, 2, 8))):
        if not data:
            break
        place, length = chance.randrange(len(data)), chance.choice((1, 1, 2, 8, 100))
        match chance.randrange(5):
            case 0:
                data[place] ^= 1 << chance.randrange(8)
            case 1:
                data[place : place + length] = chance.randbytes(length)
            case 2:
                del data[place : place + length]
            case 3:
                data[place:place] = data[place : place + length]
            case _:
                del data[place:]
    return bytes(data)


def _messages(root: Message) -> Iterator[Message]:
    pending = [root]
    while pending:
        current = pending.pop()
        yield current
        for field, value in current.ListFields():
            if field.type == FieldDescriptor.TYPE_MESSAGE:
                pending += [value] if isinstance(value, Message) else list(value)


def _fields(model: Message) -> list[tuple[Message, Any, Any]]:
    return [
        (message, field, value)
        for message in _messages(model)
        for field, value in message.ListFields()
        if field.name not in ("doc_string", "producer_name", "producer_version", "metadata_props")
    ]


def _names(model: onnx.ModelProto) -> list[str]:
    found = [name for node in model.graph.node for name in (*node.input, *node.output)]
    return found or ["x"]


def _scalar(field: Any, old: Any, chance: random.Random, model: onnx.ModelProto) -> Any:
    if field.type in _INTEGER_TYPES or field.type == FieldDescriptor.TYPE_ENUM:
        bits = _INTEGER_TYPES.get(field.type, 32)
        new = chance.choice((chance.choice(INTEGERS), old + 1, old - 1, old * 2, -old, chance.randrange(30)))
        low, high = (0, 1 << 64) if bits < 0 else (-(1 << bits - 1), 1 << bits - 1)
        return min(max(new, low), high - 1)
    if field.type in _FLOAT_TYPES:
        return chance.choice(FLOATS)
    if field.type == FieldDescriptor.TYPE_STRING:
        return chance.choice((chance.choice(TEXTS), chance.choice(_names(model))))
    return chance.choice((b"", old[:-1], old + b"\x00", chance.randbytes(len(old)), other_numbers(old, chance)))


def other_numbers(raw: bytes, chance: random.Random) -> bytes:
    """Raw data, one of its numbers another one; taken as 64-bit integers where the length allows."""
    size, code = (8, "<q") if len(raw) % 8 == 0 else (4, "<i")
    if len(raw) < size:
        return chance.randbytes(len(raw))
    place = chance.randrange(len(raw) // size) * size
    number = chance.choice(INTEGERS)
    limit = 1 << 8 * size - 1
    return raw[:place] + struct.pack(code, min(max(number, -limit), limit - 1)) + raw[place + size :]


def change_field(model: onnx.ModelProto, chance: random.Random) -> None:
    """A number or a text becomes another one."""
    plain = [one for one in _fields(model) if one[1].type != FieldDescriptor.TYPE_MESSAGE]
    if not plain:
        return
    message, field, value = chance.choice(plain)
    if isinstance(value, (int, float, str, bytes)):
        setattr(message, field.name, _scalar(field, value, chance, model))
    elif len(value):
        place = chance.randrange(len(value))
        value[place] = _scalar(field, value[place], chance, model)


def change_size(model: onnx.ModelProto, chance: random.Random) -> None:
    """A declared size becomes another one, or a symbol."""
    sizes = [one for one in _messages(model) if isinstance(one, onnx.TensorShapeProto.Dimension)]
    if sizes:
        dim = chance.choice(sizes)
        if chance.random() < 0.5:
            dim.dim_param = chance.choice(TEXTS)
        else:
            dim.dim_value = chance.choice((*INTEGERS, dim.dim_value + 1, 0, 1))


def remove_part(model: onnx.ModelProto, chance: random.Random) -> None:
    """A field is left out, or one of its values."""
    found = _fields(model)
    if not found:
        return
    message, field, value = chance.choice(found)
    if isinstance(value, (int, float, str, bytes, Message)) or not len(value):
        message.ClearField(field.name)
    else:
        del value[chance.randrange(len(value))]


def repeat_part(model: onnx.ModelProto, chance: random.Random) -> None:
    """A value of a list comes twice."""
    lists = [one for one in _fields(model) if not isinstance(one[2], (int, float, str, bytes, Message)) and len(one[2])]
    if lists:
        value = chance.choice(lists)[2]
        value.extend([chance.choice(list(value))])


def swap_operator(model: onnx.ModelProto, chance: random.Random) -> None:
    """A node becomes one of another operator."""
    if model.graph.node:
        node = chance.choice(model.graph.node)
        node.op_type = chance.choice(OPERATORS)


def change_attribute(model: onnx.ModelProto, chance: random.Random) -> None:
    """A number of an attribute becomes another one."""
    attributes = [one for one in _messages(model) if isinstance(one, onnx.AttributeProto)]
    if not attributes:
        return
    one = chance.choice(attributes)
    if one.type == onnx.AttributeProto.INT:
        one.i = chance.choice(INTEGERS)
    elif one.type == onnx.AttributeProto.FLOAT:
        one.f = chance.choice(FLOATS)
    elif one.type == onnx.AttributeProto.INTS and one.ints:
        one.ints[chance.randrange(len(one.ints))] = chance.choice(INTEGERS)
    elif one.type == onnx.AttributeProto.FLOATS and one.floats:
        one.floats[chance.randrange(len(one.floats))] = chance.choice(FLOATS)


def fix_input(model: onnx.ModelProto, chance: random.Random) -> None:
    """An input becomes a constant, its elements chosen among the difficult ones."""
    candidates = [info for info in model.graph.input if info.type.tensor_type.elem_type in (1, 6, 7, 9)]
    if not candidates:
        return
    info = chance.choice(candidates)
    dims = [dim.dim_value for dim in info.type.tensor_type.shape.dim]
    count = 1
    for dim in dims:
        count *= dim
    if not 0 <= count <= 64:
        return
    tensor = model.graph.initializer.add(name=info.name, data_type=info.type.tensor_type.elem_type, dims=dims)
    for _ in range(count):
        if tensor.data_type == onnx.TensorProto.FLOAT:
            tensor.float_data.append(chance.choice(FLOATS))
        elif tensor.data_type == onnx.TensorProto.INT64:
            tensor.int64_data.append(chance.choice(INTEGERS))
        else:
            tensor.int32_data.append(chance.choice((0, 1, -1, 2, (1 << 31) - 1)))


def change_version(model: onnx.ModelProto, chance: random.Random) -> None:
    """The file asks for another version of the operators."""
    if model.opset_import:
        chance.choice(model.opset_import).version = chance.choice((*range(1, 30), *INTEGERS))


def sizes_become_symbols(model: onnx.ModelProto, chance: random.Random) -> None:
    """Every size of an input gets a name, sometimes the same one, and nothing is said of the outputs."""
    for info in model.graph.input:
        for axis, dim in enumerate(info.type.tensor_type.shape.dim):
            dim.dim_param = chance.choice((f"{info.name}_{axis}", f"size{dim.dim_value}"))
    for info in model.graph.output:
        info.type.tensor_type.ClearField("shape")


def leave_out_input(model: onnx.ModelProto, chance: random.Random) -> None:
    """An input that a node reads is left out."""
    nodes = [node for node in model.graph.node if node.input]
    if nodes:
        node = chance.choice(nodes)
        node.input[chance.randrange(len(node.input))] = ""


OPERATORS = sorted({schema.name for schema in onnx.defs.get_all_schemas()})

_STRUCTURAL: list[Callable[[onnx.ModelProto, random.Random], None]] = [
    *(change_field,) * 4,
    *(change_attribute,) * 3,
    *(fix_input,) * 3,
    *(change_size,) * 2,
    *(remove_part,) * 2,
    *(sizes_become_symbols,) * 3,
    leave_out_input,
    repeat_part,
    swap_operator,
    change_version,
]
