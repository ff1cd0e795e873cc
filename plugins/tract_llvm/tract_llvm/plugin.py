"""What this distribution brings: how elements are computed in native code, and what shows the code that is kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from tract_core.plugins.hookspecs import hookimpl
from tract_core.plugins.index import read_index

_FAMILIES: Final = ("elementwise", "binary", "transcendental", "quantize", "on_steps")
"""Modules of `tract_llvm.elements` that say how single elements are computed."""

_NESTS: Final = ("norm", "reduce", "softmax")
"""Modules of `tract_llvm.nests` that say what operators that reduce are made of."""

_RULES: Final = ("integers",)
"""Modules of `tract_llvm.native_form` that say how a model is rewritten before there are kernels for it."""

_OWN: Final = ("on_steps",)
"""Modules of `tract_llvm.llvm_only`: operators that rules make."""


@hookimpl
def tract_api_version() -> str:
    """The version of the plugin seam that this was written for."""
    return "1.0"


@hookimpl
def tract_commands() -> Mapping[str, str]:
    """What shows the object code that is kept."""
    return {"cache": "tract_llvm.cli.cache:command"}


@hookimpl
def tract_tables() -> Mapping[str, str]:
    """What compilers over LLVM ask about operators."""
    return {
        "elements": "tract_llvm.elements.expressions:ELEMENTS",
        "native_rules": "tract_llvm.native_form.table:RULES",
        "nests": "tract_llvm.fuse.nest:NESTS",
    }


def row_modules() -> Mapping[str, Sequence[str]]:
    """How elements of operators are computed, what those that reduce are made of, and which are rewritten before."""
    return {
        "elements": [f"tract_llvm.elements.{family}" for family in _FAMILIES],
        "native_rules": [f"tract_llvm.native_form.{family}" for family in _RULES],
        "nests": [f"tract_llvm.nests.{family}" for family in _NESTS],
        **{key: [f"tract_llvm.llvm_only.{family}" for family in _OWN] for key in ("reference", "cost", "axes")},
    }


@hookimpl
def tract_rows() -> Mapping[str, Mapping[str, Any]]:
    """The rows of `row_modules`, by the index beside this module."""
    return read_index(__file__)
