"""Texts that steer terminals: escaped where they are shown, refused as names."""

from __future__ import annotations

import json
import pickle
import unicodedata

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tract_core import Tensor
from tract_core.data import DatumType
from tract_core.errors import GraphError, InputError
from tract_core.model.fact import TypedFact
from tract_core.model.typed import TypedModel
from tract_core.texts import printable, printable_lines, steers

BIDIRECTIONAL = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}
ANY = st.text(st.characters(exclude_categories=[]), max_size=20)


def is_steering(sign: str) -> bool:
    """By the tables of Unicode, and the implicit marks, which have a class of their own in its list of properties."""
    category = unicodedata.category(sign)
    marks = unicodedata.bidirectional(sign) in BIDIRECTIONAL or sign in "\u061c\u200e\u200f"
    return category in ("Cc", "Cs", "Zl", "Zp") or marks


def test_every_character_that_steers() -> None:
    wrong = [sign for sign in map(chr, range(0x110000)) if is_steering(sign) and not steers(sign)]
    assert wrong == []
    more = {sign for sign in map(chr, range(0x110000)) if steers(sign) and not is_steering(sign)}
    assert more == set("\u206a\u206b\u206c\u206d\u206e\u206f")  # old marks that change letters and digits


@given(ANY)
def test_what_is_printable_does_not_steer(text: str) -> None:
    assert not steers(printable(text))
    assert printable(printable(text)) == printable(text)
    assert not steers(printable_lines(text).replace("\n", "").replace("\t", ""))
    assert printable_lines(text).count("\n") == text.count("\n")
    if not steers(text):
        assert printable(text) == text == printable_lines(text)


@given(ANY)
def test_json_stays_json(text: str) -> None:
    """Where a whole report is escaped at the end, programs read the same text from it."""
    assert json.loads(printable_lines(json.dumps({"name": text}, indent=1))) == {"name": text}


@pytest.mark.parametrize("text", ["é", "a b", "层/权重", "👩\u200d🔬", "a\u3000b", ""])
def test_other_scripts_are_shown_as_they_are(text: str) -> None:
    assert printable(text) == text


def test_errors_steer_nothing() -> None:
    error = InputError("a\x1bb", where="c\x9b", hint="d\u202e\ne").at("f\r")
    for shown in (error, pickle.loads(pickle.dumps(error))):
        assert str(shown) == "f\\r: c\\u009b: a\\u001bb\n  hint: d\\u202e\ne"


def test_names_that_steer_are_refused() -> None:
    model = TypedModel()
    with pytest.raises(GraphError, match="has a character that cannot be shown"):
        model.add_source("x\x1b[31m", TypedFact.of(DatumType.F32, ()))
    x = model.add_source("x", TypedFact.of(DatumType.F32, ()))
    with pytest.raises(GraphError, match="has a character that cannot be shown"):
        model.set_label(x, "y\n")
    with pytest.raises(GraphError, match="has a character that cannot be shown"):
        model.rename(x.node, "y\u202e")
    assert model.outlet_name(x) == "x"


def test_tensors_of_texts_steer_nothing() -> None:
    assert str(Tensor.from_numpy(np.array(["a\x1b[2J\n", "b"]))) == "Tensor(2,STRING a\\u001b[2J\\n, b)"
