"""Files that are no models, or are broken ones: encoding, nesting, versions, size."""

from __future__ import annotations

import random

import onnx
import pytest
from onnx import helper
from onnx_hostile import any_info, model_of, node, refused, taken, tensor_info, tried
from tract_onnx.frontend import NEWEST, OnnxLoader
from tract_onnx.registry import OLDEST

from tract_core.errors import CorruptModel, LimitExceeded, ModelError, VersionError
from tract_core.limits import LoadLimits
from tract_core.testing.hostile import bounded

pytestmark = pytest.mark.hostile

PLAIN = model_of([node("Relu", "x")], ["x"])
CONTENT = PLAIN.SerializeToString()


def varint(number):
    found = bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*found, number])


def field(number, content):
    return varint(number << 3 | 2) + varint(len(content)) + content


def nested(depth, *numbers):
    content = b""
    for level in range(depth):
        content = field(numbers[level % len(numbers)], content)
    return content


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x00",
        b"\x08",
        b"PK\x03\x04" + bytes(100),
        b"\x80\x04\x95pickle",
        random.Random(0).randbytes(5000),
        CONTENT[:-1],
        b"\x3a\xff\xff\xff\xff\x0f" + CONTENT,
        b"\x08" + b"\xff" * 11 + CONTENT,
        b"\x3a" + varint((1 << 64) - 1) + CONTENT,
        b"\x3b\x3c" + CONTENT,
        b"\x3c" + CONTENT,
        b"\x0e" + CONTENT,
        b"\x00\x00" + CONTENT,
        field(8, field(2, varint(17))),
        field(7, b""),
    ],
    ids=[
        "empty",
        "one byte",
        "a cut number",
        "an archive",
        "a pickle",
        "random bytes",
        "cut off",
        "a field longer than the file",
        "a number that does not end",
        "a length of 64 bits",
        "a group",
        "the end of a group",
        "wire type 6",
        "field number 0",
        "no graph",
        "an empty graph",
    ],
)
def test_what_is_no_model(content):
    refused(content, CorruptModel)


def test_every_field_cut_off():
    """A model cut off anywhere is refused, but for the one place where only the operator sets are missing."""
    assert sum(tried(CONTENT[:end]) is not None for end in range(len(CONTENT))) <= 1


@pytest.mark.parametrize("depth", [102, 1002, 9999])
@pytest.mark.parametrize(
    ("outer", "numbers"),
    [((), (6, 5, 1)), ((), (11, 5, 1)), ((11, 2), (1, 4)), ((13, 2), (1, 9)), ((1, 5, 14), (1, 4)), ((11, 2), (2, 5))],
    ids=["graphs", "lists of graphs", "sequences", "optionals", "types of attributes", "maps"],
)
def test_messages_inside_messages(depth, outer, numbers):
    """``numbers``: the fields that are inside one another, the innermost first; the graph and ``outer`` are around."""
    content = nested(depth - depth % len(numbers), *numbers)
    for number in reversed(outer):
        content = field(number, content)
    refused(field(7, content) + CONTENT)


def test_texts_that_are_no_utf8():
    for text in (b"x", b"y", b"Relu"):
        broken = CONTENT.replace(bytes([len(text)]) + text, bytes([len(text)]) + b"\xff" * len(text), 1)
        error = refused(broken, CorruptModel, "not UTF-8")
        assert "Proto" in error.where


def test_unknown_and_repeated_fields():
    """What later versions of the format may add is passed over; of a field given twice, the parts are put together."""
    taken(CONTENT + field(1000, b"whatever") + varint(1001 << 3) + b"\x01")
    taken(CONTENT + field(2, b"another producer"))
    refused(CONTENT + CONTENT, CorruptModel, "two tensors are named")


@pytest.mark.parametrize(
    ("versions", "kind", "message"),
    [
        ([("", 0)], VersionError, f"versions {OLDEST} to {NEWEST} are read"),
        ([("", -1)], VersionError, f"version -1 of the operator set, versions {OLDEST} to {NEWEST}"),
        ([("", NEWEST + 1)], VersionError, f"versions {OLDEST} to {NEWEST} are read"),
        ([("", 1 << 31)], VersionError, "version 2147483648"),
        ([("", (1 << 63) - 1)], VersionError, "are read"),
        ([("", 17), ("ai.onnx.ml", 1 << 31)], VersionError, r"of 'ai\.onnx\.ml', versions 1 to"),
        ([("", 17), ("custom", 1 << 40)], VersionError, "of 'custom', versions 1 and up"),
        ([("", 17), ("custom", 0)], VersionError, "of 'custom', versions 1 and up"),
        ([("", 17), ("ai.onnx", 16)], CorruptModel, "versions 17 and 16 of domain 'ai.onnx'"),
        ([], CorruptModel, "which version of the operator set"),
        ([("custom", 1)], ModelError, "does not say which version"),
    ],
)
def test_versions_of_operators(versions, kind, message):
    changed = onnx.ModelProto.FromString(CONTENT)
    del changed.opset_import[:]
    changed.opset_import.extend(helper.make_opsetid(*one) for one in versions)
    refused(changed, kind, message)


def test_the_same_version_twice_is_no_contradiction():
    changed = onnx.ModelProto.FromString(CONTENT)
    changed.opset_import.append(changed.opset_import[0])
    taken(changed)


@pytest.mark.parametrize("version", [onnx.IR_VERSION + 1, 1 << 40, -1])
def test_versions_of_the_format(version):
    changed = onnx.ModelProto.FromString(CONTENT)
    changed.ir_version = version
    refused(changed, VersionError, f"version {version} of the format, versions up to {onnx.IR_VERSION} are read")


def test_unknown_domains_are_named():
    refused(model_of([node("Relu", "x", domain="evil")], ["x"], more_opsets=[("evil", 1)]), ModelError, "of evil")
    refused(model_of([node("Relu", "x", domain="evil")], ["x"]), ModelError, "does not say which version")


def test_no_outputs():
    refused(model_of([node("Relu", "x")], ["x"], outputs=[]), CorruptModel, "the graph has no outputs")


def test_files_larger_than_allowed(tmp_path):
    path = tmp_path / "m.onnx"
    path.write_bytes(CONTENT)
    limits = LoadLimits(max_bytes=len(CONTENT) - 1)
    assert str(path) in refused(path, LimitExceeded, f"the file has {len(CONTENT)} bytes", limits=limits).where
    refused(CONTENT, LimitExceeded, "the file has", limits=limits)
    assert taken(path, LoadLimits(max_bytes=len(CONTENT)))
    limits = LoadLimits(max_parsed_bytes=1000)
    refused(
        model_of([node("Relu", "x", doc_string="x" * 2000)], ["x"]), LimitExceeded, "beside its weights", limits=limits
    )


def test_a_file_with_a_hole_of_a_terabyte(tmp_path):
    path = tmp_path / "m.onnx"
    with path.open("wb") as file:
        file.write(CONTENT)
        file.truncate(1 << 40)
    refused(path, LimitExceeded, "the file has 1099511627776 bytes")


@pytest.mark.parametrize("path", ["missing.onnx", "", "\x00", "x" * 5000, "/dev/zero", "/proc/self/mem"])
def test_paths_of_models(path, tmp_path):
    with bounded(), pytest.raises(ModelError) as caught:
        OnnxLoader().load(path if path.startswith("/") else tmp_path / path)
    assert caught.value.where is not None
    assert caught.value.hint


def test_messages_that_take_more_memory_than_the_file():
    """Two bytes of the file are one empty message, which takes a hundred when it is parsed."""
    content = field(7, b"\x0a\x00" * 3_000_000)
    refused(content, ModelError, limits=LoadLimits(max_parsed_bytes=1 << 20))


def test_many_damaged_files():
    chance = random.Random(7)
    for _ in range(400):
        data = bytearray(CONTENT)
        for _ in range(chance.choice((1, 2, 5))):
            data[chance.randrange(len(data))] = chance.randrange(256)
        tried(bytes(data))


def test_examining_never_raises(tmp_path):
    path = tmp_path / "m.onnx"
    for content in (b"\x00", CONTENT[:-2], CONTENT + CONTENT, field(7, nested(200, 1))):
        path.write_bytes(content)
        with bounded():
            found = OnnxLoader().examine(path)
        assert found.problems
        assert all(problem.hint for problem in found.problems)


@pytest.mark.parametrize("sign", ["\x1b[31m", "\n", "\r", "\x07", "\x00", "\x7f", "\x9b", "\u2028", "\u202e", "\u2066"])
def test_names_that_steer_a_terminal(sign):
    """They could make a report say something else than it does. Errors show them escaped."""
    places = {
        "name": model_of([node("Relu", ["x", "y"][:1], name=f"n{sign}")], ["x"]),
        "output": model_of([node("Relu", ["x"], [f"y{sign}"])], ["x"], [f"y{sign}"]),
        "op type": model_of([node(f"Relu{sign}", ["x"])], ["x"]),
        "domain": model_of([node("Relu", ["x"], domain=f"d{sign}")], ["x"], more_opsets=[(f"d{sign}", 1)]),
    }
    for model in places.values():
        error = refused(model, CorruptModel, "has a character that cannot be shown")
        assert sign not in f"{error.where}{error.problem}"
    size = taken(model_of([node("Relu", ["x"])], [tensor_info("x", [f"N{sign}"])]))
    assert sign not in str(size.outlet_fact(size.inputs[0]))


@pytest.mark.parametrize(
    "name", ["é", "a b", "a/b:0", "[bold]x[/y]", "层/权重", "𝒩", "a\u3000b", "👩\u200d🔬", "%s{x}"]
)
def test_names_in_other_scripts(name):
    typed = taken(model_of([node("Relu", [name], ["y"], name=name)], [name]))
    assert typed.outlet_name(typed.inputs[0]) == name


def test_texts_for_people_may_hold_anything():
    model = model_of([node("Relu", ["x"])], ["x"], doc_string="two\nlines \x1b", producer_name="\x1b[31m")
    model.metadata_props.add(key="a\tb", value="\x1b]0;title\x07")
    assert taken(model).properties["onnx.metadata_props.a\tb"].item() == "\x1b]0;title\x07"


def test_sizes_without_a_name_of_inputs_with_long_ones():
    name = "x" * 4000
    typed = taken(model_of([node("Relu", [name], ["y"])], [tensor_info(name, [None, 3])]))
    assert str(typed.outlet_fact(typed.inputs[0])) == f"{('x' * 4000 + '_0')[-200:]},3,f32"


def test_long_names():
    name = "x" * 100_000
    error = refused(model_of([node("Relu", [name])], [tensor_info(name)]), LimitExceeded, "has 100000 characters")
    assert len(str(error)) < 1000
    refused(model_of([node("Relu", "x", [name])], ["x"], [any_info(name)]), LimitExceeded, "has 100000 characters")
    refused(model_of([node("A" * 100_000, "x")], ["x"]), LimitExceeded, "has 100000 characters")
