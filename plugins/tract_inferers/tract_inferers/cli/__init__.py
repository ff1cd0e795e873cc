"""Subcommands of ``tract inferers``: look at policies, turn them into assets and archives, run and measure them."""
