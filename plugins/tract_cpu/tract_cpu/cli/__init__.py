"""Subcommands of ``tract``: what this machine can do, and what kernels look like."""
