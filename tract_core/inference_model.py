"""The public name of `tract_core.api.inference_model`."""

from tract_core.api.inference_model import InferenceModel

__all__ = ["InferenceModel"]
