"""What is printed parses to what was given, for whatever NNEF can say."""

from __future__ import annotations

import struct
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nnef_texts import EVERYTHING, PROPERTY, documents, expressions, fragments, quantizations
from tract_nnef.syntax.ast import MAX_DEPTH, Array, Assignment, Binary, Identifier, Literal, Primitive, TensorOf, Unary
from tract_nnef.syntax.names import RESERVED, is_plain, plain_name
from tract_nnef.syntax.parser import parse_document, parse_fragments, parse_quantization, parse_statements
from tract_nnef.syntax.printer import (
    print_document,
    print_expression,
    print_fragment,
    print_quantization,
    print_statements,
    print_type,
    shortest,
)

from tract_core.errors import LimitExceeded, Unsupported


def same(found, wanted):
    """Equal, and no integer in the place of a truth value or of a scalar."""
    return found == wanted and repr(found) == repr(wanted)


def parsed(text):
    """The expression that a text is."""
    return parse_statements(f"x = {text};")[0].value


@PROPERTY
@given(expressions())
def test_an_expression_parses_to_itself(expression):
    assert same(parsed(print_expression(expression, extended=True)), expression)


@PROPERTY
@given(documents())
def test_a_document_parses_to_itself(document):
    wanted = replace(document, fragments=tuple(sorted(document.fragments, key=lambda fragment: fragment.name)))
    found = parse_document(print_document(document, extended=True))
    assert found == wanted
    assert print_document(found, extended=True) == print_document(document, extended=True)


@PROPERTY
@given(st.lists(fragments(), max_size=3, unique_by=lambda fragment: fragment.name))
def test_fragments_parse_to_themselves(some):
    text = "\n".join(print_fragment(fragment, extended=True) for fragment in some)
    assert parse_fragments(text) == tuple(some)


@PROPERTY
@given(st.lists(quantizations(), max_size=3))
def test_quantizations_parse_to_themselves(lines):
    assert parse_quantization(print_quantization(lines)) == tuple(lines)


@PROPERTY
@given(st.floats(allow_nan=False))
def test_a_scalar_reads_back_to_the_bit(value):
    text = print_expression(Literal(value))
    assert struct.pack("d", parsed(text).value) == struct.pack("d", value)
    assert "+" not in text
    assert "e-0" not in text


@PROPERTY
@given(st.floats(width=32, allow_nan=False))
def test_the_shortest_scalar_is_the_same_in_32_bits(value):
    short = shortest(value)
    assert struct.pack("f", short) == struct.pack("f", value)
    assert len(repr(short)) <= len(repr(value))


def test_the_layout_is_that_of_the_established_writer():
    assert print_document(parse_document(EVERYTHING), extended=True) == EVERYTHING


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (1e-5, "1e-5"),
        (1.5e22, "1.5e22"),
        (float("inf"), "inf"),
        (float("-inf"), "-inf"),
        (True, "true"),
        (1, "1"),
        (1.0, "1.0"),
        ('it\'s "\\"', r'"it\'s \"\\\""'),
        ("two\nlines", '"two\nlines"'),
    ],
)
def test_literals(value, text):
    assert print_expression(Literal(value)) == text


A, B, C = map(Identifier, "abc")


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        (Binary("-", A, Binary("-", B, C)), "a - (b - c)"),
        (Binary("-", Binary("-", A, B), C), "a - b - c"),
        (Binary("*", Binary("+", A, B), C), "(a + b) * c"),
        (Binary("/", Binary("*", Literal(3), A), Literal(2)), "3 * a / 2"),
        (Binary("^", A, Binary("^", B, C)), "a ^ (b ^ c)"),
        (Binary("^", Unary("-", A), B), "(-a) ^ b"),
        (Unary("-", Binary("^", A, B)), "-a ^ b"),
        (Binary("+", A, Literal(-1)), "a + -1"),
        (Binary(">", Binary("<", A, Identifier("b")), C), "a < b > c"),
    ],
)
def test_parentheses_stand_only_where_they_matter(expression, text):
    assert print_expression(expression) == text
    assert parsed(text) == expression


@pytest.mark.parametrize("name", ["", "a.b", "1a", "é", "a b", 'a"b', "a\\", "for", "graph", "scalar", "²"])
def test_a_name_that_nnef_cannot_write_is_refused_or_quoted(name):
    with pytest.raises(Unsupported, match="cannot write the name"):
        print_expression(Identifier(name))
    assert parsed(print_expression(Identifier(name), extended=True)) == Identifier(name)
    assert is_plain(plain_name(name))


@PROPERTY
@given(st.text())
def test_every_name_has_a_plain_one(name):
    assert is_plain(plain_name(name))
    assert plain_name(plain_name(name)) == plain_name(name)


def test_plain_names_are_those_of_the_established_writer():
    assert [plain_name(name) for name in ("a.b", "1", "/x/y", "ok_1")] == ["a_b", "_1", "_x_y", "ok_1"]
    assert all(plain_name(word) == f"{word}_" for word in RESERVED)


@pytest.mark.parametrize("value", [float("nan"), 1 << 64, -(1 << 63) - 1])
def test_what_has_no_text_is_refused(value):
    with pytest.raises(Unsupported):
        print_expression(Literal(value))


@pytest.mark.parametrize("text", ["a;b", "", " a", "1a"])
def test_an_extension_that_would_not_read_back_is_refused(text):
    with pytest.raises(Unsupported, match="extension"):
        print_document(replace(parse_document(EVERYTHING), extensions=(text,)), extended=True)


def nested(depth):
    expression = A
    for _ in range(depth - 1):
        expression = Array((expression,))
    return expression


def test_the_deepest_expression_that_is_printed_is_the_deepest_that_is_parsed():
    deepest = nested(MAX_DEPTH)
    assert parsed(print_expression(deepest)) == deepest
    for much in (MAX_DEPTH + 1, 100_000):
        with pytest.raises(LimitExceeded, match="inside one another"):
            print_expression(nested(much))


def test_statements_take_a_line_each():
    statements = (Assignment(A, Literal(1)), Assignment(Array((A, B)), C))
    assert print_statements(statements) == "a = 1;\n[a, b] = c;\n"


def test_a_tensor_of_any_type():
    assert print_type(TensorOf(None)) == "tensor<>"
    assert print_type(TensorOf(Primitive("?"))) == "tensor<?>"
