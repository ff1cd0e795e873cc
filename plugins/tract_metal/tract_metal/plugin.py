"""What this distribution brings: the runtime ``metal``, the tables that say what MLX computes, and its rows of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from tract_core.plugins.descriptor import RuntimeOffer
from tract_core.plugins.hookspecs import hookimpl
from tract_core.plugins.index import read_index

_LOWERED: Final = (
    *(
        "axis",
        "binary",
        "broadcast",
        "cast",
        "check",
        "concat",
        "const",
        "conv",
        "cumsum",
        "deconv",
        "delay",
        "downsample",
    ),
    *(
        "einsum",
        "elementwise",
        "fft",
        "gather",
        "grid_sample",
        "indexed_matmul",
        "lrn",
        "norm",
        "one_hot",
        "pad",
        "pool",
        "quantize",
        "range",
    ),
    *("recurrent", "reduce", "resize", "scan", "scatter", "slice", "softmax", "submodel", "tile", "topk", "trilu"),
)
"""Modules of `tract_metal.lower` that say how MLX computes an operator, one per family."""

_KINDS: Final = ("attention", "blocks", "norm")
"""Modules of `tract_metal.lower` that say how MLX computes groups of some kinds."""

_GROUPS: Final = ("attention", "blocks", "norm")
"""Modules of `tract_metal.group` that say which groups begin with an operator."""


@hookimpl
def tract_api_version() -> str:
    """The version of the plugin seam that this was written for."""
    return "1.0"


@hookimpl
def tract_runtimes() -> Mapping[str, RuntimeOffer]:
    """The runtime for GPUs of Apple, which is never the default."""
    return {"metal": RuntimeOffer("tract_metal.runtime:MetalRuntime")}


@hookimpl
def tract_tables() -> Mapping[str, str]:
    """What the compiler asks about operators."""
    return {
        "metal": "tract_metal.table:METAL",
        "metal_blocks": "tract_metal.table:BLOCKS",
        "metal_groups": "tract_metal.table:STARTS",
        "metal_kinds": "tract_metal.table:KINDS",
    }


def row_modules() -> Mapping[str, Sequence[str]]:
    """How MLX computes the operators of the core."""
    return {
        "metal": [f"tract_metal.lower.{family}" for family in _LOWERED],
        "metal_blocks": ["tract_metal.lower.blocks"],
        "metal_groups": [f"tract_metal.group.{family}" for family in _GROUPS],
        "metal_kinds": [f"tract_metal.lower.{family}" for family in _KINDS],
    }


@hookimpl
def tract_rows() -> Mapping[str, Mapping[str, Any]]:
    """The rows of `row_modules`, by the index beside this module."""
    return read_index(__file__)
