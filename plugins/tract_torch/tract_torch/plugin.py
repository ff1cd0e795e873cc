"""What this distribution offers: how operators of PyTorch are wired."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from tract_core.plugins.descriptor import Format
from tract_core.plugins.hookspecs import hookimpl
from tract_core.plugins.index import read_index

_FAMILIES: Final = (
    "adaptive_pool",
    "attention",
    "axis",
    "binary",
    "broadcast",
    "cast",
    "col2im",
    "complex",
    "concat",
    "conv",
    "cumsum",
    "deform_conv",
    "distance",
    "elementwise",
    "embedding_bag",
    "fft",
    "fill",
    "gather",
    "gcd",
    "grid_sample",
    "histogram",
    "if_then_else",
    "iff",
    "item",
    "linalg",
    "loop",
    "matmul",
    "non_max_suppression",
    "non_zero",
    "norm",
    "pad",
    "polynomials",
    "pool",
    "qr",
    "quantize",
    "random",
    "recurrent",
    "reduce",
    "resize",
    "roi",
    "scan",
    "scatter",
    "search",
    "slice",
    "softmax",
    "special",
    "topk",
    "unique",
)


@hookimpl
def tract_api_version() -> str:
    """The version of the plugin seam that this was written for."""
    return "1.0"


@hookimpl
def tract_tables() -> Mapping[str, str]:
    """How operators of PyTorch are wired."""
    return {"aten": "tract_torch.registry:ATEN"}


def row_modules() -> Mapping[str, Sequence[str]]:
    """The operators that are kept, and PyTorch itself to compare with."""
    return {"aten": [f"tract_torch.ops.{family}" for family in _FAMILIES], "partners": ["tract_torch.partner"]}


@hookimpl
def tract_commands() -> Mapping[str, str]:
    """The subcommand of ``tract``."""
    return {"torch-export": "tract_torch.cli.torch_export:command"}


@hookimpl
def tract_rows() -> Mapping[str, Mapping[str, Any]]:
    """The rows of `row_modules`, by the index beside this module."""
    return read_index(__file__)


@hookimpl
def tract_formats() -> Sequence[Format]:
    """Exported programs, as `torch.export.save` writes them."""
    summary = "exported programs of PyTorch"
    programs = ("torch.export.exported_program:ExportedProgram", "torch.nn.modules.module:Module")
    begins = ((0, b"PK\x03\x04"),)
    return [Format("pt2", (".pt2",), "tract_torch.loading:Pt2", summary, signatures=begins, objects=programs)]
