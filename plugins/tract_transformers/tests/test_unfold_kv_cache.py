"""Caches go out of the state of a model, to inputs and outputs, and back: turns give the same."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from cache_models import RUNTIMES, Array, P, S, around, pieces, state_of, turn, two_caches
from tract_transformers.ops.kv_cache import DynKvCache

import tract_core as tract
from tract_core.api.model import Model
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel
from tract_core.ops.concat import TypedConcat
from tract_core.ops.elementwise import Neg
from tract_core.transforms.apply import apply_transform

TURNS = [0, 1, 2, 7, 1]


def caches(model: TypedModel) -> list[DynKvCache]:
    return [node.op for node in model.live_nodes() if isinstance(node.op, DynKvCache)]


def named(model: TypedModel, outlets: list[OutletId]) -> list[tuple[str, str]]:
    return [(model.outlet_name(outlet), str(model.outlet_fact(outlet))) for outlet in outlets]


def test_each_cache_becomes_an_input_and_an_output() -> None:
    model = apply_transform(two_caches(), "unfold_kv_cache")
    assert named(model, model.inputs)[2:] == [("past_keys", "1,2,P,4,f32"), ("past_values", "1,2,P,4,f32")]
    assert [name for name, _ in named(model, model.outputs)[3:]] == ["past_keys_concat", "past_values_concat"]
    assert {fact for _, fact in named(model, model.outputs)[3:]} == {"1,2,P+S,4,f32"}
    assert not caches(model)
    assert not model.told_symbols()


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_who_hands_the_past_over_gets_the_same(runtime) -> None:
    rng = np.random.default_rng(3)
    unfolded = apply_transform(two_caches(), "unfold_kv_cache")
    folded = apply_transform(unfolded, "detect_kv_cache")
    assert folded == two_caches().declutter()
    runnable = tract.runtime_for_name(runtime).prepare(Model(unfolded))
    states = state_of(two_caches(), runtime), state_of(folded, runtime)
    past: list[Array] = [np.zeros((1, 2, 0, 4), np.float32)] * 2
    for k, v in zip(*(pieces(rng, (1, 2, 0, 4), 2, TURNS, "f4") for _ in range(2)), strict=True):
        *outputs, keys, values = (one.to_numpy() for one in runnable.run([k, v, *past]))
        past = [keys, values]
        for state in states:
            for found, wanted in zip(turn(state, k, v), outputs, strict=True):
                np.testing.assert_array_equal(found, wanted)


def extended(
    past: str = "1,P,4,f32", new: str = "1,S,4,f32", *, last: bool = True, is_read: bool = True
) -> tuple[TypedModel, OutletId, OutletId]:
    """A past with new positions behind it, which is an output and read; with the past and the whole."""
    model = TypedModel()
    facts = (parse_typed_fact(fact, model.symbols) for fact in (past, new))
    old, x = map(model.add_source, ("past", "x"), facts)
    (x,) = model.wire_node("new", Neg(), [x])
    (whole,) = model.wire_node("whole", TypedConcat(1), [old, x] if last else [x, old])
    model.set_outputs([whole, *(model.wire_node("read", Neg(), [whole]) if is_read else [])])
    return model, old, whole


def test_a_past_that_is_only_extended_is_kept() -> None:
    model, _, _ = extended()
    found = apply_transform(model, "detect_kv_cache")
    assert caches(found) == [DynKvCache("past", 1, P)]
    assert [name for name, _ in named(found, found.inputs)] == ["x"]
    assert [name for name, _ in named(found, found.outputs)] == ["read"]


def test_an_output_that_is_given_twice_stays_once() -> None:
    model, _, whole = extended(is_read=False)
    model.set_outputs([whole, whole])
    found = apply_transform(model, "detect_kv_cache")
    assert caches(found) == [DynKvCache("past", 1, P)]
    assert [name for name, _ in named(found, found.outputs)] == ["whole"]


def another_reader(model: TypedModel, past: OutletId) -> None:
    model.outputs += model.wire_node("other", Neg(), [past])


def given_back(model: TypedModel, past: OutletId) -> None:
    model.outputs.append(past)


def kept_inside(model: TypedModel, past: OutletId) -> None:
    del model.outputs[0]


@pytest.mark.parametrize("change", [another_reader, given_back, kept_inside])
def test_a_past_that_has_other_uses_stays(change) -> None:
    model, past, _ = extended()
    change(model, past)
    assert not caches(apply_transform(model, "detect_kv_cache"))


@pytest.mark.parametrize(
    ("past", "new", "options"),
    [
        ("1,P,4,f32", "1,S,4,f32", {"last": False}),
        ("1,P,4,f32", "1,S,4,f32", {"is_read": False}),
        ("1,3,4,f32", "1,S,4,f32", {}),
        ("1,S,4,f32", "1,S,4,f32", {}),
        ("1,P+Q,4,f32", "1,S,4,f32", {}),
        ("B,P,4,f32", "C,S,4,f32", {}),
    ],
)
def test_what_is_no_past_stays(past: str, new: str, options: dict[str, bool]) -> None:
    model, _, _ = extended(past, new, **options)
    assert not caches(apply_transform(model, "detect_kv_cache"))


def test_other_inputs_and_what_they_are_called_stay() -> None:
    model = around(DynKvCache("x0", 0, P), "S,f32")
    found = apply_transform(model, "unfold_kv_cache")
    assert [name for name, _ in named(found, found.inputs)] == ["x0", "x0.1"]


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_model_of_onnx_keeps_its_past(runtime, tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    helper, kind = onnx.helper, onnx.TensorProto.FLOAT
    fact = helper.make_tensor_value_info
    nodes = [
        helper.make_node("Concat", ["past.0.key", "x"], ["present.0.key"], axis=2),
        helper.make_node("ReduceSum", ["present.0.key"], ["sums"], keepdims=0),
    ]
    inputs = [fact("x", kind, [1, 2, "S", 4]), fact("past.0.key", kind, [1, 2, "P", 4])]
    outputs = [fact("sums", kind, []), fact("present.0.key", kind, [1, 2, "T", 4])]
    model = helper.make_model(
        helper.make_graph(nodes, "g", inputs, outputs), opset_imports=[helper.make_opsetid("", 18)], ir_version=9
    )
    onnx.save(model, tmp_path / "m.onnx")
    found = tract.load(tmp_path / "m.onnx")
    found.transform("detect_kv_cache")
    assert caches(found.typed)[0].key == "past.0.key"
    state = state_of(found.typed, runtime)
    sums = [float(turn(state, np.ones((1, 2, size, 4), np.float32))[0]) for size in (1, 2, 0, 3)]
    assert sums == [8, 24, 24, 48]


def test_symbols_are_those_of_the_past() -> None:
    model = apply_transform(extended()[0], "detect_kv_cache")
    assert model.told_symbols() == {"P"}
    assert model.outlet_fact(model.outputs[0]).shape == (1, P + S, 4)
