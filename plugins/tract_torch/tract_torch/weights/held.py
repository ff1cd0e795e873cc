"""What a module holds, put aside for a while, with weights from elsewhere or plain tensors in its place.

Whatever is put into the module is taken out again, also where something raises.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path

import torch

from tract_core.errors import InputError, meant
from tract_torch.alone import LOCK
from tract_torch.arguments import of_type
from tract_torch.weights.disk import iter_torch_tensors_from_disk, weight_files
from tract_torch.weights.offload import OffloadedTensor
from tract_torch.weights.qtensor import QTensor

Weights = Mapping[str, torch.Tensor] | str | os.PathLike[str]
"""Tensors by the paths of attributes, or a file of such."""


def quantised(module: torch.nn.Module) -> dict[str, QTensor]:
    """The quantised tensors that a module holds, by name; those that are shared under all their names."""
    return {name: held for _, _, name, held in _places(module) if isinstance(held, QTensor)}


@contextmanager
def standing_in(module: torch.nn.Module) -> Generator[None]:
    """Inside, the module holds ordinary tensors only: in files, as they are there, and floats for quantised ones.

    Nobody looks at the elements of these, which take no memory as long as they are not written to.
    """

    def plain(_: str, held: torch.Tensor) -> torch.Tensor | None:
        if isinstance(held, OffloadedTensor):
            return held.plain()
        return torch.empty(held.shape, dtype=held.dtype) if isinstance(held, QTensor) else None

    with _replaced(module, plain):
        yield


@contextmanager
def weights_in_place(module: torch.nn.Module, weights: Weights | None) -> Generator[None]:
    """Inside, the module holds these weights in the place of its own.

    ``weights``: files as `weight_files` finds them, whose tensors are mapped into memory, not read, or a mapping; None
    changes nothing. Raises InputError for names that the module has not, for tensors of other
    shapes or types, and where tensors of the module are on the device ``meta`` without weights for them.
    """
    found = _found(weights)
    _check_names(module, found)

    def given(name: str, held: torch.Tensor) -> torch.Tensor | None:
        new = found.get(name)
        if new is not None and (new.shape != held.shape or new.dtype != held.dtype):
            was, now = (f"{list(one.shape)} of {one.dtype}" for one in (held, new))
            raise InputError(f"{name!r} is {was} in the module, and {now} in the weights")
        return new

    with LOCK if found else nullcontext(), _replaced(module, given):
        with LOCK:
            _check_values(module)
        yield


def _found(weights: Weights | None) -> dict[str, torch.Tensor]:
    """The tensors by name. Raises InputError for what is none."""
    if isinstance(weights, (str, os.PathLike)):
        return dict(_of_files(Path(weights)))
    given: Mapping[str, object] = {} if weights is None else weights
    of_type(given, Mapping, "weights", "a mapping of names to tensors, or a file")
    return {name: of_type(one, torch.Tensor, f"the weight {name!r}", "a tensor") for name, one in given.items()}


def _of_files(path: Path) -> Iterator[tuple[str, torch.Tensor]]:
    for file in weight_files(path):
        yield from iter_torch_tensors_from_disk(file)


def _check_names(module: torch.nn.Module, weights: Mapping[str, torch.Tensor]) -> None:
    names = {name for _, _, name, _ in _places(module)}
    unknown = sorted(weights.keys() - names)
    if unknown:
        near = meant(unknown[0], names)
        hint = f"did you mean {near[0]!r}?" if near else None
        raise InputError(f"the module holds no tensor {unknown[0]!r}, for which there are weights", hint=hint)


def _check_values(module: torch.nn.Module) -> None:
    missing = [name for _, _, name, held in _places(module) if held.is_meta]
    if missing:
        listed = ", ".join(missing[:5]) + (f" and {len(missing) - 5} more" if len(missing) > 5 else "")
        hint = "weights= takes a file of them, or a mapping of names to tensors"
        raise InputError(f"tensors of the module are on the device 'meta', and have no values: {listed}", hint=hint)


@contextmanager
def _replaced(module: torch.nn.Module, other: Callable[[str, torch.Tensor], torch.Tensor | None]) -> Generator[None]:
    """Inside, ``other(name, tensor)`` is in the place of each tensor, where it is not None; shared ones stay shared."""
    before: list[tuple[dict[str, torch.Tensor | None], str, torch.Tensor]] = []
    new: dict[int, torch.Tensor] = {}
    try:
        for holder, attribute, name, held in list(_places(module)):
            found = new.get(id(held))
            if found is None:
                found = other(name, held)
            if found is None:
                continue
            if isinstance(held, torch.nn.Parameter) and not isinstance(found, torch.nn.Parameter):
                found = torch.nn.Parameter(found, requires_grad=False)
            new[id(held)] = found
            before.append((holder, attribute, held))
        for holder, attribute, held in before:
            holder[attribute] = new[id(held)]
        yield
    finally:
        for holder, attribute, held in before:
            holder[attribute] = held


def _places(module: torch.nn.Module) -> Iterator[tuple[dict[str, torch.Tensor | None], str, str, torch.Tensor]]:
    """Every parameter and buffer: what holds it, by which attribute, its name, and itself."""
    for path, part in module.named_modules(remove_duplicate=False):
        for kind in ("_parameters", "_buffers"):  # there is no public way to put tensors of any kind there
            holder: dict[str, torch.Tensor | None] = getattr(part, kind)
            for attribute, held in holder.items():
                if held is not None:
                    yield holder, attribute, f"{path}.{attribute}" if path else attribute, held
