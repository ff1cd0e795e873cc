"""The ``tract`` command: one module per subcommand, found through the plugin seam.

Modules of this package import what they need inside functions, so that ``tract --help`` stays quick.
"""

from __future__ import annotations

import io
import os
import sys
import warnings
from typing import TYPE_CHECKING

from tract_core.cli.frame import app
from tract_core.cli.warn import show_warning

if TYPE_CHECKING:
    from typing_extensions import Buffer


class PatientPipe(io.FileIO):
    """Standard output that goes nowhere once its reader has left, as ``head`` does.

    The work is done to its end all the same, so that the exit status says whether all that was asserted held. Any
    other failure, as of a full disk, is raised once.
    """

    _broken = False

    def write(self, data: Buffer, /) -> int:
        """Write what can be written."""
        size = memoryview(data).nbytes
        try:
            return size if self._broken else super().write(data)
        except OSError as error:
            self._broken = True
            if isinstance(error, BrokenPipeError):
                return size
            raise


def main() -> None:
    """Entry point of the ``tract`` script. Exits with 0 only when all that was asked and asserted held."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # it was closed, as by `>&-`
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115 (open until the process ends)
    if not sys.stdout.isatty():
        pipe = io.BufferedWriter(PatientPipe(sys.stdout.fileno(), "w", closefd=False))
        sys.stdout = io.TextIOWrapper(pipe, encoding=sys.stdout.encoding, errors=sys.stdout.errors)
    warnings.showwarning = show_warning
    if sys.argv[1:2] == ["plugins"]:
        from tract_core.plugins import PluginWarning

        warnings.simplefilter("ignore", PluginWarning)  # the listing says the same, and more
    sys.exit(app.main(standalone_mode=True))
