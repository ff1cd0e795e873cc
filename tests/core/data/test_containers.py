"""Types of containers: their text, what fits what, what two of them have in common."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

from tract_core.data import Constant, DatumType, ItemFact, MapType, OptionalType, SequenceType, parse_dtype
from tract_core.data.boxes import boxed, from_tensor, misfit, tensors_in, to_tensor
from tract_core.data.containers import (
    KNOWN_ITEMS,
    compatible_types,
    forget_symbols,
    join_types,
    meet_types,
    sequence_of,
    substitute_in_type,
    symbols_in_type,
)
from tract_core.dims import symbol
from tract_core.errors import FactError, InputError, TractError
from tract_core.model.fact import TypedFact
from tract_core.model.fact_text import parse_inference_fact, parse_typed_fact
from tract_core.model.identity import Identity
from tract_core.model.typed import TypedModel
from tract_core.ops.binary import Add
from tract_core.ops.elementwise import Neg
from tract_core.ops.sequence import SequenceAt, SequenceConstruct, SequenceInsert, wire_at
from tract_core.runtime.plan import TypedSimplePlan
from tract_core.transforms.set_symbols import SetSymbols

TEXTS = [
    "sequence(f32)",
    "sequence(2,_,f32)",
    "sequence(..,string)",
    "sequence(2*S,QU8(Z:5 S:0.1))",
    "optional(sequence(B,f32))",
    "map(i64,3,f32)",
    "sequence(map(string,f32))",
]


@pytest.mark.parametrize("text", TEXTS)
def test_text_forms_parse_back(text: str) -> None:
    kind = parse_dtype(text)
    assert kind.short == text
    assert pickle.loads(pickle.dumps(kind)) == kind
    fact = parse_typed_fact(text)
    assert (fact.rank, str(fact), fact.datum_type) == (0, text, kind)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sequence()", "does not say what it holds"),
        ("sequence(3)", "unknown element type '3'"),
        ("sequence(-1,f32)", "size -1 in 'sequence"),
        ("map(q,f32)", "unknown element type 'q'"),
        ("sequence(" * 20 + "f32" + ")" * 20, "containers are nested more than 8 deep"),
    ],
)
def test_texts_that_are_no_type(text: str, message: str) -> None:
    with pytest.raises(FactError, match=message):
        parse_dtype(text)


def test_no_arithmetic_on_containers() -> None:
    kind = parse_dtype("sequence(f32)")
    questions = ("bool", "number", "float", "integer", "signed", "unsigned", "complex", "quantized")
    assert not any(getattr(kind, f"is_{question}")() for question in questions)
    model = TypedModel()
    x = model.add_source("x", TypedFact.of(kind, ()))
    for op, inputs in ((Neg(), [x]), (Add(), [x, x])):
        with pytest.raises(TractError, match=r"sequence\(f32\)"):
            model.wire_node("y", op, inputs)


def test_sequence_of_takes_what_its_items_have_in_common() -> None:
    items = [ItemFact(DatumType.F32, (2, 3)), ItemFact(DatumType.F32, (2, symbol("S")))]
    kind = sequence_of(DatumType.F32, items)
    assert (str(kind), kind.length) == ("sequence(2,_,f32)", 2)
    assert str(sequence_of(DatumType.I64, [])) == "sequence(..,i64)"
    assert sequence_of(DatumType.F32, items * KNOWN_ITEMS).length is None
    with pytest.raises(FactError, match="a sequence holds values of one type, found f32, i8"):
        sequence_of(DatumType.F32, [*items, ItemFact(DatumType.I8)])


@pytest.mark.parametrize(
    ("a", "b", "fits"),
    [
        ("sequence(2,_,f32)", "sequence(_,3,f32)", True),
        ("sequence(2,f32)", "sequence(3,f32)", False),
        ("sequence(2,f32)", "sequence(S,f32)", True),
        ("sequence(2,f32)", "sequence(2,1,f32)", False),
        ("sequence(2,f32)", "sequence(..,f32)", True),
        ("sequence(f32)", "sequence(f64)", False),
        ("sequence(f32)", "optional(f32)", False),
        ("sequence(f32)", "f32", False),
        ("optional(sequence(2,f32))", "optional(sequence(3,f32))", False),
        ("map(i64,f32)", "map(string,f32)", False),
        ("map(i64,f32)", "map(i64,f32)", True),
    ],
)
def test_what_fits_what(a: str, b: str, fits: bool) -> None:
    left, right = parse_dtype(a), parse_dtype(b)
    assert compatible_types(left, right) is compatible_types(right, left) is fits
    if fits:
        joined = join_types(left, right)
        assert joined is not None
        assert compatible_types(joined, left)
        assert compatible_types(joined, right)


@pytest.mark.parametrize(
    ("a", "b", "joined", "met"),
    [
        ("sequence(2,_,f32)", "sequence(_,3,f32)", "sequence(_,_,f32)", "sequence(2,3,f32)"),
        ("sequence(S,f32)", "sequence(2,f32)", "sequence(_,f32)", "sequence(2,f32)"),
        ("sequence(S,f32)", "sequence(S,f32)", "sequence(S,f32)", "sequence(S,f32)"),
        ("sequence(2,f32)", "sequence(..,f32)", "sequence(..,f32)", "sequence(2,f32)"),
        ("optional(_,f32)", "optional(4,f32)", "optional(_,f32)", "optional(4,f32)"),
        ("map(i64,_,f32)", "map(i64,4,f32)", "map(i64,_,f32)", "map(i64,4,f32)"),
    ],
)
def test_join_and_meet(a: str, b: str, joined: str, met: str) -> None:
    left, right = parse_dtype(a), parse_dtype(b)
    assert str(join_types(left, right)) == str(join_types(right, left)) == joined
    assert str(meet_types(left, right)) == met


def test_join_of_different_types_is_nothing() -> None:
    for a, b in (("sequence(f32)", "sequence(i8)"), ("sequence(f32)", "f32"), ("map(i64,f32)", "map(i8,f32)")):
        assert join_types(parse_dtype(a), parse_dtype(b)) is None


def test_an_empty_sequence_says_nothing_of_another_ones_items() -> None:
    empty, full = sequence_of(DatumType.F32, []), sequence_of(DatumType.F32, [ItemFact(DatumType.F32, (2,))])
    assert str(join_types(empty, full)) == str(join_types(full, empty)) == "sequence(2,f32)"
    assert not compatible_types(empty, full)
    assert compatible_types(empty, parse_dtype("sequence(2,f32)"))


def test_presence() -> None:
    item = ItemFact(DatumType.F32, (2,))
    some, none = OptionalType(item, present=True), OptionalType(item, present=False)
    assert not compatible_types(some, none)
    assert join_types(some, none) == OptionalType(item)
    assert meet_types(OptionalType(item), none) == none


def test_symbols_inside() -> None:
    kind = parse_dtype("optional(sequence(B,2*S,f32))")
    assert symbols_in_type(kind) == {"B", "S"}
    assert str(substitute_in_type(kind, {"S": 4})) == "optional(sequence(B,8,f32))"
    assert str(forget_symbols(kind, frozenset({"B"}))) == "optional(sequence(B,_,f32))"
    assert forget_symbols(kind, frozenset({"B", "S"})) is kind
    known = sequence_of(DatumType.F32, [ItemFact(DatumType.F32, (symbol("B"),))])
    assert substitute_in_type(known, {"B": 3}) == sequence_of(DatumType.F32, [ItemFact(DatumType.F32, (3,))])


def test_facts_unify() -> None:
    a, b = parse_inference_fact("sequence(2,_,f32)"), parse_inference_fact("sequence(_,3,f32)")
    assert str(a.unify(b)) == "sequence(2,3,f32)"
    with pytest.raises(FactError, match=r"element types differ: sequence\(2,_,f32\) against sequence\(3,3,f32\)"):
        a.unify(parse_inference_fact("sequence(3,3,f32)"))


@pytest.mark.parametrize("value", [[], [np.ones(2), np.ones(3)], None, {"a": np.ones(1)}, np.ones((2, 2))])
def test_boxes(value: Any) -> None:
    box = boxed(value)
    assert (box.shape, box.dtype) == ((), np.dtype(object))
    assert from_tensor(box) is value
    assert np.array(box).item() is value


def test_texts_are_no_containers() -> None:
    text = np.array("some text", dtype=object)
    assert from_tensor(text) is text
    assert to_tensor(text) is text


def test_tensors_in_a_container() -> None:
    a, b = np.ones(1), np.zeros(2)
    assert [one is other for one, other in zip(tensors_in(boxed([{"x": a}, b, None])), [a, b], strict=True)] == [
        True
    ] * 2


def test_misfit() -> None:
    kind = MapType(DatumType.STRING, ItemFact(DatumType.F32, (symbol("S"),)))
    good, bad = np.ones(2, np.float32), np.ones(3, np.float32)
    assert misfit({"a": good, "b": good}, kind, {"S": 2}) is None
    assert misfit({"a": good, "b": bad}, kind, {"S": 2}) == "entry 'b': axis 0 has size 3, S,f32 is wanted"
    assert misfit({"a": good, "b": bad}, kind, {}) is None
    assert misfit([], kind, {}) == "it is a list, a dictionary is wanted for map(string,S,f32)"


def _model(fact: str) -> TypedModel:
    model = TypedModel()
    s = model.add_source("s", parse_typed_fact(fact, model.symbols))
    x = model.add_source("x", parse_typed_fact("B,f32", model.symbols))
    (longer,) = model.wire_node("insert", SequenceInsert(), [s, x])
    (same,) = model.wire_node("same", Identity(), [longer])
    model.set_outputs([same, wire_at(model, "at", same, model.add_const("last", np.array(-1)))])
    return model


def test_symbols_get_values_inside_types() -> None:
    model = SetSymbols({"B": 3}).apply(_model("sequence(B,f32)"))
    assert [str(model.outlet_fact(outlet)) for outlet in model.outputs] == ["sequence(3,f32)", "3,f32"]
    assert [node.op for node in model.nodes if isinstance(node.op, SequenceAt)] == [SequenceAt((3,))]


def test_symbols_bind_inside_containers() -> None:
    plan = TypedSimplePlan(_model("sequence(B,f32)"))
    two, three = np.ones(2, np.float32), np.ones(3, np.float32)
    found, last = plan.run([boxed([two]), two])
    assert len(found.item()) == 2
    assert np.shares_memory(last, two)
    with pytest.raises(InputError, match="item 0: axis 0 has size 3, B,f32 is wanted") as caught:
        plan.run([boxed([three]), two])
    assert (caught.value.where, caught.value.hint) == ("input 's'", "the model wants sequence(B,f32)")


def test_an_array_is_no_sequence() -> None:
    with pytest.raises(InputError, match=r"it is a ndarray, a list is wanted for sequence\(_,f32\)"):
        TypedSimplePlan(_model("sequence(_,f32)")).run([np.ones(2, np.float32), np.ones(2, np.float32)])


def test_containers_are_never_folded() -> None:
    model = TypedModel()
    x = model.add_const("x", Constant(np.ones(2, np.float32)))
    (made,) = model.wire_node("made", SequenceConstruct(DatumType.F32), [x])
    model.set_outputs([made])
    model.declutter()
    assert isinstance(model.producer(model.outputs[0]).op, SequenceConstruct)
    assert isinstance(model.outlet_fact(model.outputs[0]).datum_type, SequenceType)
