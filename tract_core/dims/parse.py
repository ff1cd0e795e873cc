"""Read sizes and assertions from text.

    size    = sum { '#' sum }                           # is broadcast
    sum     = product { ('+' | '-') product }
    product = signed { '*' signed | '/' signed }        left to right; the divisor is a positive integer
    signed  = { '-' } primary
    primary = integer | name | i"any name" | '(' choice ')' | function '(' choice { ',' choice } ')'
    choice  = size [ ('==' | '<=' | '>=' | '<' | '>') size ]

Functions are ``min``, ``max``, ``broadcast`` and ``floor``. Text from files is hostile until shown otherwise: its
length, its nesting and its numbers are limited, and the expression that it builds is limited by ``atoms``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache, reduce
from typing import NamedTuple, NoReturn

from tract_core.dims.build import COMPARISONS, Comparison, broadcast, comparison, dim_max, dim_min
from tract_core.dims.names import FUNCTIONS, IDENTIFIER, QUOTED, read_quoted
from tract_core.dims.tdim import Dim, symbol
from tract_core.errors import DimError

MAX_TEXT = 4096
"""Characters in one text."""
MAX_NESTING = 64
"""Parentheses inside one another."""
MAX_INTEGER = 1 << 63
"""The largest number in a text, up to its sign."""

_TOKEN = re.compile(
    rf"""(?P<space>\s+)
       | (?P<quoted>{QUOTED})
       | (?P<name>{IDENTIFIER})
       | (?P<number>[0-9]+)
       | (?P<sign>[<>=]=|[-+*/\#(),<>])""",
    re.VERBOSE,
)
_OPERAND = "a symbol, an integer or '('"
_END = "the end"


class _Token(NamedTuple):
    kind: str
    text: str
    start: int


@lru_cache(maxsize=1024)
def parse_dim(text: str) -> Dim:
    """The size written as ``text``, such as ``"2*S+1"``.

    Raises DimError saying where, what was found and what was wanted.
    """
    parser = _Parser(text)
    dim = parser.size()
    parser.expect_end()
    _check_numbers(dim)
    return dim


@lru_cache(maxsize=1024)
def parse_comparison(text: str) -> tuple[Dim, Comparison, Dim]:
    """Both sides of the comparison written as ``text``, such as ``"S <= 2*P"``, and the operator between them.

    Raises DimError saying where, what was found and what was wanted.
    """
    parser = _Parser(text)
    left = parser.size()
    if parser.token.text not in COMPARISONS:
        parser.fail(f"one of {' '.join(COMPARISONS)}")
    op = COMPARISONS[parser.take().text]
    right = parser.size()
    parser.expect_end()
    _check_numbers(left)
    _check_numbers(right)
    return left, op, right


class _Parser:
    """Reads one text from left to right, building the size on the way."""

    def __init__(self, text: str) -> None:
        if len(text) > MAX_TEXT:
            raise DimError(
                f"the expression {text[:24]!r}... has {len(text)} characters, at most {MAX_TEXT} are allowed",
                hint="use a shorter expression",
            )
        self.text = text
        self.nesting = 0
        self.token = self._read(0)

    def size(self) -> Dim:
        dim = self._sum()
        while self._found("#"):
            dim = self._built(lambda left=dim: broadcast(left, self._sum()))
        return dim

    def expect_end(self) -> None:
        if self.token.kind != "end":
            self.fail(f"an operator or {_END}")

    def take(self) -> _Token:
        token = self.token
        self.token = self._read(token.start + len(token.text))
        return token

    def fail(self, wanted: str, hint: str | None = None) -> NoReturn:
        text = self.token.text
        found = _END if self.token.kind == "end" else repr(text) if len(text) <= 24 else f"{text[:24]!r}..."
        if hint is None and self.token.text in COMPARISONS:
            hint = "write a comparison that is used as a value in parentheses, as in (S>=2)"
        raise self._error(self.token.start, f"found {found}, wanted {wanted}", hint)

    def _sum(self) -> Dim:
        dim = self._product()
        while self.token.text in ("+", "-"):
            sign = self.take().text
            start = self.token.start
            other = self._product()
            dim = self._built(lambda a=dim, b=other, s=sign: a + b if s == "+" else a - b, start)
        return dim

    def _product(self) -> Dim:
        dim = self._signed()
        while self.token.text in ("*", "/"):
            sign = self.take().text
            start = self.token.start
            other = self._signed()
            build = self._multiply if sign == "*" else self._divide
            dim = build(dim, other, start)
        return dim

    def _multiply(self, a: Dim, b: Dim, start: int) -> Dim:
        return self._built(lambda: a * b, start)

    def _divide(self, dim: Dim, divisor: Dim, start: int) -> Dim:
        if not isinstance(divisor, int) or divisor <= 0:
            raise self._error(start, f"found the divisor {divisor}, wanted a positive integer")
        return self._built(lambda: dim // divisor, start)

    def _signed(self) -> Dim:
        negative = False
        while self._found("-"):
            negative = not negative
        dim = self._primary()
        return -dim if negative else dim

    def _primary(self) -> Dim:
        token = self.token
        if token.kind == "number":
            return self._number()
        if token.kind == "quoted":
            self.take()
            return self._built(lambda: symbol(read_quoted(token.text)), token.start)
        if token.kind == "name":
            self.take()
            if token.text in FUNCTIONS:
                return self._call(token)
            return self._built(lambda: symbol(token.text), token.start)
        if not self._found("("):
            self.fail(_OPERAND)
        dim = self._nested_choice()
        self._expect(")", "an operator or ')'")
        return dim

    def _number(self) -> int:
        digits = self.token.text.lstrip("0") or "0"
        if len(digits) > 19 or int(digits) > MAX_INTEGER:
            self.fail("an integer of at most 64 bits", hint="sizes are 64-bit integers")
        self.take()
        return int(digits)

    def _call(self, name: _Token) -> Dim:
        self._expect("(", f"'(' after {name.text}", hint=f'a symbol of that name is written i"{name.text}"')
        args = [self._nested_choice()]
        while self._found(","):
            args.append(self._nested_choice())
        self._expect(")", "an operator, ',' or ')'")
        if name.text == "floor" and len(args) != 1:
            raise self._error(name.start, f"found floor with {len(args)} arguments, wanted 1")
        return self._built(lambda: _CALLS[name.text](args), name.start)

    def _nested_choice(self) -> Dim:
        """What parentheses may hold."""
        self.nesting += 1
        if self.nesting > MAX_NESTING:
            raise self._error(self.token.start, f"found more than {MAX_NESTING} parentheses inside one another")
        dim = self.size()
        if self.token.text in COMPARISONS:
            start = self.token.start
            op = COMPARISONS[self.take().text]
            other = self.size()
            dim = self._built(lambda: comparison(dim, op, other), start)
        self.nesting -= 1
        return dim

    def _found(self, text: str) -> bool:
        if self.token.text == text:
            self.take()
            return True
        return False

    def _expect(self, text: str, wanted: str, hint: str | None = None) -> None:
        if not self._found(text):
            self.fail(wanted, hint)

    def _built(self, build: Callable[[], Dim], start: int | None = None) -> Dim:
        """The result of ``build``, whose errors get this text and position."""
        start = self.token.start if start is None else start
        try:
            return build()
        except DimError as error:
            if error.where is not None:
                raise
            raise self._error(start, error.problem, error.hint) from None

    def _read(self, start: int) -> _Token:
        match = _TOKEN.match(self.text, start)
        if match is not None and match.lastgroup == "space":
            start = match.end()
            match = _TOKEN.match(self.text, start)
        if match is not None and match.lastgroup is not None:
            return _Token(match.lastgroup, match.group(), start)
        if start == len(self.text):
            return _Token("end", "", start)
        hint = _QUOTING if self.text[start] != "=" else "equality is written =="
        raise self._error(start, f"found {self.text[start]!r}, which no size is written with", hint)

    def _error(self, start: int, problem: str, hint: str | None = None) -> DimError:
        begin = max(0, start - 24)
        shown = self.text[begin : start + 24]
        before, after = "..." if begin else "", "..." if start + 24 < len(self.text) else ""
        return DimError(problem, where=f"{before}{shown!r}{after}, character {start + 1}", hint=hint or _EXAMPLE)


_EXAMPLE = "sizes are written like 2*S+1, (S+3)/4, min(S,P) or S#P"
_QUOTING = 'a name with other characters is written in quotes, as in i"batch size"'


def _check_numbers(dim: Dim) -> None:
    """Raises DimError where the expression has a number of more than 64 bits, which its own text must not have."""
    numbers = [dim] if isinstance(dim, int) else [dim.constant, *dim.terms.values()]
    largest = max(numbers, key=abs)
    if abs(largest) > MAX_INTEGER:
        raise DimError(f"the number {largest} has more than 64 bits", hint="sizes are 64-bit integers")
    for product in () if isinstance(dim, int) else dim.terms:
        for factor in product:
            for arg in () if isinstance(factor, str) else factor.args:
                _check_numbers(arg)


_CALLS: dict[str, Callable[[list[Dim]], Dim]] = {
    "min": lambda args: dim_min(*args),
    "max": lambda args: dim_max(*args),
    "broadcast": lambda args: reduce(broadcast, args),
    "floor": lambda args: args[0],
}
