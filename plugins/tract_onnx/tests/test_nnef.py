"""How operators that only ONNX has are spelled in NNEF."""

from __future__ import annotations

import numpy as np
import pytest
from tract_nnef.documents.loader import NnefLoader
from tract_nnef.documents.saver import NnefWriter
from tract_nnef.options import Writing
from tract_onnx.nnef import trees
from tract_onnx.onnx_only.trees import Aggregate, TreeEnsemble, reference
from tract_onnx.onnx_only.trees import Test as Asked

from tract_core import errors
from tract_core.api.model import Model
from tract_core.data import Constant, DatumType
from tract_core.dims import symbol
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.same import same_model
from tract_core.model.typed import TypedModel
from tract_core.ops.lookup import Lookup
from tract_core.ops.non_max_suppression import NonMaxSuppression
from tract_core.ops.random import Distribution, Multinomial, RandomTensor

ONNX = {"tract_core", "tract_onnx"}


def model_of(op, *inputs):
    """A model of one operator. ``inputs``: facts, or arrays that are part of it."""
    model = TypedModel()
    outlets = [
        model.add_source(f"x{place}", parse_typed_fact(one, model.symbols))
        if isinstance(one, str)
        else model.add_const(f"c{place}", one)
        for place, one in enumerate(inputs)
    ]
    model.set_outputs(model.wire_node("y", op, outlets))
    return model


def cycled(model, folder, registries=ONNX):
    NnefWriter(how=Writing(frozenset(registries))).write(model, folder / "m.tar")
    return NnefLoader().load(folder / "m.tar")


def words(*values):
    return Constant(np.array(values, object))


def text(value):
    return Constant(np.array(value, object))


def forest(test=Asked.LEQ, missing=(True, False)):
    """Two trees. One asks feature 0 of 0.5, and for yes whether feature 1 is less than -1; the other is a leaf."""
    rows = np.zeros((6, 5), np.uint32)
    rows[0] = 0, 1, 2, np.float32(0.5).view(np.uint32), trees._NUMBERS[test] + 256 * missing[0]
    rows[1] = 1, 3, 4, np.float32(-1).view(np.uint32), trees._NUMBERS[Asked.LT] + 256 * missing[1]
    rows[2], rows[3], rows[4], rows[5] = [(begin, end, 0, 0, 0) for begin, end in ((0, 1), (1, 3), (3, 3), (3, 4))]
    weights = np.array([1.5, -2, 0.25, 8], np.float32).view(np.uint32)
    return trees._forest(np.array([0, 5], np.uint32), rows, np.stack([np.array([0, 1, 0, 2], np.uint32), weights], 1))


NO_TREE = trees._forest(*(np.zeros(shape, np.uint32) for shape in (0, (0, 5), (0, 2))))

MODELS = {
    "boxes": model_of(
        NonMaxSuppression(True, symbol("kept")),
        "2,B,4,f32",
        "2,3,B,f32",
        np.array(5, np.int64),
        np.array(0.5, np.float32),
        np.array(-np.inf, np.float32),
    ),
    "computed limits": model_of(NonMaxSuppression(False, symbol("n")), "1,5,4,f32", "1,1,5,f32", "i64", "f32", "f32"),
    "places": model_of(Multinomial(4, DatumType.I64, 3), "B,5,f32"),
    "small places": model_of(Multinomial(1, DatumType.I32, None), "2,0,f16"),
    "uniform": model_of(RandomTensor(Distribution.UNIFORM, -0.1, 1e-30, DatumType.F16, 7, (symbol("B"), 3)), ),
    "normal": model_of(RandomTensor(Distribution.NORMAL, 0.0, 2.0, DatumType.F64, None, ())),
    "values": model_of(Lookup(Constant(np.arange(2)), words("a", "b"), text("c")), "B,i64"),
    "keys": model_of(Lookup(words("a", "", "b"), Constant(np.arange(3)), Constant(np.array(-1))), "B,string"),
    "small keys": model_of(
        Lookup(Constant(np.array([3, 1, 2])), Constant(np.arange(3, dtype=np.int32)), Constant(np.array(-1, np.int32))),
        "B,i64",
    ),
    "many keys": model_of(
        Lookup(Constant(np.arange(50)[::-1].copy()), Constant(np.arange(50)), Constant(np.array(9))), "i64"
    ),
    "no tree": model_of(TreeEnsemble(NO_TREE, 2, Aggregate.MIN), "B,1,f32"),
    "trees": model_of(TreeEnsemble(forest(), 3, Aggregate.SUM), "B,2,f32"),
    "trees of f64": model_of(TreeEnsemble(forest(Asked.NEQ), 4, Aggregate.MAX), "2,S,f64"),
}  # fmt: skip


@pytest.mark.parametrize("name", MODELS)
def test_an_operator_comes_back(name, tmp_path) -> None:
    assert same_model(cycled(MODELS[name], tmp_path), MODELS[name])


REFUSED = {
    "places in i16": model_of(Multinomial(4, DatumType.I16, 3), "B,5,f32"),
    "neither": model_of(Lookup(words("a"), words("b"), text("")), "B,string"),
    "without a number": model_of(RandomTensor(Distribution.NORMAL, np.nan, 2.0, DatumType.F64, None, ())),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_the_operators_cannot_say_is_left_to_others(name, tmp_path) -> None:
    with pytest.raises(errors.Unsupported, match="node 'y'"):
        cycled(REFUSED[name], tmp_path)


@pytest.mark.parametrize("missing", [(True, False), (False, False)])
def test_at_least_is_the_opposite_of_less(missing, tmp_path) -> None:
    op = TreeEnsemble(forest(Asked.GTE, missing), 3, Aggregate.AVERAGE)
    found = cycled(model_of(op, "B,2,f32"), tmp_path)
    back = found.nodes[found.outputs[0].node].op
    assert Asked.GTE not in back.forest.asked
    x = np.array([[v, w] for v in (0.4, 0.5, 0.6, np.nan) for w in (-2, -1, np.nan)], np.float32)
    np.testing.assert_array_equal(reference(back, x), reference(op, x))


def test_trees_of_a_file_vote_as_their_nodes_say() -> None:
    def vote(row):
        if not (row[0] <= 0.5 or np.isnan(row[0])):
            return [1.5, 0, 8]
        return [0.25, -2, 8] if row[1] < -1 else [0, 0, 8]

    x = np.array([[v, w] for v in (0.4, 0.5, 0.6, np.nan) for w in (-2, -1, np.nan)], np.float32)
    np.testing.assert_array_equal(reference(TreeEnsemble(forest(), 3, Aggregate.SUM), x), [vote(row) for row in x])


def run(folder, body, *inputs):
    """What statements compute, of x, y and z."""
    names = ["x", "y", "z"][: len(inputs)]
    kinds = {"f": "F", "i": "I", "O": "String"}
    for name, one in zip(names, inputs, strict=True):
        kind = kinds[one.dtype.kind] + ("" if one.dtype.kind == "O" else str(8 * one.itemsize))
        body = f"{name} = tract_core_external(shape = {list(one.shape)}, datum_type = '{kind}');\n{body}"
    lines = "".join(f"extension tract_registry {name};" for name in sorted(ONNX))
    text = f"version 1.0;{lines} graph g({', '.join(names)}) -> (o) {{ {body} }}"
    (folder / "graph.nnef").write_text(text)
    return Model.from_typed(NnefLoader().load(folder)).into_runnable().run(list(inputs))[0].to_numpy()


BOXES = np.array([[[0, 0, 1, 1], [0, 0, 1, 0.9], [2, 2, 3, 3]]], np.float32)
SCORES = np.array([[[0.7, 0.8, 0.9]]], np.float32)
TREES = """
  trees = tract_core_cast([0], to = 'u32');
  nodes = tract_core_cast([[0, 1, 2, 1056964608, 6], [0, 1, 0, 0, 0], [1, 2, 0, 0, 0]], to = 'u32');
  leaves = tract_core_cast([[1, 1073741824], [0, 1065353216]], to = 'u32');
  o = tract_onnx_ml_tree_ensemble_classifier(
    x, trees, nodes, leaves, max_used_feature = 0, n_classes = 2, aggregate_fn = 'SUM');
"""

TEXTS = [
    ("o = tract_onnx_non_max_suppression(x, y, 9, 0.5);", [BOXES, SCORES], [[0, 0, 2], [0, 0, 1]]),
    ("o = tract_onnx_non_max_suppression(x, y, 1, 0.5, 0.0);", [BOXES, SCORES], [[0, 0, 2]]),
    ("o = tract_onnx_non_max_suppression(x, y);", [BOXES, SCORES], np.zeros((0, 3))),
    (
        "o = tract_onnx_non_max_suppression(x, y, [9], 0.95, 0.75, center_point_box = 0);",
        [BOXES, SCORES],
        [[0, 0, 2], [0, 0, 1]],
    ),
    ("o = tract_onnx_ml_direct_lookup(x, ['a', 'b'], 'c');", [np.array([1, -1, 2, 0])], ["b", "c", "c", "a"]),
    ("o = tract_onnx_ml_direct_lookup(x, [1.5], fallback = [0.5]);", [np.array([[0, 1]], np.int32)], [[1.5, 0.5]]),
    (
        "o = tract_onnx_ml_reverse_lookup(x, ['a', 'b'], fallback = -1);",
        [np.array(["b", "z", "a"], object)],
        [1, -1, 0],
    ),
    ("o = tract_onnx_ml_reverse_lookup(x, [5, 7], 9);", [np.array([7, 6, 5])], [1, 9, 0]),
    (TREES, [np.array([[0.4], [0.5], [0.6], [np.nan]], np.float32)], [[1, 0], [0, 2], [0, 2], [1, 0]]),
    (
        "o = tract_onnx_multinomial(x, dtype = 7, sample_size = 2, seed = 1);",
        [np.array([[0, -900.0]], np.float32)],
        [[0, 0]],
    ),
    ("o = tract_onnx_random('f32', [2, 1], 'uniform', [3.0, 3.0], seed = 5.0);", [], [[3.0], [3.0]]),
]


@pytest.mark.parametrize(("body", "inputs", "wanted"), TEXTS)
def test_a_text_means_what_it_says(body, inputs, wanted, tmp_path) -> None:
    found = run(tmp_path, body, *inputs)
    assert found.shape == np.shape(wanted)
    assert found.tolist() == np.asarray(wanted).tolist()


WRONG = [
    (
        "o = tract_onnx_multinomial(x, dtype = 3);",
        "argument 'dtype' of tract_onnx_multinomial is 3, wanted 6 for i32 or 7 for i64",
    ),
    (
        "o = tract_onnx_random('F32', [2], 'uniform', [1.0]);",
        "argument 'parameters' of tract_onnx_random has 1 entries, wanted 2",
    ),
    (
        "o = tract_onnx_random('F32', [2], 'cauchy', [1.0, 2.0]);",
        "argument 'dist' of tract_onnx_random is 'cauchy', wanted one of 'uniform', 'normal'",
    ),
    ("o = tract_onnx_ml_direct_lookup(x, x, 1.0);", "'values'.*computed"),
    (TREES.replace("1056964608, 6]", "1056964608, 7]"), "test number 7"),
    (TREES.replace("[[0, 1, 2, ", "[[0, 1, 3, "), "leads to node 3, and there are 3"),
    (TREES.replace("[[0, 1, 2, ", "[[0, 1, 0, "), "in circles"),
    (TREES.replace("[1, 2, 0, 0, 0]", "[1, 3, 0, 0, 0]"), "leads to vote 3"),
    (TREES.replace("[1, 2, 0, 0, 0]", "[2, 1, 0, 0, 0]"), "ends before it begins"),
    (TREES.replace("n_classes = 2", "n_classes = 1"), "votes for class 1, of 1"),
    (TREES.replace("'u32'", "'i64'"), "'trees' is .*, wanted rows of 1 u32"),
    (
        TREES.replace("aggregate_fn = 'SUM'", "aggregate_fn = 'MEDIAN'"),
        "'aggregate_fn' of tract_onnx_ml_tree_ensemble_classifier is 'MEDIAN', wanted one of 'AVERAGE', 'SUM'",
    ),
]


@pytest.mark.parametrize(("body", "message"), WRONG)
def test_what_is_wrong_is_refused(body, message, tmp_path) -> None:
    with pytest.raises(errors.TractError, match=f"(?s)line .*{message}"):
        run(tmp_path, body, np.zeros((1, 2), np.float32))


def test_votes_that_leaves_share_are_bounded() -> None:
    nodes = np.zeros((1 << 16, 5), np.uint32)
    nodes[:, 1] = 1 << 20
    with pytest.raises(errors.CorruptModel, match="they share some"):
        trees._forest(np.zeros(0, np.uint32), nodes, np.zeros((1 << 20, 2), np.uint32))
