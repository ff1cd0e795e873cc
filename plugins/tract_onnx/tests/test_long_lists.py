"""Long lists of attributes, which stay in the file: they are found, they are read as the parser reads them."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from onnx import helper
from onnx_check import load, run
from onnx_single import same_as_onnxruntime
from tract_onnx import long_lists
from tract_onnx.frontend import OnnxLoader
from tract_onnx.long_lists import LongList
from tract_onnx.wire_format import LONG, scan

from tract_core.errors import TractError
from tract_core.limits import LoadLimits

KIND = onnx.AttributeProto


integers = st.one_of(st.integers(-(2**63), 2**63 - 1), st.integers(0, 300), st.sampled_from([0, 127, 128, 2**63 - 1]))
texts = st.one_of(
    st.sampled_from([b"BRANCH_LEQ", b"LEAF", b"", b"J", b"JJJ", b"J\x01", b"a\0", b"a"]),
    st.binary(max_size=12),
    st.binary(min_size=120, max_size=140),
)
floats = st.floats(width=32, allow_nan=False)
lists = st.one_of(
    st.tuples(st.just("ints"), st.lists(integers, min_size=1, max_size=60)),
    st.tuples(st.just("floats"), st.lists(floats, min_size=1, max_size=60)),
    st.tuples(st.just("strings"), st.lists(texts, min_size=1, max_size=60)),
)


def model_of(*attributes):
    graph = onnx.GraphProto(name="g", node=[onnx.NodeProto(op_type="X", attribute=attributes)])
    return onnx.ModelProto(ir_version=8, graph=graph).SerializeToString()


def attribute(field, values, **others):
    kind = getattr(KIND, field.upper())
    return KIND(name="list", type=kind, **{field: values}, **others)


def left_out(content, **options):
    """The attribute of the model as it is parsed, and the list that was left in the file, if any."""
    skeleton = scan(content, **options)
    (found,) = onnx.ModelProto.FromString(skeleton.content).graph.node[0].attribute
    run = skeleton.run(found.s)
    return found, None if run is None else LongList(content, run)


def elements(found):
    if found.run.kind.name != "STRINGS":
        return found.numbers().tolist()
    distinct, places = found.distinct_texts()
    assert len(set(distinct)) == len(distinct)
    return [distinct[place] for place in places]


@settings(max_examples=200, deadline=None)
@given(lists, st.integers(40, 200))
@example(("strings", [b"BRANCH_LEQ", b"LEAF"] * 30), 64)
@example(("strings", [b"J" * 130] * 4), 140)
def test_read_as_the_parser_reads_it(drawn, block):
    field, values = drawn
    content = model_of(attribute(field, values))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(long_lists, "BLOCK", block)
        found, left = left_out(content, large=0, long=0)
        if left is None:  # a text that no block holds
            assert field == "strings"
            assert found == attribute(field, values)
            return
        assert elements(left) == values
    assert found.name == "list"
    assert found.type == getattr(KIND, field.upper())
    assert not getattr(found, field)


def varint(number):
    number %= 1 << 64
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*encoded, number])


@settings(max_examples=60, deadline=None)
@given(st.lists(integers, min_size=1, max_size=60), st.lists(floats, min_size=1, max_size=60), st.integers(40, 200))
def test_packed_lists(ints, floats, block):
    """As writers of version 3 of the language have them: one field with all elements."""
    for field, tag, payload, values in (
        ("ints", 0x42, b"".join(map(varint, ints)), ints),
        ("floats", 0x3A, np.array(floats, "<f4").tobytes(), floats),
    ):
        head = KIND(name="list", type=getattr(KIND, field.upper())).SerializeToString()
        packed = head + bytes([tag]) + varint(len(payload)) + payload
        assert list(getattr(KIND.FromString(packed), field)) == values
        node = bytes([0x2A]) + varint(len(packed)) + packed
        graph = bytes([0x0A]) + varint(len(node)) + node
        content = bytes([0x3A]) + varint(len(graph)) + graph
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(long_lists, "BLOCK", block)
            _, left = left_out(content, large=0, long=0)
            assert elements(left) == values


def test_only_long_lists_are_left_out():
    short = attribute("ints", list(range(100)))
    found, left = left_out(model_of(short))
    assert found == short
    assert left is None
    _, left = left_out(model_of(attribute("ints", [300] * LONG)))
    assert left.run.elements == LONG


@pytest.mark.parametrize("order", [("ints", "floats"), ("floats", "ints"), ("strings", "ints")])
def test_an_attribute_with_two_lists_is_left_to_the_parser(order):
    values = {"ints": [1, 2] * 40, "floats": [1.5] * 80, "strings": [b"LEAF"] * 80}
    one, other = order
    twice = attribute(one, values[one], **{other: values[other]})
    found, left = left_out(model_of(twice), large=0, long=0)
    assert left is None
    assert found == twice


def test_a_list_in_two_parts_is_left_to_the_parser():
    part = attribute("ints", [7] * 100).SerializeToString()
    broken = part + KIND(doc_string="between").SerializeToString() + KIND(ints=[8] * 100).SerializeToString()
    node = bytes([0x2A]) + varint(len(broken)) + broken
    graph = bytes([0x0A]) + varint(len(node)) + node
    found, left = left_out(bytes([0x3A]) + varint(len(graph)) + graph, large=0, long=0)
    assert left is None
    assert list(found.ints) == [7] * 100 + [8] * 100


@settings(max_examples=200, deadline=None)
@given(lists, st.integers(0, 10_000), st.integers(0, 255))
def test_damaged_lists_are_refused_or_read_as_the_parser_reads_them(drawn, where, byte):
    content = bytearray(model_of(attribute(*drawn)))
    content[where % len(content)] = byte
    content = bytes(content)
    try:
        parsed = onnx.ModelProto.FromString(content)
    except Exception:
        parsed = None
    try:
        skeleton = scan(content, large=0, long=0)
        found = onnx.ModelProto.FromString(skeleton.content)
    except Exception:
        return
    if parsed is None or len(parsed.graph.node) != 1 or len(parsed.graph.node[0].attribute) != 1:
        return
    (one,), (wanted,) = found.graph.node[0].attribute, parsed.graph.node[0].attribute
    run = skeleton.run(one.s)
    if run is not None:
        values = elements(LongList(content, run))
        theirs = list(getattr(wanted, run.kind.name.lower()))
        np.testing.assert_array_equal(values, theirs)


@pytest.fixture
def everything_is_long(monkeypatch):
    monkeypatch.setattr("tract_onnx.frontend.scan", lambda buffer, limits: scan(buffer, large=0, long=0, limits=limits))


@pytest.mark.usefixtures("everything_is_long")
@pytest.mark.parametrize(
    ("x", "attributes"),
    [
        (["b", "a", "?"], {"keys_strings": ["a", "b"], "values_int64s": [-5, 1 << 40]}),
        ([3, -1, 9], {"keys_int64s": [3, -1], "values_floats": [0.5, -2.25]}),
        ([0.5, -2.25, 0.0], {"keys_floats": [0.5, -2.25], "values_strings": ["Zürich", ""]}),
    ],
)
def test_nodes_read_them(x, attributes):
    kind = object if isinstance(x[0], str) else np.int64 if isinstance(x[0], int) else np.float32
    same_as_onnxruntime("LabelEncoder", [np.array(x, kind)], version=2, **attributes)


@pytest.mark.usefixtures("everything_is_long")
def test_a_constant_is_read_from_them():
    for name, values in (("value_ints", [1, -2, 3]), ("value_floats", [0.5, 1.5]), ("value_strings", ["a", "Zürich"])):
        node = helper.make_node("Constant", [], ["y"], **{name: values})
        graph = helper.make_graph([node], "g", [], [onnx.ValueInfoProto(name="y")])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])
        (found,) = run(model, {})
        assert found.tolist() == values


@pytest.mark.usefixtures("everything_is_long")
@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"value_ints": [1.5, 2.5]}, "is of kind FLOATS, wanted INTS"),
        ({"value_string": ["a", "b"]}, "is of kind STRINGS, wanted STRING"),
    ],
)
@pytest.mark.parametrize("with_kind", [True, False])
def test_a_list_of_another_kind_is_refused(attributes, message, with_kind):
    node = helper.make_node("Constant", [], ["y"], **attributes)
    if not with_kind:
        node.attribute[0].ClearField("type")
        message = "is of kind FLOATS, wanted INTS|is a list, wanted STRING"
    graph = helper.make_graph([node], "g", [], [onnx.ValueInfoProto(name="y")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=3)
    with pytest.raises(TractError, match=message):
        load(model).into_typed()


def file_with_a_list(count):
    """A file of a constant y, as a list in which each element takes two bytes of the file."""
    node = helper.make_node("Constant", [], ["y"], value_ints=[1] * count)
    graph = helper.make_graph([node], "g", [], [onnx.ValueInfoProto(name="y")])
    return helper.make_model(graph).SerializeToString()


def test_reading_a_list_again_and_again_is_bounded():
    """Small integers take four times as much in memory as in the file, however often they are asked for."""
    model = OnnxLoader(limits=LoadLimits(max_fold_bytes=0)).load_bytes(file_with_a_list(1 << 18))
    (node,) = (one.op.node for one in model.nodes if one.name == "y")
    arrays = [node.int_array("value_ints") for _ in range(100)]
    lists = [node.integers("value_ints") for _ in range(100)]
    assert len(set(map(id, arrays))) == 1
    assert len(set(map(id, lists))) == 1


@pytest.mark.parametrize("held", [True, False])
def test_a_model_is_typed_as_often_as_one_likes(held):
    """What each typing reads is what the one before read: once for the file, whether that is there still or not."""
    model = OnnxLoader(limits=LoadLimits(max_fold_bytes=0)).load_bytes(file_with_a_list(100_000))
    kept = []
    for _ in range(6):
        typed = model.analyse().into_typed()
        kept += [typed] if held else []
        assert typed.outlet_fact(typed.outputs[0]).constant.sum() == 100_000
