"""What this distribution offers: the subcommands that generate text, operators, and transforms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from tract_core.plugins.hookspecs import hookimpl
from tract_core.plugins.index import read_index

_OPERATORS: Final = (
    "causal_conv",
    "gated_delta_rule",
    "kv_attention",
    "kv_cache",
    "paged_attention",
    "quantised_kv_cache",
)
"""Modules of `tract_transformers.ops`, one per family."""

_NATIVE: Final = ("paged_attention",)
"""Modules of `tract_transformers.cpu`."""

_ON_GPUS: Final = ("paged_attention",)
"""Modules of `tract_transformers.cuda` and `tract_transformers.metal`."""

_SPELLED: Final = ("kv_cache", "recurrent")
"""Modules of `tract_transformers.nnef`."""


@hookimpl
def tract_api_version() -> str:
    """The version of the plugin seam that this was written for."""
    return "1.0"


@hookimpl
def tract_tables() -> Mapping[str, str]:
    """No table: those of the core and of others are asked."""
    return {}


def row_modules() -> Mapping[str, Sequence[str]]:
    """What operators of language models mean, how runtimes compute them, and how archives spell them."""
    operators = [f"tract_transformers.ops.{family}" for family in _OPERATORS]
    spelled = [f"tract_transformers.nnef.{family}" for family in _SPELLED]
    native = [f"tract_transformers.cpu.{family}" for family in _NATIVE]
    return {
        **dict.fromkeys(("reference", "state", "memory", "cost", "axes"), operators),
        **dict.fromkeys(("cpu_moves", "cpu_groups"), native),
        **{name: [f"tract_transformers.{name}.{family}" for family in _ON_GPUS] for name in ("cuda", "metal")},
        **dict.fromkeys(("nnef", "nnef_write"), spelled),
    }


@hookimpl
def tract_rows() -> Mapping[str, Mapping[str, Any]]:
    """The rows of `row_modules`, by the index beside this module."""
    return read_index(__file__)


@hookimpl
def tract_transforms() -> Mapping[str, str]:
    """Transforms by name."""
    return {
        "detect_kv_cache": "tract_transformers.transforms.kv_cache:DetectKvCache",
        "last_logits": "tract_transformers.transforms.wanted_logits:LastLogits",
        "paged_cache": "tract_transformers.transforms.paged:PagedCache",
        "unfold_kv_cache": "tract_transformers.transforms.kv_cache:UnfoldKvCache",
    }


@hookimpl
def tract_commands() -> Mapping[str, str]:
    """Subcommands of ``tract``."""
    return {
        "chat": "tract_transformers.cli.chat:command",
        "generate": "tract_transformers.cli.generate:command",
        "llm-bench": "tract_transformers.cli.llm_bench:command",
        "perplexity": "tract_transformers.cli.perplexity:command",
        "transcribe": "tract_transformers.cli.transcribe:command",
    }
