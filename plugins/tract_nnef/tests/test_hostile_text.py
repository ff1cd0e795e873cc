"""Texts that are made to harm: each is refused with a typed error, or read, in bounded memory and time."""

from __future__ import annotations

import sys
from contextlib import suppress
from itertools import count

import pytest
from nnef_texts import EVERYTHING
from tract_nnef.syntax.ast import MAX_DEPTH, Literal
from tract_nnef.syntax.parser import decode, parse_document, parse_fragments, parse_quantization, parse_statements

from tract_core.errors import CorruptModel, LimitExceeded, ModelError
from tract_core.limits import LoadLimits, spending
from tract_core.testing.hostile import bounded

pytestmark = pytest.mark.hostile

MILLION = 1_000_000
HEAD = "version 1.0; graph g(a) -> (b) { b = "


def refused(text, kind=ModelError, match=None, parse=parse_document):
    with bounded(), pytest.raises(kind, match=match) as caught:
        parse(text)
    error = caught.value
    assert error.where.startswith("line ")
    assert error.hint
    assert len(str(error)) < 1000
    return error


DEEP = {
    "parentheses": "(" * 100_000,
    "arrays": "[" * 100_000,
    "calls": "f(" * 100_000,
    "named arguments": "f(a = " * 100_000,
    "minus": "-" * 100_000,
    "not": "!" * 100_000 + "a;}",
    "if": "a if b else " * 100_000 + "a;}",
    "if in if": "a if (" * 100_000,
    "subscripts": "a" + "[0]" * 100_000 + ";}",
    "subscripts in subscripts": "a[" * 100_000,
    "ranges": "a" + "[:]" * 100_000 + ";}",
    "sum": "a + " * 100_000 + "a;}",
    "power": "a ^ -" * 100_000 + "a;}",
    "in": "a in " * 100_000 + "a;}",
    "loops": "[for i in " * 100_000,
    "loops in what they yield": "[for i in a yield " * 100_000,
}


@pytest.mark.parametrize("text", DEEP.values(), ids=DEEP)
def test_expressions_inside_one_another(text):
    refused(HEAD + text, LimitExceeded, "inside one another")


@pytest.mark.parametrize(
    "text",
    ["fragment f(a: integer" + "[]" * 100_000 + ") -> ();", "fragment f(a: " + "(" * 100_000],
    ids=["arrays", "tuples"],
)
def test_types_inside_one_another(text):
    refused(text, LimitExceeded, "inside one another", parse_fragments)


@pytest.mark.parametrize("sign", "([")
def test_targets_inside_one_another(sign):
    refused(sign * 100_000, LimitExceeded, "inside one another", parse_statements)


def test_the_depth_of_an_expression_is_that_of_all_its_parts():
    """Many that are not deep, inside one another, are."""
    one = "a"
    for _ in range(20):
        one = f"({one} + a + a + a + a + a + a + a)"
    refused(HEAD + one + ";}", LimitExceeded, "inside one another")


def test_what_is_walked_by_recursion_is_never_too_deep():
    """The deepest that is read can be compared, hashed, copied and shown."""
    text = f"b = {'[' * (MAX_DEPTH - 1)}a{']' * (MAX_DEPTH - 1)};"
    deepest, again = parse_statements(text), parse_statements(text)
    assert deepest == again
    assert hash(deepest) == hash(again)
    assert repr(deepest) == repr(again)


def test_parentheses_alone_are_not_deep():
    assert parse_statements(f"b = {'(' * 500}1{')' * 500};")[0].value == Literal(1)


LONG = {  # what is there many times, behind what, and how many times, for a line of 100 MB
    "numbers": (HEAD + "[", "1,", 50),
    "arguments": (HEAD + "f(", "a=1,", 25),
    "tuple": (HEAD + "(", "a, ", 33),
    "inputs": ("version 1.0; graph g(", "a,", 50),
    "extensions": ("version 1.0;", "extension a;", 8),
}


@pytest.mark.parametrize(("head", "item", "millions"), LONG.values(), ids=LONG)
def test_a_line_of_100_mb(head, item, millions):
    with spending(LoadLimits(max_nodes=100_000)):
        refused(head + item * (millions * MILLION), LimitExceeded, "the text has more than 200000 words")


def test_many_statements_in_a_line():
    text = HEAD + "a;" + "".join(f"a{index}=f(a);" for index in range(50_000))
    with spending(LoadLimits(max_nodes=100_000)):
        error = refused(text, LimitExceeded, "the text has more than 200000 words")
    assert "LoadLimits(max_nodes=...)" in error.hint


@pytest.mark.parametrize(
    ("first", "item", "times", "last", "match"),
    [
        ("", " ", 100 * MILLION, "", "the text ends, wanted an expression"),
        ("", "\n", 100 * MILLION, "$", r"found '\$', wanted an expression"),
        ("#", "x", 100 * MILLION, "", "the text ends"),
        ("", "#\n", 20 * MILLION, "", "the text ends"),
        ("'", "x", 100 * MILLION, "", "has no end"),
        ("'", "\\x", 20 * MILLION, "", "has no end"),
        ('i"', "\\x", 20 * MILLION, "", "has no end"),
        ("", "i'", 50 * MILLION, "", "found 'i'i'', wanted an operator"),
        ("", "'", 10 * MILLION + 1, "", "found '', wanted an operator"),
        ("", "a", 100 * MILLION, "!", "found '!', wanted an operator"),
        ("", "1", MILLION, ";}", "a number has 1000000 characters"),
        ("0.", "1", MILLION, ";}", "a number has 1000002 characters"),
        ("1e", "1", MILLION, ";}", "a number has 1000002 characters"),
        ("1e", "9", 900, ";}", "beyond the range"),
        ("", "1", 900, ";}", "takes more than 64 bits"),
        ("", "\x00", MILLION, "", r"found '\\u0000', wanted an expression"),
        ("", "\ud800", 1, "", r"found '\\ud800', wanted an expression"),
        ("< ", " ", MILLION, "", "found '<', wanted an expression"),
        ("", "a < " + " " * 1000, 10_000, "", "inside one another"),
    ],
)
def test_words_without_end(first, item, times, last, match):
    refused(HEAD + first + item * times + last, match=match)


@pytest.mark.parametrize("sign", ["x", "\\x", "\\\\", "\n"])
def test_long_texts_are_read(sign):
    with bounded():
        (statement,) = parse_statements(f"b = '{sign * (20 * MILLION)}';")
    assert len(statement.value.value) == 20 * MILLION


def test_a_text_of_more_bytes_than_allowed():
    with spending(LoadLimits(max_parsed_bytes=100)):
        for parse in (parse_document, parse_fragments, parse_statements, parse_quantization):
            with pytest.raises(LimitExceeded, match="the text takes 101 bytes, 100 are allowed"):
                parse(" " * 101)
        with pytest.raises(LimitExceeded, match="the text takes 101 bytes, 100 are allowed"):
            decode(b" " * 101)


def test_time_is_up(monkeypatch):
    """A clock that goes on by a second whenever it is looked at."""
    ticks = count()
    monkeypatch.setattr("tract_core.limits.monotonic", lambda: float(next(ticks)))
    text = HEAD + "[" + "1," * 100_000 + "];}"
    with spending(LoadLimits(deadline_s=5)), pytest.raises(LimitExceeded, match="longer than 5 seconds"):
        parse_document(text)


@pytest.mark.parametrize(
    "content", [b"\xff\xfe", b"a\n\xc3", b"\x80" * 100_000, "\ud800".encode("utf-8", "surrogatepass")]
)
def test_bytes_that_are_no_text(content):
    with pytest.raises(CorruptModel, match="wanted text in UTF-8") as caught:
        decode(content)
    assert caught.value.where.startswith("line ")


def test_a_text_that_is_cut_anywhere_is_refused():
    for end in range(len(EVERYTHING) - 2):
        refused(EVERYTHING[:end])


def test_a_text_with_a_sign_that_is_changed_anywhere_is_read_or_refused():
    for place in range(len(EVERYTHING)):
        for sign in "\x00'(<":
            text = EVERYTHING[:place] + sign + EVERYTHING[place + 1 :]
            with suppress(ModelError):
                parse_document(text)


def test_recursion_is_not_needed():
    """A text as deep as allowed is read with few frames left."""
    text = f"b = {'[' * (MAX_DEPTH - 1)}a{']' * (MAX_DEPTH - 1)};"
    parse_statements(text)
    before, depth, frame = sys.getrecursionlimit(), 0, sys._getframe()
    while frame is not None:
        depth, frame = depth + 1, frame.f_back
    sys.setrecursionlimit(depth + 40)
    try:
        parse_statements(text)
    finally:
        sys.setrecursionlimit(before)
