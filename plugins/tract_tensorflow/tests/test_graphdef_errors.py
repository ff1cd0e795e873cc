"""What is wrong with a graph of TensorFlow is said: where, what was found, what was wanted, what to do."""

from __future__ import annotations

import numpy as np
import pytest
from graphdef_builder import (
    const,
    content,
    function,
    graph,
    load,
    node,
    placeholder,
    refused,
    run,
    saved_model,
    shape,
    tensor,
)
from tract_tensorflow.graphdef.loader import TensorflowLoader
from tract_tensorflow.graphdef.protos import CLASSES

from tract_core.api.reading import handle_of
from tract_core.errors import (
    CorruptModel,
    InputError,
    LimitExceeded,
    MissingOperator,
    ModelError,
    TractError,
    Unsupported,
)
from tract_core.limits import LoadLimits
from tract_core.testing.hostile import bounded

X = placeholder("x", 2, 3)


# --- graphs ---


def test_nodes_may_stand_in_any_order_and_control_inputs_only_order():
    nodes = [
        node("Relu", "y", "a", "^first", "^x"),
        node("AddV2", "a", "x", "c:0"),
        const("c", np.float32(1)),
        X,
        node("NoOp", "first", "^x"),
    ]
    model = load(*nodes)
    assert [model.outlet_name(outlet) for outlet in model.outputs] == ["y"]
    x = np.arange(-3, 3, dtype=np.float32).reshape(2, 3)
    np.testing.assert_array_equal(run(model, x)[0], np.maximum(x + 1, 0))


def test_outputs_may_be_named():
    model = load(X, node("TopKV2", "t", "x", "k"), const("k", np.int32(2)), node("Neg", "y", "x"), outputs="t:1, y")
    places, y = run(model, np.array([[1, 3, 2], [5, 4, 6]], np.float32))
    np.testing.assert_array_equal(places, [[1, 2], [2, 0]])
    assert y.shape == (2, 3)
    assert [model.outlet_name(outlet) for outlet in model.outputs] == ["t:1", "y"]


def test_all_missing_operators_are_named_at_once():
    message = refused(TractError, X, node("Fancy", "a", "x"), node("Sofmax", "b", "a"), node("Relu", "y", "b"))
    assert "operator 'Fancy' of TensorFlow is not known" in message
    assert "operator 'Sofmax' of TensorFlow is not known" in message
    assert "did you mean 'Softmax'?" in refused(MissingOperator, X, node("Sofmax", "y", "x"))


def test_a_rank_that_is_not_known_is_asked_for():
    plain = node("Placeholder", "x", dtype=("type", 1))
    message = refused(ModelError, plain, node("Softmax", "y", "x"))
    assert "the rank or the element type of 'x' is not known" in message
    model = load(plain, node("Softmax", "y", "x"))
    handle = handle_of(model, "case")
    handle.set_input_fact(0, "2,3,f32")
    assert str(handle.into_model().output_fact(0)) == "2,3,f32"


@pytest.mark.parametrize(
    ("nodes", "said"),
    [
        ([X, X, node("Relu", "y", "x")], "two nodes are named 'x'"),
        ([X, node("Relu", "y", "z")], "it reads 'z', which nothing computes"),
        ([node("Relu", "a", "b"), node("Relu", "b", "a"), node("Relu", "y", "a")], "depend on each other in a circle"),
        ([X, node("Relu", "y", "x:1")], "output 1 of 'x' is read, it has 1"),
        ([X, node("Relu", "y", "x:a")], "which has no number of an output at its end"),
        ([X, node("Relu", "a\x1b[31m", "x")], "is named"),
        ([X, node("Relu", "", "x")], "is named ''"),
        ([X], "the graph has no outputs"),
        ([node("Identity", "y")], "it has no inputs"),
        ([X, node("Relu", "y")], "input 0 is missing"),
        ([X, node("LeakyRelu", "y", "x", alpha=3)], "attribute 'alpha' of LeakyRelu is an integer, wanted a number"),
        ([X, node("Cast", "y", "x")], "Cast wants an attribute 'DstT'"),
        ([X, node("PartitionedCall", "y", "x", f=("func", "g"))], "'g', which the file does not define"),
        ([X, node("ReadVariableOp", "y", "x")], "it reads a variable, and is given none"),
    ],
)
def test_a_graph_that_is_wrong_is_refused(nodes, said):
    assert said in refused(CorruptModel, *nodes)


def test_handles_and_lists_are_no_tensors():
    handle = node("VarHandleOp", "v", shared_name=b"v")
    assert "the variable 'v', which this operator does not take" in refused(Unsupported, handle, node("Relu", "y", "v"))
    message = refused(Unsupported, handle, node("ReadVariableOp", "y", "v"))
    assert "nothing is known of what the variable 'v' holds" in message
    assert "load the SavedModel's folder" in message


@pytest.mark.parametrize("op", ["TensorListLength", "TensorListPopBack", "TensorListGather", "TensorListConcatV2"])
def test_a_number_is_no_list(op):
    places = const("p", np.int32([0]))
    assert "list" in refused(TractError, placeholder("x"), places, node(op, "y", "x", "p"))


# --- constants ---


def raw(**fields):
    return CLASSES["TensorProto"](**fields)


@pytest.mark.parametrize(
    ("value", "kind", "said"),
    [
        (raw(dtype=1, tensor_shape=shape(3), tensor_content=b"1234"), CorruptModel, "4 bytes are there"),
        (raw(dtype=1, tensor_shape=shape(1), float_val=[1, 2]), CorruptModel, "2 elements are there"),
        (raw(dtype=1, tensor_shape=shape(1), float_val=[1], tensor_content=b"1234"), CorruptModel, "given twice"),
        (raw(dtype=1, tensor_shape=shape(-3)), CorruptModel, "has a negative size"),
        (raw(dtype=99), Unsupported, "element type number 99 is not known"),
        (raw(dtype=20), Unsupported, "handles of resources are wanted as a tensor"),
        (raw(dtype=8, tensor_shape=shape(1), scomplex_val=[1.0]), CorruptModel, "complex elements take two each"),
        (raw(dtype=7, tensor_shape=shape(1), string_val=[b"\xff"]), Unsupported, "a string is not UTF-8"),
        (raw(dtype=1, tensor_shape=shape(1 << 40)), LimitExceeded, "are allowed"),
        (raw(dtype=1, tensor_shape=shape(1 << 31)), LimitExceeded, "are allowed"),
        (raw(dtype=1, tensor_shape=shape(*[1] * 100)), LimitExceeded, "100 axes"),
    ],
)
def test_a_constant_that_is_wrong_is_refused(value, kind, said):
    message = refused(kind, node("Const", "c", value=value), node("Identity", "y", "c"))
    assert said in message
    assert "node 'c' (Const)" in message


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        (raw(dtype=1, tensor_shape=shape(4), float_val=[1, 2]), np.array([1, 2, 2, 2], np.float32)),
        (raw(dtype=3, tensor_shape=shape(3)), np.zeros(3, np.int32)),
        (raw(dtype=10, tensor_shape=shape(2), bool_val=[True]), np.array([True, True])),
        (raw(dtype=19, tensor_shape=shape(2), half_val=[0x3C00]), np.ones(2, np.float16)),
        (raw(dtype=4, tensor_shape=shape(0)), np.zeros(0, np.uint8)),
        (raw(dtype=23, uint64_val=[1 << 63]), np.array(1 << 63, np.uint64)),
        (raw(dtype=9, tensor_shape=shape(2), int64_val=[-1, 1 << 62]), np.array([-1, 1 << 62])),
        (raw(dtype=18, tensor_shape=shape(1), dcomplex_val=[1, 2]), np.array([1 + 2j])),
    ],
)
def test_the_last_value_of_a_constant_is_repeated(value, wanted):
    (found,) = run(load(node("Const", "c", value=value), node("Identity", "y", "c")))
    assert found.dtype == wanted.dtype
    np.testing.assert_array_equal(found, wanted)


# --- functions ---


def call(name, callee, *inputs):
    return node("PartitionedCall", name, *inputs, f=("func", callee))


def test_functions_that_call_each_other_in_a_circle_are_refused():
    functions = [
        function("f", ["a"], {"b": "c:output:0"}, [call("c", "g", "a")]),
        function("g", ["a"], {"b": "c:output:0"}, [call("c", "f", "a")]),
    ]
    message = refused(CorruptModel, X, call("y", "f", "x"), functions=functions)
    assert "functions call each other in a circle: f -> g -> f" in message


@pytest.mark.hostile
def test_functions_that_stand_for_very_many_nodes_are_refused():
    last = function("f0", ["a"], {"b": "r:activations:0"}, [node("Relu", "r", "a")])
    functions = [last]
    for level in range(1, 20):
        nodes = [call(f"c{i}", f"f{level - 1}", "a" if i == 0 else f"c{i - 1}:output:0") for i in range(10)]
        functions.append(function(f"f{level}", ["a"], {"b": "c9:output:0"}, nodes))
    message = refused(LimitExceeded, X, call("y", "f19", "x"), functions=functions, limits=LoadLimits(max_nodes=20_000))
    assert "more than 20000 nodes" in message


def test_functions_inside_one_another_have_a_limit():
    functions = [function("f0", ["a"], {"b": "r:activations:0"}, [node("Relu", "r", "a")])]
    functions += [function(f"f{n}", ["a"], {"b": "c:output:0"}, [call("c", f"f{n - 1}", "a")]) for n in range(1, 50)]
    assert "more than 32 deep" in refused(LimitExceeded, X, call("y", "f49", "x"), functions=functions)


@pytest.mark.parametrize(
    ("function_", "inputs", "said"),
    [
        (function("f", ["a", "b"], {"c": "a"}, []), ["x"], "1 values are given to the function 'f', which takes 2"),
        (function("f", ["a"], {"c": "d"}, []), ["x"], "it reads 'd', which nothing computes"),
        (function("f", ["a"], {"c": "r:0"}, [node("Relu", "r", "a")]), ["x"], "wanted NODE:OUTPUT:NUMBER"),
        (function("f", ["a"], {"c": "r:y:1"}, [node("Relu", "r", "a")]), ["x"], "output 1"),
    ],
)
def test_a_call_that_does_not_fit_is_refused(function_, inputs, said):
    assert said in refused(TractError, X, call("y", "f", *inputs), functions=[function_])


def test_an_output_that_nothing_gives_is_refused():
    wrong = function("f", ["a"], {"c": "a"}, [])
    del wrong.ret["c"]
    assert "nothing says what the output 'c' of the function 'f' is" in refused(
        CorruptModel, X, call("y", "f", "x"), functions=[wrong]
    )


def test_a_loop_whose_body_does_not_fit_is_refused():
    body = function("body", ["a"], {"b": "a", "c": "a"}, [])
    condition = function("cond", ["a"], {"b": "a"}, [])
    loop = node("While", "y", "x", body=("func", "body"), cond=("func", "cond"))
    assert "a loop of 1 values has a body of 1 inputs and 2 outputs" in refused(
        CorruptModel, X, loop, functions=[body, condition]
    )


def test_a_branch_that_takes_another_number_of_values_is_refused():
    branch = function("f", ["a"], {"b": "a"}, [])
    chosen = node("StatelessIf", "y", "c", "x", "x", then_branch=("func", "f"), else_branch=("func", "f"))
    message = refused(TractError, X, placeholder("c", code=10), chosen, functions=[branch])
    assert "2 values are given to the function 'f', which takes 1" in message


# --- files ---


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (b"PK\x03\x04" + bytes(26) + b"metadata.json", "a model of Keras"),
        (b"\x89HDF\r\n\x1a\n" + bytes(50), "an HDF5 file, as Keras writes it"),
        (b"GGUF" + bytes(40), "a GGUF file"),
        (b"\xff" * 40, "it is no frozen graph of TensorFlow"),
        (b"\x08\x01\xff\xff\xff", "it is no SavedModel"),
        (b"", "the graph has no outputs"),
    ],
    ids=["keras", "hdf5", "gguf", "noise", "cut saved model", "empty"],
)
def test_what_is_no_graph_is_said_to_be_what_it_is(given, said):
    with pytest.raises(CorruptModel, match=said):
        TensorflowLoader().load_bytes(given)


def test_a_file_of_keras_is_refused_with_what_to_do():
    with pytest.raises(CorruptModel) as caught:
        TensorflowLoader().load_bytes(b"PK\x03\x04" + bytes(26) + b"metadata.json")
    assert "export(" in str(caught.value)


SERVED = graph(placeholder("x", -1), node("Relu", "y", "x"))


def test_a_signature_that_is_not_there_is_refused_with_those_that_are():
    model = saved_model(SERVED, {"out": "y:0"}, {"in": "x:0"}, signature="encode")
    with pytest.raises(InputError, match="it has no signature 'encod'; it has 'encode'") as caught:
        TensorflowLoader(signature="encod").load_bytes(model.SerializeToString())
    assert "did you mean 'encode'?" in str(caught.value)


def test_the_only_signature_is_taken_and_gives_the_names():
    model = TensorflowLoader().load_bytes(
        saved_model(SERVED, {"out": "y:0"}, {"in": "x:0"}, signature="encode").SerializeToString()
    )
    assert [model.outlet_name(outlet) for outlet in model.inputs] == ["in"]
    assert [model.outlet_name(outlet) for outlet in model.outputs] == ["out"]


@pytest.mark.parametrize(
    ("change", "kind", "said"),
    [
        (lambda m: m.ClearField("meta_graphs"), CorruptModel, "there is no graph in it"),
        (lambda m: m.meta_graphs[0].ClearField("signature_def"), InputError, "it has none"),
        (lambda m: setattr(out(m), "name", "z:0"), CorruptModel, "which no node computes"),
        (lambda m: setattr(out(m), "name", ""), Unsupported, "is no dense tensor"),
        (lambda m: setattr(out(m), "name", "y:5000"), LimitExceeded, "outputs at most"),
        (lambda m: setattr(out(m), "name", "y:7"), TractError, "7"),
    ],
)
def test_a_saved_model_that_is_wrong_is_refused(change, kind, said):
    model = saved_model(SERVED, {"out": "y:0"}, {"in": "x:0"})
    change(model)
    with pytest.raises(kind, match=said):
        TensorflowLoader().load_bytes(model.SerializeToString()).into_typed()


def out(model):
    return model.meta_graphs[0].signature_def["serving_default"].outputs["out"]


def test_all_that_is_wrong_with_a_file_is_found(tmp_path):
    wrong = [node("Const", f"c{n}", value=raw(dtype=99)) for n in range(2)]
    path = tmp_path / "model.pb"
    path.write_bytes(content(*wrong, node("AddV2", "a", "c0", "c1"), X, node("Relu", "y", "x")))
    found = TensorflowLoader().examine(path)
    assert [problem.where for problem in found.problems] == ["node 'c0' (Const)", "node 'c1' (Const)"]
    assert found.model is not None
    path.write_bytes(b"\xff" * 40)
    assert "it is no frozen graph" in str(TensorflowLoader().examine(path).problems[0])


def test_a_folder_without_a_model_is_refused(tmp_path):
    with pytest.raises(ModelError, match="cannot be read"):
        TensorflowLoader().load(tmp_path)


def test_graphs_with_too_many_outputs_are_refused():
    nodes = [node("Relu", f"y{n}", "x") for n in range(50)]
    assert "50 inputs or outputs, 20 are allowed" in refused(
        LimitExceeded, X, *nodes, limits=LoadLimits(max_outputs=20)
    )


@pytest.mark.hostile
def test_what_is_beside_the_weights_is_bounded_before_it_is_parsed():
    weights = const("w", np.ones((50, 100), np.float32))
    nodes = [X, weights, node("Relu", "y", "x")]
    load(*nodes, limits=LoadLimits(max_parsed_bytes=400))
    message = refused(LimitExceeded, *nodes, limits=LoadLimits(max_parsed_bytes=50))
    assert "beside its weights it has more than 50 bytes" in message
    assert "LoadLimits(max_parsed_bytes=...)" in message
    few = LoadLimits(max_parsed_bytes=1 << 16)
    for hostile in (b"\x0a\x00" * (1 << 20), b"\x08\x01" + b"\x12\x00" * (1 << 20)):  # nodes, and graphs, of nothing
        with bounded(), pytest.raises(LimitExceeded, match="beside its weights"):
            TensorflowLoader(limits=few).load_bytes(hostile)
    for broken in (b"\x0a\xff\xff\xff\x7f", b"\x0a" + b"\xff" * 20, b"\x0b", b"\x0a"):
        with pytest.raises(CorruptModel):
            TensorflowLoader(limits=LoadLimits(max_parsed_bytes=0)).load_bytes(broken)


def test_nodes_count_each_time_that_they_are_looked_at():
    unread = [node("Relu", f"r{n}", "a") for n in range(500)]
    calls = [call("c0", "f", "x"), *(call(f"c{n}", "f", f"c{n - 1}") for n in range(1, 100))]
    functions = [function("f", ["a"], {"b": "r0:activations:0"}, unread)]
    message = refused(LimitExceeded, X, *calls, functions=functions, limits=LoadLimits(max_nodes=10_000))
    assert "more than 10000 nodes" in message


def test_a_filter_of_very_many_elements_becomes_no_nodes():
    image, filters = placeholder("x", 1, 6, 7, 3), placeholder("k", 3, 1000, 3)
    options = {"strides": [1, 2, 1, 1], "rates": [1, 1, 2, 1], "padding": b"SAME"}
    message = refused(LimitExceeded, image, filters, node("Dilation2D", "y", "x", "k", **options))
    assert "a filter of [3, 1000]; at most 1024 elements are allowed" in message


@pytest.mark.parametrize(
    ("bins", "attributes"), [(1, {}), (4, {"upper_frequency_limit": float("inf")}), (1 << 40, {}), (1 << 19, {})]
)
def test_bands_that_cannot_be(bins, attributes):
    nodes = [placeholder("x", 1, 2, bins), const("rate", np.int32(16000))]
    mfcc = node("Mfcc", "y", "x", "rate", filterbank_channel_count=4096, **attributes)
    assert "coefficients of 4096 bands" in refused(Unsupported, *nodes, mfcc)


@pytest.mark.hostile
@pytest.mark.parametrize("size", [1 << 33, (1 << 63) - 1, 1 << 62])
def test_sizes_that_no_machine_has_are_bounded(size):
    limits = LoadLimits(max_tensor_bytes=1 << 26, max_fold_bytes=1 << 24)
    nodes = [
        const("s", np.array([size], np.int64)),
        const("v", np.float32(1)),
        node("Fill", "f", "s", "v"),
        node("Relu", "y", "f"),
    ]
    with bounded():
        model = load(*nodes, limits=limits)
        with pytest.raises(TractError):
            run(model)


def test_tensor_of_the_builder_is_what_tensorflow_writes():
    assert tensor(np.float32([1])).tensor_content == np.float32([1]).tobytes()
