"""Which runtimes for GPUs these tests compute with, where there is no GPU."""

from __future__ import annotations

from importlib.util import find_spec

METAL = 'metal(device="cpu")'
"""MLX's CPU build."""

CUDA = "cuda"
"""On the virtual GPU, with the fixture ``virtual_gpu``."""

ON_GPUS = [CUDA, *([METAL] if find_spec("mlx") else [])]
"""Those that are there."""
