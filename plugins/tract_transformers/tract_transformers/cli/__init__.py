"""Subcommands of ``tract`` for language models: ``generate``, ``chat``, ``llm-bench``, ``perplexity``."""
