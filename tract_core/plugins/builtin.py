"""What the core itself offers, through the same hooks as everybody else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from tract_core.plugins.descriptor import RuntimeOffer
from tract_core.plugins.hookspecs import hookimpl
from tract_core.plugins.index import read_index

_BASICS: Final = ("const", "identity")
"""The families of operators that graphs themselves are made with."""

_FAMILIES: Final = (
    "axis",
    "axis_dyn",
    "binary",
    "blocks",
    "broadcast",
    "broadcast_dyn",
    "cast",
    "check",
    "compress",
    "concat",
    "conv",
    "cumsum",
    "deconv",
    "deform_conv",
    "downsample",
    "einsum",
    "elementwise",
    "fft",
    "fill",
    "gather",
    "grid_sample",
    "if_then_else",
    "iff",
    "indexed_matmul",
    "lookup",
    "loop",
    "lrn",
    "non_max_suppression",
    "non_zero",
    "norm",
    "one_hot",
    "optional",
    "pad",
    "pool",
    "quantize",
    "random",
    "range",
    "recurrent",
    "reduce",
    "reshape",
    "resize",
    "roi_align",
    "scan",
    "scatter",
    "sequence",
    "slice",
    "softmax",
    "submodel",
    "tile",
    "topk",
    "trilu",
    "unique",
)
_RULES: Final = (
    "const",
    "identity",
    "check",
    "cast",
    "axis",
    "change_axes",
    "broadcast",
    "elementwise",
    "binary",
    "activations",
    "dynamic",
    "slice",
    "concat",
    "pad",
    "tile",
    "iff",
    "gather",
    "scatter",
    "reduce",
    "pool",
    "conv",
    "einsum",
    "resize",
    "downsample",
    "push_slice_up",
    "merge_duplicates",
    "concat_then_einsum",
    "if_then_else",
    "sequence",
    "cumsum",
    "loop",
    "bodies",
    "scan",
    "scan_batch",
    "quantize",
)


@hookimpl
def tract_api_version() -> str:
    """Always the current one."""
    from tract_core.plugins.hookspecs import API_VERSION

    return ".".join(map(str, API_VERSION))


def row_modules() -> Mapping[str, Sequence[str]]:
    """The operators' modules fill the tables that say what operators mean; the rules' modules fill ``declutter``."""
    ops = [f"tract_core.model.{family}" for family in _BASICS] + [f"tract_core.ops.{family}" for family in _FAMILIES]
    rules = [f"tract_core.rules.{family}" for family in _RULES]
    return {
        **dict.fromkeys(("reference", "state", "symbolic", "memory", "cost", "axes"), ops),
        **dict.fromkeys(("declutter", "rename_axes"), rules),
    }


@hookimpl
def tract_rows() -> Mapping[str, Sequence[str] | Mapping[str, Any]]:
    """The rows of `row_modules` by the index beside this module, and the cases of all operators."""
    cases = [f"tract_core.testing.cases.{family}" for family in (*_BASICS, *_FAMILIES)]
    return {**read_index(__file__), "cases": cases}


@hookimpl
def tract_tables() -> Mapping[str, str]:
    """What the core asks about operators, and what its conformance kit asks."""
    names = ("reference", "state", "symbolic", "memory", "cost", "axes", "declutter", "partners")
    return {
        **{name: f"tract_core.plugins.keys:{name.upper()}" for name in names},
        "rename_axes": "tract_core.rules.change_axes:RENAME_AXES",
        "cases": "tract_core.testing.case:CASES",
        "known_gaps": "tract_core.testing.gaps:KNOWN_GAPS",
    }


@hookimpl
def tract_transforms() -> Mapping[str, str]:
    """The transforms that need nothing but the core."""
    return {
        "set_symbols": "tract_core.transforms.set_symbols:SetSymbols",
        "select_inputs": "tract_core.transforms.select:SelectInputs",
        "select_outputs": "tract_core.transforms.select:SelectOutputs",
        "float_precision": "tract_core.transforms.float_precision:FloatPrecision",
        "f32_to_f16": "tract_core.transforms.float_precision:F32ToF16",
        "f16_to_f32": "tract_core.transforms.float_precision:F16ToF32",
        "force_scan_external_state": "tract_core.transforms.scan_state:ForceScanExternalState",
        "export_scan_state": "tract_core.transforms.scan_state:ExportScanState",
        "set_property": "tract_core.transforms.set_property:SetProperty",
    }


@hookimpl
def tract_runtimes() -> Mapping[str, RuntimeOffer]:
    """The plain NumPy interpreter."""
    return {"reference": RuntimeOffer("tract_core.runtime.reference:ReferenceRuntime", rank=0)}


@hookimpl
def tract_commands() -> Mapping[str, str]:
    """The subcommands of ``tract``."""
    with_model = ("dump", "run", "bench", "compare", "doctor", "save", "cook")
    names = (*with_model, "list-ops", "list-runtimes", "list-transforms", "plugins", "init", "help")
    return {name: f"tract_core.cli.commands.{name.replace('-', '_')}:command" for name in names}
