"""How long the text of an NNEF archive takes: to be read, to be printed, and the first time in a process.

    python bench/bench_nnef_text.py

The text is as large as that of a network of 12 transformer layers: a thousand statements. Beside it, lark itself reads
the same text by the same grammar, to a tree of tokens.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

from tract_nnef.syntax.parser import parse_document
from tract_nnef.syntax.printer import print_document
from tract_nnef.syntax.table import the_table

TIMES = 15
PARTS = (
    '{name}_w = variable<scalar>(label = "{name}_w", shape = [768, 768]);',
    "{name}_matmul = matmul({name}_x, {name}_w, transposeA = false, transposeB = true);",
    "{name}_heads = reshape({name}_matmul, shape = [1, 128, 12, 64], axis_start = 0, axis_count = -1);",
    "{name}_scaled = mul({name}_heads, 0.125);",
)
COLD = {
    "imports of the parser": "import tract_nnef.syntax.parser",
    "imports and the first text": "from tract_nnef.syntax.parser import parse_statements as p; p('a = 1;')",
    "imports, lark, and its table": "import tract_nnef.syntax.write_table as w; w.table_text()",
}


def text():
    lines = ["version 1.0;", "", "extension tract_registry tract_core;", "", "graph network(x) -> (y) {"]
    for index in range(250):
        name = f"encoder_layer_{index // 20}_attention_{index}"
        lines += [f"  {part.format(name=name)}" for part in PARTS]
    return "\n".join([*lines, "  y = x;", "}", ""])


def by_lark():
    from lark import Lark
    from tract_nnef.syntax.write_table import GRAMMAR, STARTS

    lark = Lark(GRAMMAR.read_text(), parser="lalr", lexer="contextual", start=list(STARTS))
    return lambda content: lark.parse(content, start="document")


def cold(code):
    """Seconds that ``code`` takes in a new process, beyond those of one that does nothing."""
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True)
    return time.perf_counter() - start


def main():
    content = text()
    document, lark = parse_document(content), by_lark()
    tried = {
        "read": lambda: parse_document(content),
        "print": lambda: print_document(document),
        "read by lark, to a tree": lambda: lark(content),
    }
    words = sum(1 for _ in the_table().words.finditer(content))
    print(f"{len(content)} characters, {words} words, {len(document.graph.body)} statements; medians of {TIMES}")
    spent = {name: [] for name in tried}
    for _ in range(TIMES):
        for name, run in tried.items():  # in turns, as the machine has good and bad moments
            start = time.process_time()
            run()
            spent[name].append(time.process_time() - start)
    for name, times in spent.items():
        median = statistics.median(times)
        print(f"  {name:28} {median * 1e3:7.1f} ms   {median / words * 1e6:5.2f} us per word")
    nothing = statistics.median(cold("pass") for _ in range(5))
    for name, code in COLD.items():
        print(f"  {name:28} {(statistics.median(cold(code) for _ in range(5)) - nothing) * 1e3:7.1f} ms")


if __name__ == "__main__":
    main()
