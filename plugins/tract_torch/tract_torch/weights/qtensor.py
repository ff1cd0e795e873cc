"""Tensors whose elements are kept as small integers and scales, and which PyTorch computes with as floats."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from math import prod
from pathlib import Path
from typing import Any, ClassVar, Final, Self, cast

import numpy as np
import torch
from torch.utils import _pytree as pytree
from tract_nnef.archive.tensors import tensor_file

from tract_core.data.blocks import Q4_0, Blocks
from tract_core.errors import InputError
from tract_core.saving import whole_file
from tract_torch.arguments import of_type
from tract_torch.tensors import array_of


class QScheme(ABC):
    """How floats become integers of 8 bits, and these floats again."""

    @abstractmethod
    def quantize_as_u8(self, fp_tensor: torch.Tensor) -> torch.Tensor:
        """The integers of a tensor, u8 of its shape. Raises InputError for numbers that it has no integers for."""

    @abstractmethod
    def dequantize(self, u8_tensor: torch.Tensor, target_dtype: torch.dtype) -> torch.Tensor:
        """The floats that integers stand for, in their shape."""

    @abstractmethod
    def to_device(self, device: torch.device | str) -> Self:
        """The same on another device."""

    def quantize_as_torch(self, fp_tensor: torch.Tensor) -> torch.Tensor:
        """The floats that are left of a tensor, in its own type."""
        return self.dequantize(self.quantize_as_u8(fp_tensor), fp_tensor.dtype)


class U8Compressor(ABC):
    """How integers of 8 bits are kept in less memory."""

    @abstractmethod
    def compress(self, u8_tensor: torch.Tensor) -> torch.Tensor:
        """Integers of any shape, in less memory."""

    @abstractmethod
    def decompress(self, u8_tensor: torch.Tensor) -> torch.Tensor:
        """The integers again, in one axis."""


class QScalePerGroupF16(QScheme):
    """A scale in f16 for each group of elements that follow one another; the integers are around half of the most.

    ``scale``: [groups, 1], as `qscale_per_group_f16_min_max_calibration` finds it. An integer c of n bits stands for
    ``(c - 2**n / 2) * scale``.
    """

    def __init__(self, group_size: int, scale: torch.Tensor, n_bits: int, percentile: float = 1) -> None:
        self.group_size, self.n_bits, self.percentile = group_size, n_bits, percentile
        self.scale = scale.to(torch.float16).reshape(-1, 1)

    def quantize_as_u8(self, fp_tensor: torch.Tensor) -> torch.Tensor:
        """The nearest integers; what is beyond the ends becomes the ends."""
        groups, scale = fp_tensor.detach().reshape(-1, self.group_size).float(), self.scale.float()
        if len(groups) != len(scale):
            raise InputError(
                f"the tensor has {len(groups)} groups of {self.group_size}, and there are {len(scale)} scales"
            )
        steps = torch.where(scale == 0, torch.zeros_like(groups), groups / scale)
        codes = torch.floor(steps + (2**self.n_bits + 1) / 2).clamp(0, 2**self.n_bits - 1)
        return codes.to(torch.uint8).reshape(fp_tensor.shape)

    def dequantize(self, u8_tensor: torch.Tensor, target_dtype: torch.dtype) -> torch.Tensor:
        """Computed in f32."""
        codes = u8_tensor.reshape(-1, self.group_size).float()
        return ((codes - 2**self.n_bits / 2) * self.scale.float()).to(target_dtype).reshape(u8_tensor.shape)

    def to_device(self, device: torch.device | str) -> Self:
        """The same, with the scales on another device."""
        return type(self)(self.group_size, self.scale.to(device), self.n_bits, self.percentile)


class HalvesOfGroups(U8Compressor):
    """Two integers of 4 bits to a byte: the first 16 of a group of 32 in the low bits, the others in the high ones."""

    def compress(self, u8_tensor: torch.Tensor) -> torch.Tensor:
        """[...] -> [groups, 16]"""
        groups = u8_tensor.reshape(-1, Q4_0.length)
        return groups[:, :16] | groups[:, 16:] << 4

    def decompress(self, u8_tensor: torch.Tensor) -> torch.Tensor:
        """[groups, 16] -> [elements]"""
        return torch.cat((u8_tensor & 15, u8_tensor >> 4), dim=1).reshape(-1)


class QTensor(torch.Tensor):
    """A tensor that is kept as integers and their scales, in ``u8_blob`` and ``qscheme``.

    It has the shape of the floats and the type ``dequant_to_dtype``; whatever PyTorch computes with it gets the floats.
    It needs no gradient, and cannot be changed. ``u8_compressors`` keep the integers in less memory, one after the
    other.
    """

    u8_blob: torch.Tensor
    qscheme: QScheme  # pyright: ignore[reportIncompatibleMethodOverride]: as torch_to_nnef calls it
    u8_compressors: tuple[U8Compressor, ...]

    def __new__(
        cls,
        fp_tensor: torch.Tensor,
        qscheme: QScheme,
        dequant_to_dtype: torch.dtype = torch.float32,
        u8_compressors: Sequence[U8Compressor] | None = None,
    ) -> Self:
        """Raises InputError for a tensor that the scheme does not take."""
        cls.check(fp_tensor)
        blob, compressors = qscheme.quantize_as_u8(fp_tensor), tuple(u8_compressors or ())
        for compressor in compressors:
            blob = compressor.compress(blob)
        return cls._made(blob, qscheme, fp_tensor.shape, dequant_to_dtype, compressors)

    @classmethod
    def check(cls, fp_tensor: torch.Tensor) -> None:
        """Raises InputError for a tensor that is not quantised so."""
        of_type(fp_tensor, torch.Tensor, "fp_tensor", "a tensor of floats")
        if not fp_tensor.is_floating_point():
            raise InputError(f"a tensor of {fp_tensor.dtype} is not quantised, wanted one of floats")

    @classmethod
    def _made(
        cls,
        blob: torch.Tensor,
        qscheme: QScheme,
        shape: Sequence[int],
        dtype: torch.dtype,
        compressors: tuple[U8Compressor, ...],
    ) -> Self:
        found = torch.Tensor._make_wrapper_subclass(cls, torch.Size(shape), dtype=dtype, device=blob.device)  # pyright: ignore[reportPrivateUsage]: the way to make one
        found.u8_blob, found.qscheme, found.u8_compressors = blob, qscheme, compressors
        return found

    def decompress_to_u8(self) -> torch.Tensor:
        """The integers, u8 of the shape of the floats."""
        found = self.u8_blob
        for compressor in reversed(self.u8_compressors):
            found = compressor.decompress(found)
        return found.reshape(self.shape)

    def decompress(self) -> torch.Tensor:
        """The floats."""
        return self.qscheme.dequantize(self.decompress_to_u8(), self.dtype)

    def converted(self, dtype: torch.dtype | None = None, device: torch.device | str | None = None) -> Self:
        """The same integers, which become floats of another type, or are on another device."""
        blob, scheme = self.u8_blob, self.qscheme
        if device is not None and torch.device(device) != blob.device:
            blob, scheme = blob.to(device), scheme.to_device(device)
        return self._made(blob, scheme, self.shape, dtype or self.dtype, self.u8_compressors)

    def offload_state(self) -> tuple[Mapping[str, torch.Tensor], Any]:
        """The integers, and all else."""
        rest = self.qscheme, tuple(self.shape), self.dtype, self.u8_compressors
        return {"u8_blob": self.u8_blob}, rest

    @classmethod
    def from_offload_state(cls, tensors: Mapping[str, torch.Tensor], rest: Any) -> Self:
        """One with these integers."""
        return cls._made(tensors["u8_blob"], *rest)

    def write_in_file(self, dirpath: str | os.PathLike[str], label: str, inference_target: Any = None) -> Path:
        """Write ``<label>.dat``, whole or not at all, and return its path.

        ``inference_target``: for schemes that targets read in different forms.
        """
        path = Path(dirpath) / f"{label}.dat"
        with whole_file(path) as file:
            for piece in tensor_file(self.stored()):
                file.write(piece if isinstance(piece, bytes) else piece.data)
        return path

    def stored(self) -> Any:
        """What an archive holds of it: an array of floats."""
        return array_of(self.decompress())

    @classmethod
    def __torch_dispatch__(
        cls, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        keep = _KEPT.get(func)
        if keep is not None and isinstance(args[0], QTensor):
            return keep(args[0], **(kwargs or {}))
        if func._schema.is_mutable and any(isinstance(one, QTensor) for one in _changed(func, args)):
            raise InputError(f"{func} would change a quantised tensor", hint="make another one of decompress()")
        floats = pytree.tree_map_only(QTensor, QTensor.decompress, (tuple(args), dict(kwargs or {})))
        return func(*floats[0], **floats[1])

    @property
    def data(self) -> Self:
        """Itself, without history."""
        return self.converted()

    @data.setter
    def data(self, value: Any) -> None:
        """Raises InputError, unless it is what is there already."""
        if not (isinstance(value, QTensor) and value.u8_blob is self.u8_blob and value.dtype is self.dtype):
            raise InputError("the elements of a quantised tensor cannot be set", hint="put another one in its place")

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        shape = ",".join(map(str, self.shape))
        return f"{type(self).__name__}([{shape}], {self.dtype}, {self.u8_blob.nbytes} bytes of integers)"

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        parts = self.u8_blob, self.qscheme, tuple(self.shape), self.dtype, self.u8_compressors
        return type(self)._made, parts


class QTensorTractScaleOnly(QTensor):
    """A tensor in the form Q4_0 of ggml: integers of 4 bits, and a scale in f16 for each 32 that follow one another."""

    _RANKS: ClassVar = range(2, 5)

    def __new__(
        cls,
        fp_tensor: torch.Tensor,
        qscheme: QScheme,
        dequant_to_dtype: torch.dtype = torch.float32,
        u8_compressors: Sequence[U8Compressor] | None = None,
    ) -> Self:
        """Raises InputError for a shape or a scheme that Q4_0 has not."""
        is_q4_0 = isinstance(qscheme, QScalePerGroupF16) and (qscheme.group_size, qscheme.n_bits) == (Q4_0.length, 4)
        if not is_q4_0 or u8_compressors:
            raise InputError("Q4_0 has 4 bits for each element, groups of 32, scales in f16, and one way to keep them")
        return super().__new__(cls, fp_tensor, qscheme, dequant_to_dtype, (HalvesOfGroups(),))

    @classmethod
    def check(cls, fp_tensor: torch.Tensor) -> None:
        """Raises InputError for a tensor that Q4_0 has no blocks for."""
        super().check(fp_tensor)
        shape = list(fp_tensor.shape)
        if len(shape) not in cls._RANKS:
            raise InputError(f"a tensor of shape {shape} cannot be Q4_0: it has {len(shape)} axes, wanted 2 to 4")
        columns = prod(shape[1:])
        if columns % Q4_0.length or not fp_tensor.numel():
            raise InputError(
                f"a tensor of shape {shape} cannot be Q4_0: its rows have {columns} elements, wanted a multiple of "
                f"{Q4_0.length}, in which each group has its scale"
            )

    def stored(self) -> Blocks:
        """What an archive holds of it: blocks."""
        scale = cast("QScalePerGroupF16", self.qscheme).scale
        parts = scale.cpu().numpy().view(np.uint8), self.u8_blob.cpu().numpy()
        content = np.concatenate(parts, axis=1).reshape(-1)
        return Blocks(Q4_0, tuple(self.shape), content)


def _changed(func: Any, args: Sequence[Any]) -> list[Any]:
    """The arguments that an operator writes to."""
    schema = func._schema.arguments
    return [value for one, value in zip(schema, args, strict=False) if one.alias_info and one.alias_info.is_write]


def _copied(tensor: QTensor, dtype: Any = None, device: Any = None, **_: Any) -> QTensor:
    return tensor.converted(dtype, device)


_KEPT: Final[Mapping[Any, Callable[..., Any]]] = {
    torch.ops.aten.detach.default: _copied,
    torch.ops.aten.alias.default: _copied,
    torch.ops.aten.clone.default: _copied,
    torch.ops.aten._to_copy.default: _copied,
}
"""Operators whose result is quantised as well."""
