"""What this distribution offers: the transform and its stage, a table, operators, and how those of the core stream."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from tract_core.plugins.descriptor import Option, Stage
from tract_core.plugins.hookspecs import hookimpl
from tract_core.plugins.index import read_index

_OPERATORS: Final = ("concat", "delay", "mask", "pad", "past", "range")
_NATIVE: Final = ("concat", "delay", "mask", "pad", "range")
"""Modules of `tract_pulse.cpu` and of `tract_pulse.cuda`, one per family."""

_FAMILIES: Final = (
    "axis",
    "bodies",
    "broadcast",
    "concat",
    "conv",
    "cumsum",
    "deconv",
    "exp_norm",
    "fft",
    "gather",
    "pad",
    "pool",
    "range",
    "resize",
    "scan",
    "slice",
    "whole",
)
_SQUARES: Final = {
    "band": ("range", "binary", "elementwise", "iff", "axis", "softmax", "reduce", "einsum", "trilu", "cumsum"),
    "neutral": ("softmax", "reduce", "einsum", "trilu", "cumsum"),
    "window": ("axis", "trilu"),
}


@hookimpl
def tract_api_version() -> str:
    """The version of the plugin seam that this was written for."""
    return "1.0"


@hookimpl
def tract_tables() -> Mapping[str, str]:
    """How operators stream."""
    return {name: f"tract_pulse.registry:{name.upper()}" for name in ("pulse", *_SQUARES)}


def row_modules() -> Mapping[str, Sequence[str]]:
    """Operators that keep something between pulses, also for compilers, and how those of the core stream."""
    operators = [f"tract_pulse.ops.{family}" for family in _OPERATORS]
    spelled = ["tract_pulse.nnef.stream"]
    native = [f"tract_pulse.cpu.{family}" for family in _NATIVE]
    return {
        **dict.fromkeys(("state", "cost", "axes"), operators),
        **dict.fromkeys(("cpu", "cpu_groups", "cpu_moves"), native),
        "cuda": [f"tract_pulse.cuda.{family}" for family in _NATIVE],
        "pulse": [f"tract_pulse.rules.{family}" for family in _FAMILIES],
        **dict.fromkeys(("nnef", "nnef_write"), spelled),
        "onnx_write": ["tract_pulse.onnx.stream"],
        **{table: [f"tract_pulse.squares.{family}" for family in families] for table, families in _SQUARES.items()},
    }


@hookimpl
def tract_rows() -> Mapping[str, Mapping[str, Any]]:
    """The rows of `row_modules`, by the index beside this module."""
    return read_index(__file__)


@hookimpl
def tract_transforms() -> Mapping[str, str]:
    """Transforms by name."""
    return {"pulse": "tract_pulse.transform:Pulse"}


@hookimpl
def tract_stages() -> Sequence[Stage]:
    """``--pulse 8``, right behind the normal form."""
    option = Option("Take the signal in pieces of so many positions, as '8' or 'T=8'.", str, "[SYMBOL=]SIZE")
    return [Stage("pulse", "declutter", "pulse", option, parameter="pulse")]
