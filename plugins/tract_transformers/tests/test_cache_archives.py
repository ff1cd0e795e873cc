"""Archives hold caches and recurrent steps, and give them back; what does not fit is refused."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from cache_models import P, around, state_of, turn, two_caches
from click.testing import CliRunner
from tract_transformers.ops.causal_conv import CausalConv1dUpdate
from tract_transformers.ops.gated_delta_rule import GatedDeltaRule
from tract_transformers.ops.kv_attention import QuantizedKvSdpa, WindowKvSdpa
from tract_transformers.ops.kv_cache import DynKvCache
from tract_transformers.ops.quantised_kv_cache import QuantizedDynKvCache

import tract_core as tract
from tract_core.api.model import Model
from tract_core.cli.frame import app
from tract_core.errors import TractError
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.op import TypedOp
from tract_core.model.typed import TypedModel
from tract_core.ops.elementwise import Neg

sys.path.insert(0, str(Path(__file__).parents[2] / "tract_nnef" / "tests"))

import established
from documents import document, load
from established import interchange

HEADS = ["1,4,S,8,f32", "1,2,S,8,f32", "1,2,S,8,f32"]
MODELS: dict[str, tuple[TypedOp, list[str]]] = {
    "cache": (DynKvCache("past", 2, P), ["1,2,S,4,f32"]),
    "cache_f16": (DynKvCache("past", 0, P), ["S,B,f16"]),
    "keys_4": (QuantizedDynKvCache("past", 2, P, 4, True), ["1,2,S,6,f32"]),
    "values_8": (QuantizedDynKvCache("past", 2, P, 8, False), ["1,2,S,6,f16"]),
    "window": (WindowKvSdpa(2, 5), HEADS),
    "window_scaled": (WindowKvSdpa(2, 5, 0.5), HEADS),
    "quantised": (QuantizedKvSdpa(2), HEADS),
    "conv": (CausalConv1dUpdate(), ["2,3,S,f16", "3,4,f16", "2,3,4,f16"]),
    "rule": (
        GatedDeltaRule(),
        ["1,S,2,8,f16", "1,S,2,8,f16", "1,S,4,8,f16", "1,S,4,f32", "1,S,4,f16", "1,4,8,8,f32"],
    ),
}


def written(model: TypedModel, folder: Path) -> str:
    tract.nnef().with_tract_transformers().write_model_to_dir(Model(model.clone()), folder)
    return (folder / "graph.nnef").read_text()


@pytest.mark.parametrize("name", MODELS)
def test_an_archive_gives_the_model_back(name: str, tmp_path: Path) -> None:
    op, facts = MODELS[name]
    model = around(op, *facts)
    assert "= tract_transformers_" in written(model, tmp_path / "m")
    assert tract.load(tmp_path / "m").typed == model


def test_caches_share_the_symbol_of_the_past(tmp_path: Path) -> None:
    model = two_caches()
    written(model, tmp_path / "m")
    found = tract.load(tmp_path / "m").typed
    assert found == model
    state, x = state_of(found, "cpu"), np.ones((1, 2, 2, 4), np.float32)
    assert [turn(state, x, x)[2].tolist() for _ in range(2)] == [[0, 1], [2, 3]]


def test_the_doctor_knows_where_the_past_comes_from(tmp_path: Path) -> None:
    written(two_caches(), tmp_path / "m")
    result = CliRunner().invoke(app, [str(tmp_path / "m"), "doctor", "--json"])
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert not found["findings"]
    assert found["symbols"]["P"] == "what node 'keys' (DynKvCache) keeps from the turns before"


REGISTRIES = ("tract_core", "tract_transformers")
CACHE = (
    "tract_transformers_dyn_kv_cache(x, name = 'k', axis = {}, datum_type = '{}', past_sequence_shape = [{}],"
    " input_sequence_shape = [{}])"
)


def cache(axis: object = 1, kind: str = "f32", past: str = "2, P", coming: str = "2, S") -> tract.Model:
    call = CACHE.format(axis, kind, past, coming)
    text = document(f"o = {call};", ["f32[2, S]"], ["o"], registries=REGISTRIES, symbols=["S"])
    return load(text)


@pytest.mark.filterwarnings("ignore:'P' is not declared")
def test_a_symbol_that_is_not_declared_is_one() -> None:
    assert cache().typed.told_symbols() == {"P"}


@pytest.mark.filterwarnings("ignore:'P' is not declared")
@pytest.mark.parametrize("axis", [1, -1])
def test_axes_count_from_both_ends(axis: int) -> None:
    state = state_of(cache(axis, "F32").typed, "reference")
    turn(state, np.ones((2, 1), np.float32))
    assert turn(state, np.ones((2, 3), np.float32))[0].shape == (2, 4)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"kind": "f16"}, "'f16', and the input is 2,S,f32"),
        ({"kind": "text"}, "text"),
        ({"axis": 2}, "axis 2 is outside"),
        ({"past": "P"}, "has 1 sizes"),
        ({"past": "2, P, 3"}, "has 3 sizes"),
        ({"past": "3, P"}, "wanted sizes 3,S"),
        ({"past": "2, P + Q"}, "wanted a number, or one symbol"),
        ({"past": "2, -1"}, "-1 positions"),
        ({"coming": "3, S"}, "wanted sizes 3,S"),
        ({"coming": "2"}, "wanted sizes 2"),
        ({"past": "2, 'P'"}, "past_sequence_shape"),
    ],
)
def test_what_does_not_fit_is_refused(arguments: dict[str, object], problem: str) -> None:
    with pytest.raises(TractError, match=problem):
        cache(**arguments)  # pyright: ignore[reportArgumentType]: wrong ones too


@pytest.mark.parametrize("alias", ["tract_qwen35_causal_conv1d_update", "tract_transformers_causal_conv1d_update"])
@pytest.mark.parametrize("weights", ["3, 4", "3, 1, 4"])
def test_a_convolution_has_two_names(alias: str, weights: str) -> None:
    text = document(
        f"(o, s) = {alias}(x, y, z);",
        ["f32[1, 3, S]", f"f32[{weights}]", "f32[1, 3, 4]"],
        ["o", "s"],
        registries=REGISTRIES,
        symbols=["S"],
    )
    assert sum(isinstance(node.op, CausalConv1dUpdate) for node in load(text).typed.nodes) == 1


def test_a_delta_rule_has_two_names() -> None:
    sizes = ("1, S, 2, 8", "1, S, 2, 8", "1, S, 4, 8", "1, S, 4", "1, S, 4", "1, 4, 8, 8")
    shapes = [f"f32[{one}]" for one in sizes]
    for alias in ("tract_qwen35_gdn_recurrent", "tract_transformers_gdn_recurrent"):
        text = document(
            f"(o, s) = {alias}(x, y, z, t, u, v);", shapes, ["o", "s"], registries=REGISTRIES, symbols=["S"]
        )
        assert sum(isinstance(node.op, GatedDeltaRule) for node in load(text).typed.nodes) == 1


def test_an_archive_may_have_to_do_without_the_registry(tmp_path: Path) -> None:
    op, facts = MODELS["keys_4"]
    model = around(op, *facts)
    tract.nnef().write_model_to_dir(Model(model.clone()), tmp_path / "m")
    assert "tract_registry tract_transformers" not in (tmp_path / "m" / "graph.nnef").read_text()
    assert tract.load(tmp_path / "m").typed == model


# --- the established engine ---

_TURNS = """
import sys, numpy, tract
source, inputs, outputs = sys.argv[1:]
state = tract.nnef().with_tract_transformers().load(source).into_runnable().spawn_state()
given, found = numpy.load(inputs), {}
for turn in range(1 + max(int(name.split(".")[0]) for name in given.files)):
    count = sum(name.startswith(f"{turn}.") for name in given.files)
    for slot, one in enumerate(state.run([given[f"{turn}.{slot}"] for slot in range(count)])):
        found[f"{turn}.{slot}"] = one.to_numpy()
numpy.savez(outputs, **found)
"""
_TRANSFORMED = """
import sys, tract
source, name, target = sys.argv[1:]
model = tract.nnef().with_tract_transformers().load(source)
model.transform(name)
tract.nnef().with_tract_transformers().write_model_to_dir(model, target)
"""
ROUNDING = {"f16": 5e-3, "f32": 1e-6}


def numbers(rng: np.random.Generator, facts: list[str], size: int) -> list[np.ndarray]:
    """Inputs in which a turn has so many positions; all are below 0, as decays are."""
    shapes = [[{"S": size, "B": 2}.get(one) or int(one) for one in fact.split(",")[:-1]] for fact in facts]
    kinds = [f"f{int(fact[-2:]) // 8}" for fact in facts]
    return [-np.abs(rng.normal(size=shape)).astype(kind) for shape, kind in zip(shapes, kinds, strict=True)]


@interchange
@pytest.mark.parametrize("name", [name for name in MODELS if name != "quantised"])  # there, keys are rounded to whole
def test_the_established_engine_computes_the_same(name: str, tmp_path: Path) -> None:
    op, facts = MODELS[name]
    model, rng = around(op, *facts), np.random.default_rng(4)
    written(model, tmp_path / "m")
    state = state_of(model, "reference")
    given = [numbers(rng, facts, size) for size in (3, 1, 40, 1)]
    wanted = [turn(state, *inputs) for inputs in given]
    named = {f"{at}.{slot}": one for at, inputs in enumerate(given) for slot, one in enumerate(inputs)}
    np.savez(tmp_path / "given.npz", **named)
    established.there(_TURNS, tmp_path / "m", tmp_path / "given.npz", tmp_path / "found.npz")
    with np.load(tmp_path / "found.npz") as found:
        for at, outputs in enumerate(wanted):
            for slot, one in enumerate(outputs):
                tolerance = ROUNDING[facts[0][-3:]]
                np.testing.assert_allclose(found[f"{at}.{slot}"], one, rtol=tolerance, atol=tolerance)


@interchange
def test_the_established_engine_finds_and_unfolds_the_same_caches(tmp_path: Path) -> None:
    first = TypedModel()
    x = first.add_source("x", parse_typed_fact("1,2,S,4,f32", first.symbols))
    for number, op in enumerate([Neg(), DynKvCache("past", 2, P), Neg()]):  # there, any input may be the past
        (x,) = first.wire_node(f"n{number}", op, [x])
    first.set_outputs([x])
    for number, transform in enumerate(("unfold_kv_cache", "detect_kv_cache")):
        model = tract.load(tmp_path / f"theirs{number}") if number else Model(first)
        written(model.typed, tmp_path / f"ours{number}")
        established.there(_TRANSFORMED, tmp_path / f"ours{number}", transform, tmp_path / f"theirs{number + 1}")
        theirs = tract.load(tmp_path / f"theirs{number + 1}").typed.declutter()
        model.transform(transform)
        assert theirs == model.typed
