"""The subcommand of this distribution."""
