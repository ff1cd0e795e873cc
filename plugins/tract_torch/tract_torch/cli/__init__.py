"""The subcommand of ``tract`` that exports modules."""
