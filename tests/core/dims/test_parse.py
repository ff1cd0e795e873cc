"""Reading and printing: the grammar, what is printed, and text that means harm."""

from __future__ import annotations

import time

import pytest

from tract_core.dims import Dim, broadcast, comparison, dim_max, dim_min, parse_dim, symbol
from tract_core.errors import DimError

B, S, P = symbol("B"), symbol("S"), symbol("P")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("12", 12),
        ("S", S),
        (" S + P ", S + P),
        ("2*S", 2 * S),
        ("S*2+1", 2 * S + 1),
        ("1+2*3", 7),
        ("7/2", 3),
        ("-7/2", -4),
        ("3*S/2", (3 * S) // 2),
        ("3*(S/2)", 3 * (S // 2)),
        ("S/2/3", S // 6),
        ("S/(2+2)", S // 4),
        ("S/2*3", 3 * (S // 2)),
        ("-S", -S),
        ("--S", S),
        ("-S/2", (-S) // 2),
        ("-(S/2)", -(S // 2)),
        ("S*-2", -2 * S),
        ("S--1", S + 1),
        ("B-S-P", B - S - P),
        ("B-(S-P)", B - S + P),
        ("S#P", broadcast(S, P)),
        ("S#P+1", broadcast(S, P + 1)),
        ("S#1", S),
        ("S#3#B", 3),
        ("broadcast(S,P)", broadcast(S, P)),
        ("min(S,P)", dim_min(S, P)),
        ("max( S , P , 3 )", dim_max(S, P, 3)),
        ("min(S)", S),
        ("floor(S/2)", S // 2),
        ("(S>=P)", comparison(S, ">=", P)),
        ("(S<P+1)*2", 2 * comparison(S, "<=", P)),
        ("(S==2)", comparison(S, "==", 2)),
        ("min((S>P),B)", dim_min(comparison(S, ">", P), B)),
        ("foo/bar", symbol("foo/bar")),
        ("foo/2", symbol("foo") // 2),
        ("foo/bar/2", symbol("foo/bar") // 2),
        ("(foo)/2", symbol("foo") // 2),
        ("a.b_1", symbol("a.b_1")),
        ("_x", symbol("_x")),
        ("i", symbol("i")),
        ("minimum", symbol("minimum")),
        ('i"batch size"+1', symbol("batch size") + 1),
        (r'i"a\"b\\c\u00e9\n"', symbol('a"b\\cé\n')),
        ('i"S"', S),
        ("9223372036854775807", 2**63 - 1),
        ("-9223372036854775808", -(2**63)),
        ("007", 7),
    ],
)
def test_parse(text: str, expected: Dim) -> None:
    assert parse_dim(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "B",
        "2*S",
        "S+P",
        "P+S",
        "(S+3)/4",
        "S-1",
        "2*S+1",
        "-S+1",
        "-(S/2)+P",
        "P-S/2",
        "S/2",
        "3*S/2",
        "3*(S/2)",
        "-3*(S/2)",
        "P*(S/2)",
        "-P*(S/2)",
        "B-S-P",
        "P*S",
        "S*S",
        "min(S,P)",
        "max(S-P,0)+1",
        "(S#P)",
        "(S#P)/2",
        "2*(S#P)",
        "(S>=P+1)",
        "(3>=S)",
        "(S==2)",
        "-min(S,P)",
        "foo/bar/2",
        'i"batch size"/2',
        'i"min"',
        'i"2x"',
        r'i"\"\\\n\u0000"',
        'i"🎯0"',
        "0",
        "-4",
    ],
)
def test_plain_forms_print_as_they_are_read(text: str) -> None:
    dim = parse_dim(text)
    assert str(dim) == text


@pytest.mark.parametrize(
    ("text", "printed"),
    [("1+S", "S+1"), ("S*P", "P*S"), ("S+S", "2*S"), ("-S/2", "-((S+1)/2)"), ("S#P#B", "(S#P#B)"), ("-S-P", "-S-P")],
)
def test_other_forms_print_canonically(text: str, printed: str) -> None:
    assert str(parse_dim(text)) == printed


def test_repr_shows_the_expression() -> None:
    assert repr(S + 1) == "TDim('S+1')"


def test_reading_twice_gives_the_same_expression() -> None:
    assert parse_dim("S+P") is parse_dim("S+P")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "'', character 1: found the end, wanted a symbol, an integer or '('"),
        ("   ", "character 4: found the end, wanted a symbol"),
        ("S+", "'S+', character 3: found the end, wanted a symbol, an integer or '('"),
        ("S+*2", "'S+*2', character 3: found '*', wanted a symbol, an integer or '('"),
        ("S P", "'S P', character 3: found 'P', wanted an operator or the end"),
        ("2S", "'2S', character 2: found 'S', wanted an operator or the end"),
        ("(S", "'(S', character 3: found the end, wanted an operator or ')'"),
        ("S)", "'S)', character 2: found ')', wanted an operator or the end"),
        ("min(S", "character 6: found the end, wanted an operator, ',' or ')'"),
        ("min()", "character 5: found ')', wanted a symbol"),
        ("min", "character 4: found the end, wanted '(' after min\n  hint: a symbol of that name is written i\"min\""),
        ("floor(S,2)", "character 1: found floor with 2 arguments, wanted 1"),
        ("S/0", "character 3: found the divisor 0, wanted a positive integer"),
        ("S/-2", "character 3: found the divisor -2, wanted a positive integer"),
        ("S/(P)", "character 3: found the divisor P, wanted a positive integer"),
        ("S/2.5", "character 4: found '.', which no size is written with"),
        ("S>=2", "character 2: found '>=', wanted an operator or the end\n  hint: write a comparison that is used as"),
        ("(S=2)", "character 3: found '=', which no size is written with\n  hint: equality is written =="),
        ("(S>=2>=1)", "character 6: found '>=', wanted an operator or ')'"),
        ("S $", "character 3: found '$', which no size is written with\n  hint: a name with other characters is"),
        ("é", "character 1: found 'é', which no size is written with"),
        ("٣", "character 1: found '٣', which no size is written with"),
        ("2#3", "character 3: cannot broadcast sizes 2 and 3"),
        (r'1+i"\q"', r"character 3: found the escape '\\q' in a quoted name"),
        (r'i"\U99999999"', r"character 1: found the escape '\\U99999999' in a quoted name"),
        ('i"S', "character 2: found '\"', which no size is written with"),
        ('i""', "character 1: a symbol has no name"),
        ("9223372036854775809", "found '9223372036854775809', wanted an integer of at most 64 bits"),
        ("9" * 4000, "character 1: found '999999999999999999999999'..., wanted an integer of at most 64 bits"),
        ("__import__('os')", 'character 11: found "("'.replace('"', "'")),
        ("S if P else B", "character 3: found 'if', wanted an operator or the end"),
        ("S**2", "character 3: found '*', wanted a symbol"),
    ],
)
def test_what_is_wrong_is_shown(text: str, message: str) -> None:
    with pytest.raises(DimError) as caught:
        parse_dim(text)
    assert message in str(caught.value)
    assert caught.value.hint


def test_only_the_surroundings_of_a_fault_are_shown() -> None:
    with pytest.raises(DimError) as caught:
        parse_dim("S+" * 1000 + "$" + "+S" * 1000)
    assert caught.value.where == "...'S+S+S+S+S+S+S+S+S+S+S+S+$+S+S+S+S+S+S+S+S+S+S+S+'..., character 2001"


def test_length_is_limited() -> None:
    with pytest.raises(DimError, match=r"has 4097 characters, at most 4096 are allowed\n  hint: use a shorter"):
        parse_dim(" " * 4096 + "S")


def test_nesting_is_limited() -> None:
    assert parse_dim("(" * 64 + "S" + ")" * 64) == S
    with pytest.raises(DimError, match="character 66: found more than 64 parentheses inside one another"):
        parse_dim("(" * 65 + "S" + ")" * 65)
    with pytest.raises(DimError, match="more than 64 parentheses"):
        parse_dim("min(" * 1000)


def test_expansion_is_limited() -> None:
    with pytest.raises(DimError, match=r"character \d+: the symbolic size grows too large: a sum of \d+ terms"):
        parse_dim("*".join(["(a+b+c+d+e+f)"] * 30))


def test_powers_are_limited() -> None:
    with pytest.raises(DimError, match="a product of 33 factors, at most 32 are allowed"):
        parse_dim("*".join("S" * 1000))


@pytest.mark.parametrize("text", ["*".join(["9223372036854775807"] * 100), "S/4611686018427387904/4611686018427387904"])
def test_numbers_that_grow_are_limited(text: str) -> None:
    with pytest.raises(DimError, match=r"the number \d+ has more than 64 bits"):
        parse_dim(text)


@pytest.mark.parametrize(
    "text",
    [
        "-" * 4095 + "S",
        "+".join(f"a{number}" for number in range(800)),
        "max(" + ",".join(f"a{number}-b{number}" for number in range(400)) + ")",
        "+".join("max(" + ",".join(f"a{n}{m}-b{m}" for m in range(8)) + ")" for n in range(60)),
        "*".join(["(a+b+c+d)"] * 400),
        "(" + "+".join(f"(a{number}/{number + 2})" for number in range(300)) + ")/7",
        "/3+".join(["(a"] * 60) + ")" * 60,
        "#".join(f"a{number}" for number in range(700)),
        "+".join(["min(a/2+b/3,max(a,b/5),c)"] * 150),
        "min(" * 60 + "a" + "".join(f"/2+b{number},c{number}-a)" for number in range(60)),
        "max(" + "*".join(["(a+b)"] * 20) + "," + "*".join(["(a-c)"] * 20) + ")",
        "".join(f"(a{number}>=" for number in range(60)) + "b" + ")" * 60,
        "\\" * 4096,
        'i"' + "\\" * 4000,
        "\x00" * 4096,
    ],
    ids=range(15),
)
def test_hostile_text_ends_soon(text: str) -> None:
    start = time.perf_counter()
    outcome = parsed_or_error(text)
    if isinstance(outcome, DimError):
        assert outcome.hint
        assert len(str(outcome)) < 1000
    else:
        assert parse_dim(str(outcome)) == outcome
    assert time.perf_counter() - start < 5


def parsed_or_error(text: str) -> Dim | DimError:
    try:
        return parse_dim(text)
    except DimError as error:
        return error
