"""Show a page in the user's browser, where there is one."""

from __future__ import annotations

import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from html import escape
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp


def has_browser() -> bool:
    """Whether there is a screen for a browser to open a window on, and a browser."""
    if sys.platform.startswith("linux") and not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        return False
    if os.environ.get("SSH_CONNECTION"):
        return False
    import webbrowser

    try:
        return type(webbrowser.get()) is not webbrowser.GenericBrowser  # which runs in the terminal
    except webbrowser.Error:
        return False


@contextmanager
def opened(url: str) -> Generator[None]:
    """Open a page, for as long as the block takes.

    All users of a machine see what other processes are called with, so the browser is given a file that only its user
    can read, which leads to the page.
    """
    import webbrowser

    folder = Path(mkdtemp(prefix="tract-view-"))  # only its owner can enter it
    try:
        file = folder / "open.html"
        file.write_text(f'<!doctype html><meta http-equiv="refresh" content="0; url={escape(url)}">', encoding="utf-8")
        webbrowser.open(file.as_uri())
        yield
    finally:
        rmtree(folder, ignore_errors=True)
