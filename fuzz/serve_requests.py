"""Requests for a server, as bytes of a file, and how they are changed: what they say, their frames, their bytes.

A request of HTTP is ``HTTP METHOD PATH``, a line for each header, an empty line, and the body; one of gRPC is ``GRPC
METHOD``, an empty line, and the message.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import struct
import zlib

from google.protobuf.descriptor import FieldDescriptor

NUMBERS = (0, 1, -1, 2, 3, 7, 255, 1 << 31, (1 << 31) - 1, 1 << 32, 1 << 62, (1 << 63) - 1, -(1 << 63), 1 << 63, 10**30)
FLOATS = (0.0, -0.0, 0.5, 1e39, -1e300, 1.7e308, float("nan"), float("inf"), float("-inf"))
TEXTS = (
    "",
    "x",
    "y",
    "N",
    "..",
    "../../etc/passwd",
    "/dev/zero",
    "\x00",
    "\n",
    "é😀",
    "x" * 300,
    "{}",
    "1e9",
    "\ud800",
)
NAMES = ("plain", "texts", "whole", "two", "sums", "spare", "none")
_PARAMETERS = "binary_data binary_data_size binary_data_output classification shared_memory_region"
_PARAMETERS += " shared_memory_byte_size shared_memory_offset sequence_id sequence_start sequence_end priority timeout"
_FIELDS = "data shape name datatype inputs outputs parameters id config key offset byte_size trace_rate log_info ready"
WORDS = (*_PARAMETERS.split(), *_FIELDS.split())
TYPES = ("BOOL", "UINT8", "UINT64", "INT8", "INT32", "INT64", "FP16", "FP32", "FP64", "BF16", "BYTES", "FP8")
HEADERS = (
    "content-encoding",
    "inference-header-content-length",
    "accept-encoding",
    "content-type",
    "content-length",
    "authorization",
    "origin",
)
VALUES = ("", "gzip", "deflate", "br", "identity", "0", "-1", "9" * 30, "x", "a/b", "gzip, deflate", "\xff\xfe")


def http(method, path, body=b"", **headers):
    lines = [f"HTTP {method} {path}", *(f"{name.replace('_', '-')}: {value}" for name, value in headers.items())]
    return "\n".join(lines).encode("latin-1") + b"\n\n" + body


def grpc(method, message):
    return f"GRPC {method}".encode() + b"\n\n" + message


def taken_apart(content):
    """Transport, words of the first line, headers, body."""
    head, _, body = content.partition(b"\n\n")
    first, *lines = head.decode("latin-1").split("\n")
    transport, *words = first.split(" ")
    headers = [tuple(part.strip() for part in line.partition(":")[::2]) for line in lines]
    return transport, words, headers, body


def mutated(contents, chance):
    """One of the requests with a few changes."""
    transport, words, headers, body = taken_apart(chance.choice(contents))
    if transport == "GRPC":
        body = _message(words[0], body, chance)
        if chance.random() < 0.03:
            words[0] = chance.choice(taken_apart(chance.choice(contents))[1])
        made = f"GRPC {words[0]}".encode("latin-1") + b"\n\n"
    else:
        body, headers = _body(body, headers, chance)
        if chance.random() < 0.08:
            words = _line(words, chance)
        lines = [f"HTTP {words[0]} {words[-1]}", *(": ".join(pair) for pair in headers)]
        made = "\n".join(lines).encode("latin-1", "replace") + b"\n\n"
    return made + (_bytes(body, chance) if chance.random() < 0.15 else body)


def _line(words, chance):
    method, path = words[0], words[-1]
    if chance.random() < 0.3:
        method = chance.choice(("GET", "POST", "HEAD", "PUT", "OPTIONS", "X"))
    parts = path.split("/")
    for _ in range(chance.choice((1, 1, 2))):
        place = chance.randrange(len(parts))
        parts[place] = chance.choice(
            (*NAMES, "v2", "versions", "1", "99", "..", "%2e%2e", "%ff", "%", "", "infer", "load", "status")
        )
    return [method, "/".join(parts).replace(" ", "%20").replace("\n", "%0a")]


# Bodies of HTTP


def _body(body, headers, chance):
    told = dict(headers)
    length = told.get("inference-header-content-length")
    cut = int(length) if length else len(body)
    text, behind = body[:cut], body[cut:]
    for _ in range(chance.choice((0, 1, 1, 1, 2, 3))):
        with contextlib.suppress(ValueError, RecursionError, KeyError, IndexError, TypeError):
            text = _dumped(_tree(json.loads(text), chance), chance)
    if behind and chance.random() < 0.3:
        behind = _bytes(behind, chance)
    if length and chance.random() < 0.9:
        told["inference-header-content-length"] = str(len(text))
    body = text + behind
    if chance.random() < 0.06:
        packing = chance.choice(("gzip", "deflate"))
        body = gzip.compress(body, 1) if packing == "gzip" else zlib.compress(body, 1)
        told["content-encoding"] = packing
    if chance.random() < 0.06:
        told[chance.choice(HEADERS)] = chance.choice(VALUES)
    return body, [*told.items()]


def _dumped(tree, chance):
    text = json.dumps(tree)
    if chance.random() < 0.03:
        depth = chance.choice((10, 100, 2000))
        text = text.replace("[", "[" * depth, 1).replace("]", "]" * depth, 1)
    return text.encode("utf-8", "surrogatepass")


def _tree(tree, chance):
    """A tree with one of its places changed."""
    places = []

    def look(node):
        items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
        for key, value in [*items][:40]:
            places.append((node, key))
            look(value)

    look(tree)
    if not places or chance.random() < 0.02:
        return _value(tree, chance)
    node, key = chance.choice(places)
    kind = chance.randrange(7)
    if kind == 0:
        del node[key]
    elif kind == 1 and isinstance(node, dict):
        node[chance.choice(WORDS)] = node.pop(key)
    elif kind == 2 and isinstance(node, list):
        node[key:key] = [node[key]] * chance.choice((1, 2, 50))
    elif kind == 3:
        other, place = chance.choice(places)
        node[key] = (
            json.loads(json.dumps(other[place]))
            if place in other or (isinstance(other, list) and place < len(other))
            else None
        )
    elif kind == 4 and isinstance(node, dict):
        node[chance.choice(WORDS)] = _value(None, chance)
    else:
        node[key] = _value(node[key], chance)
    return tree


def _value(old, chance):
    kind = chance.randrange(9)
    if kind == 0:
        return chance.choice(NUMBERS)
    if kind == 1:
        return chance.choice(FLOATS)
    if kind == 2:
        return chance.choice(TEXTS)
    if kind == 3:
        return chance.choice((None, True, False, [], {}, [[]], [{}], {"": 0}))
    if kind == 4:
        return chance.choice((*TYPES, *NAMES))
    if kind == 5:
        return [old]
    if kind == 6 and isinstance(old, (int, float)) and not isinstance(old, bool):
        return chance.choice((old + 1, old - 1, -old, old * 2, float(old)))
    if kind == 7:
        return [chance.choice((*NUMBERS[:6], *FLOATS[:3])) for _ in range(chance.choice((0, 1, 2, 3, 12)))]
    return str(old)


# Messages of gRPC


def _message(method, content, chance):
    from tract_serve.grpc.service import METHODS
    from tract_serve.messages import message

    name = METHODS[method][0] if method in METHODS else "ModelInferRequest"
    try:
        made = message(name).FromString(content)
    except Exception:  # of a seed for another method
        return content
    for _ in range(chance.choice((0, 1, 1, 2, 3))):
        with contextlib.suppress(ValueError, TypeError, IndexError, KeyError, AttributeError):
            _field(made, chance)
    return made.SerializeToString()


def _messages(made):
    yield made
    for field, value in made.ListFields():
        if field.message_type is None:
            continue
        if field.message_type.GetOptions().map_entry:
            if field.message_type.fields_by_name["value"].message_type is not None:
                for key in value:
                    yield from _messages(value[key])
        elif hasattr(value, "DESCRIPTOR"):
            yield from _messages(value)
        else:
            for one in [*value][:20]:
                yield from _messages(one)


def _field(root, chance):
    """Change, add, leave out or repeat a field of one of the messages inside."""
    made = chance.choice([*_messages(root)])
    field = chance.choice(made.DESCRIPTOR.fields)
    value = getattr(made, field.name)
    if chance.random() < 0.15:
        made.ClearField(field.name)
    elif field.message_type is not None and field.message_type.GetOptions().map_entry:
        inner = value[chance.choice(WORDS)]
        plain = chance.choice(inner.DESCRIPTOR.fields)
        setattr(inner, plain.name, _scalar(plain, chance))
    elif isinstance(value, (bool, int, float, str, bytes)):
        setattr(made, field.name, _scalar(field, chance, value))
    elif hasattr(value, "DESCRIPTOR"):
        value.SetInParent()
    elif field.message_type is not None:
        value.extend([chance.choice([*value]) if len(value) and chance.random() < 0.7 else value.add()])
    elif len(value) and chance.random() < 0.6:
        place = chance.randrange(len(value))
        value[place] = _scalar(field, chance, value[place])
    else:
        value.extend([_scalar(field, chance)] * chance.choice((1, 1, 2, 70)))


_FLOAT = (FieldDescriptor.TYPE_FLOAT, FieldDescriptor.TYPE_DOUBLE)


def _scalar(field, chance, old=None):
    if field.type == FieldDescriptor.TYPE_BOOL:
        return chance.random() < 0.5
    if field.type in _FLOAT:
        return chance.choice(FLOATS)
    if field.type == FieldDescriptor.TYPE_STRING:
        return chance.choice((*TEXTS[:-1], *NAMES, *TYPES))  # the last is no text for gRPC
    if field.type == FieldDescriptor.TYPE_BYTES:
        old = old or b""
        return chance.choice(
            (b"", old[:-1], old + b"\0", bytes(12), struct.pack("<I", 1 << 31), chance.randbytes(len(old)))
        )
    numbers = (*NUMBERS, old + 1, old - 1, old * 2) if isinstance(old, int) else NUMBERS
    return chance.choice(numbers)


def _bytes(content, chance):
    data = bytearray(content)
    for _ in range(chance.choice((1, 2, 8))):
        if not data:
            break
        place, length = chance.randrange(len(data)), chance.choice((1, 1, 2, 8, 100))
        kind = chance.randrange(5)
        if kind == 0:
            data[place] ^= 1 << chance.randrange(8)
        elif kind == 1:
            data[place : place + length] = chance.randbytes(length)
        elif kind == 2:
            del data[place : place + length]
        elif kind == 3:
            data[place:place] = data[place : place + length]
        else:
            del data[place:]
    return bytes(data)
