"""torchvision, imported so that it works with every build of PyTorch."""

from __future__ import annotations

import torch

# torchvision's wheel from PyPI has its C library built for the CUDA build of PyTorch. Beside the CPU build it is not
# loaded, and the import fails with "operator torchvision::nms does not exist", as the package gives that operator a
# shape function. What the networks here compute needs none of the C library, so that names alone are enough.
LIBRARY = torch.library.Library("torchvision", "FRAGMENT")
try:
    import torchvision
except RuntimeError:
    for name in ("nms", "qnms"):
        LIBRARY.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    import torchvision

__all__ = ["torchvision"]
