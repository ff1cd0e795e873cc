"""Feed damaged NNEF texts to the parser: only typed errors may come of them, or what prints and reads back.

    python fuzz/fuzz_nnef_text.py [--seconds 60] [--seed 0] [--replay FILE ...]

Texts are made by the grammar, at random, and then changed or not: words are taken out, doubled, exchanged and put in,
characters too. A *finding* is what `driver` says; an error without a place or a hint, or of a thousand characters;
and a text that is read, printed, and then not read as the same.
"""

from __future__ import annotations

import re
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from driver import Finding, Target, look_for_mistake, main

LEAST = 40
"""Choices after which the shortest way to an end is taken."""
NAMES = ["a", "b", "x_1", 'i"a.b/c"', "i'q\\''", "graph", "tensor", "scalar", "shape_of", "i", "add", "for", "inf", "_"]
NUMBERS = ["0", "1", "2", "12", "0.5", "1.", "1e-5", "1E+30", "1e-400", "18446744073709551615", "9223372036854775808"]
STRINGS = ['"a"', "'it\\'s'", '"\\\\"', "''", '"two\nlines"', "'\"'"]
SAMPLES = {
    "NAME": NAMES,
    "NUMBER": NUMBERS,
    "STRING": STRINGS,
    "EXTENSION": ["extension tract_symbol S;", "extension a  b: c >= 1 ;"],
    "TYPE_ARGUMENT": ["<scalar>", "<?>", "< integer >"],
    "TYPE_DEFAULT": ["<? = scalar>", "<?=logical>"],
}
INSERTED = ["\x00", "\ud800", "é", "'", '"', "(", "[", "{", "\\", "#", "\n", "-", "i'", "1e9999", "9" * 30, "(" * 600]


@cache
def grammar():
    """The rules by what they make, the shortest first, and the words that are always the same, by their kinds."""
    from lark import Lark
    from tract_nnef.syntax.write_table import GRAMMAR, STARTS

    lark = Lark(GRAMMAR.read_text(), parser="lalr", lexer="contextual", start=list(STARTS))
    rules = {}
    for rule in lark.rules:
        rules.setdefault(rule.origin.name, []).append([part.name for part in rule.expansion])
    size = dict.fromkeys(rules, 1000)
    for _ in range(30):  # the least words that each can be made of
        for name, several in rules.items():
            size[name] = min(sum(size.get(part, 1) for part in parts) for parts in several)
    for several in rules.values():
        several.sort(key=lambda parts: sum(size.get(part, 1) for part in parts))
    return rules, {term.name: term.pattern.value for term in lark.terminals if term.pattern.type == "str"}


def made(chance, start):
    """The words of a text that follows the grammar, but for names that may be there twice."""
    rules, fixed = grammar()
    words, waiting, choices = [], [start], 0
    while waiting:
        name = waiting.pop()
        if name in rules:
            choices += 1
            several = rules[name]
            waiting += reversed(chance.choice(several) if choices < LEAST else several[0])
        else:
            words.append(fixed[name] if name in fixed else chance.choice(SAMPLES[name]))
    return distinct(words, chance)


def distinct(words, chance):
    """The same with some names made different, so that fewer texts fail for a name that is there twice."""
    if chance.random() < 0.2:
        return words
    return [f"{word}{index}" if word in ("a", "b", "x_1") else word for index, word in enumerate(words)]


def changed(words, chance):
    """Words, some of them taken out, doubled, exchanged or put in."""
    _, fixed = grammar()
    for _ in range(chance.choice((0, 0, 1, 1, 2, 5))):
        place = chance.randrange(len(words) + 1)
        kind = chance.randrange(4)
        if kind == 0:
            del words[place : place + chance.choice((1, 1, 3))]
        elif kind == 1:
            words[place:place] = words[place : place + chance.choice((1, 5))] * chance.choice((1, 2, 200))
        elif kind == 2:
            words.insert(place, chance.choice([*fixed.values(), *NAMES, *NUMBERS, *STRINGS]))
        else:
            words.insert(place, chance.choice(INSERTED))
    text = chance.choice((" ", "\n", " # c\n", "\t")).join(words)
    for _ in range(chance.choice((0, 0, 0, 1, 3))):
        place = chance.randrange(len(text) + 1)
        text = text[:place] + chance.choice(("", chance.choice(INSERTED))) + text[place + 1 :]
    return text


def seeds():
    return [b"version 1.0; graph g() -> () {}"]


def mutated(_, chance):
    start = chance.choice(("document", "document", "fragments", "statements", "quantizations"))
    words = made(chance, start)
    if start == "document":
        words[1] = "1.0"
    return changed(words, chance).encode("utf-8", "surrogatepass")


def examine(content, _):
    """What became of a text: ``"read"`` or ``"refused"``. Raises whatever is a finding."""
    from tract_nnef.syntax import parser, printer

    from tract_core.errors import TractError

    def print_fragments(fragments, **more):
        return "".join(printer.print_fragment(one, **more) for one in fragments)

    pairs = (
        (parser.parse_document, printer.print_document),
        (parser.parse_statements, printer.print_statements),
        (parser.parse_fragments, print_fragments),
        (parser.parse_quantization, printer.print_quantization),
    )
    is_read = False
    for parse, show in pairs:
        try:
            said = parse(parser.decode(content))
        except TractError as error:
            look_for_mistake(error)
            check_message(error)
            continue
        is_read = True
        again = show(said, extended=True)
        if repr(unplaced(parse(again))) != repr(unplaced(said)) or show(parse(again), extended=True) != again:
            raise Finding("it is not read as what it was printed from")
        with suppress(TractError):  # without names of any text
            show(said)
    return "read" if is_read else "refused"


def check_message(error):
    if not (error.where and re.match(r"line \d+(, column \d+)?$", error.where) and error.hint):
        raise Finding("no place or no hint") from error
    if len(str(error)) > 1000:
        raise Finding("a message of more than 1000 characters") from error


def unplaced(said):
    """The same without lines, and with the fragments in the order in which they are printed."""
    from dataclasses import replace

    from tract_nnef.syntax.ast import Assignment, Document, Fragment, Graph, Quantization

    if isinstance(said, tuple):
        return tuple(unplaced(one) for one in said)
    if isinstance(said, Assignment | Quantization):
        return replace(said, line=0)
    if isinstance(said, Fragment):
        return replace(said, line=0, body=said.body and unplaced(said.body))
    if isinstance(said, Graph):
        return replace(said, body=unplaced(said.body))
    if isinstance(said, Document):
        fragments = tuple(sorted(said.fragments, key=lambda one: one.name))
        return replace(said, fragments=unplaced(fragments), graph=unplaced(said.graph))
    return said


TARGET = Target(__file__, ".nnef", seeds, mutated, examine)

if __name__ == "__main__":
    sys.exit(main(TARGET, __doc__))
