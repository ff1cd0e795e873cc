"""Other float types: which nodes, which casts, which constants, which numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tract_core import FloatPrecision as Spec
from tract_core import Model
from tract_core.data import DatumType
from tract_core.errors import InputError, RunError, TransformError
from tract_core.limits import LoadLimits
from tract_core.model import TypedModel
from tract_core.model.const import Const
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.op import TypedOp
from tract_core.ops.binary import Add
from tract_core.ops.cast import Cast
from tract_core.ops.einsum import EinSum
from tract_core.ops.elementwise import Tanh
from tract_core.plugins import default_registry
from tract_core.transforms.float_precision import F16ToF32, F32ToF16, FloatPrecision
from tract_core.transforms.lookup import transform_class

Maker = Callable[..., TypedModel]

WEIGHTS = np.array([[0.1, -0.2], [0.3, 0.4], [0.5, 1.6]])


def _types(model: TypedModel) -> dict[str, str]:
    return {node.name: node.outputs[0].fact.datum_type.short for node in model.live_nodes()}


def _casts(model: TypedModel) -> int:
    return sum(isinstance(node.op, Cast) for node in model.live_nodes())


def _run(model: TypedModel, *inputs: Any) -> list[Any]:
    return [tensor.to_numpy() for tensor in Model.from_typed(model).into_runnable().run(list(inputs))]


def _by_hand(x: np.ndarray[Any, Any], kind: Any) -> list[np.ndarray[Any, Any]]:
    """The network in float64, rounded to ``kind`` after each operator."""

    def rounded(array: Any) -> np.ndarray[Any, Any]:
        return np.asarray(array).astype(np.float32).astype(kind).astype(np.float64)

    act = rounded(np.tanh(rounded(rounded(x) @ rounded(WEIGHTS))))
    return [rounded(np.exp(act)), act]


@pytest.mark.parametrize(("to", "kind", "relative"), [("f16", np.float16, 2e-3), ("bf16", ml_dtypes.bfloat16, 2e-2)])
def test_everything_is_converted(network: Maker, to: str, kind: Any, relative: float) -> None:
    result = FloatPrecision("f32", to).apply(network())
    result.check_consistency()
    assert set(_types(result).values()) == {to}
    assert [result.outlet_name(o) for o in result.outputs] == ["out", "act"]
    assert _casts(result) == 0
    x = np.random.default_rng(5).uniform(-2, 2, (2, 4, 3)).astype(np.float32)
    for one, wanted in zip(_run(result.declutter(), x.astype(kind)), _by_hand(x, kind), strict=True):
        assert one.dtype == kind
        np.testing.assert_allclose(one.astype(np.float64), wanted, rtol=relative, atol=relative)


@pytest.mark.parametrize(("to", "kind", "relative"), [("f16", np.float16, 2e-3), ("bf16", ml_dtypes.bfloat16, 2e-2)])
def test_everything_is_converted_but_the_interface(network: Maker, to: str, kind: Any, relative: float) -> None:
    result = FloatPrecision("f32", to, keep_io_types=True).apply(network())
    result.check_consistency()
    types = _types(result)
    assert {types[name] for name in ("proj", "act", "out", "weights")} == {to}
    assert types["x"] == "f32"
    assert [result.outlet_fact(o).datum_type.short for o in result.outputs] == ["f32", "f32"]
    assert [result.outlet_name(o) for o in result.outputs] == ["out", "act"]
    assert _casts(result) == 3
    x = np.random.default_rng(5).uniform(-2, 2, (2, 4, 3)).astype(np.float32)
    found = _run(result.declutter(), x)
    for one, wanted in zip(found, _by_hand(x, kind), strict=True):
        assert one.dtype == np.float32
        np.testing.assert_allclose(one, wanted, rtol=relative, atol=relative)
        assert not np.allclose(
            one, np.tanh(x @ WEIGHTS) if one is found[1] else np.exp(np.tanh(x @ WEIGHTS)), rtol=1e-6
        )


def test_constants_are_converted_once_and_rounded(network: Maker) -> None:
    result = F32ToF16().apply(network())
    held = result.node_by_name("weights").op
    assert isinstance(held, Const)
    assert held.value.array.dtype == np.float16
    assert held.value.array.tolist() == WEIGHTS.astype(np.float16).tolist()
    assert sum(isinstance(node.op, Const) for node in result.live_nodes()) == 1


def test_accumulators_follow(network: Maker) -> None:
    op = F32ToF16().apply(network()).node_by_name("proj").op
    assert isinstance(op, EinSum)
    assert op.acc is DatumType.F16


def test_there_and_back(network: Maker) -> None:
    result = F16ToF32().apply(F32ToF16().apply(network()))
    assert set(_types(result).values()) == {"f32"}
    assert [str(result.outlet_fact(o)) for o in result.inputs] == ["B,S,3,f32"]
    assert _casts(result) == 0


def test_there_and_back_keeps_the_interface(network: Maker) -> None:
    model = network(DatumType.F16)
    result = F16ToF32(keep_io_types=True).apply(model)
    assert {_types(result)[name] for name in ("proj", "act", "out", "weights")} == {"f32"}
    assert [result.outlet_fact(o).datum_type.short for o in [*result.inputs, *result.outputs]] == ["f16"] * 3
    x = np.random.default_rng(6).uniform(-2, 2, (1, 2, 3)).astype(np.float16)
    out, act = _run(result, x)
    exact = np.tanh(x.astype(np.float64) @ WEIGHTS.astype(np.float16).astype(np.float64))
    assert act.dtype == out.dtype == np.float16
    np.testing.assert_array_equal(act, exact.astype(np.float16))
    np.testing.assert_allclose(out, np.exp(exact), rtol=6e-4)


@pytest.mark.parametrize(
    ("transform", "converted"),
    [
        (F32ToF16(exclude=["act"]), {"proj", "out"}),
        (F32ToF16(include=["act"]), {"act"}),
        (F32ToF16(include=["pro", "ou"], exclude=["out"]), {"proj"}),
        (F32ToF16(filter="==act, out"), {"act", "out"}),
        (F32ToF16(filter="!=act"), {"proj", "out"}),
        (FloatPrecision("F32", DatumType.F16, None, ("proj",)), {"act", "out"}),
        (F32ToF16(exclude=["a", "o"]), set[str]()),
    ],
    ids=lambda v: repr(v) if not isinstance(v, set) else "-".join(sorted(v)),
)
@pytest.mark.parametrize("keep", [False, True])
def test_filters(network: Maker, transform: Any, converted: set[str], keep: bool) -> None:
    """They choose nodes. Inputs and outputs have the new type unless they are kept."""
    result = replace(transform, keep_io_types=keep).apply(network())
    result.check_consistency()
    types = _types(result)
    assert {name for name in ("proj", "act", "out") if types[name] == "f16"} == converted
    interface = {result.outlet_fact(outlet).datum_type for outlet in (*result.inputs, *result.outputs)}
    assert interface == {DatumType.F32 if keep else DatumType.F16}
    assert [result.outlet_name(o) for o in (*result.inputs, *result.outputs)] == ["x", "out", "act"]
    x = np.random.default_rng(7).uniform(-2, 2, (2, 2, 3)).astype(np.float32 if keep else np.float16)
    wanted = np.tanh(x.astype(np.float64) @ WEIGHTS)
    for one, expected in zip(_run(result.declutter(), x), (np.exp(wanted), wanted), strict=True):
        np.testing.assert_allclose(one, expected, rtol=5e-3, atol=5e-3)


def test_nothing_chosen_means_nothing_changed(network: Maker) -> None:
    result = F32ToF16(include=["no such node"], keep_io_types=True).apply(network())
    assert _casts(result) == 0
    assert set(_types(result).values()) == {"f32"}


def test_excluded_nodes_read_their_constants_unrounded() -> None:
    model = TypedModel()
    x = model.add_source("x", parse_typed_fact("1,f32"))
    tenth = model.add_const("tenth", np.array([0.1], np.float32))
    (precise,) = model.wire_node("precise", Add(), [x, tenth])
    (rough,) = model.wire_node("rough", Add(), [x, tenth])
    model.set_outputs([precise, rough])
    found = _run(F32ToF16(exclude=["precise"], keep_io_types=True).apply(model), np.zeros(1, np.float32))
    assert found[0].tolist() == np.array([0.1], np.float32).tolist()
    assert found[1].tolist() == np.array([0.1], np.float16).astype(np.float32).tolist()


def test_casts_are_shared_between_readers() -> None:
    model = TypedModel()
    x = model.add_source("x", parse_typed_fact("1,f32"))
    model.set_outputs([model.wire_node(f"t{i}", Tanh(), [x])[0] for i in range(3)])
    assert _casts(F32ToF16(keep_io_types=True).apply(model)) == 1 + 3


def test_explicit_casts_follow() -> None:
    model = TypedModel()
    x = model.add_source("x", parse_typed_fact("1,i64"))
    (as_float,) = model.wire_node("as_float", Cast(DatumType.F32), [x])
    model.set_outputs(model.wire_node("y", Tanh(), [as_float]))
    assert _types(F32ToF16().apply(model)) == {"x": "i64", "as_float": "f16", "y": "f16"}
    result = F32ToF16(keep_io_types=True).apply(model)
    assert _types(result) == {"x": "i64", "as_float": "f16", "y": "f16", "y.as_f32": "f32"}


def test_other_types_are_left_alone() -> None:
    model = TypedModel()
    x = model.add_source("x", parse_typed_fact("1,f64"))
    y = model.add_source("y", parse_typed_fact("1,i32"))
    model.set_outputs([*model.wire_node("tx", Tanh(), [x]), *model.wire_node("yy", Add(), [y, y])])
    assert _types(F32ToF16().apply(model)) == {"x": "f64", "tx": "f64", "y": "i32", "yy": "i32"}


def test_bodies_are_entered(loop: Maker) -> None:
    result = F32ToF16(keep_io_types=True).apply(loop())
    result.check_consistency()
    body = result.node_by_name("loop").op.body  # type: ignore[attr-defined]
    assert set(_types(body).values()) == {"f16"}
    x = np.array([[0.1, 2], [3, 4], [5, 6]], np.float32)
    start = np.zeros((1, 2), np.float32)
    (found,) = _run(result, x, start)
    total, wanted = np.zeros(2, np.float16), []
    for row in x.astype(np.float16):
        total = total + row
        wanted.append((total * np.float16(0.5)).tolist())
    assert found.tolist() == wanted


def test_filters_reach_into_bodies(loop: Maker) -> None:
    result = F32ToF16(exclude=["scaled"], keep_io_types=True).apply(loop())
    types = _types(result.node_by_name("loop").op.body)  # type: ignore[attr-defined]
    assert types["total"] == "f16"
    assert types["scaled"] == types["half"] == "f32"
    (found,) = _run(result.declutter(), np.ones((3, 1), np.float32), np.zeros((1, 1), np.float32))
    assert found.tolist() == [[0.5], [1.0], [1.5]]


def test_an_excluded_loop_is_left_alone(loop: Maker) -> None:
    result = F32ToF16(exclude=["loop"], keep_io_types=True).apply(loop())
    assert set(_types(result).values()) == {"f32"}
    assert set(_types(result.node_by_name("loop").op.body).values()) == {"f32"}  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("transform", "problem"),
    [
        (FloatPrecision("f32", "f32"), "'from' and 'to' are both f32"),
        (FloatPrecision("i32", "f16"), "float_precision: 'from' is i32, wanted a float type"),
        (FloatPrecision("f32", "half"), "float_precision: 'to' is half, wanted a float type"),
        (F32ToF16(filter="a,b"), "f32_to_f16: 'filter' is 'a,b', wanted '==a,b' or '!=a,b'"),
        (F32ToF16(filter="=="), "f32_to_f16: 'filter' is '=='"),
        (F32ToF16(filter="==a", include=["b"]), "f32_to_f16: 'filter' is '==a'"),
        (F32ToF16(keep_io_types="yes"), "f32_to_f16: 'keep_io_types' is 'yes', wanted true or false"),  # type: ignore[arg-type]
    ],
)
def test_mistakes(network: Maker, transform: Any, problem: str) -> None:
    with pytest.raises(TransformError, match=problem):
        transform.apply(network())


@pytest.mark.parametrize(
    "way",
    [
        '{"name": "float_precision", "from": "f32", "to": "f16", "exclude": ["act"]}',
        '{"name": "f32_to_f16", "filter": "!=act"}',
        Spec("f32", "f16").exclude(["act"]),
        '{"name": "float_precision", "from": "f32", "to": "f16", "exclude": ["act"], "keep_io_types": true}',
        '{"name": "f32-to-f16", "filter": "!=act", "keep-io-types": true}',
        Spec("f32", "f16", keep_io_types=True).exclude(["act"]),
    ],
)
def test_through_the_public_api(network: Maker, way: Any) -> None:
    model = Model.from_typed(network())
    model.transform(way)
    assert _types(model.typed)["act"] == "f32"
    assert _types(model.typed)["proj"] == "f16"
    kept = "true" in (way if isinstance(way, str) else way.to_json())
    assert [str(fact) for fact in model.input_facts()] == ["B,S,3,f32" if kept else "B,S,3,f16"]


@pytest.mark.parametrize("name", sorted(set(default_registry().transforms()) - {"paged_cache", "quantize_static"}))
def test_no_transform_drops_limits_properties_or_assertions(network: Maker, name: str) -> None:
    """A model of a stranger's file stays one. What wants a language model, or data, is tested where there is some."""
    given = {
        "float_precision": {"from_": "f32", "to": "f16"},
        "last_logits": {"logits": "out"},
        "pulse": {"pulse": 2},
        "patch": {"body": "act = neg(act);"},
        "select_inputs": {"inputs": ["proj"]},
        "select_outputs": {"outputs": ["act"]},
        "set_symbols": {"values": {"S": 2}},
        "set_property": {"key": "a", "value": "b"},
    }
    model = network()
    model.limits = LoadLimits(max_tensor_bytes=32, run_deadline_s=7)
    model.properties["by"] = np.array("us")
    model.symbols.add_assertion("B<=64")
    result = transform_class(name, default_registry())(**given.get(name, {})).apply(model)
    assert result.limits == model.limits
    assert {name: result.properties[name] for name in model.properties} == model.properties
    assert "B<=64" in [str(one) for one in result.symbols]
    arrays = [
        np.ones((8, 2, 3 if "inputs" not in name else 2)).astype(result.outlet_fact(o).datum_type.storage.numpy)
        for o in result.inputs
    ]
    with pytest.raises((InputError, RunError), match="32 are allowed"):
        Model.from_typed(result.declutter()).into_runnable().run(arrays)


def test_types_in_lists_and_dictionaries_of_an_operator() -> None:
    @dataclass(frozen=True)
    class Holds(TypedOp):
        kinds: list[DatumType]
        named: dict[str, DatumType]

        def __hash__(self) -> int:
            return len(self.kinds)

        def output_facts(self, inputs):
            return (inputs[0].without_value(),)

    model = TypedModel()
    x = model.add_source("x", parse_typed_fact("3,f32"))
    model.set_outputs(model.wire_node("y", Holds([DatumType.F32, DatumType.I64], {"a": DatumType.F32}), [x]))
    op = FloatPrecision("f32", "f16").apply(model).node_by_name("y").op
    assert op == Holds([DatumType.F16, DatumType.I64], {"a": DatumType.F16})


@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="the system does not say what is in memory")
def test_pages_of_a_file_do_not_stay_in_memory_once_its_weights_are_converted(tmp_path: Path) -> None:
    file, content = tmp_path / "weights", np.arange(1 << 18, dtype="f4")
    file.write_bytes(bytes(101) + content.tobytes())
    with file.open("rb") as opened:
        mapped = mmap(opened.fileno(), 0, access=ACCESS_READ)
    model = TypedModel()
    x = model.add_source("x", parse_typed_fact(f"{content.size},f32"))
    weights = np.frombuffer(mapped, np.float32, offset=101)
    model.set_outputs(model.wire_node("sum", Add(), [x, model.add_const("w", weights)]))
    assert weights.sum() > 0  # all of it was read
    converted = FloatPrecision("f32", "bf16").apply(model)
    lines = iter(Path("/proc/self/smaps").read_text().splitlines())
    assert any(line.endswith(str(file)) for line in lines)
    resident = next(int(line.split()[1]) << 10 for line in lines if line.startswith("Rss:"))
    assert resident < weights.nbytes / 4
    (held,) = [node.op.value for node in converted.nodes if isinstance(node.op, Const)]
    np.testing.assert_array_equal(held.array, content.astype(ml_dtypes.bfloat16))
    np.testing.assert_array_equal(weights, content)  # it is read from the file again
