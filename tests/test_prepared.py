"""Models that are kept prepared: a process after another one finds them, and they do what they did there."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import tract_core as tract
from tract_core.cache import sources
from tract_core.cache.cache import Cache
from tract_core.later import Later
from tract_core.limits import LoadLimits
from tract_core.prepared import environment, recipe

DIGITS = Path(__file__).parents[1] / "examples" / "digits" / "digits.onnx"

Build = Callable[[], onnx.ModelProto]


@pytest.fixture(autouse=True)
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of its own, in which plans are kept although much is checked; files of tests may be new."""
    for name in environment.CHECKS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TRACT_PLANS", "1")
    monkeypatch.setenv("TRACT_CACHE", str(tmp_path / "caches"))
    monkeypatch.setattr(environment, "COARSE", -60.0)
    monkeypatch.setattr(sources, "_BEGIN", float("inf"))
    forget()
    yield tmp_path / "caches" / "tract"
    forget()


def forget() -> None:
    """As a new process knows nothing."""
    for one in (environment._environment, environment._installed, environment._digest_of_installed):
        one.cache_clear()


@pytest.fixture
def nothing_is_compiled(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """What has every attempt to compile, or to read a model, fail from then on."""

    def refuse(*arguments: object, **named: object) -> None:
        raise AssertionError("a model is made although a plan is kept")

    def begin() -> None:
        forget()
        monkeypatch.setattr("tract_cpu.details.compiled", refuse)
        monkeypatch.setattr("tract_onnx.frontend.OnnxLoader._read", refuse)

    return begin


def plans(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.plan"))


def saved(tmp_path: Path, model: onnx.ModelProto, name: str = "model.onnx") -> Path:
    path = tmp_path / name
    onnx.save(model, path)
    return path


def model_of(nodes: list[Any], inputs: list[Any], outputs: list[Any], weights: dict[str, Any]) -> onnx.ModelProto:
    tensors = [numpy_helper.from_array(np.asarray(value), name) for name, value in weights.items()]
    graph = helper.make_graph(nodes, "g", inputs, outputs, tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def floats(name: str, *shape: int | str) -> Any:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


def product() -> onnx.ModelProto:
    """A product with symbolic rows."""
    weights = {"w": np.random.default_rng(0).normal(size=(64, 33)).astype(np.float32)}
    nodes = [helper.make_node("MatMul", ["x", "w"], ["p"]), helper.make_node("Relu", ["p"], ["y"])]
    return model_of(nodes, [floats("x", "N", 64)], [floats("y", "N", 33)], weights)


def gathered() -> onnx.ModelProto:
    """Rows of a table, by numbers that a kernel may refuse."""
    index = helper.make_tensor_value_info("i", TensorProto.INT64, ["N"])
    table = {"t": np.arange(1200, dtype=np.float32).reshape(40, 30)}
    return model_of([helper.make_node("Gather", ["t", "i"], ["y"])], [index], [floats("y", "N", 30)], table)


def counted(counts: str = "NonZero") -> onnx.ModelProto:
    """Sizes that only a run tells, by a node between others."""
    nodes = [
        helper.make_node("Exp", ["x"], ["e"]),
        helper.make_node(counts, ["e"], ["n"]),
        helper.make_node("Cast", ["n"], ["c"], to=TensorProto.FLOAT),
        helper.make_node("Add", ["c", "c"], ["y"]),
    ]
    shape = [1, "M"] if counts == "NonZero" else ["M"]
    return model_of(nodes, [floats("x", "N")], [floats("y", *shape)], {})


def hosted() -> onnx.ModelProto:
    """The same, where the node in the middle is left to the host."""
    return counted("Unique")


def looped() -> onnx.ModelProto:
    """A loop, whose body is part of the program."""
    body = helper.make_graph(
        [
            helper.make_node("Add", ["v", "one"], ["w"]),
            helper.make_node("Identity", ["go"], ["on"]),
        ],
        "body",
        [
            helper.make_tensor_value_info("k", TensorProto.INT64, []),
            helper.make_tensor_value_info("go", TensorProto.BOOL, []),
            floats("v", 8),
        ],
        [helper.make_tensor_value_info("on", TensorProto.BOOL, []), floats("w", 8)],
        [numpy_helper.from_array(np.ones(8, np.float32), "one")],
    )
    nodes = [helper.make_node("Loop", ["count", "", "x"], ["y"], body=body)]
    return model_of(nodes, [floats("x", 8)], [floats("y", 8)], {"count": np.int64(5)})


def recurrent() -> onnx.ModelProto:
    """A recurrent network."""
    random = np.random.default_rng(1)
    shapes = {"w": (1, 32, 6), "r": (1, 32, 8), "b": (1, 64)}
    weights = {name: random.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    nodes = [helper.make_node("LSTM", ["x", "w", "r", "b"], ["y"], hidden_size=8)]
    return model_of(nodes, [floats("x", "T", 1, 6)], [floats("y", "T", 1, 1, 8)], weights)


RANDOM = np.random.default_rng(3)

CASES: dict[str, tuple[Build, list[dict[str, Any]]]] = {
    "product": (product, [{"x": RANDOM.normal(size=(n, 64)).astype(np.float32)} for n in (0, 1, 2, 7)]),
    "gathered": (gathered, [{"i": np.array([3, 39, 0])}, {"i": np.zeros(0, np.int64)}]),
    "counted": (counted, [{"x": np.array([1, -np.inf, 0, 3], np.float32)}, {"x": np.zeros(1, np.float32)}]),
    "hosted": (hosted, [{"x": np.array([1, -np.inf, 0, 3], np.float32)}, {"x": np.zeros(1, np.float32)}]),
    "looped": (looped, [{"x": np.arange(8, dtype=np.float32)}]),
    "recurrent": (recurrent, [{"x": RANDOM.normal(size=(t, 1, 6)).astype(np.float32)} for t in (1, 5)]),
}


def prepared(path: Path, **options: Any) -> tract.Runnable:
    return tract.onnx().load(path).into_model().into_runnable("cpu", **{"threads": 1, **options})


@pytest.mark.parametrize(("build", "turns"), CASES.values(), ids=CASES)
def test_a_kept_plan_does_what_the_plan_did(
    build: Build, turns: list[dict[str, Any]], tmp_path: Path, kept: Path, nothing_is_compiled: Callable[[], None]
) -> None:
    path = saved(tmp_path, build())
    first = prepared(path)
    assert plans(kept)
    nothing_is_compiled()
    again = prepared(path)
    assert again.plan is not first.plan
    assert again.input_facts() == first.input_facts()
    assert again.output_names() == first.output_names()
    states = first.spawn_state(), again.spawn_state()
    for inputs in turns:
        wanted = first.run(inputs)
        assert same(again.run(inputs), wanted)
        assert same(again.run(inputs), wanted)
        assert same(states[1].run(inputs), states[0].run(inputs))
    frozen = states[1].freeze()
    assert same(frozen.unfreeze().run(turns[-1]), states[0].run(turns[-1]))


def same(found: list[tract.Tensor], wanted: list[tract.Tensor]) -> bool:
    return [one.numpy().tobytes() for one in found] == [one.numpy().tobytes() for one in wanted]


@pytest.mark.parametrize("much", [1 << 24, -1], ids=["small", "large"])
def test_what_a_kernel_refuses_is_told_as_before(much: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of large models, nodes are not kept: the model is compiled again."""
    monkeypatch.setattr("tract_cpu.runtime.MUCH", much)
    path = saved(tmp_path, gathered())
    texts, found = [], []
    for _ in range(2):
        forget()
        runnable = prepared(path)
        state = runnable.spawn_state()
        for run in (runnable.run, state.run):
            with pytest.raises(tract.TractError) as error:
                run({"i": np.array([40])})
            texts.append(str(error.value))
        found.append(state.run({"i": np.array([4])}))
    plan: Any = runnable.plan
    assert (plan.whole is plan) == (much > 0)
    assert len(set(texts)) == 1
    assert "40" in texts[0]
    assert same(*found)


def test_a_plan_with_a_deadline_has_its_own_nodes(tmp_path: Path) -> None:
    path, limits = saved(tmp_path, product()), LoadLimits(run_deadline_s=60)
    x = {"x": np.ones((3, 64), np.float32)}
    first, again = (tract.onnx().load(path, limits=limits).into_model().into_runnable("cpu") for _ in range(2))
    plan: Any = again.plan
    assert plan is not first.plan
    assert plan.whole is plan
    assert same(again.run(x), first.run(x))


def test_what_was_kept_of_another_version_is_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, x = saved(tmp_path, product()), {"x": np.ones((3, 64), np.float32)}
    wanted = prepared(path).run(x)
    forget()

    def fails(*_: object) -> None:
        raise ValueError("zip() argument 2 is longer than argument 1")

    monkeypatch.setattr("tract_core.prepared.records.read", fails)
    assert same(prepared(path).run(x), wanted)


def test_what_does_not_fit_is_told_as_before(tmp_path: Path) -> None:
    path = saved(tmp_path, product())
    texts = []
    for _ in range(2):
        forget()
        with pytest.raises(tract.TractError) as error:
            prepared(path).run({"x": np.zeros((3, 63), np.float32)})
        texts.append(str(error.value))
    assert texts[0] == texts[1]


def test_who_looks_at_a_kept_model_sees_it(tmp_path: Path) -> None:
    path = saved(tmp_path, product())
    first = prepared(path)
    forget()
    again = prepared(path)
    assert str(again) == str(first)
    assert str(again.explain()) == str(first.explain())
    x = {"x": np.ones((2, 64), np.float32)}
    assert [node["op_name"] for node in _nodes(again, x)] == [node["op_name"] for node in _nodes(first, x)]
    copied = pickle.loads(pickle.dumps(again))
    assert copied.run(x)[0].numpy().tobytes() == first.run(x)[0].numpy().tobytes()


def _nodes(runnable: tract.Runnable, inputs: dict[str, Any]) -> list[dict[str, Any]]:
    import json

    return json.loads(runnable.profile_json(inputs))["nodes"]


def test_what_is_said_of_inputs_and_transforms_are_steps(
    tmp_path: Path, nothing_is_compiled: Callable[[], None]
) -> None:
    path = saved(tmp_path, product())

    def made(rows: int) -> tract.Runnable:
        model = tract.onnx().load(path)
        model.set_input_fact("x", "N,64,f32")
        typed = model.into_model()
        typed.transform(tract.SetSymbols({"N": rows}))
        assert str(typed.input_fact(0)) == f"{rows},64,f32"
        return typed.into_runnable("cpu", threads=1)

    x = np.ones((3, 64), np.float32)
    wanted = made(3).run([x])[0].numpy()
    nothing_is_compiled()
    np.testing.assert_array_equal(made(3).run([x])[0].numpy(), wanted)
    with pytest.raises(tract.TractError, match="although a plan is kept"):
        made(4)


def test_what_may_have_been_changed_is_not_found(tmp_path: Path, kept: Path) -> None:
    path = saved(tmp_path, product())
    model = tract.onnx().load(path).into_model()
    model.typed.properties["mine"] = np.array(1)
    model.into_runnable("cpu")
    assert not [one for one in plans(kept) if one.stat().st_size > 2000]


@pytest.mark.parametrize("change", ["content", "threads", "flag", "option"])
def test_another_model_has_another_plan(change: str, tmp_path: Path, nothing_is_compiled: Callable[[], None]) -> None:
    path = saved(tmp_path, product())
    prepared(path)
    if change == "content":
        other = product()
        other.graph.initializer[0].CopyFrom(numpy_helper.from_array(np.ones((64, 33), np.float32), "w"))
        saved(tmp_path, other)
        assert prepared(path).run([np.ones((1, 64), np.float32)])[0].numpy()[0, 0] == 64
        return
    nothing_is_compiled()
    options: dict[str, Any] = {"threads": {"threads": 2}, "option": {"winograd": False}}.get(change, {})
    flags = {"ignore_value_info": True} if change == "flag" else {}
    with pytest.raises(tract.TractError, match="although a plan is kept"):
        tract.onnx().load(path, **flags).into_model().into_runnable("cpu", **{"threads": 1, **options})


def test_a_model_of_several_files_is_not_kept(tmp_path: Path, kept: Path) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(product(), path, save_as_external_data=True, location="weights", size_threshold=0)
    prepared(path)
    assert not [one for one in plans(kept) if one.stat().st_size > 2000]


def test_what_was_warned_of_is_warned_of_again(tmp_path: Path) -> None:
    model = product()
    model.graph.output[0].type.tensor_type.shape.dim[1].dim_value = 34
    path = saved(tmp_path, model)
    texts, plans = set(), list[Any]()
    for _ in range(2):
        forget()
        with pytest.warns(match="34") as warned:
            plans.append(prepared(path))
        (one,) = warned
        assert one.filename == __file__
        texts.add(str(one.message))
    assert len(texts) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert plans[1].typed.nodes  # who looks is not told again


def test_a_model_of_a_file_of_gguf_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a format that is typed: what it says of inputs and outputs is there before it is read."""
    path = written_gguf(tmp_path / "model.gguf")
    transform = '{"name": "paged_cache", "page": 16}'

    def made() -> tract.Runnable:
        model = tract.load(path)
        assert str(model.input_fact("past.0.key")) == "B,4,P,8,f32"
        model.transform(transform)
        assert int(model.property("paged_cache.page").to_numpy()) == 16
        return model.into_runnable("cpu", threads=1)

    inputs = {
        "tokens": np.array([[1, 2, 3]]),
        "positions": np.arange(3),
        "begins": np.array([0, 3]),
        "pages": np.array([[0]]),
        "copies": np.zeros((0, 2), np.int64),
        "room": np.zeros(1, np.int64),
        "rows": np.array([2]),
    }
    first = made()
    wanted = first.run(inputs)[0].numpy()
    forget()

    def refuse(*arguments: object) -> None:
        raise AssertionError("the file is read although a plan is kept")

    with monkeypatch.context() as patched:
        patched.setattr("tract_gguf.loader.GgufLoader._build", refuse)
        second = made()
        np.testing.assert_array_equal(second.run(inputs)[0].numpy(), wanted)
    assert second.typed == first.typed


def written_gguf(path: Path) -> Path:
    """A network of one layer."""
    import gguf

    draw, writer = np.random.default_rng(0), gguf.GGUFWriter(path, "llama")
    for name, size in {"block_count": 1, "context_length": 64, "embedding_length": 32, "head_count": 4}.items():
        getattr(writer, f"add_{name}")(size)
    writer.add_feed_forward_length(32)
    writer.add_layer_norm_rms_eps(1e-5)
    names = ["attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"]
    shapes = {f"blk.0.{name}": (32, 32) for name in names}
    shapes |= dict.fromkeys(("output_norm", "blk.0.attn_norm", "blk.0.ffn_norm"), (32,)) | {"token_embd": (96, 32)}
    for name, shape in shapes.items():
        writer.add_tensor(f"{name}.weight", draw.normal(size=shape).astype(np.float32))
    for step in (writer.write_header_to_file, writer.write_kv_data_to_file, writer.write_tensors_to_file, writer.close):
        step()
    return path


def test_what_is_gone_or_damaged_is_made_anew(tmp_path: Path, kept: Path) -> None:
    path, x = saved(tmp_path, product()), np.ones((2, 64), np.float32)
    wanted = prepared(path).run([x])[0].numpy()
    for pattern, damage in (("*.o", None), ("*.plan", 3), ("*.plan", 900)):
        for one in kept.glob(pattern):
            content = bytearray(one.read_bytes())
            if damage is None:
                one.unlink()
            elif damage < len(content):
                content[damage] ^= 1
                one.write_bytes(content)
        forget()
        np.testing.assert_array_equal(prepared(path).run([x])[0].numpy(), wanted)


def test_what_cannot_be_pickled_is_not_kept(tmp_path: Path, kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tract_cpu.runtime.CpuRuntime.kept", lambda *_: lambda: None)
    x = np.ones((1, 64), np.float32)
    prepared(saved(tmp_path, product())).run([x])
    assert not [one for one in plans(kept) if one.stat().st_size > 2000]


def test_nothing_is_kept_where_nothing_is_to_be(tmp_path: Path, kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRACT_PLANS", "0")
    prepared(saved(tmp_path, product()))
    assert not plans(kept)


def test_a_plan_that_is_too_large_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Cache, "put_parts", lambda *_: False)
    prepared(saved(tmp_path, product())).run([np.ones((1, 64), np.float32)])


def test_a_file_is_not_read_for_a_plan_that_would_be_too_large(
    tmp_path: Path, kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRACT_CACHE_SIZE", "20000")
    path = saved(tmp_path, product())
    assert path.stat().st_size > 5000
    assert recipe.recipe_of_file(path, "onnx", {}) is None
    prepared(path)
    assert not plans(kept)


def test_a_file_that_was_just_written_may_be_written_again(
    tmp_path: Path, kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(environment, "COARSE", 60.0)
    path = saved(tmp_path, product())
    assert environment.digest_of_file(path) is None
    assert recipe.recipe_of_file(path, "onnx", {}) is None


def test_a_model_is_made_when_somebody_looks(tmp_path: Path) -> None:
    path = saved(tmp_path, product())
    whole = tract.onnx().load(path).into_model()
    names = [node.name for node in whole.typed.nodes]
    prepared(path)
    forget()
    model = tract.onnx().load(path).into_model()
    assert isinstance(model._there, Later)
    assert model.input_names() == ["x"]
    assert [node.name for node in model.clone().typed.nodes] == names
    assert [node.name for node in model.typed.nodes] == names
    model.into_runnable("cpu").run([np.ones((1, 64), np.float32)])
    assert model.is_consumed


HIT = """
import sys
import numpy as np
before = set(sys.modules)
import tract_core as tract
model = eval(sys.argv[2])
runnable = model.into_runnable("cpu", threads=1)
print(runnable.run([np.ones([1, 1, 8, 8], "f4")])[0].numpy().sum())
print(*sorted(set(sys.modules) - before))
"""

HEAVY = ("onnx", "click", "rich", "llvmlite.binding", "pluggy", "importlib.metadata", "tract_cpu.compile", "ml_dtypes")
NOT_ASKED = (
    *("pathlib", "threading", "tract_core.api.reading", "tract_core.cache.eviction", "tract_core.data.datum_type"),
    *("tract_core.dims.build", "tract_core.model.fact", "tract_core.model.graph", "tract_core.plugins.descriptor"),
    "tract_core.runtime.misfits",
)
"""What says more of a model, or reads one: nobody asked for that."""


@pytest.mark.parametrize("load", ["tract.onnx().load(sys.argv[1]).into_model()", "tract.load(sys.argv[1])"])
def test_a_process_after_another_imports_little(load: str, tmp_path: Path) -> None:
    given = {**os.environ, "TRACT_CACHE": str(tmp_path / "others"), "TRACT_PLANS": "1"}
    command = [sys.executable, "-c", HIT, str(DIGITS), load]
    told = [subprocess.run(command, env=given, check=True, capture_output=True, text=True) for _ in range(2)]
    first, second = (one.stdout.splitlines() for one in told)
    assert first[0] == second[0]
    assert "onnx" in first[1].split()
    assert not {*HEAVY, *NOT_ASKED} & set(second[1].split())
    assert len(second[1].split()) <= 98, second[1]
