"""The names of `tract_core.transform`."""

from tract_core.transform import FloatPrecision, Pulse, SetSymbols, TransformSpec

__all__ = ["FloatPrecision", "Pulse", "SetSymbols", "TransformSpec"]
