"""What this distribution offers: the format, its tables, and how the operators of the core are spelled in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from tract_core.plugins.descriptor import Format, Option, Stage
from tract_core.plugins.hookspecs import hookimpl
from tract_core.plugins.index import read_index
from tract_nnef.flags import EXPORTS, FORMS, SETTINGS, WRITER_FLAGS

_FAMILIES: Final = (
    "activation",
    "attention",
    "axis",
    "binary",
    "broadcast",
    "cast",
    "concat",
    "conv",
    "cumsum",
    "deconv",
    "downsample",
    "einsum",
    "elementwise",
    "exp_norm",
    "fft",
    "gather",
    "grid_sample",
    "iff",
    "lrn",
    "non_zero",
    "norm",
    "one_hot",
    "pad",
    "pool",
    "quantize",
    "range",
    "recurrent",
    "reduce",
    "resample",
    "resize",
    "resource",
    "roi",
    "sample",
    "scan",
    "scatter",
    "shape_of",
    "slice",
    "softmax",
    "submodel",
    "tile",
    "topk",
    "trilu",
    "variable",
)


@hookimpl
def tract_api_version() -> str:
    """The version of the plugin seam that this was written for."""
    return "1.0"


@hookimpl
def tract_tables() -> Mapping[str, str]:
    """How operators are read, and how they are written; what lies beside them."""
    tables = {"nnef": "NNEF", "nnef_write": "NNEF_WRITE", "nnef_beside": "NNEF_BESIDE"}
    return {name: f"tract_nnef.registry:{key}" for name, key in tables.items()}


def row_modules() -> Mapping[str, Sequence[str]]:
    """How the operators of the core are read and written, and those that only NNEF has."""
    spelled = [f"tract_nnef.ops.{family}" for family in _FAMILIES]
    operators = [f"tract_nnef.nnef_only.{family}" for family in ("exp_norm", "roi", "sdpa")]
    return {
        "nnef": [*spelled, "tract_nnef.schema.operators"],
        "nnef_write": spelled,
        **dict.fromkeys(("reference", "state", "memory", "cost", "axes"), operators),
        "cases": ["tract_nnef.nnef_only.cases", "tract_nnef.nnef_only.roi_cases"],
    }


@hookimpl
def tract_rows() -> Mapping[str, Mapping[str, Any]]:
    """The rows of `row_modules`, by the index beside this module."""
    return read_index(__file__)


@hookimpl
def tract_transforms() -> Mapping[str, str]:
    """Transforms by name."""
    return {
        "nnef_cycle": "tract_nnef.transforms.cycle:NnefCycle",
        "block_quant": "tract_nnef.transforms.block_quant:BlockQuant",
        "patch": "tract_nnef.transforms.patch:Patch",
    }


@hookimpl
def tract_stages() -> Sequence[Stage]:
    """``--nnef-cycle``, behind all that changes the model."""
    option = Option("Write the model as an archive and read it again, before what follows.")
    return [Stage("nnef-cycle", "set-declutter", "nnef_cycle", option, settings_of="nnef")]


@hookimpl
def tract_formats() -> Sequence[Format]:
    """Archives: folders, and tar files that are compressed or not."""
    endings = (".nnef.tgz", ".nnef.tar.gz", ".nnef.tar", ".tgz", ".tar.gz", ".tar", ".nnef")
    summary = "cooked models: NNEF, with the operators that the tract engines add"
    return [
        Format(
            "nnef",
            endings,
            "tract_nnef.documents.loader:NnefLoader",
            summary,
            writer="tract_nnef.documents.saver:NnefWriter",
            writer_flags=WRITER_FLAGS,
            handle="tract_nnef.handle:Nnef",
            entry="graph.nnef",
            settings=SETTINGS,
            exports=EXPORTS,
            signatures=((0, b"\x1f\x8b"), (257, b"ustar")),
            forms=FORMS,
        )
    ]
