"""Element types and tensors of PyTorch, as those of the core. Memory is shared: nothing is copied without need."""

from __future__ import annotations

from typing import Any, Final

import ml_dtypes
import numpy as np
import torch

from tract_core.data import DatumType
from tract_core.errors import Unsupported

TYPES: Final[dict[torch.dtype, DatumType]] = {
    torch.bool: DatumType.BOOL,
    torch.uint8: DatumType.U8,
    torch.int8: DatumType.I8,
    torch.int16: DatumType.I16,
    torch.int32: DatumType.I32,
    torch.int64: DatumType.I64,
    torch.float16: DatumType.F16,
    torch.bfloat16: DatumType.BF16,
    torch.float32: DatumType.F32,
    torch.float64: DatumType.F64,
}


def datum_type(dtype: torch.dtype) -> DatumType:
    """The element type. Raises Unsupported for one that the core does not compute with."""
    found = TYPES.get(dtype)
    if found is None:
        raise Unsupported(f"tensors of {dtype} are not supported; supported are {', '.join(map(str, TYPES))}")
    return found


def array_of(tensor: torch.Tensor) -> np.ndarray[Any, Any]:
    """The elements of a tensor, on its own memory where that is contiguous and on the CPU."""
    held = tensor.detach().cpu().contiguous()
    if held.dtype is torch.bfloat16:
        return held.view(torch.int16).numpy().view(ml_dtypes.bfloat16)
    return held.numpy()
