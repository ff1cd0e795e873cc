"""What a text of NNEF says, and what is said of one that breaks the rules."""

from __future__ import annotations

import subprocess
import sys

import pytest
from nnef_texts import EVERYTHING
from tract_nnef.syntax.ast import (
    Argument,
    Array,
    ArrayOf,
    Assignment,
    Binary,
    Comprehension,
    Fragment,
    Identifier,
    Invocation,
    Literal,
    Parameter,
    Primitive,
    Quantization,
    Range,
    Result,
    Select,
    Subscript,
    TensorOf,
    Tuple,
    TupleOf,
    Unary,
)
from tract_nnef.syntax.parser import decode, parse_document, parse_fragments, parse_quantization, parse_statements

from tract_core.errors import CorruptModel, VersionError

A, B, C, D = map(Identifier, "abcd")
SCALAR, ANY = Primitive("scalar"), Primitive("?")


def expression(text):
    return parse_statements(f"x = {text};")[0].value


def in_graph(body):
    return f"version 1.0;\ngraph g(a) -> (b)\n{{\n{body}\n}}\n"


def refused(text, kind=CorruptModel, parse=parse_document):
    with pytest.raises(kind) as caught:
        parse(text)
    return caught.value


# --- expressions


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("12", Literal(12)),
        ("-12", Literal(-12)),
        ("1.", Literal(1.0)),
        ("1.5", Literal(1.5)),
        ("1e3", Literal(1000.0)),
        ("1E+3", Literal(1000.0)),
        ("1e-05", Literal(0.00001)),
        ("inf", Literal(float("inf"))),
        ("-inf", Literal(float("-inf"))),
        ("18446744073709551615", Literal((1 << 64) - 1)),
        ("-9223372036854775808", Literal(-1 << 63)),
        ("true", Literal(True)),
        ("false", Literal(False)),
        (r"'it\'s \"\\\n'", Literal("it's \"\\n")),
        ('"it\'s"', Literal("it's")),
        (r'"\\\\\\"', Literal("\\\\\\")),
        ("'two\nlines'", Literal("two\nlines")),
        ("i'a.b'", Identifier("a.b")),
        (r'i"a\"\\b"', Identifier('a"\\b')),
        ('i"for"', Identifier("for")),
        ("graph", Identifier("graph")),
        ("[]", Array(())),
        ("[a, b,]", Array((A, B))),
        ("()", Tuple(())),
        ("(a)", A),
        ("(a,)", Tuple((A,))),
        ("(a, b)", Tuple((A, B))),
        ("a[0]", Subscript(A, Literal(0))),
        ("a[0][b]", Subscript(Subscript(A, Literal(0)), B)),
        ("a[b:c]", Range(A, B, C)),
        ("a[b:]", Range(A, B, None)),
        ("a[:c]", Range(A, None, C)),
        ("a[:]", Range(A, None, None)),
        ("f()", Invocation("f", ())),
        ("f(a, k = b,)", Invocation("f", (Argument(None, A), Argument("k", B)))),
        ("f<scalar>(a)", Invocation("f", (Argument(None, A),), SCALAR)),
        ("f< ? >(a)", Invocation("f", (Argument(None, A),), ANY)),
        ("shape_of(a)[0]", Subscript(Invocation("shape_of", (Argument(None, A),)), Literal(0))),
        ("[for a in b yield c]", Comprehension((("a", B),), None, C)),
        ("[for a in b, c in d if a yield c]", Comprehension((("a", B), ("c", D)), A, C)),
        ("a if b else c if d else a", Select(A, B, Select(C, D, A))),
    ],
)
def test_expressions(text, wanted):
    found = expression(text)
    assert found == wanted
    assert repr(found) == repr(wanted)  # 1, 1.0 and true are equal to Python


def minus(of):
    return Unary("-", of)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("a + b * c", Binary("+", A, Binary("*", B, C))),
        ("a - b - c", Binary("-", Binary("-", A, B), C)),
        ("a / b * c", Binary("*", Binary("/", A, B), C)),
        ("a ^ b ^ c", Binary("^", Binary("^", A, B), C)),
        ("a * b ^ c", Binary("*", A, Binary("^", B, C))),
        ("a ^ -b", Binary("^", A, minus(B))),
        ("a ^ -0.5", Binary("^", A, Literal(-0.5))),
        ("-a ^ b", minus(Binary("^", A, B))),
        ("-2 ^ b", minus(Binary("^", Literal(2), B))),
        ("-a * b", Binary("*", minus(A), B)),
        ("a - -1", Binary("-", A, Literal(-1))),
        ("a -1", Binary("-", A, Literal(1))),
        ("--1", minus(Literal(-1))),
        ("-a[0]", minus(Subscript(A, Literal(0)))),
        ("a + b < c * d", Binary("<", Binary("+", A, B), Binary("*", C, D))),
        ("a < b == c", Binary("==", Binary("<", A, B), C)),
        ("!a && b", Binary("&&", Unary("!", A), B)),
        ("a || b && c", Binary("&&", Binary("||", A, B), C)),
        ("a == b && c", Binary("&&", Binary("==", A, B), C)),
        ("a && b in c", Binary("in", Binary("&&", A, B), C)),
        ("a in b if c else d", Select(Binary("in", A, B), C, D)),
        ("(a + b) * c", Binary("*", Binary("+", A, B), C)),
        ("3*a/2", Binary("/", Binary("*", Literal(3), A), Literal(2))),
        ("a < integer(b)", Binary("<", A, Invocation("integer", (Argument(None, B),)))),
    ],
)
def test_what_binds_more_than_what(text, wanted):
    assert expression(text) == wanted


# --- statements and documents


def test_what_is_assigned_to():
    text = "a = d; [b] = d; (c) = d; e, [f, (g,)] = d; (h, i) = d;"
    targets = [one.targets for one in parse_statements(text)]
    names = {name: Identifier(name) for name in "abcefghi"}
    pair = Tuple((names["e"], Array((names["f"], Tuple((names["g"],))))))
    assert targets == [A, Array((B,)), C, pair, Tuple((names["h"], names["i"]))]


def test_a_document():
    document = parse_document(EVERYTHING)
    assert document.version == "1.0"
    assert document.extensions == (
        "KHR_enable_fragment_definitions",
        "tract_assert S>=0",
        "tract_registry tract_core",
    )
    assert [one.name for one in document.fragments] == ["declared", "several", "tract_core_properties"]
    assert document.graph.inputs == ("x", "a.b/c")
    assert document.graph.outputs == ("y",)
    assert [one.line for one in document.fragments] == [7, 13, 26]
    assert [one.line for one in document.fragments[1].body] == [20, 21, 22, 23]
    assert [one.line for one in document.graph.body] == [33, 34, 35]


def test_declarations():
    (several,) = parse_fragments(
        "fragment f<? = integer>(a: tensor<>, b: tensor<?>[][], c: (integer, logical,)[] = [(-1, true)],) -> (y: ?);"
    )
    assert several == Fragment(
        "f",
        (
            Parameter("a", TensorOf(None)),
            Parameter("b", ArrayOf(ArrayOf(TensorOf(ANY)))),
            Parameter(
                "c",
                ArrayOf(TupleOf((Primitive("integer"), Primitive("logical")))),
                Array((Tuple((Literal(-1), Literal(True))),)),
            ),
        ),
        (Result("y", ANY),),
        generic=True,
        item=Primitive("integer"),
    )
    plain, generic = parse_fragments("fragment f() -> () {} fragment g<?>() -> ();")
    assert (plain.generic, plain.body) == (False, ())
    assert (generic.generic, generic.item, generic.body) == (True, None, None)


def test_a_declaration_may_have_the_words_of_the_text_as_names():
    """The established writer takes names as they come."""
    text = "version = f(graph, extension = integer); string = version; graph, fragment = g(string);"
    assert len(parse_statements(text)) == 3


def test_quantizations():
    text = "'x/y': linear_quantize(max = 1.0, min = -1.0, bits = 8,);\n\ni\"z\": zero_point_linear_quantize();\nw: f();"
    first, second, third = parse_quantization(text)
    arguments = (Argument("max", Literal(1.0)), Argument("min", Literal(-1.0)), Argument("bits", Literal(8)))
    assert first == Quantization("x/y", Invocation("linear_quantize", arguments))
    assert (second.tensor, second.line, third.tensor, third.line) == ("z", 3, "w", 4)


def test_comments_and_blanks_stand_anywhere():
    assert parse_statements("# one; two\r\n a#b\n=\t#'\r1 ;#") == (Assignment(A, Literal(1)),)
    assert parse_statements(" # nothing") == ()


def test_an_extension_is_any_text():
    text = 'version 1.0; extension  a, b: (c "d  ;extension\nx; graph g() -> () {}'
    assert parse_document(text).extensions == ('a, b: (c "d', "x")


def test_a_file_is_decoded():
    assert decode("\ufeffé".encode()) == "é"
    with pytest.raises(CorruptModel, match=r"^line 3: found the byte 0xff, wanted text in UTF-8"):
        decode(b"a\nb\n\xff")


# --- what is refused


def test_an_error_shows_the_place():
    assert str(refused(in_graph("  b = add(a, ;"))).splitlines() == [
        "line 4, column 14: found ';', wanted an expression or ')'",
        "      b = add(a, ;",
        "                 ^",
        "  hint: export or download the model again",
    ]


def test_an_error_shows_what_is_near_it_in_a_long_line():
    error = refused(in_graph("a = f();" * 1 + " " * 200 + "b = ;" + " " * 200))
    _, shown, mark, _ = str(error).splitlines()
    assert shown.strip().startswith("…")
    assert len(shown) < 100
    assert shown[mark.index("^")] == ";"


def test_an_error_shows_no_character_that_steers():
    error = refused(in_graph("a = \x1b\u202e;"))
    _, shown, mark, _ = str(error).splitlines()
    assert shown.endswith("a = \ufffd\ufffd;")
    assert mark.index("^") == shown.index("\ufffd")
    assert error.problem.startswith("found '\\u001b', wanted an expression")


@pytest.mark.parametrize(
    ("text", "found", "wanted"),
    [
        ("b = ;", "';'", "an expression"),
        ("b = a a;", "'a'", "an operator or ';'"),
        ("b = 1 a;", "'a'", "an operator or ';'"),
        ("b a;", "'a'", "',' or '='"),
        ("b = f(a;", "';'", "an operator, ')', ',' or '='"),
        ("b = [a;", "';'", "an operator, ',' or ']'"),
        ("b = a if c;", "';'", "an operator or 'else'"),
        ("b = [for a yield b];", "'yield'", "'in'"),
        ("b = [for a in c];", "']'", "an operator, ',' or 'yield'"),
        ("b = a 'text';", "'text'", "an operator or ';'"),
        ("1 = a;", "'1'", "a name to assign to or '}'"),
        ("f(a) = b;", "'('", "',' or '='"),
        ("b = a 'two\nlines';", r"'two\nlines'", "an operator or ';'"),
        ("b = a '" + "x" * 100 + "';", "'" + "x" * 39 + "…", "an operator or ';'"),
        ("b = a " + "x" * 100 + ";", "'" + "x" * 40 + "…'", "an operator or ';'"),
        ("b = 2x;", "'x'", "an operator or ';'"),
        ("b = @;", "'@'", "an expression"),
        ("b = a & c;", "'&'", "an operator or ';'"),
    ],
)
def test_what_was_found_and_what_was_wanted(text, found, wanted):
    assert refused(in_graph(text)).problem.partition("\n")[0] == f"found {found}, wanted {wanted}"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("version 1.0; extension;", "found 'extension', wanted 'fragment', 'graph' or an extension"),
        ("version 1.0; graph g() -> () {", "the text ends, wanted a name to assign to or '}'"),
        ("version 1.0; graph g() -> () {} x", "found 'x', wanted the end of the text"),
        ("version a;", "found 'a', wanted a number"),
        ("version 1.0; fragment f(a: list) -> ();", "found 'list', wanted a type: tensor<...>, integer, scalar"),
        ("version 1.0; fragment f(a: list<scalar>) -> ();", "found 'list', wanted 'tensor'"),
        ("version 1.0; fragment f(a: ) -> ();", "found ')', wanted a type"),
        ("version 1.0; fragment f(a) -> ();", "found ')', wanted ':'"),
        ("version 1.0; fragment f<scalar>() -> ();", "found '<scalar>', wanted '<?>' or '<? = scalar>'"),
        ("version 1.0; fragment f(a: ? = b) -> ();", "the default of the parameter 'a' is no literal"),
    ],
)
def test_what_was_wrong(text, problem):
    assert refused(text).problem.startswith(problem)


@pytest.mark.parametrize("text", ["", " # nothing\n", "graph g() -> () {}", "\x00", "PK\x03\x04"])
def test_a_text_without_a_version(text):
    error = refused(text, VersionError)
    assert "wanted 'version 1.0;', with which every text begins" in error.problem


@pytest.mark.parametrize("version", ["2.0", "0.9", "11.0", "1e0", "1.0e5"])
def test_a_text_of_another_version(version):
    error = refused(f"version {version}; graph", VersionError)
    assert error.problem.startswith(f"the text is of version {version} of NNEF, and 1.0 is what can be read")
    assert error.where == "line 1, column 1"


@pytest.mark.parametrize(
    ("text", "problem", "where"),
    [
        (
            "fragment f() -> ();\nfragment f() -> ();",
            "the fragment 'f' is there twice, first in line 1",
            "line 2, column 1",
        ),
        ("fragment f(a: ?, a: ?) -> ();", "the parameter 'a' is there twice", "line 1, column 1"),
        ("fragment f() -> (a: ?, a: ?);", "the result 'a' is there twice", "line 1, column 1"),
    ],
)
def test_names_that_are_there_twice(text, problem, where):
    error = refused(text, parse=parse_fragments)
    assert error.problem.partition("\n")[0] == problem
    assert error.where == where


def test_a_name_may_be_assigned_again():
    (fragment,) = parse_fragments("fragment f(a: ?) -> (y: ?) { y = g(a); b = h(y); y = b; a = 1; }")
    assert fragment.body is not None
    assert [str(one.targets) for one in fragment.body] == [str(Identifier(name)) for name in "ybya"]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("18446744073709551616", "'18446744073709551616' takes more than 64 bits"),
        ("-9223372036854775809", "-9223372036854775809 takes more than 64 bits"),
        ("1e309", "'1e309' is beyond the range of scalars"),
        ("'text", "a text in quotes begins here, and has no end"),
        ("\"text'", "a text in quotes begins here, and has no end"),
        ('i"name', "a text in quotes begins here, and has no end"),
        (r"'text\'", "a text in quotes begins here, and has no end"),
    ],
)
def test_literals_that_are_none(text, problem):
    assert refused(in_graph(f"b = {text};")).problem.startswith(problem)


def test_a_quantization_has_literals():
    error = refused("'x': f(a = b);", parse=parse_quantization)
    assert error.problem.startswith("an argument of 'f' is no literal")


# --- the table


def test_the_table_is_that_of_the_grammar():
    from tract_nnef.syntax.write_table import TABLE, table_text

    assert TABLE.read_text() == table_text()


def test_the_grammar_is_not_ambiguous():
    """Where two rules fit, lark chooses, and says so in its log."""
    from lark import Lark
    from lark.parsers.lalr_analysis import LALR_Analyzer
    from tract_nnef.syntax.write_table import GRAMMAR, STARTS

    lark = Lark(GRAMMAR.read_text(), parser="lalr", lexer="basic", start=list(STARTS))
    analysis = LALR_Analyzer(lark.parser.parser.parser_conf, strict=True)
    analysis.compute_lalr()  # raises where it would choose


@pytest.mark.parametrize("module", ["parser", "printer"])
def test_neither_lark_nor_the_table_is_loaded_before_it_is_needed(module):
    code = (
        f"import sys, tract_nnef.syntax.{module}; from tract_nnef.syntax.table import the_table;"
        "print('lark' in sys.modules, the_table.cache_info().currsize)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.split() == ["False", "0"]
