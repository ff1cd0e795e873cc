"""Warnings on the command line are one plain line each."""

from __future__ import annotations

import subprocess
import sys

CODE = """
import sys, warnings
from click import command
from tract_core import cli

class App:
    def main(self, **_):
        warnings.warn({text!r})
        warnings.warn("another one", RuntimeWarning)
        return 0

cli.app = App()
cli.main()
"""


def warned(text: str) -> list[str]:
    found = subprocess.run([sys.executable, "-c", CODE.format(text=text)], capture_output=True, text=True, check=True)
    assert not found.stdout
    return found.stderr.splitlines()


def test_one_line_without_path_or_source():
    assert warned("plugin 'x': no") == ["Warning: plugin 'x': no", "Warning: another one"]


def test_lines_and_what_steers_a_terminal():
    assert warned("one\n  hint: two\x1b[31m") == [r"Warning: one hint: two\u001b[31m", "Warning: another one"]
