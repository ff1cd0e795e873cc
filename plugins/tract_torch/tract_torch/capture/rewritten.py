"""Functions of PyTorch that fix the sizes that they meet when they are exported, in terms of those that do not.

What is exported calls the others: the module, and PyTorch, stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, cast

import numpy as np
import torch
from torch.nn import functional as F  # noqa: N812 - as everybody calls it
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree

from tract_torch.capture import whole
from tract_torch.capture.keeping import KEPT


class Rewritten(TorchFunctionMode):
    """Inside of it, functions that fix sizes are called as others that do the same."""

    def __torch_function__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """The result of the function, or of what stands for it."""
        return _OTHERS.get(func, func)(*args, **(kwargs or {}))


def _max_pool1d(*args: Any, **kwargs: Any) -> Any:
    """`torch.max_pool1d`, or the function of that name for networks, as a pool of images of one row."""
    names = ("input", "kernel_size", "stride", "padding", "dilation", "ceil_mode", "return_indices")
    given = dict(zip(names, args, strict=False)) | kwargs
    if given.pop("return_indices", False):
        return F.max_pool1d_with_indices(**given)
    kernel, stride = (_one(given.get(name)) for name in ("kernel_size", "stride"))
    pads, apart = (_one(given.get(name, default)) for name, default in (("padding", 0), ("dilation", 1)))
    strides = kernel if stride is None else stride
    sizes = {"kernel_size": (1, kernel), "stride": (1, strides), "padding": (0, pads), "dilation": (1, apart)}
    return torch.max_pool2d(given["input"].unsqueeze(-2), **sizes, ceil_mode=given.get("ceil_mode", False)).squeeze(-2)


def _one(given: Any) -> Any:
    """A number, also from a list of one; None from an empty list, or from None."""
    if not isinstance(given, (list, tuple)):
        return given
    return given[0] if given else None


def _conv_tbc(
    input: torch.Tensor,  # noqa: A002 - as PyTorch calls it
    weight: torch.Tensor,
    bias: torch.Tensor,
    pad: int = 0,
) -> torch.Tensor:
    """`torch.conv_tbc`, of data (time, batch, channels) and a kernel (time, channels, outputs)."""
    found = torch.conv1d(input.permute(1, 2, 0), weight.permute(2, 1, 0), bias, padding=pad)
    return found.permute(2, 0, 1)


def _affine_grid(theta: torch.Tensor, size: Sequence[int], align_corners: bool | None = None) -> torch.Tensor:
    """`torch.nn.functional.affine_grid`."""
    return whole.affine_grid_generator(theta, list(size), bool(align_corners))


_STFT: Final = ("input", "n_fft", "hop_length", "win_length", "window", "center")


def _stft(*args: Any, **kwargs: Any) -> torch.Tensor:
    """`torch.stft`, what is around the signal being added before."""
    names = (*_STFT, "pad_mode", "normalized", "onesided", "return_complex", "align_to_window")
    given = dict(zip(names, args, strict=False)) | kwargs
    signal, n_fft = given["input"], given["n_fft"]
    if given.get("center", True):
        shape = [1] * (3 - signal.dim()) + list(signal.shape)
        around = [n_fft // 2] * 2
        signal = F.pad(signal.view(shape), around, given.get("pad_mode", "reflect")).view(*signal.shape[:-1], -1)
    onesided = given.get("onesided")
    found = whole.stft(
        signal,
        n_fft,
        given.get("hop_length") or n_fft // 4,
        _window(given),
        normalized=bool(given.get("normalized")),
        onesided=not _is_complex(given) if onesided is None else onesided,
    )
    return torch.view_as_real(found) if given.get("return_complex") is False else found


def _istft(*args: Any, **kwargs: Any) -> torch.Tensor:
    """`torch.istft`; as it is where the signal is complex."""
    names = (*_STFT, "normalized", "onesided", "length", "return_complex")
    given = dict(zip(names, args, strict=False)) | kwargs
    if given.get("return_complex"):
        return torch.istft(**given)
    n_fft, onesided = given["n_fft"], given.get("onesided")
    return whole.istft(
        given["input"],
        n_fft,
        given.get("hop_length") or n_fft // 4,
        _window(given),
        center=given.get("center", True),
        normalized=bool(given.get("normalized")),
        onesided=given["input"].shape[-2] != n_fft if onesided is None else onesided,
        length=given.get("length"),
    )


def _is_complex(given: Mapping[str, Any]) -> bool:
    return any(given[name].dtype.is_complex for name in ("input", "window") if given.get(name) is not None)


def _window(given: Mapping[str, Any]) -> torch.Tensor | None:
    """The window; where none is given and it is to be shorter than a frame, one of ones."""
    window, length = given.get("window"), given.get("win_length")
    if window is not None or length in (None, given["n_fft"]):
        return window
    x = given["input"]
    return torch.ones(length, dtype=x.dtype.to_real() if x.dtype.is_complex else x.dtype)


def _fake_quantize(
    input: torch.Tensor,  # noqa: A002 - as PyTorch calls it
    scale: float | torch.Tensor,
    zero_point: int | torch.Tensor,
    quant_min: int,
    quant_max: int,
) -> torch.Tensor:
    """`torch.fake_quantize_per_tensor_affine`, which has no shapes to export with; its steps are in f32."""
    scale = scale if isinstance(scale, torch.Tensor) else float(np.float32(scale))
    inverse = scale.reciprocal() if isinstance(scale, torch.Tensor) else float(np.float32(1) / np.float32(scale))
    steps = torch.clamp(torch.round(input * inverse) + zero_point, quant_min, quant_max)
    return ((steps - zero_point) * scale).to(input.dtype)


def _fake_quantize_channels(  # noqa: PLR0917 - as PyTorch has it
    input: torch.Tensor,  # noqa: A002 - as PyTorch calls it
    scale: torch.Tensor,
    zero_point: torch.Tensor,
    axis: int,
    quant_min: int,
    quant_max: int,
) -> torch.Tensor:
    """`torch.fake_quantize_per_channel_affine`."""
    along = [-1 if place == axis else 1 for place in range(input.dim())]
    return _fake_quantize(input, scale.view(along), zero_point.view(along), quant_min, quant_max)


def _is_dynamic(*numbers: Any) -> bool:
    """Whether one of these is a size that may be another one, or is computed from such."""
    return any(isinstance(number, (torch.SymInt, torch.SymFloat)) for number in numbers)


def _linspace(*args: Any, **kwargs: Any) -> torch.Tensor:
    """`torch.linspace`, each half counted from its end; as it is where all is known, and for narrow numbers."""
    given: dict[str, Any] = dict(zip(("start", "end", "steps"), args, strict=False)) | kwargs
    kind = given.get("dtype") or torch.get_default_dtype()
    if not _is_dynamic(*given.values()) or kind not in {torch.float32, torch.float64} or given.get("out") is not None:
        return torch.linspace(*args, **kwargs)
    start, end, count = (given.pop(name) for name in ("start", "end", "steps"))
    like: dict[str, Any] = {**given, "dtype": kind}
    place = torch.arange(count, **like)
    step = (end - start) / torch.sym_max(count - 1, 1)
    half = torch.sym_max(count // 2, 1)  # one step is the start
    return torch.where(place < half, start + place * step, end - (count - 1 - place) * step)


def _tensor(data: Any, dtype: torch.dtype | None = None, device: Any = None) -> torch.Tensor:
    """`torch.as_tensor`, which would take sizes for those of the example; as it is where there are none."""
    numbers = pytree.tree_leaves(data)
    if not _is_dynamic(*numbers):
        return torch.as_tensor(data, dtype=dtype, device=device)
    is_whole = not any(isinstance(number, (float, torch.SymFloat)) for number in numbers)
    kind = dtype or (torch.int64 if is_whole else torch.get_default_dtype())
    if isinstance(data, (list, tuple)):
        return torch.stack([_tensor(one, kind, device) for one in cast("Sequence[Any]", data)])
    return torch.scalar_tensor(data, dtype=kind, device=device)


def _new_tensor(self: torch.Tensor, data: Any, dtype: torch.dtype | None = None, device: Any = None) -> torch.Tensor:
    """`torch.Tensor.new_tensor`, likewise."""
    if not _is_dynamic(*pytree.tree_leaves(data)):
        return self.new_tensor(data, dtype=dtype, device=device)
    return _tensor(data, dtype or self.dtype, device or self.device)


def _one_hot(input: torch.Tensor, num_classes: int = -1) -> torch.Tensor:  # noqa: A002 - as PyTorch calls it
    """`torch.nn.functional.one_hot`; as it is for a number of classes that is known."""
    if not _is_dynamic(num_classes):
        return F.one_hot(input, num_classes)
    return (input.unsqueeze(-1) == torch.arange(num_classes, device=input.device)).long()


def _attention(query: torch.Tensor, *args: Any, scale: Any = None, **kwargs: Any) -> torch.Tensor:
    """`torch.nn.functional.scaled_dot_product_attention`, by a factor that is computed from sizes too."""
    if _is_dynamic(scale):
        query, scale = query * scale, 1.0
    return F.scaled_dot_product_attention(query, *args, scale=scale, **kwargs)


def _cov(
    input: torch.Tensor,  # noqa: A002
    *,
    correction: int = 1,
    fweights: torch.Tensor | None = None,
    aweights: torch.Tensor | None = None,
) -> torch.Tensor:
    """`torch.cov`, which looks at its weights when it is exported."""
    x = input if input.dtype.is_floating_point or input.dtype.is_complex else input.to(torch.get_default_dtype())
    x = x.reshape(1, -1) if x.dim() < 2 else x
    given = [one for one in (fweights, aweights) if one is not None]
    if not given:
        centred, share = x - x.mean(1, keepdim=True), torch.sym_max(x.shape[1] - correction, 0)
        return (centred @ centred.mH / share).squeeze()
    weights = torch.stack([one.to(x.dtype) for one in given]).prod(0)
    total = weights.sum()
    centred = x - (x * weights).sum(1, keepdim=True) / total
    counted = total if aweights is None else (weights * aweights).sum() / total
    share = total - correction * (counted if aweights is not None else 1)
    return (centred * weights @ centred.mH / share.clamp_min(0)).squeeze()


def _corrcoef(input: torch.Tensor) -> torch.Tensor:  # noqa: A002
    """`torch.corrcoef`."""
    found = _cov(input)
    if found.dim() == 0:
        return found / found
    deviation = found.diagonal().sqrt()
    found = found / deviation[:, None] / deviation[None, :]
    return found if found.dtype.is_complex else found.clamp(-1, 1)


_OTHERS: Final[Mapping[Any, Callable[..., Any]]] = {
    torch.as_tensor: _tensor,
    torch.Tensor.new_tensor: _new_tensor,
    torch.istft: _istft,
    torch.Tensor.istft: _istft,
    torch.stft: _stft,
    torch.Tensor.stft: _stft,
    torch.linspace: _linspace,
    F.one_hot: _one_hot,
    F.scaled_dot_product_attention: _attention,
    torch.affine_grid_generator: whole.affine_grid_generator,
    F.affine_grid: _affine_grid,
    F.max_pool1d: _max_pool1d,
    torch.max_pool1d: _max_pool1d,
    torch.conv_tbc: _conv_tbc,
    torch.cov: _cov,
    torch.Tensor.cov: _cov,
    torch.corrcoef: _corrcoef,
    torch.Tensor.corrcoef: _corrcoef,
    torch.fake_quantize_per_tensor_affine: _fake_quantize,
    torch.fake_quantize_per_channel_affine: _fake_quantize_channels,
    **KEPT,
}
