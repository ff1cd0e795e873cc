"""From file to typed model: names, facts, properties, and what is refused."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx_check import assert_close, check, expected, run, with_output_types
from onnx_networks import encoder
from tract_onnx.frontend import NEWEST, OnnxLoader
from tract_onnx.node import OnnxNode
from tract_onnx.registry import onnx_op
from tract_onnx.wiring import Wiring

from tract_core.errors import (
    CorruptModel,
    LimitExceeded,
    MissingOperator,
    ModelError,
    ModelWarning,
    TractError,
    Unsupported,
    VersionError,
)
from tract_core.limits import LoadLimits
from tract_core.ops.elementwise import Exp
from tract_core.plugins import Registry, Rows, hookimpl
from tract_core.plugins.descriptor import Format

F32, I64 = TensorProto.FLOAT, TensorProto.INT64


def value(name, shape=(), kind=F32):
    return helper.make_tensor_value_info(name, kind, shape)


def model_of(nodes, inputs, outputs, *, weights=(), opset=17, **more):
    graph = helper.make_graph(nodes, "g", inputs, outputs, list(weights), **more)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def load(model, **options):
    return OnnxLoader(**options).load_bytes(model.SerializeToString())


def test_every_tensor_of_the_file_has_a_node_of_its_name():
    model = encoder(layers=1)
    typed = load(model).into_typed()
    for node in model.graph.node:
        assert typed.has_node(node.output[0]), node.output[0]
    assert [typed.outlet_name(outlet) for outlet in typed.inputs] == ["ids", "mask"]
    names = [output.name for output in model.graph.output]
    assert [typed.outlet_name(outlet) for outlet in typed.outputs] == names
    typed.declutter()
    assert [typed.outlet_name(outlet) for outlet in typed.outputs] == names


def test_values_node_by_node_are_those_of_the_file():
    """What users compare by: the tensor of a name is that tensor."""
    model = encoder(layers=1)
    given = {"ids": np.array([[3, 1, 4]]), "mask": np.array([[1, 1, 0]])}
    names = [node.output[0] for node in model.graph.node]
    del model.graph.output[:]
    model.graph.output.extend(helper.make_value_info(name, onnx.TypeProto()) for name in names)
    wanted = expected(onnx.shape_inference.infer_shapes(model), given)
    assert_close(run(model, given), wanted)


def test_second_outputs_and_passed_inputs_keep_their_names():
    nodes = [
        helper.make_node("TopK", ["x", "k"], ["top", "places"]),
        helper.make_node("Identity", ["x"], ["same"]),
        helper.make_node("Split", ["x"], ["left", "right"], axis=0),
    ]
    outputs = [value("top"), value("places", kind=I64), value("same"), value("right"), value("x")]
    for output in outputs:
        output.type.tensor_type.ClearField("shape")
    model = model_of(nodes, [value("x", [4])], outputs, weights=[numpy_helper.from_array(np.array([2]), "k")])
    wanted = ["top", "places", "same", "right", "x"]
    typed = load(model).into_typed()
    assert [typed.outlet_name(outlet) for outlet in typed.outputs] == wanted
    typed.declutter()
    assert [typed.outlet_name(outlet) for outlet in typed.outputs] == wanted


def test_sizes_of_the_file():
    shapes = {"a": ["B", "past + S", None, 3], "b": ["S", "past", "batch-size", "?"]}
    inputs = [value(name, shape) for name, shape in shapes.items()]
    inputs.append(helper.make_value_info("c", onnx.TypeProto(tensor_type=onnx.TypeProto.Tensor(elem_type=F32))))
    inputs.append(helper.make_value_info("d", onnx.TypeProto()))
    model = load(model_of([], inputs, [value("a")], opset=17), ignore_output_shapes=True)
    facts = [str(model.outlet_fact(outlet)) for outlet in model.inputs]
    assert facts == ["B,past+S,?,3,f32", 'S,past,i"batch-size",?,f32', "..,f32", "..,?"]
    assert set(model.symbols.names) == {"B", "S", "past", "batch-size"}


def test_what_the_file_says_of_inner_tensors_is_checked():
    node = helper.make_node("Relu", ["x"], ["y"])
    wrong = model_of([node], [value("x", [2, 3])], [value("z", [2, 3])], value_info=[value("y", [2, 4])])
    wrong.graph.node.append(helper.make_node("Relu", ["y"], ["z"]))
    with pytest.warns(ModelWarning, match="node 'y' .*the file says 2,4,f32, its operators give 2,3,f32"):
        assert str(load(wrong).into_typed().node_by_name("z").outputs[0].fact) == "2,3,f32"
    with pytest.raises(ModelError) as caught:
        load(wrong, strict_facts=True).into_typed()
    assert "the file says 2,4,f32, its operators give 2,3,f32\n" in str(caught.value)
    assert "'y'" in str(caught.value)
    assert "load it with ignore_value_info=True" in caught.value.hint
    load(wrong, strict_facts=True, ignore_value_info=True).into_typed()


def test_names_that_exporters_invent_say_nothing():
    node = helper.make_node("Relu", ["x"], ["y"])
    typed = load(model_of([node], [value("x", ["B", 3])], [value("y", ["unk__1", 3])])).into_typed()
    assert str(typed.outlet_fact(typed.outputs[0])) == "B,3,f32"


def test_analysis_goes_on_where_it_can():
    nodes = [helper.make_node("Relu", ["x"], ["y"]), helper.make_node("Neg", ["z"], ["w"])]
    unknown = helper.make_value_info("z", onnx.TypeProto(tensor_type=onnx.TypeProto.Tensor(elem_type=F32)))
    outputs = [helper.make_value_info(name, onnx.TypeProto()) for name in ("y", "w")]
    model = load(model_of(nodes, [value("x", ["B", 3]), unknown], outputs))
    model.analyse()
    assert [str(model.outlet_fact(outlet)) for outlet in model.outputs] == ["B,3,f32", "..,?"]
    with pytest.raises(ModelError, match="'z'"):
        model.into_typed()


def test_inputs_that_are_also_initializers_are_constants():
    weights = numpy_helper.from_array(np.ones(3, np.float32), "w")
    node = helper.make_node("Add", ["x", "w"], ["y"])
    model = load(model_of([node], [value("w", [3]), value("x", [2, 3])], [value("y", [2, 3])], weights=[weights]))
    assert [model.outlet_name(outlet) for outlet in model.inputs] == ["x"]


def test_properties():
    model = model_of([helper.make_node("Relu", ["x"], ["y"])], [value("x", [1])], [value("y", [1])])
    model.producer_name, model.producer_version, model.model_version = "somebody", "1.2", 7
    model.doc_string, model.domain = "what it is", "org.example"
    model.metadata_props.add(key="author", value="Ève")
    found = {key: array.item() for key, array in load(model).into_typed().properties.items()}
    assert found == {
        "onnx.producer_name": "somebody",
        "onnx.producer_version": "1.2",
        "onnx.domain": "org.example",
        "onnx.doc_string": "what it is",
        "onnx.model_version": 7,
        "onnx.ir_version": 8,
        "onnx.metadata_props.author": "Ève",
    }


def branches(then_size=3):
    """Two graphs that read ``x`` and ``w`` of the graph around them."""
    then = helper.make_graph([helper.make_node("Add", ["x", "w"], ["t"])], "then", [], [value("t", [then_size])])
    other = helper.make_graph([helper.make_node("Exp", ["x"], ["e"])], "else", [], [value("e", [3])])
    return {"then_branch": then, "else_branch": other}


def if_model(condition_inputs, nodes=(), weights=()):
    node = helper.make_node("If", ["c"], ["y"], **branches())
    constant = numpy_helper.from_array(np.arange(3, dtype=np.float32), "w")
    return model_of(
        [*nodes, node], [value("x", [3]), *condition_inputs], [value("y", [3])], weights=[constant, *weights]
    )


def test_branches_that_a_run_chooses():
    model = if_model([value("c", [], TensorProto.BOOL)])
    for condition in (True, False):
        check(model, {"x": np.array([1, 2, 3], np.float32), "c": np.array(condition)})


def test_a_known_condition_leaves_one_branch():
    weights = [numpy_helper.from_array(np.array(False), "c")]
    model = if_model([], weights=weights)
    typed = load(model).into_typed()
    assert {type(node.op).__name__ for node in typed.live_nodes()} == {"TypedSource", "Const", "Exp"}
    check(model, {"x": np.array([1, 2, 3], np.float32)})


def scan_model(**attributes):
    """A running sum of the rows of ``x``, plus a captured constant."""
    body = helper.make_graph(
        [
            helper.make_node("Add", ["sum", "row"], ["next"]),
            helper.make_node("Mul", ["next", "w"], ["out"]),
        ],
        "body",
        [value("sum", [2]), value("row", [2])],
        [value("next", [2]), value("out", [2])],
    )
    node = helper.make_node("Scan", ["start", "x"], ["last", "all"], body=body, num_scan_inputs=1, **attributes)
    constant = numpy_helper.from_array(np.array([2, 3], np.float32), "w")
    outputs = [helper.make_value_info(name, onnx.TypeProto()) for name in ("last", "all")]
    return model_of([node], [value("start", [2]), value("x", ["T", 2])], outputs, weights=[constant])


@pytest.mark.parametrize(
    "attributes", [{}, {"scan_input_directions": [1]}, {"scan_output_directions": [1]}, {"scan_output_axes": [1]}]
)
def test_scan(attributes):
    model = scan_model(**attributes)
    inputs = {"start": np.array([1, -1], np.float32), "x": np.arange(8, dtype=np.float32).reshape(4, 2)}
    wanted = expected(with_output_types(model), inputs)
    for declutter in (False, True):
        assert_close(run(model, inputs, declutter=declutter), wanted)


def test_all_unknown_operators_are_reported_at_once():
    nodes = [
        helper.make_node("Mystery", ["x"], ["a"]),
        helper.make_node("Mystery", ["a"], ["b"]),
        helper.make_node("Relu", ["b"], ["c"]),
        helper.make_node("Softmax", ["c"], ["d"], domain="com.example"),
    ]
    model = model_of(nodes, [value("x", [2])], [value("d", [2])])
    model.opset_import.append(helper.make_opsetid("com.example", 3))
    untyped = load(model)
    with pytest.raises(Unsupported) as caught:
        untyped.into_typed()
    text = str(caught.value)
    assert "operator 'Mystery' of ai.onnx, version 17, is not known" in text
    assert "node 'a' (Mystery), node 'b' (Mystery)" in text
    assert "operator 'Softmax' of com.example, version 3, is not known; known is ai.onnx from version 1" in text
    assert caught.value.hint == ModelError.advice
    hints = [error.hint for error in caught.value.__cause__.exceptions]
    assert "the exporter left one of its own" in hints[0]
    assert "if that of ai.onnx is meant" in hints[-1]


@pytest.mark.parametrize(
    ("op_type", "domain", "opset", "hint"),
    [
        ("Gelu", "", 18, "export the model for version 20 of ai.onnx or later, or use onnx.version_converter"),
        ("BiasGelu", "", 18, "if that of com.microsoft is meant, the node's domain must say so"),
        ("relu", "", 18, "did you mean 'Relu'?"),
        ("Sofmax", "", 18, "did you mean 'Softmax'?"),
        ("StridedSlice", "", 9, "the exporter left one of its own: export for a later version of ai.onnx"),
        ("NGramRepeatBlock", "com.microsoft", 18, "a plugin can add it"),
    ],
)
def test_what_to_do_about_an_unknown_operator(op_type, domain, opset, hint):
    node = helper.make_node(op_type, ["x"], ["y"], domain=domain)
    model = model_of([node], [value("x", [2])], [value("y", [2])], opset=opset)
    model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    with pytest.raises(MissingOperator) as caught:
        load(model).into_typed()
    assert hint in caught.value.hint


def test_an_error_names_the_node_of_the_file_once():
    """Not what it became: the name of that begins with its own."""
    conv = helper.make_node("Conv", ["x", "w"], ["y"])
    weights = numpy_helper.from_array(np.zeros((4, 1, 3, 3), np.float32), "w")
    model = model_of([conv], [value("x", [1, 3, 8, 8])], [value("y", [None] * 4)], weights=[weights])
    with pytest.raises(ModelError) as caught:
        load(model).into_typed()
    assert caught.value.where == "node 'y' (Conv)"
    assert "the kernel 4,1,3,3,f32 wants 1" in str(caught.value)


def test_unknown_operators_that_no_output_needs_do_no_harm():
    nodes = [helper.make_node("Mystery", ["x"], ["a"]), helper.make_node("Relu", ["x"], ["y"])]
    check_model = model_of(nodes, [value("x", [2])], [value("y", [2])])
    assert run(check_model, {"x": np.array([-1, 1], np.float32)})[0].tolist() == [0, 1]


def relu(x="x", y="y"):
    return helper.make_node("Relu", [x], [y])


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (model_of([relu("x", "y"), relu("x", "y")], [value("x")], [value("y")]), "two tensors are named 'y'"),
        (model_of([relu("x", "x")], [value("x")], [value("x")]), "two tensors are named 'x'"),
        (model_of([relu("a", "b"), relu("b", "a")], [value("x")], [value("a")]), "in a circle"),
        (model_of([relu("a", "a")], [value("x")], [value("a")]), "in a circle"),
        (model_of([relu("z", "y")], [value("x")], [value("y")]), "reads 'z', which nothing computes"),
        (model_of([relu()], [value("x")], [value("z")]), "nothing computes the output 'z'"),
        (model_of([relu()], [value("x")], []), "no outputs"),
        (model_of([relu()], [value("x", [-2])], [value("y")]), "a size is -2"),
        (model_of([relu()], [value("x"), value("")], [value("y")]), "has no name"),
    ],
)
def test_broken_graphs(model, message):
    with pytest.raises(CorruptModel) as caught:
        load(model)
    assert message in str(caught.value)


def test_nodes_in_any_order():
    nodes = [relu("b", "c"), relu("x", "a"), relu("a", "b")]
    assert run(model_of(nodes, [value("x", [1])], [value("c", [1])]), {"x": np.ones(1, np.float32)})[0] == 1


def test_long_chains_do_not_overflow():
    count = 3000
    nodes = [helper.make_node("Neg", [f"t{i}"], [f"t{i + 1}"]) for i in range(count)]
    model = load(model_of(list(reversed(nodes)), [value("t0", [1])], [value(f"t{count}", [1])]))
    assert len(model.into_typed().nodes) == count + 1


@pytest.mark.parametrize("version", [0, -1, NEWEST + 1, 1 << 31, (1 << 63) - 1])
def test_versions(version):
    model = model_of([relu()], [value("x")], [value("y")], opset=version)
    with pytest.raises(VersionError) as caught:
        load(model)
    assert str(version) in caught.value.problem


def test_a_domain_without_a_version():
    model = model_of([helper.make_node("Relu", ["x"], ["y"], domain="org.example")], [value("x")], [value("y")])
    with pytest.raises(Unsupported, match=r"'org\.example' and does not say which version"):
        load(model).into_typed()
    del model.opset_import[:]
    with pytest.raises(CorruptModel, match="does not say which version"):
        load(model)


def test_attributes():
    def with_attribute(**attributes):
        return model_of(
            [helper.make_node("LeakyRelu", ["x"], ["y"], **attributes)], [value("x", [1])], [value("y", [1])]
        )

    with pytest.raises(CorruptModel, match="attribute 'alpha' of LeakyRelu is of kind INT, wanted FLOAT"):
        load(with_attribute(alpha=1)).into_typed()
    twice = with_attribute(alpha=0.5)
    twice.graph.node[0].attribute.append(twice.graph.node[0].attribute[0])
    with pytest.raises(CorruptModel, match="an attribute is given twice"):
        load(twice)
    missing = model_of([helper.make_node("Concat", ["x", "x"], ["y"])], [value("x", [1])], [value("y", [2])])
    with pytest.raises(CorruptModel, match="Concat wants an attribute 'axis'"):
        load(missing).into_typed()
    wrong = model_of(
        [helper.make_node("DepthToSpace", ["x"], ["y"], blocksize=2, mode="ABC")],
        [value("x", [1, 4, 1, 1])],
        [value("y", [1, 1, 2, 2])],
    )
    with pytest.raises(Unsupported, match="attribute 'mode' of DepthToSpace is 'ABC', wanted one of 'DCR', 'CRD'"):
        load(wrong).into_typed()


@pytest.mark.parametrize(
    ("op_type", "attributes", "shapes"),
    [
        ("MaxPool", {"kernel_shape": [0, 0]}, [[1, 1, 4, 4]]),
        ("MaxPool", {"kernel_shape": [2, 2], "strides": [0, 1]}, [[1, 1, 4, 4]]),
        ("Conv", {"group": 0}, [[1, 2, 4, 4], [2, 2, 3, 3]]),
        ("Conv", {"group": -1}, [[1, 2, 4, 4], [2, 2, 3, 3]]),
        ("Conv", {"pads": [-9, 0, 0, 0]}, [[1, 2, 4, 4], [2, 2, 3, 3]]),
        ("ConvTranspose", {"group": 0}, [[1, 2, 4, 4], [2, 2, 3, 3]]),
        ("Transpose", {"perm": [0, 0]}, [[1, 2]]),
        ("Softmax", {"axis": 7}, [[1, 2]]),
        ("Flatten", {"axis": -9}, [[1, 2]]),
        ("Gemm", {}, [[1], [2]]),
        ("Einsum", {"equation": "ab,bc->a€"}, [[1, 2], [2, 3]]),
        ("Einsum", {"equation": "ab->ab"}, [[1, 2], [2, 3]]),
        ("DepthToSpace", {"blocksize": 0}, [[1, 4, 2, 2]]),
        ("LSTM", {"hidden_size": 2}, [[1, 1, 1], [1, 1, 1], [1, 1, 1]]),
        ("TopK", {}, [[3], [1]]),
        ("MatMul", {}, [[2]]),
    ],
)
def test_attributes_and_shapes_that_make_no_sense(op_type, attributes, shapes):
    names = [f"x{slot}" for slot in range(len(shapes))]
    node = helper.make_node(op_type, names, ["y"], **attributes)
    output = helper.make_value_info("y", onnx.TypeProto())
    model = model_of([node], [value(name, shape) for name, shape in zip(names, shapes, strict=True)], [output])
    with pytest.raises(TractError) as caught:
        load(model).into_typed().declutter()
    assert "'y'" in str(caught.value)


def test_graphs_inside_graphs_have_a_limit():
    graph = helper.make_graph([relu("x", "deep")], "g", [], [value("deep", [3])])
    for depth in range(12):
        node = helper.make_node("If", ["c"], [f"d{depth}"], then_branch=graph, else_branch=branches()["else_branch"])
        graph = helper.make_graph([node], "g", [], [value(f"d{depth}", [3])])
    model = model_of(graph.node, [value("x", [3]), value("c", [], TensorProto.BOOL)], graph.output)
    check(model, {"x": np.array([1, 2, 3], np.float32), "c": np.array(True)})
    with pytest.raises(LimitExceeded, match="nested more than 10 deep"):
        OnnxLoader(limits=LoadLimits(max_depth=10)).load_bytes(model.SerializeToString())


def test_files_that_are_no_models(tmp_path):
    empty = tmp_path / "empty.onnx"
    empty.touch()
    for path, kind, message in (
        (empty, CorruptModel, "the file is empty"),
        (tmp_path / "missing.onnx", ModelError, "No such file"),
        (tmp_path, ModelError, "it is a folder"),
    ):
        with pytest.raises(kind) as caught:
            OnnxLoader().load(path)
        assert message in str(caught.value)
        assert caught.value.where == str(path)


class _Example:
    DISTRIBUTION = "example"

    @staticmethod
    @hookimpl
    def tract_api_version():
        return "1.0"

    @staticmethod
    @hookimpl
    def tract_rows():
        return {"onnx": ["test_frontend_rows"]}


def test_another_distribution_adds_operators(monkeypatch):
    import sys
    from types import ModuleType

    rows = Rows()

    @onnx_op(rows, "Mystery", domain="org.example", since=2)
    def mystery(node: OnnxNode, wire: Wiring):
        """e to the power x"""
        return wire.op(Exp(), wire.input(0))

    module = ModuleType("test_frontend_rows")
    module.ROWS = rows
    monkeypatch.setitem(sys.modules, "test_frontend_rows", module)
    registry = Registry({"example": _Example()}, strict=True)
    node = helper.make_node("Mystery", ["x"], ["y"], domain="org.example")
    model = model_of([node], [value("x", [2])], [value("y", [2])])
    model.opset_import.append(helper.make_opsetid("org.example", 5))
    typed = OnnxLoader(registry).load_bytes(model.SerializeToString()).into_typed()
    assert isinstance(typed.node_by_name("y").op, Exp)
    model.opset_import[1].version = 1
    with pytest.raises(Unsupported, match=r"version 1, is not known; known is org.example from version 2"):
        OnnxLoader(registry).load_bytes(model.SerializeToString()).into_typed()


def test_the_format_is_found():
    frontend = Registry().formats()["onnx"]
    assert isinstance(frontend, Format)
    assert frontend.extensions == (".onnx",)
