"""The public API of `tract_core` under the name of the established binding."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import tract_core
from tract_core.version import version

if TYPE_CHECKING:
    from tract_core import (
        DatumType,
        Dim,
        Fact,
        FloatPrecision,
        FrozenState,
        InferenceFact,
        InferenceModel,
        Model,
        Nnef,
        Onnx,
        Pulse,
        Runnable,
        Runtime,
        SetSymbols,
        State,
        Tensor,
        TractError,
        TransformSpec,
        load,
        nnef,
        onnx,
        runtime_for_name,
    )

__all__ = [
    "DatumType",
    "Dim",
    "Fact",
    "FloatPrecision",
    "FrozenState",
    "InferenceFact",
    "InferenceModel",
    "Model",
    "Nnef",
    "Onnx",
    "Pulse",
    "Runnable",
    "Runtime",
    "SetSymbols",
    "State",
    "Tensor",
    "TractError",
    "TransformSpec",
    "load",
    "nnef",
    "onnx",
    "runtime_for_name",
    "version",
]


_MODULES = ("errors", "limits")


def __getattr__(name: str) -> Any:
    """A public name, imported when it is first asked for."""
    if name not in (*__all__, *_MODULES, "__version__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(tract_core, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """The public names: what there is to complete."""
    return sorted([*__all__, *_MODULES])
