"""What is printed where no terminal is, beside what rich draws."""

from __future__ import annotations

import io
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console as RichConsole

from tract_core.cli.printing.console import PlainConsole, make_console
from tract_core.cli.printing.printed import Cell, Column, PrintedTable
from tract_core.cli.printing.terminal import Terminal

TEXTS = st.lists(st.text("ab,é日本", min_size=1, max_size=5), min_size=1, max_size=3).map("\n".join)
STYLED = TEXTS | st.tuples(TEXTS, st.sampled_from(["bold", "red"]))
CELLS = STYLED | st.lists(STYLED, max_size=3) | st.just("")


@st.composite
def tables(draw: st.DrawFn) -> PrintedTable:
    titled = draw(st.booleans())
    columns = draw(
        st.lists(
            st.builds(Column, st.sampled_from(["title", "", "a title"]) if titled else st.just(""), st.booleans()),
            min_size=1,
        )
    )
    table = PrintedTable(tuple(columns))
    cells: st.SearchStrategy[list[Cell]] = st.lists(CELLS, min_size=len(columns), max_size=len(columns))
    for row in draw(st.lists(cells, min_size=1, max_size=3)):
        table.add(*row)
    return table


def drawn(table: PrintedTable) -> list[str]:
    file = io.StringIO()
    Terminal(RichConsole(file=file, width=10_000, highlight=False, emoji=False)).table(table)
    return [line.rstrip() for line in file.getvalue().splitlines()]


def printed(*, table: PrintedTable | None = None, texts: tuple[Cell, ...] = (), indent: int = 0) -> str:
    file = io.StringIO()
    console = PlainConsole(file)
    if table is not None:
        console.table(table)
    else:
        console.line(*texts, indent=indent)  # pyright: ignore[reportArgumentType]: texts of the tests are no lists
    return file.getvalue()


@given(tables())
def test_a_table_is_laid_out_as_rich_does_it_without_blanks_at_the_ends_of_lines(table: PrintedTable) -> None:
    assert printed(table=table).splitlines() == drawn(table)


def test_lines_are_as_long_as_they_are_and_have_no_colours() -> None:
    assert printed(texts=("output ", ("y" * 20_000, "bold"), "  f32")) == f"output {'y' * 20_000}  f32\n"
    assert printed(texts=(("facts  ", "dim"), "2,f32\n3,f32"), indent=5) == "     facts  2,f32\n     3,f32\n"
    assert printed() == "\n"


def test_what_steers_is_escaped_in_lines_and_in_tables() -> None:
    table = PrintedTable((Column("name"), Column("facts")))
    table.add("a\x1b[2Jb", "f32")
    assert printed(texts=("a\x1b[31m", ("\u202eb", "red"))) == "a\\u001b[31m\\u202eb\n"
    assert printed(table=table).splitlines() == ["name         facts", "a\\u001b[2Jb  f32"]


@pytest.mark.parametrize(("name", "value"), [("FORCE_COLOR", "1"), ("TTY_COMPATIBLE", "1")])
def test_who_wants_the_looks_of_a_terminal_gets_them(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    assert isinstance(make_console(), PlainConsole)
    monkeypatch.setenv(name, value)
    assert isinstance(make_console(), Terminal)
    assert isinstance(make_console(plain=True), PlainConsole)


def test_a_command_whose_output_goes_into_a_pipe_does_without_rich() -> None:
    code = (
        "import sys, atexit\n"
        "atexit.register(lambda: print('rich' in sys.modules))\n"
        "sys.argv = ['tract', 'examples/digits/digits.onnx']\n"
        "import runpy; runpy.run_module('tract_core', run_name='__main__')"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.splitlines()[-1] == "False"
