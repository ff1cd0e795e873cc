"""Sizes and facts, as users see them."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import pytest

from tract_core import DatumType, Dim, Fact, InferenceFact, InferenceModel, Model
from tract_core.analysis import inference
from tract_core.dims import dim_max, dim_min, symbol
from tract_core.errors import ConsumedError, DimError, FactError, InputError
from tract_core.model.fact import TypedFact
from tract_core.model.fact_text import parse_inference_fact, parse_typed_fact


@pytest.mark.parametrize(("size", "text"), [(3, "3"), ("2*S", "2*S"), (symbol("B"), "B"), (Dim("S+P"), "S+P")], ids=str)
def test_dim_text(size: Any, text: str) -> None:
    dim = Dim(size)
    assert str(dim) == dim.dump() == text
    assert Dim(text) == dim
    assert hash(Dim(text)) == hash(dim)
    assert repr(dim) == f"Dim({text!r})"


def test_notebooks_show_facts() -> None:
    assert Fact(parse_typed_fact("B,3,f32"))._repr_html_() == "<b>Fact</b> <code>B,3,f32</code>"
    assert InferenceFact()._repr_html_() == "<b>InferenceFact</b> <code>..,?</code>"


def test_eval() -> None:
    dim = Dim("(S+3)/4+P")
    assert int(dim.eval({"S": 12, "P": 2})) == 5
    assert dim.eval({"S": 12}).symbols() == ["P"]
    assert dim.eval({"other": 1}) == dim
    assert dim.eval({"S": 12, "P": 2}).to_int64() == 5
    assert [10, 20, 30][Dim("S").eval({"S": 1})] == 20


def test_a_dim_equals_numbers() -> None:
    assert Dim(3) == 3
    assert Dim("S") != 3
    assert Dim("S") == symbol("S")
    assert Dim("S") != "S"


@pytest.mark.parametrize(
    ("use", "problem"),
    [
        (lambda: int(Dim("S")), "S is not a number yet: it depends on S"),
        (lambda: Dim("S").to_int64(), r"S is not a number yet: .*\n  hint: .*\.eval\(\{'S': 1\}\)"),
        (lambda: Dim("S").eval({"S": -1}), "the value of S is -1"),
        (lambda: Dim("S").eval({"S": 1.5}), "the value of S is a float, wanted a whole number"),  # type: ignore[dict-item]
        (lambda: Dim("S").eval([1]), "values are a list, wanted a dictionary"),  # type: ignore[arg-type]
        (lambda: Dim(1.5), "a size is a float, wanted a whole number"),  # type: ignore[arg-type]
        (lambda: Dim(None), "a size is a NoneType"),  # type: ignore[arg-type]
        (lambda: Dim("S+"), "S"),
    ],
)
def test_dim_errors(use: Callable[[], object], problem: str) -> None:
    with pytest.raises(DimError, match=problem.replace("+", r"\+")):
        use()


@pytest.fixture
def fact(affine: Callable[[], Model]) -> Fact:
    return affine().parse_fact("1,3,S,f32")


def test_fact(fact: Fact) -> None:
    assert str(fact) == fact.dump() == "1,3,S,f32"
    assert repr(fact) == "Fact('1,3,S,f32')"
    assert fact.datum_type() == DatumType.F32 == 0x34
    assert fact.rank() == 3
    assert [str(dim) for dim in fact.dims()] == ["1", "3", "S"]
    assert int(fact.dim(1)) == 3
    assert pickle.loads(pickle.dumps(fact)) == fact


def test_fact_equality(affine: Callable[[], Model], fact: Fact) -> None:
    assert fact == affine().parse_fact("1,3,S,f32")
    assert hash(fact) == hash(affine().parse_fact("1,3,S,f32"))
    assert fact != affine().parse_fact("1,3,T,f32")
    assert fact != affine().parse_fact("1,3,S,f16")
    assert fact != "1,3,S,f32"


@pytest.mark.parametrize("axis", [3, -1, 10**9, None, 1.0, "0"])
def test_an_axis_that_is_not_there(fact: Fact, axis: Any) -> None:
    with pytest.raises(FactError, match=r"there is no axis .*: 1,3,S,f32 has 3, counted from 0"):
        fact.dim(axis)


@pytest.mark.parametrize("text", ["f32", "1,3,224,224,f32", "B,S+1,bool", "2*S,i64", "QU8(Z:5 S:0.1)"])
def test_parse_fact_reads_what_it_prints(affine: Callable[[], Model], text: str) -> None:
    model = affine()
    assert str(model.parse_fact(str(model.parse_fact(text)))) == str(model.parse_fact(text))


@pytest.mark.parametrize("text", ["", "1,2", "1,_,f32", "..,f32", "1,2,zz"])
def test_parse_fact_wants_everything(affine: Callable[[], Model], text: str) -> None:
    with pytest.raises(FactError, match="Can not make a TypedFact out of"):
        affine().parse_fact(text)


@pytest.mark.parametrize("text", ["-1,f32", "1,-3,f32"])
def test_negative_sizes_are_refused(affine: Callable[[], Model], text: str) -> None:
    with pytest.raises(FactError, match="is negative"):
        affine().parse_fact(text)


@pytest.mark.parametrize("spec", [None, 3, b"1,f32"])
def test_a_fact_is_a_text(affine: Callable[[], Model], spec: Any) -> None:
    with pytest.raises(InputError, match="a fact is given as a text"):
        affine().parse_fact(spec)


def test_a_consumed_model_parses_nothing(affine: Callable[[], Model]) -> None:
    model = affine()
    model.into_runnable()
    with pytest.raises(ConsumedError):
        model.parse_fact("1,f32")


def test_the_empty_inference_fact() -> None:
    fact = InferenceFact()
    assert str(fact) == fact.dump() == "..,?"
    assert (fact.datum_type(), fact.rank(), fact.dims()) == (None, None, None)
    assert fact == InferenceFact()
    assert repr(fact) == "InferenceFact('..,?')"


@pytest.mark.parametrize("text", ["1,,f32", ",f32", "1,f32,", "1, ,f32"])
def test_an_empty_entry_is_a_mistake(text: str) -> None:
    with pytest.raises(FactError, match=f"'{text}' has an empty entry"):
        parse_inference_fact(text)


def test_single_sizes_of_partial_facts() -> None:
    known = InferenceModel(inference.InferenceModel()).fact("B,3,_,f32")
    assert [known.dim(axis) for axis in range(3)] == known.dims() == [Dim("B"), Dim(3), None]
    for axis in (3, -1, "x", None):
        with pytest.raises(FactError, match=r"there is no axis .*: B,3,\?,f32 has 3, counted from 0"):
            known.dim(axis)  # pyright: ignore[reportArgumentType]: what is tested
    with pytest.raises(FactError, match=r"..,\? does not say how many axes there are"):
        InferenceFact().dim(0)


def test_facts_are_made_by_models() -> None:
    with pytest.raises(FactError, match=r"Fact\(...\) takes no str") as caught:
        Fact("1,3,f32")  # pyright: ignore[reportArgumentType]: what is tested
    assert "model.parse_fact('1,3,S,f32')" in str(caught.value.hint)
    with pytest.raises(FactError, match=r"InferenceFact\(...\) takes no str") as caught:
        InferenceFact("1,3,f32")  # pyright: ignore[reportArgumentType]: what is tested
    assert "model.fact('B,3,_,f32')" in str(caught.value.hint)


@pytest.mark.parametrize("name", ["(", ")", "a,b", "((", '"', "\\", '\\",', "=", "min", "B\n,", 'i"x"', "f32"])
def test_what_a_fact_prints_is_read_again_whatever_the_symbols_are_called(name: str) -> None:
    s = symbol(name)
    other = symbol("T")
    sizes = [s, dim_max(s - 1, other), dim_max(dim_min(dim_max(s - 1, other), s + 3), 2 * other), 7]
    fact = TypedFact.of(DatumType.F32, sizes)
    assert parse_typed_fact(str(fact)) == fact
