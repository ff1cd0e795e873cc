"""Typed models, as users hold them."""

from __future__ import annotations

import copy
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tract_core
from tract_core import Model, Runnable, SetSymbols, runtime_for_name
from tract_core.errors import ConsumedError, InputError, PluginError, TractError, TransformError
from tract_core.model import TypedModel

Maker = Callable[[], Model]

X = np.arange(6, dtype=np.float32).reshape(2, 3)
Y = [[10, 12, 16], [13, 18, 25]]


def test_interface(two_inputs: Maker) -> None:
    model = two_inputs()
    assert (model.input_count(), model.output_count()) == (2, 2)
    assert [model.input_name(i) for i in range(2)] == model.input_names() == ["a", "b"]
    assert [model.output_name(i) for i in range(2)] == model.output_names() == ["total", "squashed"]
    assert [str(model.input_fact(i)) for i in range(2)] == [str(f) for f in model.input_facts()] == ["N,2,f32"] * 2
    assert [str(model.output_fact(i)) for i in range(2)] == [str(f) for f in model.output_facts()] == ["N,2,f32"] * 2


@pytest.mark.parametrize("number", [2, -1, 10**12, None, 0.0, "c"])
@pytest.mark.parametrize("method", ["input_name", "output_name", "input_fact", "output_fact"])
def test_positions_that_are_not_there(two_inputs: Maker, method: str, number: Any) -> None:
    what = method.partition("_")[0]
    listed = "0: a, 1: b" if what == "input" else "0: total, 1: squashed"
    with pytest.raises(InputError, match=f"there is no {what} .*; {what}s go by a number from 0 or by name: {listed}"):
        getattr(two_inputs(), method)(number)


def test_properties(affine: Maker) -> None:
    model = affine()
    assert model.property_keys() == ["maker"]
    assert model.property("maker").to_numpy().tolist() == "by hand"
    with pytest.raises(InputError, match="Property not found: no property for name x; properties: maker"):
        model.property("x")


def model_into_runnable(model: Model) -> Runnable:
    return model.into_runnable()


@pytest.mark.parametrize("name", ["cpu", "reference", "default", "cpu(threads=1)"])
def test_into_runnable_takes_a_runtime(affine: Maker, name: str) -> None:
    runnable = affine().into_runnable(name)
    assert runnable.runtime.name() == ("reference" if name == "reference" else "cpu")
    assert runnable.run([X])[0].to_numpy().tolist() == Y


def test_into_runnable_takes_options_and_runtimes(affine: Maker) -> None:
    assert affine().into_runnable("cpu", threads=1).runtime.options() == {"threads": 1}
    runtime = runtime_for_name("cpu", threads=1)
    assert affine().into_runnable(runtime).runtime is runtime
    for wrong, message in (
        (lambda model: model.into_runnable("quantum"), "runtime 'quantum' is not installed.*\n  hint: 'default'"),
        (lambda model: model.into_runnable("cpu", treads=1), "treads"),
        (lambda model: model.into_runnable(runtime, threads=1), "a Runtime has its options already"),
        (lambda model: model.into_runnable(3), "a runtime is asked for by its name"),
    ):
        model = affine()
        with pytest.raises(TractError, match=message):
            wrong(model)
        assert not model.is_consumed


def test_who_consumed_a_model_is_told_by_the_line_of_the_program(tmp_path: Path) -> None:
    digits = Path(__file__).parents[3] / "examples" / "digits" / "digits.onnx"
    program = tmp_path / "program.py"
    program.write_text(
        "import tract_core as tract\n"
        f"loaded = tract.onnx().load({str(digits)!r})\n"
        "def prepare(model):\n"
        "    return model.into_runnable()\n"
        "model = loaded.into_model()\n"
        "prepare(model)\n"
        "for consumed in (loaded, model):\n"
        "    try:\n"
        "        consumed.input_names()\n"
        "    except tract.TractError as error:\n"
        "        print(error)\n"
    )
    told = subprocess.run([sys.executable, program], capture_output=True, text=True, timeout=60, check=True).stdout
    assert f"consumed by InferenceModel.into_model, in line 5 of {program}, and" in told
    assert f"consumed by Runtime.prepare (runtime 'cpu'), in line 4 of {program}, and" in told


def test_what_others_do_is_told(affine: Maker) -> None:
    model = affine()
    for name in ("run", "spawn_state"):
        with pytest.raises(AttributeError, match=rf"no attribute '{name}'\n  hint: model.into_runnable\(\)") as caught:
            getattr(model, name)
        assert isinstance(caught.value, TractError)
    assert not hasattr(model, "into_runable")
    digits = Path(__file__).parents[3] / "examples" / "digits" / "digits.onnx"
    untyped = tract_core.onnx().load(digits)
    for name in ("into_runnable", "run", "transform"):
        with pytest.raises(AttributeError, match=rf"no attribute '{name}'\n  hint: model.into_model\(\)"):
            getattr(untyped, name)


def test_into_runnable_consumes(affine: Maker) -> None:
    model = affine()
    runnable = model_into_runnable(model)
    assert runnable.run([X])[0].to_numpy().tolist() == Y
    line = model_into_runnable.__code__.co_firstlineno + 1
    message = (
        rf"this Model was consumed by Runtime\.prepare \(runtime 'cpu'\), in line {line} of {re.escape(__file__)}, "
        r"and is empty now\n  hint: load it again"
    )
    for use in (
        model.input_count,
        model.output_names,
        model.input_facts,
        model.property_keys,
        model.into_runnable,
        model.declutter,
        model.clone,
        lambda: model.input_fact(0),
        lambda: model.transform("f32_to_f16"),
        lambda: runtime_for_name("reference").prepare(model),
    ):
        with pytest.raises(ConsumedError, match=message):
            use()
    assert model.is_consumed
    assert str(model) == repr(model) == "Model (consumed)"
    assert "consumed" in model._repr_html_()


def test_preparing_shares_constants(affine: Maker) -> None:
    model = affine()
    weights = model.typed.constant(model.typed.nodes[model.typed.node_by_name("scale").id].outlets()[0])
    runnable = model.into_runnable()
    held = runnable.typed.constant(runnable.typed.nodes[runnable.typed.node_by_name("scale").id].outlets()[0])
    assert weights is not None
    assert held is not None
    assert np.shares_memory(weights, held)


def test_a_failed_prepare_does_not_consume(affine: Maker) -> None:
    model = affine()
    with pytest.raises(PluginError):
        runtime_for_name("no-such-runtime").prepare(model)
    assert not model.is_consumed


def test_clone_lives_on(affine: Maker) -> None:
    model = affine()
    other = model.clone()
    other.transform(SetSymbols({"B": 2}))
    assert str(model.input_fact(0)) == "B,3,f32"
    assert str(other.input_fact(0)) == "2,3,f32"
    mine = model.typed.node_by_name("scale").op
    others = other.typed.node_by_name("scale").op
    assert np.shares_memory(mine.value.array, others.value.array)  # type: ignore[attr-defined]
    model.into_runnable()
    assert other.into_runnable().run([X])[0].to_numpy().tolist() == Y


def test_declutter_returns_the_model(affine: Maker) -> None:
    model = affine()
    assert model.declutter() is model
    assert model.into_runnable().run([X])[0].to_numpy().tolist() == Y


def test_transform_returns_nothing_and_changes_the_model(affine: Maker) -> None:
    model = affine()
    assert model.transform("f32_to_f16") is None
    assert "f16" in {
        fact.datum_type.short for node in model.typed.live_nodes() for fact in model.typed.output_facts(node)
    }


def test_a_failed_transform_changes_nothing(affine: Maker) -> None:
    model = affine()
    before = [str(node) for node in model.typed.live_nodes()]
    with pytest.raises(TransformError):
        model.transform(SetSymbols({"no_such_symbol": 2}))
    assert [str(node) for node in model.typed.live_nodes()] == before


@pytest.mark.parametrize("what", [None, 3, "model"])
def test_from_typed_wants_a_graph(what: Any) -> None:
    with pytest.raises(InputError, match=r"Model\.from_typed wants a TypedModel, got"):
        Model.from_typed(what)


def test_representations(affine: Maker) -> None:
    model = affine()
    assert str(model) == repr(model) == "Model(x: B,3,f32 -> y: B,3,f32; 5 nodes)"
    assert dict(model.__rich_repr__())["inputs"] == {"x": "B,3,f32"}
    html = model._repr_html_()
    assert "<td>input</td><td>x</td><td><code>B,3,f32</code></td>" in html
    assert "http" not in html


def test_names_are_escaped_in_html() -> None:
    from tract_core.model.fact_text import parse_typed_fact

    graph = TypedModel()
    graph.set_outputs([graph.add_source("<script>alert(1)</script>", parse_typed_fact("1,f32"))])
    html = Model.from_typed(graph)._repr_html_()
    assert "<script>" not in html
    assert "&lt;script&gt;" in html


def test_many_inputs_are_cut_short() -> None:
    from tract_core.model.fact_text import parse_typed_fact

    graph = TypedModel()
    graph.set_outputs([graph.add_source(f"x{i}", parse_typed_fact("1,f32")) for i in range(100)])
    model = Model.from_typed(graph)
    assert "84 more" in str(model)
    assert len(str(model)) < 1000
    assert len(model._repr_html_()) < 5000


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, Model.clone])
def test_a_copy_goes_its_own_way(affine: Maker, copied: Callable[[Model], Model]) -> None:
    model = affine()
    other = copied(model)
    other.transform(SetSymbols({"B": 7}))
    assert (str(model.input_fact(0)), str(other.input_fact(0))) == ("B,3,f32", "7,3,f32")
    other.into_runnable()
    assert not model.is_consumed
