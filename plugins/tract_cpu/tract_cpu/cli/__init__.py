"""Subcommands of ``tract``: what this machine can do, what kernels look like, and those that are kept."""
