"""What is said of nodes: their texts, what they read, and what is cut."""

from __future__ import annotations

import numpy as np
from tract_view.constants import ConstantTable
from tract_view.entries import LONGEST_TEXT, Entry, entries_of, short
from viewed_models import chain

from tract_core.frozen import frozen
from tract_core.model import TypedModel
from tract_core.model.fact import TypedFact
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.op import TypedOp
from tract_core.plugins import default_registry
from tract_core.testing.conformance.models import running_sums


@frozen
class Wordy(TypedOp):
    """An operator with a long field. ``words``: that."""

    words: tuple[str, ...]

    def output_facts(self, inputs: list[TypedFact]) -> tuple[TypedFact, ...]:
        return (inputs[0],)


def named(entries: list[Entry], name: str) -> Entry:
    return next(entry for entry in entries if entry.name == name)


def test_every_node_is_there_after_what_it_reads() -> None:
    entries = entries_of(chain("one", "two"), ConstantTable())
    assert [(entry.kind, entry.name, entry.op) for entry in entries] == [
        ("input", "x", "TypedSource"),
        ("node", "one", "Tanh"),
        ("node", "two", "Tanh"),
        ("node", "sum", "Add"),
        ("output", "sum", "output"),
    ]
    assert [entry.inputs for entry in entries] == [(), ((0, 0, 0),), ((1, 0, 0),), ((2, 0, 0),), ((3, 0, 0),)]
    assert all(entry.facts == ("2,3,f32",) for entry in entries)
    (weight,) = named(entries, "sum").constants
    assert (weight.slot, weight.name, weight.fact) == (1, "weight", "2,3,f32")


def test_a_constant_that_is_an_output_shows_its_value() -> None:
    model = TypedModel()
    model.set_outputs([model.add_const("only", np.arange(3, dtype=np.float32))])
    table = ConstantTable()
    first, last = entries_of(model, table)
    assert (first.kind, last.kind) == ("constant", "output")
    assert [table.summaries[one.number].most for one in first.constants] == [2.0]


def test_an_input_that_is_an_output_and_one_that_nobody_reads() -> None:
    model = TypedModel()
    x, _ = (model.add_source(name, parse_typed_fact("2,f32", model.symbols)) for name in "xy")
    model.set_outputs([x, x])
    entries = entries_of(model, ConstantTable())
    assert [(entry.kind, entry.name) for entry in entries] == [
        ("input", "x"),
        ("input", "y"),
        ("output", "x"),
        ("output", "x"),
    ]


def test_long_fields_are_cut() -> None:
    model = TypedModel()
    x = model.add_source("x", parse_typed_fact("2,f32", model.symbols))
    model.set_outputs(model.wire_node("wordy", Wordy(tuple("word" for _ in range(10_000))), [x]))
    ((name, text),) = named(entries_of(model, ConstantTable()), "wordy").attributes
    assert name == "words"
    assert text.startswith("(word, word")
    assert text.endswith("… (60000 characters)")
    assert len(text) < LONGEST_TEXT + 30


def test_texts_steer_nothing() -> None:
    assert short("a\x1b[2Jb\u202ec") == r"a\u001b[2Jb\u202ec"
    assert short("x" * 9, 4) == "xxxx… (9 characters)"


def test_entries_of_a_body_say_whose_it_is() -> None:
    entries = entries_of(running_sums(default_registry()), ConstantTable())
    loop = next(number for number, entry in enumerate(entries) if entry.name == "sums" and entry.kind == "node")
    inside = [entry for entry in entries if entry.around != -1]
    assert {entry.around for entry in inside} == {loop}
    assert {entry.place[0] for entry in inside} == {((entries[loop].place[1], 0),)}
    assert [entry.name for entry in inside if entry.kind == "node"] == ["add"]
