"""What this distribution offers: two formats, and how the operators of their files are wired."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from tract_core.plugins.descriptor import Format, Option
from tract_core.plugins.hookspecs import hookimpl
from tract_core.plugins.index import read_index

_TFLITE: Final = (
    "axis",
    "binary",
    "bit_cast",
    "broadcast",
    "bucketize",
    "cast",
    "concat",
    "control",
    "conv",
    "cumsum",
    "deconv",
    "densify",
    "detection",
    "dilate",
    "elementwise",
    "fake_quant",
    "fft",
    "fill",
    "gather",
    "hashtable",
    "iff",
    "lookup",
    "matmul",
    "matrix_diag",
    "mediapipe",
    "non_max_suppression",
    "norm",
    "one_hot",
    "pad",
    "pool",
    "random",
    "range",
    "recurrent",
    "reduce",
    "reduce_window",
    "resize",
    "reverse",
    "scatter",
    "segment",
    "shape",
    "slice",
    "softmax",
    "svdf",
    "stablehlo",
    "stablehlo_custom",
    "stablehlo_gather",
    "stablehlo_products",
    "stablehlo_random",
    "tile",
    "topk",
    "unique",
)
"""Modules of `tract_tensorflow.tflite.ops`, one per family."""

_QUANTIZED: Final = (
    "arithmetic",
    "conv",
    "deconv",
    "functions",
    "pool",
    "product",
    "quantize",
    "recurrent",
    "reduce",
    "resize",
    "softmax",
    "svdf",
)
"""Modules of `tract_tensorflow.tflite.quantized`, one per family."""

_TFLITE_ONLY: Final = (
    "bit_cast",
    "detection",
    "fixed_point",
    "fixed_point_sum",
    "non_max_suppression",
)
"""Modules of `tract_tensorflow.tflite_only`, one per family."""

_GRAPHDEF: Final = (
    "axis",
    "band",
    "binary",
    "broadcast",
    "cast",
    "concat",
    "const",
    "conv",
    "cumsum",
    "deconv",
    "einsum",
    "elementwise",
    "features",
    "fft",
    "fill",
    "gather",
    "if_then_else",
    "lookup",
    "loop",
    "non_max_suppression",
    "non_zero",
    "norm",
    "one_hot",
    "pad",
    "patches",
    "pool",
    "quantize",
    "random",
    "range",
    "reduce",
    "resize",
    "reverse_sequence",
    "roi",
    "scatter",
    "sequence",
    "shape",
    "slice",
    "softmax",
    "tile",
    "topk",
    "unique",
)
"""Modules of `tract_tensorflow.graphdef.ops`, one per family."""


@hookimpl
def tract_api_version() -> str:
    """The version of the plugin seam that this was written for."""
    return "1.0"


@hookimpl
def tract_tables() -> Mapping[str, str]:
    """The tables that the two frontends ask."""
    return {
        "tflite": "tract_tensorflow.tflite.registry:TFLITE",
        "tensorflow": "tract_tensorflow.graphdef.registry:TENSORFLOW",
    }


def row_modules() -> Mapping[str, Sequence[str]]:
    """How operators are wired, and what those compute that only TFLite has."""
    operators = [f"tract_tensorflow.tflite_only.{family}" for family in _TFLITE_ONLY]
    return {
        **dict.fromkeys(("reference", "cost", "axes"), operators),
        "memory": ["tract_tensorflow.tflite_only.detection"],
        "elements": ["tract_tensorflow.llvm.fixed_point"],
        "onnx_write": ["tract_tensorflow.onnx.fixed_point"],
        "partners": ["tract_tensorflow.litert", "tract_tensorflow.tensorflow"],
        "tflite": [
            *(f"tract_tensorflow.tflite.ops.{family}" for family in _TFLITE),
            *(f"tract_tensorflow.tflite.quantized.{family}" for family in _QUANTIZED),
        ],
        "tensorflow": [f"tract_tensorflow.graphdef.ops.{family}" for family in _GRAPHDEF],
    }


@hookimpl
def tract_rows() -> Mapping[str, Mapping[str, Any]]:
    """The rows of `row_modules`, by the index beside this module."""
    return read_index(__file__)


@hookimpl
def tract_formats() -> Sequence[Format]:
    """Files of TFLite; SavedModels and frozen graphs."""
    return [
        Format(
            "tflite",
            (".tflite", ".lite"),
            "tract_tensorflow.tflite.loader:TfliteLoader",
            "models of TFLite (LiteRT), in floats and quantised",
            {"signature": Option("Take the graph of this signature.", str, "NAME")},
            signatures=((4, b"TFL3"),),
        ),
        Format(
            "tensorflow",
            (".pb",),
            "tract_tensorflow.graphdef.loader:TensorflowLoader",
            "SavedModels and frozen graphs of TensorFlow",
            {
                "signature": Option("Take the graph of this signature.", str, "NAME"),
                "outputs": Option("The tensors that are wanted, with commas between them.", str, "NAMES"),
            },
            entry="saved_model.pb",
            signatures=((0, b"\n"),),
        ),
    ]
