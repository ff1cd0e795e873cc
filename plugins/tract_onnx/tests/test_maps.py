"""Maps, against written-down results and ONNX Runtime."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper
from onnx_check import load
from onnx_single import ML, node_model, refused

import tract_core
from tract_core.data.boxes import boxed
from tract_core.errors import CorruptModel, FactError, InputError, LimitExceeded, RunError, Unsupported
from tract_core.runtime.plan import TypedSimplePlan

SCORES = np.array([[0.25, 0.75], [1.0, 0.0], [0.5, 0.5]], np.float32)


def plan_of(model):
    typed = load(model).into_typed()
    typed.declutter()
    return TypedSimplePlan(typed)


@pytest.mark.parametrize("labels", [{"classlabels_int64s": [3, 7]}, {"classlabels_strings": ["no", "yes"]}])
def test_zip_map(labels):
    model = node_model("ZipMap", [SCORES], batch="N", **labels)
    (found,) = plan_of(model).run([SCORES])
    keys = next(iter(labels.values()))
    assert [{key: float(value) for key, value in row.items()} for row in found.item()] == [
        dict(zip(keys, row, strict=True)) for row in SCORES.tolist()
    ]
    assert all(value.dtype == np.float32 and value.shape == () for row in found.item() for value in row.values())
    (theirs,) = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x0": SCORES})
    assert [{key: float(value) for key, value in row.items()} for row in found.item()] == theirs


def test_zip_map_of_a_list():
    (found,) = plan_of(node_model("ZipMap", [SCORES[0]], classlabels_int64s=[3, 7])).run([SCORES[0]])
    assert [{key: float(value) for key, value in row.items()} for row in found.item()] == [{3: 0.25, 7: 0.75}]


def test_zip_map_refuses():
    refused(
        FactError, "rows of 3 elements, one per key, found 3,2,f32", "ZipMap", [SCORES], classlabels_int64s=[1, 2, 3]
    )
    refused(CorruptModel, "a label of ZipMap is there twice", "ZipMap", [SCORES], classlabels_int64s=[1, 1])
    refused(CorruptModel, "found none", "ZipMap", [SCORES])


def test_zip_map_after_a_classifier():
    nodes = [
        helper.make_node(
            "LinearClassifier",
            ["x"],
            ["label", "scores"],
            domain=ML,
            coefficients=[1.0, -1.0],
            intercepts=[0.0],
            classlabels_ints=[0, 1],
            post_transform="LOGISTIC",
        ),
        helper.make_node("ZipMap", ["scores"], ["maps"], domain=ML, classlabels_int64s=[0, 1]),
    ]
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 2])]
    outputs = [helper.make_value_info(name, onnx.TypeProto()) for name in ("label", "maps")]
    graph = helper.make_graph(nodes, "pipeline", inputs, outputs)
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid(ML, 1), helper.make_opsetid("", 17)], ir_version=8
    )
    label, maps = plan_of(model).run([np.array([[0.0, 1.0], [2.0, 1.0]], np.float32)])
    assert label.tolist() == [0, 1]
    assert [max(row, key=row.get) for row in maps.item()] == [0, 1]


def map_model(op_type, key, value, **attributes):
    given = helper.make_map_type_proto(key, helper.make_tensor_type_proto(value, []))
    node = helper.make_node(op_type, ["x"], ["y"], domain=ML, **attributes)
    infos = [helper.make_value_info("x", given)], [helper.make_value_info("y", onnx.TypeProto())]
    graph = helper.make_graph([node], "single", *infos)
    return helper.make_model(
        graph, opset_imports=[helper.make_opsetid(ML, 1), helper.make_opsetid("", 17)], ir_version=8
    )


def run_map(model, value):
    """``value``: plain numbers or texts by their keys."""
    plan = plan_of(model)
    kind = plan.input_facts[0].datum_type.item.datum_type.numpy
    return plan.run([boxed({key: np.array(one, kind) for key, one in value.items()})])[0]


STRING, INT64, FLOAT, DOUBLE = TensorProto.STRING, TensorProto.INT64, TensorProto.FLOAT, TensorProto.DOUBLE


@pytest.mark.parametrize(
    ("types", "attributes", "value"),
    [
        ((STRING, FLOAT), {"string_vocabulary": ["a", "c", "b", "z"]}, {"a": 4.0, "c": 8.0}),
        ((STRING, FLOAT), {"string_vocabulary": ["a", "c", "b", "z"]}, {"a": 4.0, "q": 8.0}),
        ((INT64, FLOAT), {"int64_vocabulary": [7, 1]}, {1: 4.5, 7: -8.0}),
    ],
)
def test_dict_vectorizer(types, attributes, value):
    model = map_model("DictVectorizer", *types, **attributes)
    (theirs,) = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": value})
    np.testing.assert_array_equal(run_map(model, value), theirs, strict=True)


def test_dict_vectorizer_of_other_types():
    (found,) = run_map(map_model("DictVectorizer", STRING, INT64, string_vocabulary=["a", "c"]), {"c": 1 << 60})
    np.testing.assert_array_equal(found, np.array([0, 1 << 60]), strict=True)
    (found,) = run_map(map_model("DictVectorizer", INT64, DOUBLE, int64_vocabulary=[7, 1]), {1: 0.1})
    np.testing.assert_array_equal(found, np.array([0, 0.1]), strict=True)


def test_dict_vectorizer_of_texts_and_of_nothing():
    model = map_model("DictVectorizer", INT64, STRING, int64_vocabulary=[7, 1])
    assert run_map(model, {1: "one"}).tolist() == [["", "one"]]
    assert run_map(model, {}).tolist() == [["", ""]]


@pytest.mark.parametrize(
    ("attributes", "value"),
    [
        ({}, {5: 4.5, 1: 8.0}),
        ({"map_form": "SPARSE", "max_map": 7}, {5: 4.5, 1: 8.0}),
        ({"map_form": "SPARSE", "max_map": 3}, {5: 4.5, 1: 8.0}),
        ({"cast_to": "TO_INT64"}, {5: 4.5, 1: -8.7}),
        ({"cast_to": "TO_STRING"}, {5: 4.5, 1: 8.0}),
    ],
)
def test_cast_map(attributes, value):
    model = map_model("CastMap", INT64, FLOAT, **attributes)
    (theirs,) = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": value})
    np.testing.assert_array_equal(run_map(model, value), theirs, strict=True)


def test_cast_map_of_texts():
    assert run_map(map_model("CastMap", INT64, STRING), {5: "4.5", 1: "8"}).tolist() == [[8.0, 4.5]]
    texts = {"cast_to": "TO_STRING", "map_form": "SPARSE", "max_map": 3}
    assert run_map(map_model("CastMap", INT64, STRING, **texts), {1: "x"}).tolist() == [["", "x", ""]]
    with pytest.raises(RunError, match="'x' is not a number that f32 holds"):
        run_map(map_model("CastMap", INT64, STRING), {1: "x"})


def runnable_of(model):
    return tract_core.onnx().load_bytes(model.SerializeToString()).into_model().into_runnable()


@pytest.mark.parametrize(
    ("types", "vocabulary", "value"),
    [
        ((STRING, FLOAT), {"string_vocabulary": ["a", "b"]}, {"a": 4.1, "b": 3}),
        ((STRING, FLOAT), {"string_vocabulary": ["a", "b"]}, {"b": float("inf")}),
        ((INT64, FLOAT), {"int64_vocabulary": [7, 1]}, {1: 4.5, 7: -8.0}),
    ],
)
def test_maps_of_plain_values_are_taken(types, vocabulary, value):
    """As ONNX Runtime takes them; an array without axes, and NumPy's own keys and numbers, do as well."""
    model = map_model("DictVectorizer", *types, **vocabulary)
    runnable = runnable_of(model)
    (theirs,) = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": value})
    arrays = {np.array([key])[0]: np.array(one, np.float32) for key, one in value.items()}
    numbers = {key: np.float32(one) for key, one in value.items()}
    for given in (value, arrays, numbers):
        np.testing.assert_array_equal(runnable.run([given])[0].to_numpy(), theirs, strict=True)
        np.testing.assert_array_equal(runnable.run({"x": given})[0].to_numpy(), theirs, strict=True)


def test_texts_and_integers_of_maps():
    runnable = runnable_of(map_model("DictVectorizer", INT64, STRING, int64_vocabulary=[7, 1]))
    assert runnable.run([{1: "one"}])[0].to_numpy().tolist() == [["", "one"]]
    runnable = runnable_of(map_model("DictVectorizer", STRING, INT64, string_vocabulary=["a"]))
    assert runnable.run([{"a": 1 << 60}])[0].to_numpy().tolist() == [[1 << 60]]


def test_maps_that_come_out_can_be_sorted_printed_and_given_again():
    """As ONNX Runtime's can, which gives Python's own numbers."""
    model = node_model("ZipMap", [SCORES], batch="N", classlabels_strings=["no", "yes"])
    (found,) = runnable_of(model).run([SCORES])
    (theirs,) = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x0": SCORES})
    assert found == theirs
    assert {type(value) for row in found for value in row.values()} == {np.float32}
    assert [max(row, key=row.get) for row in found] == ["yes", "no", "no"]
    (again,) = runnable_of(map_model("DictVectorizer", STRING, FLOAT, string_vocabulary=["yes"])).run([found[0]])
    assert again.to_numpy().tolist() == [[0.75]]


@pytest.mark.parametrize(
    ("types", "value", "problem"),
    [
        ((STRING, FLOAT), {"a": 1e40}, r"1e\+40 is no f32"),
        ((STRING, FLOAT), {"a": True}, "True is no f32"),
        ((STRING, FLOAT), {"a": "1"}, "'1' is no f32"),
        ((STRING, FLOAT), {"a": np.float64(1)}, "entry 'a': it is f64, f32 is wanted"),
        ((STRING, FLOAT), {"a": [1.0]}, "Inputs must be of type Tensor"),
        ((STRING, FLOAT), {0: 1.0}, r"key 0 is of type int, the keys of map\(string,f32\) are string"),
        ((STRING, INT64), {"a": 1.0}, "1.0 is no i64"),
        ((STRING, INT64), {"a": 1 << 63}, f"{1 << 63} is no i64"),
        ((INT64, STRING), {1: 1}, "1 is no string"),
        ((INT64, FLOAT), {"1": 1.0}, "key '1' is of type str, the keys of .* are i64"),
    ],
)
def test_maps_that_do_not_fit(types, value, problem):
    vocabulary = {"string_vocabulary": ["a"]} if types[0] == STRING else {"int64_vocabulary": [1]}
    with pytest.raises(InputError, match=f"input 'x': {problem}"):
        runnable_of(map_model("DictVectorizer", *types, **vocabulary)).run([value])


def test_maps_refuse():
    with pytest.raises(RunError, match="a key is -5, and a place"):
        run_map(map_model("CastMap", INT64, FLOAT, map_form="SPARSE", max_map=3), {-5: 1.0})
    with pytest.raises(LimitExceeded, match="'max_map' is 1099511627776"):
        load(map_model("CastMap", INT64, FLOAT, map_form="SPARSE", max_map=1 << 40)).into_typed()
    with pytest.raises(Unsupported, match="attribute 'cast_to' of CastMap is 'X'"):
        load(map_model("CastMap", INT64, FLOAT, cast_to="X")).into_typed()
    with pytest.raises(FactError, match="a map from string to f32, found"):
        load(map_model("DictVectorizer", INT64, FLOAT, string_vocabulary=["a"])).into_typed()
    refused(FactError, "DictVectorizer wants a map, found 3,2,f32", "DictVectorizer", [SCORES], string_vocabulary=["a"])
    with pytest.raises(InputError, match="dictionary is wanted"):
        plan_of(map_model("CastMap", INT64, FLOAT)).run([boxed([1.0])])
