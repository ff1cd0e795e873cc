"""Decision trees, against ONNX Runtime, scikit-learn, and trees walked node by node here."""

from __future__ import annotations

import sys
import time
import tracemalloc
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import numpy_helper
from onnx_check import load, run
from onnx_single import node_model, outputs_of, refused, same_as_onnxruntime
from tract_onnx.frontend import OnnxLoader
from tract_onnx.wire_format import scan

from tract_core.errors import CorruptModel, FactError, LimitExceeded, RunError, Unsupported
from tract_core.runtime.plan import TypedSimplePlan

BENCH = Path(__file__).parents[3] / "bench"
MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ")
FEATURES = 5


def random_trees(rng, trees=7, depth=5, modes=MODES):
    """Trees of random shape, thresholds on a grid so that equality occurs: the attributes of their nodes."""
    found = {name: [] for name in ("treeids", "nodeids", "featureids", "modes", "values", "truenodeids")}
    found |= {"falsenodeids": [], "missing_value_tracks_true": []}
    for tree in range(trees):
        pending, count = [(0, 0)], 1
        rows = {}
        while pending:
            node, level = pending.pop()
            if level == depth or (level and rng.random() < 0.25):
                rows[node] = (0, "LEAF", 0.0, 0, 0, 0)
                continue
            rows[node] = (
                int(rng.integers(FEATURES)),
                str(rng.choice(modes)),
                float(rng.integers(-2, 3)) / 2,
                count,
                count + 1,
                int(rng.integers(2)),
            )
            pending += [(count, level + 1), (count + 1, level + 1)]
            count += 2
        for node in range(count):
            feature, mode, value, if_true, if_false, missing = rows[node]
            for name, item in zip(found, (tree, node, feature, mode, value, if_true, if_false, missing), strict=True):
                found[name].append(item)
    return {f"nodes_{name}": items for name, items in found.items()}


def leaves(trees):
    return [
        (tree, node)
        for tree, node, mode in zip(trees["nodes_treeids"], trees["nodes_nodeids"], trees["nodes_modes"], strict=True)
        if mode == "LEAF"
    ]


def random_votes(rng, trees, targets, prefix, *, votes=2, low=-1.0):
    """Each leaf votes for some targets."""
    rows = [
        (tree, node, int(target), float(np.float32(rng.uniform(low, 1))))
        for tree, node in leaves(trees)
        for target in rng.choice(targets, min(votes, targets), replace=False)
    ]
    return {
        f"{prefix}_{name}": [row[i] for row in rows] for i, name in enumerate(("treeids", "nodeids", "ids", "weights"))
    }


def grid(rng, rows=40, dtype=np.float32):
    """Features on the grid of the thresholds, some of them missing."""
    x = (rng.integers(-3, 4, (rows, FEATURES)) / 2).astype(dtype)
    x[rng.random(x.shape) < 0.1] = np.nan
    return x


ASK = {
    "BRANCH_LEQ": np.less_equal,
    "BRANCH_LT": np.less,
    "BRANCH_GTE": np.greater_equal,
    "BRANCH_GT": np.greater,
    "BRANCH_EQ": np.equal,
    "BRANCH_NEQ": np.not_equal,
}


def walked(trees, votes, prefix, x, targets, *, reduce=sum):
    """The answer, one row and one node at a time."""
    columns = zip(*(trees[f"nodes_{name}"] for name in ("treeids", "nodeids")), strict=True)
    index = {pair: i for i, pair in enumerate(columns)}
    names = ("treeids", "nodeids", "ids", "weights")
    rows = list(zip(*(votes[f"{prefix}_{name}"] for name in names), strict=True))
    result = np.zeros((len(x), targets))
    for i, features in enumerate(x):
        heard = [[] for _ in range(targets)]
        for tree in sorted(set(trees["nodes_treeids"])):
            node = 0
            while (mode := trees["nodes_modes"][index[tree, node]]) != "LEAF":
                at = index[tree, node]
                value = features[trees["nodes_featureids"][at]]
                yes = ASK[mode](value, trees["nodes_values"][at])
                yes = yes or (np.isnan(value) and trees["nodes_missing_value_tracks_true"][at])
                node = trees["nodes_truenodeids" if yes else "nodes_falsenodeids"][at]
            for _, _, target, weight in (row for row in rows if row[:2] == (tree, node)):
                heard[target].append(weight)
        result[i] = [reduce(votes) if votes else 0 for votes in heard]
    return result


@pytest.mark.parametrize("aggregate", ["SUM", "AVERAGE", "MIN", "MAX"])
@pytest.mark.parametrize("targets", [1, 3])
def test_regressor(aggregate, targets):
    rng = np.random.default_rng(targets)
    trees = random_trees(rng)
    votes = random_votes(rng, trees, targets, "target")
    x = grid(rng)
    attributes = {**trees, **votes, "n_targets": targets, "aggregate_function": aggregate}
    reduce = {"SUM": sum, "AVERAGE": lambda heard: sum(heard) / 7, "MIN": min, "MAX": max}[aggregate]
    wanted = walked(trees, votes, "target", x, targets, reduce=reduce)
    for batch in (None, "N"):
        (found,) = outputs_of("TreeEnsembleRegressor", [x], version=3, batch=batch, **attributes)
        np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-7)
        assert found.dtype == np.float32
    base = np.linspace(0.5, 1.5, targets).astype(np.float32).tolist()
    same_as_onnxruntime("TreeEnsembleRegressor", [x], version=3, base_values=base, **attributes)


@pytest.mark.parametrize("mode", MODES)
def test_each_mode_alone(mode):
    rng = np.random.default_rng(5)
    trees = random_trees(rng, modes=[mode])
    votes = random_votes(rng, trees, 2, "target")
    same_as_onnxruntime("TreeEnsembleRegressor", [grid(rng)], version=3, n_targets=2, **trees, **votes)


@pytest.mark.parametrize("dtype", [np.float64, np.int64, np.int32])
def test_other_types_of_features(dtype):
    rng = np.random.default_rng(1)
    trees = random_trees(rng)
    votes = random_votes(rng, trees, 2, "target")
    x = (grid(rng) if dtype is np.float64 else rng.integers(-2, 3, (30, FEATURES))).astype(dtype)
    (found,) = outputs_of("TreeEnsembleRegressor", [x], version=3, batch="N", n_targets=2, **trees, **votes)
    np.testing.assert_allclose(found, walked(trees, votes, "target", x, 2), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("transform", ["NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO"])
def test_classifier(transform):
    rng = np.random.default_rng(2)
    trees = random_trees(rng)
    votes = random_votes(rng, trees, 4, "class", low=0.01)
    options = {**trees, **votes, "classlabels_strings": ["a", "b", "c", "d"], "post_transform": transform}
    same_as_onnxruntime("TreeEnsembleClassifier", [grid(rng)], version=3, outputs=2, **options)
    base = {"base_values": [0.5, 0.25, 0.125, 1.0]}
    same_as_onnxruntime("TreeEnsembleClassifier", [grid(rng)], version=3, outputs=2, **options, **base)


def test_probit_is_exact():
    attributes = stump("class", [0.25, 0.9, 0.75, 0.1], [0, 1, 0, 1], [1, 1, 2, 2])
    options = {**attributes, "classlabels_int64s": [5, 6], "post_transform": "PROBIT"}
    label, scores = outputs_of("TreeEnsembleClassifier", [X2], version=3, outputs=2, **options)
    assert label.tolist() == [6, 5]
    quarter, tenth = 0.6744897501960817, 1.2815515655446004  # a table of the normal distribution
    np.testing.assert_allclose(scores, [[-quarter, tenth], [quarter, -tenth]], rtol=1e-6)


X2 = np.array([[0.0], [1.0]], np.float32)


def stump(prefix, weights, ids, nodes, mode="BRANCH_LEQ"):
    """One question: node 1 where the answer is yes, else node 2."""
    return {
        "nodes_treeids": [0, 0, 0],
        "nodes_nodeids": [0, 1, 2],
        "nodes_featureids": [0, 0, 0],
        "nodes_modes": [mode, "LEAF", "LEAF"],
        "nodes_values": [0.5, 0.0, 0.0],
        "nodes_truenodeids": [1, 0, 0],
        "nodes_falsenodeids": [2, 0, 0],
        f"{prefix}_treeids": [0] * len(weights),
        f"{prefix}_nodeids": nodes,
        f"{prefix}_ids": ids,
        f"{prefix}_weights": weights,
    }


def test_greater_or_equal_is_a_question():
    """Read as a leaf, this stump would say 0 for every row."""
    x = np.array([[0.2], [0.5], [0.9]], np.float32)
    attributes = stump("class", [1.0, 1.0], [0, 1], [1, 2], "BRANCH_GTE")
    label, _ = outputs_of("TreeEnsembleClassifier", [x], version=3, outputs=2, classlabels_int64s=[0, 1], **attributes)
    assert label.tolist() == [1, 0, 0]


@pytest.mark.parametrize("transform", ["NONE", "LOGISTIC", "SOFTMAX"])
@pytest.mark.parametrize("voted", [0, 1])
@pytest.mark.parametrize("weights", [[0.2, 0.8], [-0.2, 0.8], [-0.2, 0.3]])
def test_two_classes_and_votes_for_one(transform, voted, weights):
    attributes = stump("class", weights, [voted] * 2, [1, 2])
    options = {**attributes, "classlabels_strings": ["no", "yes"], "post_transform": transform}
    same_as_onnxruntime("TreeEnsembleClassifier", [X2], version=3, outputs=2, **options)


def test_two_classes_and_votes_for_both():
    attributes = stump("class", [0.9, 0.1, 0.3, 0.7], [0, 1, 0, 1], [1, 1, 2, 2])
    options = {**attributes, "classlabels_int64s": [10, 20], "base_values": [0.0, 0.5]}
    label, scores = outputs_of("TreeEnsembleClassifier", [X2], version=3, outputs=2, **options)
    assert label.tolist() == [10, 20]
    np.testing.assert_allclose(scores, [[0.9, 0.6], [0.3, 1.2]], rtol=1e-6)


def test_the_base_value_of_a_boosted_classifier():
    options = {"classlabels_int64s": [0, 1], "post_transform": "LOGISTIC", "base_values": [-1.0]}
    attributes = stump("class", [-0.2, 1.8], [0, 0], [1, 2])
    label, scores = outputs_of("TreeEnsembleClassifier", [X2], version=3, outputs=2, **attributes, **options)
    assert label.tolist() == [0, 1]
    yes = 1 / (1 + np.exp([1.2, -0.8]))
    np.testing.assert_allclose(scores, np.stack([1 - yes, yes], 1), rtol=1e-6)


def test_doubles():
    """A threshold that f32 does not hold separates two rows."""
    attributes = stump("target", [], [0, 0], [1, 2])
    del attributes["nodes_values"], attributes["target_weights"]
    attributes["target_treeids"] = [0, 0]
    tensors = {
        "nodes_values_as_tensor": numpy_helper.from_array(np.array([1 + 1e-12, 0, 0])),
        "target_weights_as_tensor": numpy_helper.from_array(np.array([0.5, -0.25])),
        "base_values_as_tensor": numpy_helper.from_array(np.array([0.125])),
    }
    x = np.array([[1.0], [1 + 2e-12]])
    (found,) = outputs_of("TreeEnsembleRegressor", [x], version=3, n_targets=1, **attributes, **tensors)
    assert found.tolist() == [[0.625], [-0.125]]


def sklearn_trees(estimators):
    """The attributes of nodes of scikit-learn's trees."""
    found = {name: [] for name in ("treeids", "nodeids", "featureids", "modes", "values", "truenodeids")}
    found |= {"falsenodeids": []}
    for tree, estimator in enumerate(estimators):
        inner = estimator.tree_
        for node in range(inner.node_count):
            is_leaf = inner.children_left[node] < 0
            found["treeids"].append(tree)
            found["nodeids"].append(node)
            found["featureids"].append(0 if is_leaf else int(inner.feature[node]))
            found["modes"].append("LEAF" if is_leaf else "BRANCH_LEQ")
            found["values"].append(0.0 if is_leaf else float(inner.threshold[node]))
            found["truenodeids"].append(0 if is_leaf else int(inner.children_left[node]))
            found["falsenodeids"].append(0 if is_leaf else int(inner.children_right[node]))
    return {f"nodes_{name}": items for name, items in found.items()}


def sklearn_votes(estimators, prefix, scale):
    names = ("treeids", "nodeids", "ids", "weights")
    found = {f"{prefix}_{name}": [] for name in names}
    for tree, estimator in enumerate(estimators):
        inner = estimator.tree_
        for node in np.flatnonzero(inner.children_left < 0):
            for target, weight in enumerate(inner.value[node, 0]):
                row = (tree, int(node), target, float(weight) * scale)
                for name, item in zip(names, row, strict=True):
                    found[f"{prefix}_{name}"].append(item)
    return found


def test_a_random_forest_of_scikit_learn():
    rng = np.random.default_rng(3)
    x = rng.normal(size=(200, 6)).astype(np.float32)
    y = np.digitize(x[:, 0] + x[:, 1] * x[:, 2], [-0.5, 0.5])
    forest = pytest.importorskip("sklearn.ensemble").RandomForestClassifier(15, max_depth=6, random_state=0).fit(x, y)
    votes = sklearn_votes(forest.estimators_, "class", 1 / 15)
    options = {**sklearn_trees(forest.estimators_), **votes, "classlabels_int64s": [0, 1, 2]}
    label, scores = outputs_of("TreeEnsembleClassifier", [x], version=3, outputs=2, batch="N", **options)
    np.testing.assert_array_equal(label, forest.predict(x))
    np.testing.assert_allclose(scores, forest.predict_proba(x), atol=1e-6)


def test_gradient_boosting_of_scikit_learn():
    rng = np.random.default_rng(4)
    x = rng.normal(size=(150, 4)).astype(np.float32)
    boosting = pytest.importorskip("sklearn.ensemble").GradientBoostingRegressor
    model = boosting(n_estimators=20, init="zero", random_state=0).fit(x, np.sin(x).sum(axis=1))
    trees = model.estimators_[:, 0]
    options = {**sklearn_trees(trees), **sklearn_votes(trees, "target", model.learning_rate), "n_targets": 1}
    (found,) = outputs_of("TreeEnsembleRegressor", [x], version=1, batch="N", **options)
    np.testing.assert_allclose(found[:, 0], model.predict(x), atol=1e-5)


def tensor(values, dtype=np.float32):
    return numpy_helper.from_array(np.array(values, dtype), "t")


def two_levels(**changes):
    """x0 in {1, 2, 3} -> (x1 >= 0 -> leaf 0, else leaf 1); else leaf 2"""
    attributes = {
        "n_targets": 2,
        "tree_roots": [0],
        "nodes_featureids": [0, 1],
        "nodes_modes": tensor([6, 2], np.uint8),
        "nodes_splits": tensor([0, 0]),
        "nodes_truenodeids": [1, 0],
        "nodes_trueleafs": [0, 1],
        "nodes_falsenodeids": [2, 1],
        "nodes_falseleafs": [1, 1],
        "leaf_targetids": [0, 1, 1],
        "leaf_weights": tensor([10, 20, 30]),
        "membership_values": tensor([1, 2, 3, np.nan]),
    }
    attributes.update(changes)
    return {name: value for name, value in attributes.items() if value is not None}


MIXED = np.array([[1, 0], [3, -1], [4, 0], [np.nan, 5]], np.float32)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
def test_membership(dtype):
    floats = ("nodes_splits", "leaf_weights", "membership_values")
    given = {name: numpy_helper.to_array(two_levels()[name]) for name in floats}
    typed = {name: tensor(array, dtype) for name, array in given.items()}
    (found,) = outputs_of("TreeEnsemble", [MIXED.astype(dtype)], version=5, batch="N", **two_levels(**typed))
    assert found.tolist() == [[10, 0], [0, 20], [0, 30], [0, 30]]
    assert found.dtype == dtype
    if dtype is not np.float16:
        same_as_onnxruntime("TreeEnsemble", [MIXED.astype(dtype)], version=5, **two_levels(**typed))


@pytest.mark.parametrize(("transform", "name"), [(1, "SOFTMAX"), (2, "LOGISTIC"), (3, "SOFTMAX_ZERO")])
def test_transforms_by_number(transform, name):
    scores = np.array([[10.0, 0], [0, 20], [0, 30], [0, 30]])
    (found,) = outputs_of("TreeEnsemble", [MIXED], version=5, **two_levels(post_transform=transform))
    wanted = {
        "SOFTMAX": np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True),
        "LOGISTIC": 1 / (1 + np.exp(-scores)),
        "SOFTMAX_ZERO": (scores != 0).astype(float),
    }[name]
    np.testing.assert_allclose(found, wanted, rtol=1e-6)


def test_missing_values_and_a_tree_of_one_leaf():
    (found,) = outputs_of("TreeEnsemble", [MIXED], version=5, **two_levels(nodes_missing_value_tracks_true=[1, 0]))
    assert found[3].tolist() == [10, 0]
    alone = two_levels(
        nodes_featureids=[0],
        nodes_modes=tensor([0], np.uint8),
        nodes_splits=tensor([0]),
        nodes_truenodeids=[0],
        nodes_trueleafs=[1],
        nodes_falsenodeids=[0],
        nodes_falseleafs=[1],
        leaf_targetids=[1],
        leaf_weights=tensor([5]),
        membership_values=None,
    )
    (found,) = outputs_of("TreeEnsemble", [MIXED], version=5, **alone)
    assert found.tolist() == [[0, 5]] * 4


@pytest.mark.parametrize(
    ("error", "match", "changes"),
    [
        (CorruptModel, "can be reached in two ways", {"nodes_truenodeids": [1, 0], "nodes_trueleafs": [0, 0]}),
        (CorruptModel, "can be reached in two ways", {"nodes_truenodeids": [0, 0], "nodes_trueleafs": [0, 1]}),
        (CorruptModel, "can be reached in two ways", {"tree_roots": [0, 0]}),
        (CorruptModel, "'nodes_truenodeids' has 9, wanted 0 to 1", {"nodes_truenodeids": [9, 0]}),
        (CorruptModel, "'nodes_falsenodeids' has -1, wanted 0 to 2", {"nodes_falsenodeids": [-1, 1]}),
        (CorruptModel, "'tree_roots' has 7, wanted 0 to 1", {"tree_roots": [7]}),
        (CorruptModel, "'leaf_targetids' has 2, wanted 0 to 1", {"leaf_targetids": [0, 1, 2]}),
        (CorruptModel, "'nodes_featureids' has -3", {"nodes_featureids": [0, -3]}),
        (CorruptModel, "'nodes_modes' has 7, wanted 0 to 6", {"nodes_modes": tensor([7, 2], np.uint8)}),
        (CorruptModel, "3 nodes_featureids", {"nodes_featureids": [0, 0, 0]}),
        (CorruptModel, "has 2 lists, and 1 nodes test membership", {"membership_values": tensor([1, np.nan, 2])}),
        (CorruptModel, "there are 0 targets", {"n_targets": 0}),
        (LimitExceeded, "there are 1099511627776 targets", {"n_targets": 1 << 40}),
        (Unsupported, "'aggregate_function' is 4", {"aggregate_function": 4}),
        (CorruptModel, "has 4611686018427387904, wanted 0 to 2147483647", {"nodes_featureids": [1 << 62, 0]}),
    ],
)
def test_hostile_trees_by_position(error, match, changes):
    refused(error, match, "TreeEnsemble", [MIXED], version=5, **two_levels(**changes))


@pytest.mark.parametrize(
    ("error", "match", "changes"),
    [
        (CorruptModel, "tree 0 has no first node", {"nodes_truenodeids": [1, 2, 0], "nodes_modes": ["BRANCH_LEQ"] * 3}),
        (
            CorruptModel,
            "leads to the node at place 0",
            {"nodes_truenodeids": [0, 0, 0], "nodes_falsenodeids": [1, 0, 0]},
        ),
        (CorruptModel, "tree 0 has no node 9", {"nodes_truenodeids": [9, 0, 0]}),
        (CorruptModel, "tree 0 has two nodes of number 1", {"nodes_nodeids": [0, 1, 1]}),
        (CorruptModel, "tree 0 has 2 nodes that nothing leads to", {"nodes_falsenodeids": [1, 0, 0]}),
        (CorruptModel, "tree 5 has no node 1", {"target_treeids": [5, 0]}),
        (CorruptModel, "'target_ids' has 3, wanted 0 to 0", {"target_ids": [0, 3]}),
        (CorruptModel, "1 target_ids", {"target_ids": [0]}),
        (CorruptModel, "3 base values, wanted 1", {"base_values": [1.0, 2.0, 3.0]}),
        (Unsupported, "'BRANCH_MAYBE'; known are BRANCH_LEQ", {"nodes_modes": ["BRANCH_MAYBE", "LEAF", "LEAF"]}),
        (Unsupported, "'post_transform' of TreeEnsembleRegressor is 'X'", {"post_transform": "X"}),
        (FactError, "looks at 9 features, found 2,1,f32", {"nodes_featureids": [8, 0, 0]}),
    ],
)
def test_hostile_trees_by_name(error, match, changes):
    attributes = {**stump("target", [1.0, 2.0], [0, 0], [1, 2]), "n_targets": 1, **changes}
    refused(error, match, "TreeEnsembleRegressor", [X2], version=3, **attributes)


def test_a_circle_below_the_root():
    attributes = stump("target", [1.0], [0], [2])
    attributes |= {"nodes_modes": ["BRANCH_LEQ", "BRANCH_LEQ", "LEAF"], "nodes_truenodeids": [1, 1, 0]}
    attributes |= {"nodes_falsenodeids": [2, 2, 0], "n_targets": 1}
    refused(CorruptModel, "can be reached in two ways", "TreeEnsembleRegressor", [X2], version=3, **attributes)


def test_too_few_features_in_a_run():
    attributes = {**stump("target", [1.0, 2.0], [0, 0], [1, 2]), "n_targets": 1, "nodes_featureids": [3, 0, 0]}
    model = node_model("TreeEnsembleRegressor", [X2], version=3, **attributes)
    model.graph.input[0].type.tensor_type.shape.dim[1].dim_param = "F"
    plan = TypedSimplePlan(load(model).into_typed())
    with pytest.raises(RunError, match="the trees look at 4 features, found 1"):
        plan.run([X2])


def test_a_long_chain_ends():
    """One tree as deep as it has questions."""
    depth = 20_000
    attributes = {
        "n_targets": 1,
        "tree_roots": [0],
        "nodes_featureids": [0] * depth,
        "nodes_modes": tensor([0] * depth, np.uint8),
        "nodes_splits": tensor(np.arange(depth)),
        "nodes_truenodeids": [0] * depth,
        "nodes_trueleafs": [1] * depth,
        "nodes_falsenodeids": [*range(1, depth), 1],
        "nodes_falseleafs": [0] * (depth - 1) + [1],
        "leaf_targetids": [0, 0],
        "leaf_weights": tensor([1, 2]),
    }
    start = time.perf_counter()
    x = np.array([[0], [depth - 1], [depth]], np.float32)
    (found,) = outputs_of("TreeEnsemble", [x], version=5, **attributes)
    assert found.tolist() == [[1], [1], [2]]
    assert time.perf_counter() - start < 10


def test_a_large_batch_is_walked_in_parts(monkeypatch):
    rng = np.random.default_rng(6)
    trees = random_trees(rng)
    votes = random_votes(rng, trees, 2, "target")
    x = grid(rng, rows=100)
    monkeypatch.setattr("tract_onnx.onnx_only.trees.CHUNK", 70)
    (found,) = outputs_of("TreeEnsembleRegressor", [x], version=3, n_targets=2, **trees, **votes)
    np.testing.assert_allclose(found, walked(trees, votes, "target", x, 2), rtol=1e-6, atol=1e-7)


def test_no_rows():
    model = node_model(
        "TreeEnsembleRegressor", [X2], version=3, batch="N", n_targets=1, **stump("target", [1.0], [0], [1])
    )
    assert isinstance(model, onnx.ModelProto)
    (found,) = run(model, {"x0": X2[:0]})
    assert found.shape == (0, 1)


def shuffled(rng, columns):
    """Lists that belong together, in another order."""
    order = rng.permutation(len(next(iter(columns.values()))))
    return {name: [column[place] for place in order] for name, column in columns.items()}


@pytest.mark.parametrize("stretch", [1, 3, 1 << 40])
def test_nodes_in_any_order_under_any_numbers(stretch):
    rng = np.random.default_rng(stretch)
    trees = random_trees(rng, trees=9)
    votes = random_votes(rng, trees, 2, "target")
    x = grid(rng)
    wanted = walked(trees, votes, "target", x, 2)
    renumbered = {
        name: [item * stretch - 5 for item in column] if name.endswith(("treeids", "nodeids")) else column
        for name, column in {**trees, **votes}.items()
    }
    nodes = shuffled(rng, {name: column for name, column in renumbered.items() if name.startswith("nodes")})
    voting = shuffled(rng, {name: column for name, column in renumbered.items() if name.startswith("target")})
    (found,) = outputs_of("TreeEnsembleRegressor", [x], version=3, n_targets=2, **nodes, **voting)
    np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-7)


def test_lists_that_stay_in_the_file(monkeypatch):
    monkeypatch.setattr("tract_onnx.frontend.scan", lambda buffer, limits: scan(buffer, large=0, long=0, limits=limits))
    rng = np.random.default_rng(3)
    trees = random_trees(rng)
    votes = random_votes(rng, trees, 3, "class", low=0.01)
    same_as_onnxruntime("TreeEnsembleRegressor", [grid(rng)], version=3, n_targets=3, **trees, **renamed(votes))
    options = {**trees, **votes, "classlabels_int64s": [7, -1, 0]}
    same_as_onnxruntime("TreeEnsembleClassifier", [grid(rng)], version=3, outputs=2, **options)


def renamed(votes):
    return {name.replace("class", "target"): column for name, column in votes.items()}


def chain(count):
    """A tree that is as deep as it can be: ``count`` questions, each of which leads to the next, or to a leaf."""
    asking, leaf = range(0, 2 * count, 2), range(1, 2 * count, 2)
    order = [place for pair in zip(asking, leaf, strict=True) for place in pair] + [2 * count]
    is_asking = [place % 2 == 0 and place < 2 * count for place in order]
    return {
        "nodes_treeids": [0] * len(order),
        "nodes_nodeids": order,
        "nodes_featureids": [0] * len(order),
        "nodes_modes": ["BRANCH_LEQ" if asks else "LEAF" for asks in is_asking],
        "nodes_values": [float(place) for place in order],
        "nodes_truenodeids": [place + 1 if asks else 0 for place, asks in zip(order, is_asking, strict=True)],
        "nodes_falsenodeids": [place + 2 if asks else 0 for place, asks in zip(order, is_asking, strict=True)],
        "target_treeids": [0, 0],
        "target_nodeids": [1, 2 * count],
        "target_ids": [0, 0],
        "target_weights": [1.0, 2.0],
        "n_targets": 1,
    }


@pytest.mark.parametrize("turn_back", [False, True])
def test_the_deepest_tree_takes_no_longer_than_a_broad_one(turn_back):
    count = 50_000
    attributes = chain(count)
    if turn_back:  # the last question leads to the second one, which is then in a circle with all behind it
        attributes["nodes_falsenodeids"][2 * count - 2] = 2
        attributes["nodes_falsenodeids"][0] = 2 * count
    model = node_model("TreeEnsembleRegressor", [np.zeros((1, 1), np.float32)], version=3, **attributes)
    start = time.process_time()
    if turn_back:
        with pytest.raises(CorruptModel, match="part of a circle"):
            load(model).into_typed()
    else:
        (node,) = (node for node in load(model).into_typed().nodes if type(node.op).__name__ == "TreeEnsemble")
        assert node.op.forest.depth == count
    assert time.process_time() - start < 5


def test_many_nodes_take_seconds_and_little_more_memory_than_the_file(tmp_path):
    sys.path.insert(0, str(BENCH))
    import bench_trees

    path = tmp_path / "trees.onnx"
    bench_trees.write(path, trees=400, leaves=600)
    model = OnnxLoader().load(path)
    tracemalloc.start()
    try:
        start = time.process_time()
        typed = model.into_typed()
        assert time.process_time() - start < 10
        assert tracemalloc.get_traced_memory()[1] < 1.75 * path.stat().st_size
    finally:
        tracemalloc.stop()
    x = np.random.default_rng(1).normal(size=(20, 40)).astype(np.float32)
    (found,) = TypedSimplePlan(typed).run([x])
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    np.testing.assert_allclose(found, session.run(None, {"x": x})[0], rtol=1e-4, atol=1e-4)
