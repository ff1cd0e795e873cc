"""Put other tensors in the place of those that a module holds, by name; who shares one gets the new one too."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch

from tract_core.errors import InputError, meant
from tract_torch.arguments import module_of, of_type


class _Place(NamedTuple):
    """Where a module holds a tensor. ``kind``: ``parameter``, ``buffer``, or ``attribute`` for what is neither."""

    module: torch.nn.Module
    attribute: str
    kind: str

    def get(self) -> torch.Tensor | None:
        return getattr(self.module, self.attribute)


class ModTensorUpdater:
    """The tensors of a module by name, to be replaced in place.

    ``add_parameter_if_unset``: a tensor that takes the place of a parameter, or of one that is None, becomes a
    parameter itself; False demands that it is one. ``add_buffers``, ``add_unregistred_tensor``: buffers, and tensors
    that are plain attributes, have names here too. ``disable_requires_grad``: no parameter requires gradients until
    `restore_require_grad`.
    """

    def __init__(
        self,
        model: torch.nn.Module,
        add_parameter_if_unset: bool = True,
        add_buffers: bool = False,
        add_unregistred_tensor: bool = False,
        disable_requires_grad: bool = False,
    ) -> None:
        module_of(model)
        self._wraps = add_parameter_if_unset
        self._disables = disable_requires_grad
        self._places = dict(_places(model, add_buffers, add_unregistred_tensor))
        self._requires_grad = {
            name: tensor.requires_grad
            for name, place in self._places.items()
            if place.kind == "parameter" and (tensor := place.get()) is not None
        }
        if disable_requires_grad:
            self._set_requires_grad(dict.fromkeys(self._requires_grad, False))

    @property
    def available_names(self) -> list[str]:
        """The names of all tensors, in the order of the module; those of one that is shared are all there."""
        return [name for name, place in self._places.items() if place.get() is not None]

    def get_by_name(self, name: str) -> torch.Tensor:
        """The tensor of that name. Raises InputError where there is none."""
        found = self._place(name).get()
        if found is None:
            raise InputError(f"{name!r} is None, and no tensor")
        return found

    def update_by_ref(self, ref: torch.Tensor, new: torch.Tensor) -> None:
        """Put ``new`` wherever the module holds the very tensor ``ref``.

        Raises InputError where it does not, and where types, shapes or devices differ.
        """
        names = self._names_of(ref)
        if not names:
            raise InputError("the module does not hold that tensor", hint="take it from get_by_name")
        self._check(names[0], ref, new)
        self._put(names, new)

    def update_by_name(
        self,
        name: str,
        new: torch.Tensor,
        tie_replacements: bool = True,
        enforce_tensor_consistency: bool = True,
    ) -> None:
        """Put ``new`` in the place of the tensor of that name.

        ``tie_replacements``: also wherever else the module holds the same tensor. ``enforce_tensor_consistency``:
        shape, element type and device have to be those of the tensor before. Raises InputError where they are not, and
        for a name that is none of `available_names`, or of a parameter that is None.
        """
        old = self._place(name).get()
        if old is not None and enforce_tensor_consistency:
            self._check(name, old, new)
        self._put(self._names_of(old) if old is not None and tie_replacements else [name], new)

    def restore_require_grad(self) -> None:
        """Let parameters require gradients again that did so at first, also those that were replaced since."""
        self._set_requires_grad(self._requires_grad)

    def _set_requires_grad(self, wanted: dict[str, bool]) -> None:
        for name, value in wanted.items():
            tensor = self._places[name].get()
            if tensor is not None and (not value or tensor.is_floating_point() or tensor.is_complex()):
                tensor.requires_grad_(value)

    def _place(self, name: str) -> _Place:
        found = self._places.get(name)
        if found is None:
            near = meant(name, self._places)
            hint = f"did you mean {near[0]!r}?" if near else "available_names has all; buffers are there when asked for"
            raise InputError(f"the module holds no tensor {name!r}", hint=hint)
        return found

    def _names_of(self, tensor: torch.Tensor) -> list[str]:
        return [name for name, place in self._places.items() if place.get() is tensor]

    def _check(self, name: str, old: torch.Tensor, new: torch.Tensor) -> None:
        of_type(new, torch.Tensor, f"what is put in the place of {name!r}", "a tensor")
        for what, before, after in (
            ("shape", list(old.shape), list(new.shape)),
            ("type", old.dtype, new.dtype),
            ("device", old.device, new.device),
        ):
            if before != after:
                raise InputError(f"{name!r} has the {what} {before}, and what is put in its place has {after}")

    def _put(self, names: list[str], new: torch.Tensor) -> None:
        value: Any = new
        if any(self._places[name].kind == "parameter" for name in names):
            value = self._parameter(names[0], new)
        for name in names:
            place = self._places[name]
            setattr(place.module, place.attribute, value)

    def _parameter(self, name: str, new: torch.Tensor) -> torch.nn.Parameter:
        if isinstance(new, torch.nn.Parameter):
            return new
        if not self._wraps:
            hint = "wrap it in torch.nn.Parameter, or leave add_parameter_if_unset as it is"
            raise InputError(f"{name!r} is a parameter, and what is put in its place is none", hint=hint)
        wants = self._requires_grad.get(name, False) and not self._disables
        return torch.nn.Parameter(new, requires_grad=wants and new.is_floating_point())


def _places(model: torch.nn.Module, buffers: bool, attributes: bool) -> Iterator[tuple[str, _Place]]:
    """Every place at which a module or a part of it holds a tensor, or could, by the path of attributes there."""
    for path, part in model.named_modules(remove_duplicate=False):
        before = f"{path}." if path else ""
        for name in part._parameters:  # pyright: ignore[reportPrivateUsage]: nothing else has those that are None
            yield before + name, _Place(part, name, "parameter")
        for name, _ in part.named_buffers(recurse=False, remove_duplicate=False) if buffers else ():
            yield before + name, _Place(part, name, "buffer")
        for name, value in vars(part).items() if attributes else ():
            if isinstance(value, torch.Tensor):
                yield before + name, _Place(part, name, "attribute")
