"""Buffers that a module reaches by another way than as its own, as those that it shares with a cache it calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

import torch
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree

_DEPTH: Final = 5
"""How far objects within objects are looked through."""


class Reached(TorchFunctionMode):
    """Inside of it, a buffer of the module is what stands for it while it is exported, wherever it is found.

    `torch.export` puts others in the place of the buffers of modules, and takes the same tensors for constants where
    they are found in an object that is no module.
    """

    def __init__(self, module: torch.nn.Module) -> None:
        super().__init__()
        self._owners: dict[int, tuple[torch.Tensor, dict[str, torch.Tensor | None], str]] = {}
        for part in module.modules():
            for name, held in part._buffers.items():  # pyright: ignore[reportPrivateUsage]: what PyTorch changes
                if held is not None:
                    self._owners.setdefault(id(held), (held, part._buffers, name))  # pyright: ignore[reportPrivateUsage]

    def __torch_function__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """The result of the function."""
        if any(type(one) is torch.Tensor or isinstance(one, (list, tuple)) for one in args) or kwargs:
            args, kwargs = pytree.tree_map_only(torch.Tensor, self._own, (tuple(args), kwargs))
        return func(*args, **(kwargs or {}))

    def _own(self, tensor: torch.Tensor) -> torch.Tensor:
        """What stands for a tensor: it, unless it is a buffer."""
        if id(tensor) not in self._owners:
            return tensor
        _, buffers, name = self._owners[id(tensor)]
        own = buffers.get(name)
        return tensor if own is None else own


def path_of(module: torch.nn.Module, tensor: torch.Tensor) -> str | None:
    """How a module gets at a tensor in an object, as ``self.cache.layers[0].keys``; None where it is not found."""
    seen: set[int] = set()
    for prefix, part in module.named_modules():
        for name, value in vars(part).items():
            path = ".".join(filter(None, ("self", prefix, name)))
            found = None if name.startswith("_") or value is tensor else _within(value, path, tensor, seen, _DEPTH)
            if found:
                return found
    return None


def _within(value: Any, path: str, tensor: torch.Tensor, seen: set[int], depth: int) -> str | None:
    """The path of a tensor within an object of a path; ``seen``: what was looked through already."""
    if value is tensor:
        return path
    if not depth or id(value) in seen or isinstance(value, (torch.nn.Module, torch.Tensor, type)):
        return None
    seen.add(id(value))
    if isinstance(value, (list, tuple)):
        inner = [(f"{path}[{place}]", one) for place, one in enumerate(cast("Sequence[Any]", value))]
    elif isinstance(value, Mapping):
        inner = [(f"{path}[{key!r}]", one) for key, one in cast("Mapping[Any, Any]", value).items()]
    else:
        inner = [(f"{path}.{name}", one) for name, one in getattr(value, "__dict__", {}).items()]
    return next((found for name, one in inner if (found := _within(one, name, tensor, seen, depth - 1))), None)
