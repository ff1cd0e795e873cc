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
    torch.complex64: DatumType.COMPLEX_F32,
    torch.complex128: DatumType.COMPLEX_F64,
}

_BITS: Final[dict[torch.dtype, tuple[torch.dtype, Any]]] = {
    torch.bfloat16: (torch.int16, ml_dtypes.bfloat16),
    torch.float8_e4m3fn: (torch.uint8, ml_dtypes.float8_e4m3fn),
    torch.float8_e4m3fnuz: (torch.uint8, ml_dtypes.float8_e4m3fnuz),
    torch.float8_e5m2: (torch.uint8, ml_dtypes.float8_e5m2),
    torch.float8_e5m2fnuz: (torch.uint8, ml_dtypes.float8_e5m2fnuz),
}
"""Types that NumPy has from ml_dtypes, and those as which their bits are handed over."""


def datum_type(dtype: torch.dtype) -> DatumType:
    """The element type. Raises Unsupported for one that the core does not compute with."""
    found = TYPES.get(dtype)
    if found is None:
        listed = ", ".join(map(str, TYPES))
        raise Unsupported(f"tensors of {dtype} are not supported", hint=f"convert it to one of {listed}")
    return found


def torch_type(kind: DatumType) -> torch.dtype:
    """The element type as PyTorch has it. Raises Unsupported for one that it does not have."""
    found = next((theirs for theirs, ours in TYPES.items() if ours is kind), None)
    if found is None:
        raise Unsupported(f"PyTorch has no tensors of {kind.short}")
    return found


def array_of(tensor: torch.Tensor) -> np.ndarray[Any, Any]:
    """The elements of a tensor, on its own memory where that is contiguous and on the CPU."""
    held = tensor.detach().cpu().resolve_conj().resolve_neg().contiguous()
    bits = _BITS.get(held.dtype)
    return held.numpy() if bits is None else held.view(bits[0]).numpy().view(bits[1])


def tensor_of(array: np.ndarray[Any, Any]) -> torch.Tensor:
    """A tensor with a copy of an array's elements. Raises Unsupported for a type that PyTorch does not have."""
    kind = torch_type(DatumType.from_numpy(array.dtype))
    held = np.array(array, order="C")
    bits = _BITS.get(kind)
    if bits is None:
        return torch.from_numpy(held)
    return torch.from_numpy(held.view(np.dtype(f"i{held.itemsize}"))).view(kind)
