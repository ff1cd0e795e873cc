"""How much memory requests become is known before it is taken: what is said of it is more than what is measured."""

from __future__ import annotations

import json
import subprocess
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import orjson
import pytest
from tract_serve.errors import BadRequest, Busy, RequestTooLarge
from tract_serve.grpc.incoming import Incoming
from tract_serve.http.exchange import SHORT, json_of, unfolded
from tract_serve.messages import message
from tract_serve.serving import RequestRoom
from tract_serve.settings import Limits
from tract_serve.tensors.contents import TEXTS, from_bytes, from_json

from tract_core.data import DatumType

WORST: dict[str, bytes] = {
    "empty lists": b"[" + b"[]," * 100_000 + b"0]",
    "empty objects": b"[" + b"{}," * 100_000 + b"0]",
    "objects of one": b"[" + b'{"":0},' * 50_000 + b"0]",
    "objects of six": b"[" + b'{"":0,"a":0,"b":0,"c":0,"d":0,"e":0},' * 15_000 + b"0]",
    "lists in lists": b"[" + (b"[" * 1000 + b"]" * 1000 + b",") * 100 + b"0]",
    "objects in objects": b"[" + (b'{"":' * 1000 + b"0" + b"}" * 1000 + b",") * 50 + b"0]",
    "lists of one": b"[" + b"[0]," * 100_000 + b"0]",
    "whole numbers": b"[" + b"999," * 100_000 + b"0]",
    "numbers": b"[" + b"1.5," * 100_000 + b"0]",
    "short texts": b"[" + b'"ab",' * 100_000 + b"0]",
    "wide texts": b"[" + '"€",'.encode() * 100_000 + b"0]",
    "many keys": b"{" + b",".join(b'"%x":0' % number for number in range(87_500)) + b"}",
    "one wide sign in a text": b'["' + b"a" * 500_000 + "😀".encode() + b'"]',
    "the same, escaped": b'["' + b"a" * 500_000 + b'\\ud83d\\ude00"]',
}


@pytest.mark.parametrize("name", WORST)
@pytest.mark.parametrize("reader", ["orjson", "json"])
def test_json_becomes_no_more_than_is_said(name: str, reader: str) -> None:
    content = WORST[name]
    assert len(content) > SHORT
    read = orjson.loads if reader == "orjson" else json.loads
    tracemalloc.start()
    try:
        found = read(content)
        peak = tracemalloc.get_traced_memory()[1]
    except RecursionError:  # which Python's own reader ends with
        peak, found = 0, None
    finally:
        tracemalloc.stop()
    assert peak <= unfolded(content)
    del found


def test_numbers_are_taken_to_be_little_more_than_they_are() -> None:
    """So that tensors in JSON are taken at all, and several at once."""
    content = orjson.dumps(
        np.random.default_rng(0).random(200_000).astype(np.float32), option=orjson.OPT_SERIALIZE_NUMPY
    )
    assert unfolded(content) < 25 * len(content)


def test_arrays_of_json_are_in_what_is_said() -> None:
    content = b"[" + b"1.5," * 100_000 + b"0]"
    tracemalloc.start()
    found = from_json(DatumType.F64, (100_001,), json_of(content), "x")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.shape == (100_001,)
    assert peak <= unfolded(content)


@pytest.mark.parametrize("text", [b"", b"\x80", b"ab", "€".encode(), b"a" * 20 + "😀".encode(), b"a" * 100])
def test_texts_become_no_more_than_is_said(text: bytes) -> None:
    content = (len(text).to_bytes(4, "little") + text) * 50_000
    tracemalloc.start()
    found = from_bytes(DatumType.STRING, (50_000,), content, "x")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.shape == (50_000,)
    assert peak <= TEXTS * len(content)


MEASURED = """
import sys
from pathlib import Path
from tract_serve.grpc.incoming import Incoming, read_as
from tract_serve.grpc.infer import _inputs
from tract_serve.serving import Holding, RequestRoom
from tract_serve.settings import Limits
content = Path(sys.argv[1]).read_bytes()

def most():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))

read_as("ModelInferRequest", b"")
before = most()
request = read_as("ModelInferRequest", content)
_inputs(None, request, Holding(RequestRoom(1 << 40)))
grown = (most() - before) << 10
print(grown, Incoming(Limits()).cost(content))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="what is measured is the memory of a process of Linux")
@pytest.mark.parametrize(
    ("datatype", "field", "elements"),
    [
        ("BYTES", "bytes_contents", [b""] * 400_000),
        ("INT64", "int64_contents", [1] * 800_000),
        ("INT64", "int64_contents", [1000] * 400_000),
        ("FP32", "fp32_contents", [1.5] * 400_000),
        ("BOOL", "bool_contents", [True] * 800_000),
    ],
)
def test_messages_become_no_more_than_is_said(
    tmp_path: Path, datatype: str, field: str, elements: list[object]
) -> None:
    """In a process of its own: the memory of messages is not Python's."""
    asked = message("ModelInferRequest")(model_name="plain")
    tensor = asked.inputs.add(name="x", datatype=datatype, shape=[len(elements)])
    getattr(tensor.contents, field).extend(elements)
    (tmp_path / "request").write_bytes(asked.SerializeToString())
    told = subprocess.check_output([sys.executable, "-c", MEASURED, str(tmp_path / "request")], text=True)
    grown, said = map(int, told.split())
    assert 0 < grown <= said


@pytest.mark.parametrize("rest", [0, 100, 200_000])
def test_raw_contents_cost_what_they_are(rest: int) -> None:
    asked = message("ModelInferRequest")(model_name="n" * rest, raw_input_contents=[bytes(1 << 20)] * 3)
    content = asked.SerializeToString()
    cost = Incoming(Limits()).cost(content)
    assert 3 * (3 << 20) <= cost <= 3 * len(content) + 48 * (rest + 10)


@pytest.mark.parametrize(
    "content",
    [b"\xff" * 70_000, b"\x0b" * 70_000, b"\x08" + b"\xff" * 70_000, b"\x0a\xff\xff\xff\xff\x7f" + bytes(70_000)],
)
def test_what_is_no_message_has_no_cost(content: bytes) -> None:
    with pytest.raises(BadRequest, match="no message of the protocol"):
        Incoming(Limits()).cost(content)


def test_room_is_taken_and_given_back() -> None:
    room = RequestRoom(80 << 20)
    room.take(60 << 20)
    assert room.taken == 60 << 20
    with pytest.raises(Busy, match="the requests that are open take 62914560 bytes, and 20971520 more are too many"):
        room.take(20 << 20)
    room.take(10 << 20)
    for _ in range(8):
        room.take(1 << 20)  # small requests find room where large ones find none
    with pytest.raises(Busy):
        room.take(2 << 20)
    with pytest.raises(Busy):
        room.take(1 << 20, held=1 << 20)
    with pytest.raises(RequestTooLarge, match="bodies_bytes"):
        room.take(71 << 20)
    room.take_anyway(10 << 20)
    with pytest.raises(Busy):
        room.take(1)
    room.give_back(88 << 20)
    assert room.taken == 0
