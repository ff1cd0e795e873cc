"""From the text of NNEF to what it says.

What a text may hold is in grammar.lark, what is made of it in `tract_nnef.syntax.build`; here, the words of a text are
taken one after the other through the table that was made of the grammar.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from tract_core.errors import CorruptModel, LimitExceeded, ModelError, VersionError
from tract_core.limits import current_budget, limits_now
from tract_nnef.syntax.ast import MAX_DEPTH, Assignment, Document, Fragment, Quantization
from tract_nnef.syntax.build import MADE, Build, unescaped
from tract_nnef.syntax.plain import plain_statement
from tract_nnef.syntax.refusal import refusal, shown, wanted
from tract_nnef.syntax.table import END, ParseTable, Production, the_table

WORDS_PER_NODE: Final = 2
"""A text may have so many words for each node that the limits allow."""

_OPERATIONS: Final = frozenset(
    ("expression", "membership", "logical", "comparison", "sum", "product", "signed", "power", "exponent", "indexed")
)
_DEEPER: Final = _OPERATIONS | {"primary", "invocation", "target", "targets", "type"}
"""Rules whose results are deeper than their parts: an expression or a type is made of others."""


def parse_document(text: str) -> Document:
    """The document that ``text``, a graph.nnef, is.

    Raises CorruptModel where it breaks the rules of NNEF, VersionError where it is not of version 1, and
    LimitExceeded where it is larger or deeper than the limits allow.
    """
    return _parsed(text, "document")


def parse_fragments(text: str) -> tuple[Fragment, ...]:
    """The fragments that ``text`` is, each with a body or without one. Raises as `parse_document`."""
    return tuple(_parsed(text, "fragments"))


def parse_statements(text: str) -> tuple[Assignment, ...]:
    """The assignments that ``text`` is, as they stand in a body. Raises as `parse_document`."""
    return tuple(_parsed(text, "statements"))


def parse_quantization(text: str) -> tuple[Quantization, ...]:
    """The lines of ``text``, a graph.quant. Raises as `parse_document`."""
    return tuple(_parsed(text, "quantizations"))


def decode(content: bytes) -> str:
    """The text of a file in UTF-8. Raises CorruptModel where it is not, and LimitExceeded where it is too long."""
    _check_size(len(content))
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise CorruptModel(
            f"found the byte 0x{content[error.start]:02x}, wanted text in UTF-8",
            where=f"line {line}",
            hint="save the file as UTF-8",
        ) from None


def _check_size(size: int) -> None:
    allowed = limits_now().max_parsed_bytes
    if size > allowed:
        raise LimitExceeded(
            f"the text takes {size} bytes, {allowed} are allowed",
            hint="a text that needs so many can be read with LoadLimits(max_parsed_bytes=...)",
        )


def _found(word: str) -> str:
    """How a word is called that cannot stand where it does; that of the end is empty."""
    return f"found {shown(word)}" if word else "the text ends"


def _parsed(text: str, rule: str) -> Any:
    _check_size(len(text))
    return _Parse(text, rule, the_table()).run()


Step = tuple[str, int, tuple[int, ...], Callable[..., Any], bool, bool]
"""A rule: its origin, size and kept parts, its function, whether that takes the place, and whether it goes deeper."""


def _step(rule: Production, build: Build) -> Step:
    name = rule.function
    placed = bool(name) and name not in MADE
    function: Callable[..., Any] = getattr(build, name) if placed else MADE[name]
    return rule.origin, rule.size, rule.kept, function, placed, bool(name) and rule.origin in _DEEPER


def _name(word: str, fixed: dict[str, str]) -> tuple[str, str]:
    """The kind of a word that looks like a name, and the name: ``i"a b"`` is ``a b``."""
    return ("NAME", unescaped(word[1:])) if word[-1] in "\"'" else (fixed.get(word, "NAME"), word)


class _Parse:
    """One text on its way through the table.

    Four stacks grow and shrink together: the states, what was made so far, where each of it begins, and how deep it is.
    """

    def __init__(self, text: str, rule: str, table: ParseTable) -> None:
        self._text = text
        self._table = table
        self._gotos = table.gotos
        self._end = table.ends[rule]
        self._renames = [rule.renames for rule in reversed(table.rules)]
        self._build = build = Build(text)
        self._words = 0
        self._steps = [_step(one, build) for one in table.rules]
        self._states = [table.starts[rule]]
        self._values: list[Any] = []
        self._begins: list[int] = []
        self._depths: list[int] = []

    def run(self) -> Any:
        """What the text is. Raises as `parse_document`."""
        start = 0
        while start >= 0:
            start = self._run_from(start)
        return self._values[-1]

    def _run_from(self, start: int) -> int:
        """Take words from there on. Returns where to go on behind plain statements, or -1 at the end of the text."""
        kinds, fixed, actions, text = self._table.kinds, self._table.fixed, self._table.actions, self._text
        states, values, begins, depths = self._states, self._values, self._begins, self._depths
        settled, gotos, renames = self._table.settled, self._gotos, self._renames
        for number, match in enumerate(self._table.words.finditer(text, start), self._words):
            if not number & 0xFFF:
                self._check_limits(number, match.start())
            group = match.lastindex or 0
            word: str = match[group] if group else ""
            at = match.end() - len(word)
            kind = kinds[group] or fixed.get(word) or ""
            if kind == "NAME":
                kind, word = _name(word, fixed)
            before = states
            while True:
                state = states[-1]
                if kind == "NAME" and "assignment" in gotos[state] and (end := self._plain(at, number)):
                    return end
                step = actions[state].get(kind)
                if step is None:
                    if kind == END and state == self._end:
                        return -1
                    kind = self._as_a_name(kind, at, text[at : match.end()], before)
                elif step >= 0:
                    states.append(step)
                    values.append(word)
                    begins.append(at)
                    depths.append(0)
                    break
                else:
                    if before is states:
                        before = states[:]
                    if renames[step]:
                        below = states[-2]
                        states[-1] = settled.get((below, state, kind)) or self._table.settle(below, state, kind)
                        continue
                    self._reduce(~step, at)
        raise AssertionError("a text has an end")

    def _plain(self, at: int, words: int) -> int:
        """Take the plain statements that begin there. Returns where they end, 0 where there is none."""
        end = 0
        while found := plain_statement(self._text, at, self._build):
            before, words = words, words + found.words
            if before >> 12 != words >> 12:
                self._check_limits(words, at)
            self._values[-1].append(found.value)  # it is the list of those before
            at = end = found.end
        self._words = words
        return end

    def _reduce(self, rule: int, at: int) -> None:
        """The last parts make what the rule says. ``at``: where the next word is, for rules without parts."""
        origin, size, kept, function, placed, deepens = self._steps[rule]
        states, values, begins, depths = self._states, self._values, self._begins, self._depths
        if size == 1 and kept:  # a name or a number, mostly
            states[-1] = self._gotos[states[-2]][origin]
            value = values[-1]
            values[-1] = function(begins[-1], value) if placed else function(value)
            depths[-1] += deepens
            return
        depth = deepens
        if size:
            at = begins[-size]
            depth += max(depths[-size:])
            if depth > MAX_DEPTH:
                raise self._too_deep(at)
            parts = [values[place - size] for place in kept]
            del states[-size:], values[-size:], begins[-size:], depths[-size:]
        else:
            parts = []
        states.append(self._gotos[states[-1]][origin])
        values.append(function(at, *parts) if placed else function(*parts))
        begins.append(at)
        depths.append(depth)

    def _too_deep(self, at: int) -> ModelError:
        return refusal(
            self._text,
            at,
            f"more than {MAX_DEPTH} expressions are inside one another",
            kind=LimitExceeded,
            hint="give the inner ones names, in statements of their own",
        )

    def _check_limits(self, words: int, at: int) -> None:
        allowed = limits_now().max_nodes * WORDS_PER_NODE
        if words > allowed:
            problem = f"the text has more than {allowed} words"
            hint = "a text that needs so many can be read with LoadLimits(max_nodes=...)"
            raise refusal(self._text, at, problem, kind=LimitExceeded, hint=hint)
        if len(self._states) > 8 * MAX_DEPTH:
            raise self._too_deep(self._begins[-1])
        budget = current_budget()
        if budget is not None:
            budget.time()

    def _as_a_name(self, kind: str, at: int, word: str, states: list[int]) -> str:
        """The kind of a word that means something elsewhere, and is a name here. Raises where there cannot be one."""
        if kind == "NAME" or not word.isalpha() or "NAME" not in self._table.actions[self._states[-1]]:
            raise self._refusal(at, word, states)
        return "NAME"

    def _refusal(self, at: int, word: str, states: list[int]) -> ModelError:
        """What to say of a word that cannot stand where it does. ``states``: those behind the word before it."""
        expected = [kind for kind in self._table.actions[states[-1]] if self._leads_on(kind, states)]
        if word in ('"', "'"):
            hint = f"end it with {word}"
            return refusal(self._text, at, "a text in quotes begins here, and has no end", hint=hint)
        if expected == ["VERSION"]:
            problem = f"{_found(word)}, wanted 'version 1.0;', with which every text begins"
            return refusal(self._text, at, problem, kind=VersionError, hint="check that this is a graph.nnef")
        return refusal(self._text, at, f"{_found(word)}, wanted {wanted(expected, self._table.fixed)}")

    def _leads_on(self, kind: str, states: list[int]) -> bool:
        """Whether a word of that kind can come next: a table also ends rules before words that fit nowhere then."""
        states = list(states)
        while True:
            step = self._table.actions[states[-1]].get(kind)
            if step is None:
                return False
            if step >= 0 or (kind == END and states[-1] == self._end):
                return True
            rule = self._table.rules[~step]
            del states[len(states) - rule.size :]
            states.append(self._table.gotos[states[-1]][rule.origin])
            if kind == END and states[-1] == self._end:
                return True
