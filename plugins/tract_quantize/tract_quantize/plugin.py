"""What this distribution offers: two transforms, the subcommand, and the table of what quantised tensors go through."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from tract_core.plugins.hookspecs import hookimpl
from tract_core.plugins.index import read_index

_FAMILIES: Final = (
    "axis",
    "binary",
    "broadcast",
    "concat",
    "conv",
    "downsample",
    "einsum",
    "elementwise",
    "pad",
    "pool",
    "slice",
)
"""Modules of `tract_quantize.roles`."""


@hookimpl
def tract_api_version() -> str:
    """The version of the plugin seam that this was written for."""
    return "1.0"


@hookimpl
def tract_tables() -> Mapping[str, str]:
    """What operators are to quantised tensors."""
    return {"quantized_roles": "tract_quantize.registry:ROLES"}


def row_modules() -> Mapping[str, Sequence[str]]:
    """The roles of the operators of the core."""
    return {"quantized_roles": [f"tract_quantize.roles.{family}" for family in _FAMILIES]}


@hookimpl
def tract_rows() -> Mapping[str, Mapping[str, Any]]:
    """The rows of `row_modules`, by the index beside this module."""
    return read_index(__file__)


@hookimpl
def tract_transforms() -> Mapping[str, str]:
    """Transforms by name."""
    return {
        "quantize_static": "tract_quantize.transforms.static:QuantizeStatic",
        "quantize_weights": "tract_quantize.transforms.weights:QuantizeWeights",
    }


@hookimpl
def tract_commands() -> Mapping[str, str]:
    """Subcommands of ``tract``."""
    return {"quantize": "tract_quantize.cli.quantize:command"}
