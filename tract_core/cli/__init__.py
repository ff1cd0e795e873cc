"""The ``tract`` command: one module per subcommand, found through the plugin seam.

Modules of this package import what they need inside functions, so that ``tract --help`` stays quick.
"""

from __future__ import annotations

import sys

from tract_core.cli.frame import app


def main() -> None:
    """Entry point of the ``tract`` script. Exits with 0 only when all that was asked and asserted held."""
    sys.exit(app.main(standalone_mode=True))
