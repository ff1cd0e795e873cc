"""What this distribution brings: the runtime ``cuda``, the tables that say what it compiles, and its rows of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from tract_core.plugins.descriptor import RuntimeOffer
from tract_core.plugins.hookspecs import hookimpl
from tract_core.plugins.index import read_index

_LOWERED: Final = (
    *("axis", "broadcast", "check", "concat", "const", "conv", "cumsum", "deconv", "downsample", "einsum", "fft"),
    *("gather", "grid_sample", "identity", "indexed_matmul", "lrn", "one_hot", "pad", "pool", "quantize", "range"),
    *("recurrent", "resize", "scan", "scatter", "slice", "submodel", "tile", "topk", "trilu"),
)
"""Modules of `tract_cuda.lower` that say which kernels compute an operator, one per family."""

_KINDS: Final = ("attention", "blocks", "conv", "einsum", "elementwise", "quantize", "rows")
"""Modules of `tract_cuda.lower` that say which kernels compute groups of some kinds."""

_GROUPS: Final = ("conv", "einsum", "quantize")
"""Modules of `tract_cuda.group` that say which groups begin with an operator."""


_RECORDS: Final = ("blocks",)
"""Modules of `tract_cuda.lower` that say how the blocks of an operator lie."""


@hookimpl
def tract_api_version() -> str:
    """The version of the plugin seam that this was written for."""
    return "1.0"


@hookimpl
def tract_runtimes() -> Mapping[str, RuntimeOffer]:
    """The runtime for GPUs, which is never the default."""
    return {"cuda": RuntimeOffer("tract_cuda.runtime:CudaRuntime")}


@hookimpl
def tract_commands() -> Mapping[str, str]:
    """What shows programs and kernels."""
    return {"cuda": "tract_cuda.cli.cuda:command"}


@hookimpl
def tract_tables() -> Mapping[str, str]:
    """What the compiler asks about operators."""
    return {
        "cuda": "tract_cuda.table:CUDA",
        "cuda_blocks": "tract_cuda.table:BLOCKS",
        "cuda_groups": "tract_cuda.table:STARTS",
        "cuda_kinds": "tract_cuda.table:KINDS",
    }


def row_modules() -> Mapping[str, Sequence[str]]:
    """How the compiler computes the operators of the core."""
    return {
        "cuda": [f"tract_cuda.lower.{family}" for family in _LOWERED],
        "cuda_blocks": [f"tract_cuda.lower.{family}" for family in _RECORDS],
        "cuda_groups": [f"tract_cuda.group.{family}" for family in _GROUPS],
        "cuda_kinds": [f"tract_cuda.lower.{family}" for family in _KINDS],
    }


@hookimpl
def tract_rows() -> Mapping[str, Mapping[str, Any]]:
    """The rows of `row_modules`, by the index beside this module."""
    return read_index(__file__)
