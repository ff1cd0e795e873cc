"""Models of files before types are known: facts, analysis, consumption."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from tract_core import DatumType, InferenceFact, InferenceModel, Model
from tract_core.analysis import inference as core
from tract_core.analysis.inference import InferenceOp
from tract_core.errors import ConsumedError, DimError, FactError, GraphError, InputError, ModelError, TractError
from tract_core.model import OutletId, TypedModel
from tract_core.model.fact import InferenceFact as CoreFact
from tract_core.ops.binary import Add
from tract_core.ops.wiring import wire_binary


@dataclass(frozen=True, slots=True)
class FileAdd(InferenceOp):
    """An addition, as a file has it."""

    def wire(self, model: TypedModel, name: str, inputs: Sequence[OutletId]) -> Sequence[OutletId]:
        return (wire_binary(model, name, Add(), *inputs),)


@pytest.fixture
def model() -> InferenceModel:
    graph = core.InferenceModel()
    x = graph.add_source("x", CoreFact())
    one = graph.add_const("one", np.ones(3, np.float32))
    node = graph.add_node("y", FileAdd(), [CoreFact()], [x, one])
    graph.set_outputs([OutletId(node.id)])
    return InferenceModel(graph)


def test_interface(model: InferenceModel) -> None:
    assert (model.input_count(), model.output_count()) == (1, 1)
    assert (model.input_name(0), model.output_name(0)) == ("x", "y")
    assert (model.input_names(), model.output_names()) == (["x"], ["y"])
    assert str(model.input_fact(0)) == str(model.output_fact(0)) == "..,?"


@pytest.mark.parametrize("number", [1, -1, "z", None])
@pytest.mark.parametrize("method", ["input_name", "output_name", "input_fact", "output_fact"])
def test_positions_that_are_not_there(model: InferenceModel, method: str, number: Any) -> None:
    with pytest.raises(InputError, match=r"there is no .*put"):
        getattr(model, method)(number)


@pytest.mark.parametrize("method", ["set_input_fact", "set_output_fact"])
def test_setting_facts(model: InferenceModel, method: str) -> None:
    read = getattr(model, method.replace("set_", ""))
    getattr(model, method)(0, "B,3,f32")
    assert str(read(0)) == "B,3,f32"
    getattr(model, method)(0, model.fact("1,_,_"))
    assert str(read(0)) == "1,?,?,?"
    getattr(model, method)(0, None)
    assert read(0) == InferenceFact()
    with pytest.raises(InputError, match="there is no"):
        getattr(model, method)(7, "B,3,f32")
    with pytest.raises(InputError, match="a fact is an InferenceFact, a Fact, a text or None; got int"):
        getattr(model, method)(0, 3)


def test_facts_of_a_typed_model_can_be_set(model: InferenceModel) -> None:
    graph = TypedModel()
    fact = Model.from_typed(graph).parse_fact("2,3,f32")
    model.set_input_fact(0, fact)
    assert str(model.into_model().output_fact(0)) == "2,3,f32"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("B,3,224,224,f32", "B,3,224,224,f32"),
        ("1,_,?,F32", "1,?,?,f32"),
        ("1,2", "1,2,?"),
        ("1,2,zz", "1,2,zz,?"),
        ("", "..,?"),
        ("f32", "f32"),
        ("S + 1,i64", "S+1,i64"),
    ],
)
def test_fact_texts(model: InferenceModel, text: str, shown: str) -> None:
    assert str(model.fact(text)) == shown
    assert model.fact(shown) == model.fact(text)


@pytest.mark.parametrize("text", ["1,3,float32", "1,3,f33", "1,3,double", "B,Int", "bfloat16"])
def test_what_others_call_a_type_is_no_symbol(model: InferenceModel, text: str) -> None:
    with pytest.raises(FactError, match=r"is no element type\n  hint: they are written f32, i64"):
        model.fact(text)
    assert str(model.fact(f"{text},f32")).endswith(",f32")
    for symbol in ("stride", "f", "interval", "S1"):
        assert str(model.fact(f"1,{symbol}")) == f"1,{symbol},?"


def test_fact_answers(model: InferenceModel) -> None:
    fact = model.fact("B,_,f32")
    assert fact.rank() == 2
    dims = fact.dims()
    assert dims is not None
    assert str(dims[0]) == "B"
    assert dims[1] is None
    assert str(fact.datum_type()) == "F32"
    assert "B" in model.graph.symbols


@pytest.mark.parametrize("text", ["-1,f32", "1+,f32", "1,,f32x("])
def test_unreadable_facts(model: InferenceModel, text: str) -> None:
    with pytest.raises((FactError, DimError)):
        model.fact(text)


def test_fact_wants_a_text(model: InferenceModel) -> None:
    with pytest.raises(InputError, match="a fact is given as a text"):
        model.fact(3)  # type: ignore[arg-type]


def test_analyse_finds_the_output(model: InferenceModel) -> None:
    model.set_input_fact(0, "B,3,f32")
    assert model.analyse() is None  # type: ignore[func-returns-value]
    assert str(model.output_fact(0)) == "B,3,f32"


def test_into_analysed_is_the_same_object(model: InferenceModel) -> None:
    model.set_input_fact(0, "2,1,f32")
    assert model.into_analysed() is model
    assert str(model.output_fact(0)) == "2,3,f32"


def test_contradictions_are_told(model: InferenceModel) -> None:
    model.set_input_fact(0, "2,3,f32")
    model.set_output_fact(0, "2,4,f32")
    with pytest.raises(TractError, match=r"node 'y'.*the fact that was given is 2,4,f32, its operators give 2,3,f32"):
        model.analyse()


def test_into_model_consumes(model: InferenceModel) -> None:
    model.set_input_fact(0, "B,3,f32")
    typed = model.into_model()
    assert isinstance(typed, Model)
    x = np.zeros((2, 3), np.float32)
    assert typed.into_runnable().run([x])[0].to_numpy().tolist() == [[1, 1, 1]] * 2
    for use in (model.analyse, model.into_model, model.input_count, lambda: model.set_input_fact(0, "1,f32")):
        with pytest.raises(ConsumedError, match=r"this InferenceModel was consumed by InferenceModel\.into_model"):
            use()
    assert str(model) == "InferenceModel (consumed)"


def test_into_model_that_fails_can_be_tried_again(model: InferenceModel) -> None:
    with pytest.raises(ModelError, match="'x' is not known"):
        model.into_model()
    model.set_input_fact(0, "B,3,f32")
    assert model.into_model().output_count() == 1


def test_a_consumed_model_names_its_successor(model: InferenceModel) -> None:
    model.set_input_fact(0, "B,3,f32")
    model.into_model()
    with pytest.raises(ConsumedError, match="the Model that into_model returned has taken its place"):
        model.output_names()


def test_representations(model: InferenceModel) -> None:
    assert str(model) == repr(model) == "InferenceModel(x: ..,? -> y: ..,?; 3 nodes)"
    assert "<code>..,?</code>" in model._repr_html_()
    assert dict(model.__rich_repr__())["nodes"] == 3


def test_a_constant_becomes_an_input(model: InferenceModel) -> None:
    """As for an initialiser that is an input too, whose value a caller may want to give."""
    model.set_input_names(["one", "x"])
    assert model.input_names() == ["one", "x"]
    assert str(model.input_fact(0)) == "3,f32"
    model.set_input_fact(1, "B,3,f32")
    runnable = model.into_model().into_runnable()
    given = {"x": np.array([[1, 2, 3]], np.float32), "one": np.array([10, 20, 30], np.float32)}
    assert runnable.run(given)[0].to_numpy().tolist() == [[11, 22, 33]]


def test_a_computed_tensor_becomes_an_input_and_an_output() -> None:
    graph = core.InferenceModel()
    x = graph.add_source("x", CoreFact(DatumType.F32, (2,)))
    middle = OutletId(graph.add_node("middle", FileAdd(), [CoreFact(DatumType.F32, (2,))], [x, x]).id)
    last = OutletId(graph.add_node("last", FileAdd(), [CoreFact()], [middle, middle]).id)
    graph.set_outputs([last])
    model = InferenceModel(graph)
    model.set_output_names(["middle", "last"])
    model.set_input_names(["middle"])
    assert (model.input_names(), model.output_names()) == (["middle"], ["middle", "last"])
    found = model.into_model().into_runnable().run([np.array([1, 2], np.float32)])
    assert [tensor.to_numpy().tolist() for tensor in found] == [[1, 2], [2, 4]]


@pytest.mark.parametrize(
    ("names", "kind", "problem"),
    [
        (["one"], InputError, "the outputs need 'x' too\n  hint: name it as well"),
        (["x", "x"], InputError, "an input is named twice: x, x"),
        (["absent"], GraphError, "the model has no tensor named 'absent'"),
        ("x", InputError, "names are given as a list of texts, got 'x'"),
        ([1], InputError, "names are given as a list of texts"),
        (None, InputError, "names are given as a list of texts, got None"),
    ],
)
def test_inputs_that_cannot_be_chosen(model: InferenceModel, names: Any, kind: type, problem: str) -> None:
    with pytest.raises(kind, match=problem):
        model.set_input_names(names)
    assert model.input_names() == ["x"]
    with pytest.raises(TractError):
        model.set_output_names([*names, 1] if isinstance(names, list) else names)


@pytest.mark.parametrize("use", [copy.copy, copy.deepcopy, pickle.dumps])
def test_models_of_files_are_not_copied(model: InferenceModel, use: Callable[[InferenceModel], object]) -> None:
    with pytest.raises(InputError, match=r"cannot be copied or pickled.*\n  hint: load the file again"):
        use(model)


def test_unnamed_sizes_keep_their_names_however_often_they_are_looked_at() -> None:
    graph = core.InferenceModel()
    graph.set_outputs([graph.add_source("x", CoreFact(DatumType.F32, (None, 2)))])
    model = InferenceModel(graph)
    model.analyse()
    model.into_analysed()
    assert str(model.input_fact(0)) == "?,2,f32"
    assert str(model.into_model().input_fact(0)) == "x_0,2,f32"
