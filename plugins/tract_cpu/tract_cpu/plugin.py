"""What this distribution brings: the runtime ``cpu``, the tables that say what it compiles, and its rows of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from tract_core.plugins.descriptor import RuntimeOffer
from tract_core.plugins.hookspecs import hookimpl
from tract_core.plugins.index import read_index

_ELEMENTS: Final = ("composed",)
"""Modules of `tract_cpu.kernels` that say how single elements are computed."""

_LOWERED: Final = (
    "axis",
    "axis_dyn",
    "broadcast",
    "cast",
    "check",
    "compress",
    "concat",
    "const",
    "conv",
    "cumsum",
    "deconv",
    "downsample",
    "einsum",
    "fft",
    "fill",
    "gather",
    "grid_sample",
    "identity",
    "if_then_else",
    "indexed_matmul",
    "loop",
    "lrn",
    "non_max_suppression",
    "non_zero",
    "one_hot",
    "pad",
    "pool",
    "quantize",
    "range",
    "recurrent",
    "reshape",
    "resize",
    "scan",
    "scatter",
    "slice",
    "submodel",
    "tile",
    "topk",
    "trilu",
)
"""Modules of `tract_cpu.lower` that say which kernels compute an operator, one per family."""

_KINDS: Final = ("attention", "block_weights", "conv", "einsum", "elementwise")
"""Modules of `tract_cpu.lower` that say which kernels compute groups of some kinds."""

_GROUPS: Final = (
    "block_weights",
    "cast",
    "concat",
    "conv",
    "downsample",
    "einsum",
    "pad",
    "pool",
    "quantize",
    "resize",
)
"""Modules of `tract_cpu.group` that say which groups begin with an operator."""

_READS: Final = (
    "axis_dyn",
    "broadcast",
    "compress",
    "fill",
    "non_max_suppression",
    "non_zero",
    "one_hot",
    "pad",
    "range",
    "reshape",
    "resize",
    "slice",
    "tile",
    "topk",
)
"""Modules of `tract_cpu.lower` that say which sizes are read from inputs in the middle of a run."""

_OWN: Final = ("composed",)
"""Modules of `tract_cpu.cpu_only`: operators that rules make."""

_BESIDE: Final = ("compiled",)
"""Modules of `tract_cpu.nnef` that make what lies in archives beside the model."""

_RANGES: Final = ("ranges",)
"""Modules of `tract_cpu.products` that say between which integers results lie."""


@hookimpl
def tract_api_version() -> str:
    """The version of the plugin seam that this was written for."""
    return "1.0"


@hookimpl
def tract_runtimes() -> Mapping[str, RuntimeOffer]:
    """The compiling runtime."""
    return {"cpu": RuntimeOffer("tract_cpu.runtime:CpuRuntime", rank=100)}


@hookimpl
def tract_commands() -> Mapping[str, str]:
    """What shows the machine and the kernels."""
    return {
        "compile": "tract_cpu.cli.compile:command",
        "compiled": "tract_cpu.cli.compiled:command",
        "hwbench": "tract_cpu.cli.hwbench:command",
        "native": "tract_cpu.cli.native:command",
    }


@hookimpl
def tract_tables() -> Mapping[str, str]:
    """What the compiler asks about operators."""
    return {
        "cpu": "tract_cpu.table:CPU",
        "cpu_blocks": "tract_cpu.table:BLOCKS",
        "cpu_groups": "tract_cpu.group.start:GROUPS",
        "cpu_kinds": "tract_cpu.table:KINDS",
        "cpu_moves": "tract_cpu.table:MOVES",
        "cpu_ranges": "tract_cpu.group.ranges:RANGES",
        "cpu_reads": "tract_cpu.program.reads:READS",
    }


def row_modules() -> Mapping[str, Sequence[str]]:
    """How the compiler computes the operators of the core."""
    return {
        "cpu": [f"tract_cpu.lower.{family}" for family in _LOWERED],
        "cpu_blocks": ["tract_cpu.group.block_weights"],
        "cpu_groups": [f"tract_cpu.group.{family}" for family in _GROUPS],
        "cpu_kinds": [f"tract_cpu.lower.{family}" for family in _KINDS],
        "cpu_moves": [f"tract_cpu.lower.{family}" for family in _LOWERED],
        "cpu_reads": [f"tract_cpu.lower.{family}" for family in _READS],
        "cpu_ranges": [f"tract_cpu.group.{family}" for family in _RANGES],
        **{key: [f"tract_cpu.cpu_only.{family}" for family in _OWN] for key in ("reference", "memory", "cost", "axes")},
        "nnef_beside": [f"tract_cpu.nnef.{family}" for family in _BESIDE],
        "elements": [f"tract_cpu.kernels.{family}" for family in _ELEMENTS],
    }


@hookimpl
def tract_rows() -> Mapping[str, Mapping[str, Any]]:
    """The rows of `row_modules`, by the index beside this module."""
    return read_index(__file__)
