"""The command of the established engine: found, fetched when asked, and run."""
