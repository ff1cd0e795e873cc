"""``python -m tract_core`` is the ``tract`` command."""

from tract_core.cli import main

main()
