"""The public names of `tract_core.api.specs`."""

from tract_core.api.specs import FloatPrecision, Pulse, SetSymbols, TransformSpec

__all__ = ["FloatPrecision", "Pulse", "SetSymbols", "TransformSpec"]
