"""Weights that lie in files, and are read when they are used: tensors, and modules that are loaded so."""

from __future__ import annotations

import os
import tempfile
import uuid
import weakref
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Protocol, Self, cast, runtime_checkable

import torch
from torch.utils.serialization import config
from tract_nnef.syntax.names import plain_label

from tract_core.errors import InputError
from tract_torch.arguments import of_type
from tract_torch.weights.disk import iter_torch_tensors_from_disk, weight_files
from tract_torch.weights.updater import ModTensorUpdater

AUTO: Final = "t2n_auto"
OFFLOAD: Final = "t2n_offload_disk"
"""What ``device_map`` may be, besides a device: where weights stay in files."""


class OffloadedTensor(torch.Tensor):
    """A tensor whose elements are in a file of its own, which is mapped into memory and removed with the tensor.

    PyTorch computes with it as with any other: pages of the file are read when they are used, and may be forgotten
    again. Results are ordinary tensors.
    """

    label: str
    """What it is called."""
    path: Path
    """The file that it is in."""
    origin: torch.Tensor
    """What removes the file, once nobody has it."""

    @classmethod
    def from_original_tensor(
        cls, tensor: torch.Tensor, name: str, offload_dir: str | os.PathLike[str] | None = None
    ) -> Self:
        """Write a tensor to ``<name>_<type>_<number>.bin`` in a folder, that for temporary files by default.

        Raises InputError for a tensor that has no values, or not one for each place, and where the file cannot be
        written.
        """
        of_type(tensor, torch.Tensor, "tensor", "a tensor")
        if tensor.is_meta or tensor.layout is not torch.strided:
            raise InputError(
                f"{name!r} is on {tensor.device}, in the layout {tensor.layout}: it has no values to write"
            )
        kind = str(tensor.dtype).removeprefix("torch.")
        path = Path(offload_dir or tempfile.gettempdir()) / f"{plain_label(str(name))}_{kind}_{uuid.uuid4().hex}.bin"
        try:
            with path.open("xb") as file:
                file.write(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data)
            return cls._mapped(path, name, tensor)
        except OSError as error:
            path.unlink(missing_ok=True)
            raise InputError(f"it cannot be written: {error.strerror}", where=str(path)) from None

    @classmethod
    def _mapped(cls, path: Path, name: str, like: torch.Tensor) -> Self:
        flat = torch.from_file(str(path), shared=True, size=like.numel(), dtype=like.dtype) if like.numel() else like
        found = flat.reshape(like.shape).as_subclass(cls)
        found.label, found.path = name, path
        weakref.finalize(found, path.unlink, missing_ok=True)
        return found

    def reload(self, device: torch.device | str | None = None) -> torch.Tensor:
        """An ordinary tensor of the same elements, read into memory."""
        plain = self.plain()
        return plain.clone() if device is None else plain.to(device, copy=True)

    def plain(self) -> torch.Tensor:
        """An ordinary tensor on the memory of the file, which has to be there as long as that is used."""
        return self.detach().as_subclass(torch.Tensor)

    def update_values(self, values: torch.Tensor, strict_shape: bool = True, strict_dtype: bool = True) -> None:
        """Write other elements to the file. Raises InputError where they have another shape or type.

        ``strict_shape``: False takes as many elements in any shape. ``strict_dtype``: False converts them.
        """
        as_wanted = values.shape == self.shape or (not strict_shape and values.numel() == self.numel())
        if not as_wanted:
            raise InputError(
                f"{self.label!r} has the shape {list(self.shape)}, the new values have {list(values.shape)}"
            )
        if strict_dtype and values.dtype is not self.dtype:
            raise InputError(f"{self.label!r} is of {self.dtype}, the new values are of {values.dtype}")
        with torch.no_grad():
            self.plain().copy_(values.detach().reshape(self.shape))

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Ordinary tensors come out, but for views that a parameter is made of."""
        found: Any = torch._C._disabled_torch_function_impl(func, types, args, dict(kwargs or {}))  # pyright: ignore[reportPrivateUsage]: as PyTorch tells to do
        if func is torch.Tensor.detach:
            found = found.as_subclass(cls)
            found.label, found.path, found.origin = args[0].label, args[0].path, args[0]
        return found


@runtime_checkable
class SupportsOffloadState(Protocol):
    """A kind of tensor that is made of others, as `QTensor`: `offload_tensor` puts these into files."""

    def offload_state(self) -> tuple[Mapping[str, torch.Tensor], Any]:
        """The plain tensors that it is made of, by names of their own, and what else it takes to make it again."""
        ...

    @classmethod
    def from_offload_state(cls, tensors: Mapping[str, torch.Tensor], rest: Any) -> Self:
        """One of these tensors and the rest."""
        ...


def offload_tensor(tensor: torch.Tensor, name: str, offload_dir: str | os.PathLike[str] | None = None) -> torch.Tensor:
    """The same tensor with its elements in a file, as `OffloadedTensor.from_original_tensor`; quantised ones stay so.

    One that `SupportsOffloadState` is made again, of parts in files. Raises InputError as there.
    """
    if not isinstance(tensor, SupportsOffloadState):
        return OffloadedTensor.from_original_tensor(tensor, name, offload_dir)
    parts, rest = tensor.offload_state()
    held = {key: offload_tensor(part, f"{name}.{key}", offload_dir) for key, part in parts.items()}
    return type(tensor).from_offload_state(held, rest)


@contextmanager
def ctx_maybe_load_from_disk_as_offloaded(device_map: Any = "t2n_auto") -> Generator[None]:
    """Inside, `torch.load` maps files in the place of reading them, where ``device_map`` leaves weights in files.

    That is with ``t2n_auto`` and ``t2n_offload_disk``; anything else changes nothing. So ``load_state_dict(torch.load(
    path), assign=True)`` takes no memory; the files have to stay as they are. It counts for the whole process.
    """
    if device_map not in (AUTO, OFFLOAD):
        yield
        return
    with cast("Any", config).patch("load.mmap", True):  # which PyTorch adds when it is imported
        yield


@contextmanager
def init_empty_weights() -> Generator[None]:
    """Modules that are made inside have their parameters on the device ``meta``, which takes no memory."""
    with torch.device("meta"):
        yield


def t2n_load_checkpoint_and_dispatch(
    model: torch.nn.Module,
    checkpoint: str | os.PathLike[str],
    device_map: Any = "t2n_auto",
    offload_dir: str | os.PathLike[str] | None = None,
    strict: bool = False,
) -> torch.nn.Module:
    """Give a module, as one of `init_empty_weights`, the weights of a file, or of those in a folder, and return it.

    ``checkpoint``: as `weight_files` takes it. ``device_map``: ``t2n_auto`` leaves weights mapped from these files,
    which have to stay as they are; ``t2n_offload_disk`` copies each to a file of its own in ``offload_dir``; a device,
    as ``cpu``, reads them. ``strict``: whether the names have to be those of the module. Who shares a tensor in the
    module shares the new one. Raises InputError where the names are others, and for tensors of other shapes.
    """
    updater = ModTensorUpdater(model, add_buffers=True)
    names, found = set(model.state_dict()), set[str]()
    for file in weight_files(Path(checkpoint)):
        for name, tensor in iter_torch_tensors_from_disk(file):
            if name in names:
                _check_shape(name, updater.get_by_name(name), tensor, file)
                new = _placed(tensor, name, device_map, offload_dir)
                updater.update_by_name(name, new, enforce_tensor_consistency=False)
            elif strict:
                raise InputError(f"the module holds no tensor {name!r}", where=str(file))
            found.add(name)
    state = model.state_dict()
    missing = [name for name, one in state.items() if one.is_meta or (strict and name not in found)]
    if missing:
        listed = ", ".join(missing[:5]) + (f" and {len(missing) - 5} more" if len(missing) > 5 else "")
        raise InputError(f"there are no weights for {listed}", where=str(checkpoint))
    return model


def _check_shape(name: str, old: torch.Tensor, new: torch.Tensor, file: Path) -> None:
    if old.shape != new.shape:
        was, now = list(old.shape), list(new.shape)
        raise InputError(f"{name!r} has the shape {was} in the module, and {now} in the file", where=str(file))


def _placed(tensor: torch.Tensor, name: str, device: Any, folder: str | os.PathLike[str] | None) -> torch.Tensor:
    if device == AUTO:
        return tensor
    if device == OFFLOAD:
        return offload_tensor(tensor, name, folder)
    try:
        return tensor.to(device, copy=True)
    except (RuntimeError, TypeError) as error:
        hint = f"it is {AUTO}, {OFFLOAD}, or a device, as cpu"
        raise InputError(f"device_map is {device!r}: {str(error).partition(chr(10))[0]}", hint=hint) from None
