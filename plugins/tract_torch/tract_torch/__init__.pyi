"""The public names, and where they are from."""

from tract_torch.loading import load as load
from tract_torch.tensor_export import export_tensors_from_disk_to_nnef as export_tensors_from_disk_to_nnef
from tract_torch.tensor_export import export_tensors_to_nnef as export_tensors_to_nnef
from tract_torch.tensor_export import iter_torch_tensors_from_disk as iter_torch_tensors_from_disk
from tract_torch.tensor_export import torch_safe_load as torch_safe_load
from tract_torch.weights.patch import patch_archive as patch_archive
from tract_torch.weights.updater import ModTensorUpdater as ModTensorUpdater
