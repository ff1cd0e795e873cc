"""The names of `tract_core.inference_model`."""

from tract_core.inference_model import InferenceModel

__all__ = ["InferenceModel"]
