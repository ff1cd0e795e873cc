"""The subcommand, and what it prints."""
