"""Decision trees on the CPU runtime: the very numbers that the walk in NumPy gives, level by level."""

from __future__ import annotations

import numpy as np
import pytest
from onnx_check import load
from onnx_single import node_model
from test_trees import X2, stump
from tract_cpu.plan import CpuPlan
from tract_llvm.isa import chosen
from tract_onnx.cpu.forest import AT_ONCE
from tract_onnx.cpu.trees import ROWS_OF_TASK
from tract_onnx.onnx_only import trees as onnx_trees
from tract_onnx.onnx_only.trees import Aggregate, Forest, TreeEnsemble, depth_of

from tract_core.data import Constant, DatumType
from tract_core.errors import RunError
from tract_core.model.fact import TypedFact
from tract_core.model.typed import TypedModel
from tract_core.ops.axis import MoveAxis
from tract_core.ops.wiring import wire_one
from tract_core.runtime.plan import TypedSimplePlan

Ask = onnx_trees.Test
FEATURES = 5
EDGES = (-np.inf, -1.5, -0.5, -1e-45, -0.0, 0.0, 1e-45, 0.5, 1.0, 3e38, np.inf, np.nan)


def cast(numbers, dtype):
    with np.errstate(over="ignore"):
        return numbers.astype(dtype)


def forest(
    seed, trees=5, depth=5, *, tests=tuple(Ask)[:-1], missing=(False, True), votes=(0, 1, 3), targets=3, dtype="f4"
):
    """Trees of random shape whose splits are ends of the type and their neighbours; leaves vote so many times."""
    random = np.random.default_rng(seed)
    test, links, roots = [], [], []
    for _ in range(trees):
        roots.append(len(test))
        pending = [(len(test), 0)]
        test.append(Ask.LEAF)
        links.append((len(test) - 1,) * 2)
        while pending:
            node, level = pending.pop(random.integers(len(pending)))
            if level < depth and random.random() < 0.8:
                test[node] = random.choice(tests)
                links[node] = len(test), len(test) + 1
                pending += [(len(test), level + 1), (len(test) + 1, level + 1)]
                links += [(len(test),) * 2, (len(test) + 1,) * 2]
                test += [Ask.LEAF, Ask.LEAF]
    count, test = len(test), np.array(test, np.uint8)
    if_true, if_false = (np.array(links, np.int32).reshape(-1, 2)[:, side] for side in (0, 1))
    asks = test != Ask.LEAF
    counts = np.where(asks, 0, random.choice(votes, count))
    sizes = random.integers(0, 4, np.count_nonzero(test == Ask.MEMBER))
    columns = {
        "test": test,
        "feature": np.where(asks, random.integers(0, FEATURES, count), 0).astype(np.int32),
        "split": cast(random.choice(EDGES, count), dtype),
        "if_true": if_true,
        "if_false": if_false,
        "missing": random.choice(missing, count),
        "roots": np.array(roots, np.int32),
        "first": np.append(0, np.cumsum(counts)).astype(np.int32),
        "target": random.integers(0, targets, counts.sum()).astype(np.int32),
        "weight": random.normal(size=counts.sum()).astype(dtype),
        "member_nodes": np.flatnonzero(test == Ask.MEMBER).astype(np.int32),
        "first_member": np.append(0, np.cumsum(sizes)).astype(np.int32),
        "members": cast(random.choice(EDGES[:-1], sizes.sum()), dtype),
    }
    depth = depth_of(columns["roots"], if_true, if_false, ~asks)
    return Forest(depth=depth, **{name: Constant(column) for name, column in columns.items()})


def features(rows, dtype="f4", seed=0):
    random = np.random.default_rng(seed)
    if np.dtype(dtype).kind != "f":
        return random.integers(0, 3, (rows, FEATURES)).astype(dtype)
    return cast(random.choice(EDGES, (rows, FEATURES)), dtype)


def model_of(op, x):
    model = TypedModel()
    fact = TypedFact.of(DatumType.from_numpy(x.dtype), (model.symbols.parse("N"), x.shape[1]))
    model.set_outputs(model.wire_node("trees", op, [model.add_source("x", fact)]))
    return model


def same(op, x, isa=""):
    model = model_of(op, x)
    plan = CpuPlan(model, chosen(isa))
    assert [one.how for one in plan.explain().placements] == ["trees"]
    found, wanted = plan.spawn().run([x])[0], TypedSimplePlan(model).run([x])[0]
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("rows", [0, 1, 2, AT_ONCE - 1, AT_ONCE, 3 * AT_ONCE + 1, ROWS_OF_TASK, 2 * ROWS_OF_TASK + 9])
@pytest.mark.parametrize("trees", [0, 1, AT_ONCE, AT_ONCE + 1])
def test_any_number_of_rows_and_trees(rows, trees) -> None:
    same(TreeEnsemble(forest(rows + trees, trees), 3, Aggregate.SUM), features(rows))


@pytest.mark.parametrize("isa", ["", "sse2"])
@pytest.mark.parametrize("missing", [(False,), (True,)])
@pytest.mark.parametrize("test", tuple(Ask)[:-1])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_each_question_at_the_ends_of_the_type(test, missing, dtype, isa) -> None:
    found = forest(int(test), 20, 3, tests=(test,), missing=missing, votes=(1,), dtype=dtype)
    same(TreeEnsemble(found, 3, Aggregate.SUM), features(300, dtype), isa)


@pytest.mark.parametrize("aggregate", Aggregate)
@pytest.mark.parametrize(("targets", "votes"), [(1, (1,)), (1, (0, 1)), (3, (1,)), (3, (0, 1)), (3, (3,)), (3, (0, 2))])
def test_each_way_to_vote(aggregate, targets, votes) -> None:
    op = TreeEnsemble(forest(targets, 9, votes=votes, targets=targets), targets, aggregate)
    for rows in (1, 30):
        same(op, features(rows))


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i1", "u1", "i4", "i8", "u8"])
@pytest.mark.parametrize("split", ["f2", "f4", "f8"])
def test_other_types(dtype, split) -> None:
    same(TreeEnsemble(forest(1, dtype=split), 3, Aggregate.AVERAGE), features(20, dtype))


def test_rows_that_lie_side_by_side() -> None:
    x = features(20)
    model = TypedModel()
    fact = TypedFact.of(DatumType.F32, (FEATURES, model.symbols.parse("N")))
    turned = wire_one(model, "turned", MoveAxis(0, 1), model.add_source("x", fact))
    model.set_outputs(model.wire_node("trees", TreeEnsemble(forest(2), 3, Aggregate.SUM), [turned]))
    given = [np.ascontiguousarray(x.T)]
    found, wanted = CpuPlan(model, chosen("")).spawn().run(given), TypedSimplePlan(model).run(given)
    np.testing.assert_array_equal(found[0], wanted[0])


def test_threads_change_nothing(monkeypatch) -> None:
    monkeypatch.setattr("tract_cpu.binding.WORK_FOR_THREADS", 0)
    x = features(1000)
    model = model_of(TreeEnsemble(forest(3, 20), 3, Aggregate.SUM), x)
    one, two = (CpuPlan(model, chosen(""), threads).spawn().run([x])[0] for threads in (1, 2))
    np.testing.assert_array_equal(one, two)


def test_too_few_features_in_a_run() -> None:
    attributes = {**stump("target", [1.0, 2.0], [0, 0], [1, 2]), "n_targets": 1, "nodes_featureids": [3, 0, 0]}
    model = node_model("TreeEnsembleRegressor", [X2], version=3, **attributes)
    model.graph.input[0].type.tensor_type.shape.dim[1].dim_param = "F"
    state = CpuPlan(load(model).into_typed(), chosen("")).spawn()
    with pytest.raises(RunError, match="the trees look at 4 features, found 1"):
        state.run([X2])
    assert state.run([np.zeros((len(X2), 4), np.float32)])[0].shape == (len(X2), 1)


def test_votes_that_are_no_numbers_stay_with_the_host_where_one_is_chosen() -> None:
    attributes = {**stump("target", [np.nan, 2.0], [0, 0], [1, 2]), "n_targets": 1, "aggregate_function": "MIN"}
    model = load(node_model("TreeEnsembleRegressor", [X2], version=3, **attributes)).into_typed()
    plan = CpuPlan(model, chosen(""))
    assert plan.explain().placements[0].why == "a vote is not a number"
    np.testing.assert_array_equal(plan.spawn().run([X2])[0], TypedSimplePlan(model).run([X2])[0])
