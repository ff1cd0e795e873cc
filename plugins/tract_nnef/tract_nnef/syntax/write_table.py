"""Write down the parse table of the grammar, so that reading a text needs neither lark nor its time.

    python -m tract_nnef.syntax.write_table

Importing lark and making the table take a third of a second, reading the table about two milliseconds.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, cast

STARTS: Final = ("document", "fragments", "statements", "quantizations")
"""The rules that a whole text can follow."""
GRAMMAR: Final = Path(__file__).with_name("grammar.lark")
TABLE: Final = Path(__file__).with_name("table.json")


def table_text() -> str:
    """The content of table.json for the grammar as it is now; `tract_nnef.syntax.table` says what is in it."""
    from lark import Lark
    from lark.parsers.lalr_analysis import Reduce

    lark: Any = Lark(GRAMMAR.read_text(), parser="lalr", lexer="basic", start=list(STARTS), maybe_placeholders=False)
    made: Any = lark.parser.parser._parse_table  # lark has no public way to it
    order = _in_order(made)
    number = {state: index for index, state in enumerate(order)}
    rules = sorted({arg for row in made.states.values() for action, arg in row.values() if action is Reduce}, key=str)
    place = {rule: index for index, rule in enumerate(rules)}
    actions: list[dict[str, int]] = []
    gotos: list[dict[str, int]] = []
    terminals = {terminal.name for terminal in lark.terminals} | {"$END"}
    for state in order:
        row = {
            symbol: ~place[arg] if action is Reduce else number[arg]
            for symbol, (action, arg) in sorted(made.states[state].items())
        }
        actions.append({symbol: step for symbol, step in row.items() if symbol in terminals})
        gotos.append({symbol: step for symbol, step in row.items() if symbol not in terminals})
    words = {terminal.name: terminal.pattern for terminal in lark.terminals}
    return _text({
        "patterns": {name: pattern.to_regexp() for name, pattern in sorted(words.items()) if pattern.type == "re"},
        "fixed": {pattern.value: name for name, pattern in sorted(words.items()) if pattern.type == "str"},
        "starts": {start: number[made.start_states[start]] for start in STARTS},
        "ends": {start: number[made.end_states[start]] for start in STARTS},
        "rules": [_rule(rule) for rule in rules],
        "actions": actions,
        "gotos": gotos,
    })  # fmt: skip


def _in_order(made: Any) -> list[int]:
    """The states, in an order that is the same whenever the table is made."""
    waiting = deque(made.start_states[start] for start in STARTS)
    seen = dict.fromkeys(waiting)
    while waiting:
        for _, (_, arg) in sorted(made.states[waiting.popleft()].items(), key=lambda item: item[0]):
            if isinstance(arg, int) and arg not in seen:
                seen[arg] = None
                waiting.append(arg)
    return list(seen)


def _rule(rule: Any) -> list[Any]:
    """What it is a case of, how many parts it has, those that matter, and the function that takes them."""
    kept = [index for index, part in enumerate(rule.expansion) if not (part.is_term and part.filter_out)]
    passes = rule.options.expand1 and rule.alias is None
    return [rule.origin.name, len(rule.expansion), kept, "" if passes else rule.alias or rule.origin.name]


def _text(table: dict[str, Any]) -> str:
    return "{\n" + ",\n".join(_lines(table)) + "\n}\n"


def _lines(table: dict[str, Any]) -> Iterator[str]:
    """One entry per line, so that a change of the grammar changes few lines."""
    for name, part in table.items():
        if isinstance(part, list):
            rows = ",\n".join("  " + json.dumps(row, separators=(",", ":")) for row in cast("list[Any]", part))
            yield f'"{name}": [\n{rows}\n]'
        else:
            rows = ",\n".join(f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in part.items())
            yield f'"{name}": {{\n{rows}\n}}'


if __name__ == "__main__":
    TABLE.write_text(table_text())
