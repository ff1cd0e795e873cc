"""What archives are written for: the tract engines, or whoever reads the standard."""

from tract_torch.inference_target.base import InferenceTarget as InferenceTarget
from tract_torch.inference_target.khronos import KhronosNNEF as KhronosNNEF
from tract_torch.inference_target.tract import TractFeatureFlag as TractFeatureFlag
from tract_torch.inference_target.tract import TractNNEF as TractNNEF
