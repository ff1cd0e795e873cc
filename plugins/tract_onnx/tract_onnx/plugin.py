"""What this distribution offers: the format, the operators that only it has, and how those of a file are wired."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from tract_core.plugins.descriptor import Format, Option
from tract_core.plugins.hookspecs import hookimpl
from tract_core.plugins.index import read_index

_FAMILIES: Final = (
    "affine_grid",
    "axis",
    "batch_norm_training",
    "binary",
    "bit_cast",
    "broadcast",
    "cast",
    "center_crop_pad",
    "col2im",
    "compress",
    "concat",
    "const",
    "conv",
    "cumsum",
    "deconv",
    "deform_conv",
    "det",
    "einsum",
    "elementwise",
    "experts",
    "features",
    "fft",
    "fill",
    "function_body",
    "gather",
    "grid_sample",
    "group_query_attention",
    "if_then_else",
    "image_decoder",
    "linear_attention",
    "linear_models",
    "lookup",
    "loop",
    "maps",
    "matmul_nbits",
    "max_unpool",
    "microsoft",
    "microsoft_attention",
    "microsoft_quantize",
    "non_max_suppression",
    "non_zero",
    "norm",
    "one_hot",
    "optimizers",
    "optional",
    "pad",
    "pool",
    "power_of_two",
    "quantize",
    "random",
    "range",
    "recurrent",
    "reduce",
    "refused",
    "regex",
    "resize",
    "reverse_sequence",
    "roi",
    "scan",
    "scatter",
    "sequence",
    "shape",
    "slice",
    "softmax",
    "strings",
    "tensor_scatter",
    "tfidf",
    "tile",
    "topk",
    "trees",
    "trilu",
    "unique",
    "upsample",
    "withdrawn",
)

_OPERATORS: Final = (
    "bit_cast",
    "col2im",
    "couple",
    "det",
    "image_decoder",
    "lookup",
    "maps",
    "mel",
    "power_of_two",
    "probit",
    "regex",
    "strings",
    "tfidf",
    "trees",
)
"""Modules of `tract_onnx.onnx_only`, one per family."""


_SPELLED: Final = ("lookup", "non_max_suppression", "random", "trees")
"""Modules of `tract_onnx.nnef`, one per family."""


_WRITTEN: Final = (
    "axis",
    "axis_dyn",
    "binary",
    "bit_cast",
    "broadcast",
    "cast",
    "check",
    "col2im",
    "compress",
    "concat",
    "conv",
    "cumsum",
    "deconv",
    "deform_conv",
    "det",
    "downsample",
    "einsum",
    "elementwise",
    "fft",
    "fill",
    "gather",
    "grid_sample",
    "if_then_else",
    "iff",
    "image_decoder",
    "lookup",
    "loop",
    "lrn",
    "mel",
    "non_max_suppression",
    "non_zero",
    "norm",
    "one_hot",
    "pad",
    "pool",
    "power_of_two",
    "quantize",
    "random",
    "range",
    "recurrent",
    "reduce",
    "resize",
    "roi_align",
    "scan",
    "scatter",
    "sequence",
    "slice",
    "softmax",
    "strings",
    "tfidf",
    "tile",
    "topk",
    "trees",
    "trilu",
    "unique",
)
"""Modules of `tract_onnx.writing.ops`, one per family."""


@hookimpl
def tract_api_version() -> str:
    """The version of the plugin seam that this was written for."""
    return "1.0"


@hookimpl
def tract_tables() -> Mapping[str, str]:
    """The tables that the frontend and the writer ask."""
    return {"onnx": "tract_onnx.registry:ONNX", "onnx_write": "tract_onnx.writing.table:ONNX_WRITE"}


def row_modules() -> Mapping[str, Sequence[str]]:
    """The operators that only ONNX has, how all operators are wired, and other engines to compare with."""
    operators = [f"tract_onnx.onnx_only.{family}" for family in _OPERATORS]
    spelled = [f"tract_onnx.nnef.{family}" for family in _SPELLED]
    return {
        **dict.fromkeys(("reference", "state", "symbolic", "memory", "cost", "axes"), operators),
        "onnx": [f"tract_onnx.ops.{family}" for family in _FAMILIES],
        "onnx_write": [f"tract_onnx.writing.ops.{family}" for family in _WRITTEN],
        **dict.fromkeys(("nnef", "nnef_write"), spelled),
        "cpu": ["tract_onnx.cpu.trees"],
        "partners": ["tract_onnx.onnxruntime", "tract_onnx.openvino"],
    }


@hookimpl
def tract_rows() -> Mapping[str, Mapping[str, Any]]:
    """The rows of `row_modules`, by the index beside this module."""
    return read_index(__file__)


@hookimpl
def tract_formats() -> Sequence[Format]:
    """The ONNX format."""
    flags = {
        "ignore_value_info": "Do not rely on what the file says about tensors inside it.",
        "ignore_output_shapes": "Do not rely on the shapes that the file gives its outputs.",
        "ignore_output_types": "Do not rely on the element types that the file gives its outputs.",
        "strict_facts": "Refuse a file that says of its tensors what its operators do not give.",
        "own_symbols": "Let sizes of inputs differ that have one name in the file: each gets a symbol of its own.",
        "growing_caches": "No row of a batch is padded, and caches of keys and values grow by what is new.",
    }
    summary = "models in the ONNX format, of every operator set"
    return [
        Format(
            "onnx",
            (".onnx",),
            "tract_onnx.frontend:OnnxLoader",
            summary,
            flags,
            writer="tract_onnx.writing.saver:OnnxWriter",
            writer_flags={
                "opset": Option("Write this version of the operators, from 17 on.", int),
                "external_data": "Write tensors to a file beside, NAME.data.",
            },
            handle="tract_onnx.handle:Onnx",
            objects=("onnx.onnx_ml_pb2:ModelProto", "onnx_ir:Model", "torch.onnx:ONNXProgram"),
        )
    ]
