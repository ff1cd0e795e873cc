"""Statements that are taken in a few steps mean what the grammar says, and are refused where it refuses them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tract_nnef.syntax import parser
from tract_nnef.syntax.build import Build
from tract_nnef.syntax.parser import parse_document, parse_statements
from tract_nnef.syntax.plain import plain_statement

from tract_core.errors import ModelError

PLAIN = [
    'y = conv(x, w, dilation = [1, 1], border = "constant", padding = [(3, 3), (-3, 3)]);',
    "y = max(x, [[[[0.0]]]]);",
    'w = variable<scalar>(label = "a/b", shape = [64, 3, 7, 7]);',
    "y = matmul(x, w, transposeA = false, transposeB = true);",
    'y=tract_core_einsum([x,w],expr="ab,cb->ac",acc="f32",output="");',
    "y\n=\n f ( 1e-05 , - 5 ) ;",
    "y = f(-9223372036854775808, 0.0, -0.0);",
]
LEFT_TO_THE_TABLE = [
    "y = a + b;",
    "y, z = f(x);",
    "y = f(a + b);",
    "y = f(a[0]);",
    "y = f(g(x));",
    "y = f((a));",
    "y = f();",
    "y = f([]);",
    "y = f(x, [1, 2,]);",
    "y = f('text');",
    r'y = f("a\"b");',
    'y = f(i"a b");',
    "y = f(if);",
    "version = f(x);",
    "y = f(x) # a comment\n;",
    "y = f(x == 1);",
]


def in_graph(body):
    return f"version 1.0;\ngraph g(x) -> (y)\n{{\n{body}\n}}\n"


def outcome(text):
    try:
        return parse_document(text)
    except ModelError as error:
        return str(error)


def by_the_table(text):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parser, "plain_statement", lambda *_: None)
        return outcome(text)


@pytest.mark.parametrize("statement", PLAIN[:-2])
def test_plain_statements_are_taken(statement):
    found = plain_statement(statement, 0, Build(statement))
    assert found is not None
    assert found.end == len(statement)


def test_arguments_that_are_written_alike_are_one_object():
    first, second = parse_statements("y = f(x, pads = [(1, 2)]); z = g(x, pads = [(1, 2)], by = 2);")
    assert [a is b for a, b in zip(first.value.arguments, second.value.arguments[:2], strict=True)] == [True, True]


@pytest.mark.parametrize("between", ["", " ", "\n# a comment; b = f(x);\n", "u = y + z;", "u, v = f(x);"])
def test_plain_statements_in_a_row_and_others_between_them(between):
    text = in_graph(f"y = f(x); z = g(y, 2);{between}w = h(z);")
    assert outcome(text) == by_the_table(text)


@pytest.mark.parametrize("statement", LEFT_TO_THE_TABLE)
def test_others_are_left_to_the_table(statement):
    assert plain_statement(statement, 0, Build(statement)) is None


@pytest.mark.parametrize("statement", [*PLAIN, *LEFT_TO_THE_TABLE])
def test_both_ways_lead_to_the_same(statement):
    text = in_graph(f"{statement}\n{statement.replace('y', 'z', 1)}")
    assert outcome(text) == by_the_table(text)


PIECES = [
    "y",
    "x",
    "z1",
    "true",
    "if",
    "inf",
    "=",
    "==",
    "(",
    ")",
    "[",
    "]",
    ",",
    ";",
    " ",
    "\n",
    "-",
    "1",
    "0.5",
    "1e9",
]
PIECES += ['"a"', "'b'", "#c\n", "<scalar>", "<", ">", "+", "1_0", "1e", ".", "é", "i", '"', "for", "yield"]


@settings(max_examples=400, deadline=None)
@given(st.sampled_from(PLAIN), st.lists(st.tuples(st.integers(0, 200), st.sampled_from(PIECES)), max_size=3), st.data())
def test_whatever_is_put_into_a_statement(statement, added, data):
    """Or taken out of it: what is not plain any more is what the table says it is."""
    for place, piece in added:
        at = place % (len(statement) + 1)
        statement = statement[:at] + piece + statement[at + data.draw(st.integers(0, 2)) :]
    text = in_graph(f"{statement} u = f(y, 2);")
    assert outcome(text) == by_the_table(text)


def test_long_and_deep_statements_are_left_to_the_table():
    for arguments in (", ".join(["x"] * 2000), "[" + ", ".join(["1"] * 2000) + "]", "[" * 10 + "1" + "]" * 10):
        text = f"y = f({arguments});"
        assert plain_statement(text, 0, Build(text)) is None
        assert outcome(in_graph(text)) == by_the_table(in_graph(text))
