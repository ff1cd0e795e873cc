"""Subcommands of ``tract``: what a model becomes for a GPU, which need not be there."""
