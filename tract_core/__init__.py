"""The core of tract: load a model, simplify it, transform it, run it.

Names are imported when they are first used, so that ``import tract_core`` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from tract_core.version import version

if TYPE_CHECKING:
    from tract_core import errors as errors
    from tract_core import limits as limits
    from tract_core.api.dim import Dim
    from tract_core.api.fact import Fact, InferenceFact
    from tract_core.api.frontends import Nnef, Onnx, load, nnef, onnx
    from tract_core.api.inference_model import InferenceModel
    from tract_core.api.model import Model
    from tract_core.api.runnable import Runnable
    from tract_core.api.runtime import Runtime, runtime_for_name
    from tract_core.api.specs import FloatPrecision, Pulse, SetSymbols, TransformSpec
    from tract_core.api.state import FrozenState, State
    from tract_core.api.tensor import Tensor
    from tract_core.data import DatumType
    from tract_core.errors import TractError

_HOME = {
    "Dim": "tract_core.api.dim",
    "Fact": "tract_core.api.fact",
    "InferenceFact": "tract_core.api.fact",
    "Nnef": "tract_core.api.frontends",
    "Onnx": "tract_core.api.frontends",
    "load": "tract_core.api.frontends",
    "nnef": "tract_core.api.frontends",
    "onnx": "tract_core.api.frontends",
    "InferenceModel": "tract_core.api.inference_model",
    "Model": "tract_core.api.model",
    "Runnable": "tract_core.api.runnable",
    "Runtime": "tract_core.api.runtime",
    "runtime_for_name": "tract_core.api.runtime",
    "FloatPrecision": "tract_core.api.specs",
    "Pulse": "tract_core.api.specs",
    "SetSymbols": "tract_core.api.specs",
    "TransformSpec": "tract_core.api.specs",
    "FrozenState": "tract_core.api.state",
    "State": "tract_core.api.state",
    "Tensor": "tract_core.api.tensor",
    "DatumType": "tract_core.data",
    "TractError": "tract_core.errors",
}

_MODULES = ("errors", "limits")
"""What else users need now and then: the kinds of errors, and what files may ask for."""

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


def __getattr__(name: str) -> Any:
    """Import a public name when it is first asked for."""
    if name == "__version__":
        return version()
    if name in _MODULES:
        return import_module(f"{__name__}.{name}")
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """The public names: what there is to complete."""
    return sorted([*__all__, *_MODULES])
