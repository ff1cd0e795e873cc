"""The public names, and where they are from."""

from tract_torch.check.in_process import check_io as check_io
from tract_torch.errors import CheckError as CheckError
from tract_torch.established.download import TractBinaryDownloader as TractBinaryDownloader
from tract_torch.established.semantic_version import SemanticVersion as SemanticVersion
from tract_torch.established.tract_cli import TractCli as TractCli
from tract_torch.export import export_model_to_nnef as export_model_to_nnef
from tract_torch.inference_target.base import InferenceTarget as InferenceTarget
from tract_torch.inference_target.khronos import KhronosNNEF as KhronosNNEF
from tract_torch.inference_target.tract import TractFeatureFlag as TractFeatureFlag
from tract_torch.inference_target.tract import TractNNEF as TractNNEF
from tract_torch.loading import load as load
from tract_torch.naming import VariableNamingScheme as VariableNamingScheme
from tract_torch.report import CheckReport as CheckReport
from tract_torch.tensor_export import export_tensors_from_disk_to_nnef as export_tensors_from_disk_to_nnef
from tract_torch.tensor_export import export_tensors_to_nnef as export_tensors_to_nnef
from tract_torch.tensor_export import iter_torch_tensors_from_disk as iter_torch_tensors_from_disk
from tract_torch.tensor_export import torch_safe_load as torch_safe_load
from tract_torch.tolerance import TractCheckTolerance as TractCheckTolerance
from tract_torch.version import VERSION as VERSION
from tract_torch.version import __version__ as __version__
from tract_torch.weights.compress import DEFAULT_COMPRESSION as DEFAULT_COMPRESSION
from tract_torch.weights.compress import dynamic_load_registry as dynamic_load_registry
from tract_torch.weights.compress import (
    fp_to_tract_q4_0_with_min_max_calibration as fp_to_tract_q4_0_with_min_max_calibration,
)
from tract_torch.weights.compress import (
    qscale_per_group_f16_min_max_calibration as qscale_per_group_f16_min_max_calibration,
)
from tract_torch.weights.offload import OffloadedTensor as OffloadedTensor
from tract_torch.weights.offload import SupportsOffloadState as SupportsOffloadState
from tract_torch.weights.offload import (
    ctx_maybe_load_from_disk_as_offloaded as ctx_maybe_load_from_disk_as_offloaded,
)
from tract_torch.weights.offload import init_empty_weights as init_empty_weights
from tract_torch.weights.offload import offload_tensor as offload_tensor
from tract_torch.weights.offload import t2n_load_checkpoint_and_dispatch as t2n_load_checkpoint_and_dispatch
from tract_torch.weights.patch import patch_archive as patch_archive
from tract_torch.weights.qtensor import QScalePerGroupF16 as QScalePerGroupF16
from tract_torch.weights.qtensor import QScheme as QScheme
from tract_torch.weights.qtensor import QTensor as QTensor
from tract_torch.weights.qtensor import QTensorTractScaleOnly as QTensorTractScaleOnly
from tract_torch.weights.qtensor import U8Compressor as U8Compressor
from tract_torch.weights.residency import ResidencyStrategy as ResidencyStrategy
from tract_torch.weights.residency import TensorResidencyPool as TensorResidencyPool
from tract_torch.weights.updater import ModTensorUpdater as ModTensorUpdater
