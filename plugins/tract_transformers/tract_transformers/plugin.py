"""What this distribution offers: the subcommands that generate text."""

from __future__ import annotations

from collections.abc import Mapping

from tract_core.plugins.hookspecs import hookimpl


@hookimpl
def tract_api_version() -> str:
    """The version of the plugin seam that this was written for."""
    return "1.0"


@hookimpl
def tract_commands() -> Mapping[str, str]:
    """Subcommands of ``tract``."""
    return {
        "chat": "tract_transformers.cli.chat:command",
        "generate": "tract_transformers.cli.generate:command",
        "llm-bench": "tract_transformers.cli.llm_bench:command",
        "perplexity": "tract_transformers.cli.perplexity:command",
    }
