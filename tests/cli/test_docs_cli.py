"""``docs/cli.md`` shows the help as it is. ``python tests/cli/test_docs_cli.py`` brings the document up to date."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from tract_core.cli.frame import app
from tract_core.plugins.builtin import tract_commands

DOCUMENT = Path(__file__).parents[2] / "docs" / "cli.md"
BLOCK = re.compile(r"```text\n\$ (tract [^\n]*--help)\n(.*?)```", re.DOTALL)


def real(line: str) -> str:
    result = CliRunner().invoke(app, shlex.split(line)[1:], prog_name="tract", terminal_width=100)
    assert result.exit_code == 0, result.output
    # What needs PyTorch is not installed everywhere: its page shows it.
    return re.sub(r"^  torch-export .*\n", "", result.output, flags=re.MULTILINE)


def words(text: str) -> list[str]:
    """How lines are broken is of no interest."""
    return text.split()


SHOWN = dict(BLOCK.findall(DOCUMENT.read_text())) if DOCUMENT.exists() else {}


@pytest.mark.parametrize("line", SHOWN)
def test_the_help_is_as_shown(line: str) -> None:
    assert words(SHOWN[line]) == words(real(line)), "run: python tests/cli/test_docs_cli.py"


def test_every_subcommand_of_the_core_is_shown() -> None:
    assert {"tract --help", *(f"tract {name} --help" for name in tract_commands())} == SHOWN.keys()


def test_every_flag_in_the_text_exists() -> None:
    known = set(re.findall(r"--[a-z][a-z-]+", "".join(SHOWN.values())))
    text = BLOCK.sub("", DOCUMENT.read_text())
    assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", text)) <= known


if __name__ == "__main__":
    text = BLOCK.sub(lambda found: f"```text\n$ {found[1]}\n{real(found[1])}```", DOCUMENT.read_text())
    DOCUMENT.write_text(text)
