"""The example that a module is exported with: its arguments, the tensors in them, and what they are called."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self, cast

import torch
from torch.utils import _pytree as pytree

from tract_core.errors import InputError
from tract_torch.arguments import module_of
from tract_torch.naming import flat_names

Axes = Mapping[str, Mapping[int, str]]
"""Symbols by the name of a tensor and the axis."""


@dataclass(frozen=True)
class Example:
    """What a module is called with.

    ``signature``: that of its ``forward``. ``parameters``: arguments by the names that they have there, in that order.
    ``names``: of the tensors in them, in order.
    """

    signature: inspect.Signature
    parameters: Mapping[str, Any]
    names: tuple[str, ...]

    @classmethod
    def of(cls, module: torch.nn.Module, args: Any, names: Sequence[str] | None) -> Self:
        """From a tensor, a sequence of arguments, or a mapping.

        A mapping whose keys are all parameters of ``forward`` gives these, as the tokenizers of transformers do; any
        other one is one argument. Raises InputError for what is no module, where ``forward`` cannot be called so, where
        there is no tensor in the example, and as `flat_names` does.
        """
        signature = inspect.signature(module_of(module).forward)
        given, keywords = _called(args, signature)
        bound = bound_arguments(module, given, keywords)
        values = [*((f"input_{place}", value) for place, value in enumerate(given)), *keywords.items()]
        flat = flat_names(names, values, "input")
        if not flat:
            raise InputError("the example holds no tensor", hint="args are what the module is called with")
        rest = iter(flat)
        ordered = {key: [next(rest) for _ in _tensors(value)] for key, value in values}
        if keywords:  # they come in the order of the definition
            flat = [name for key in bound for name in ordered[key]]
        return cls(signature, bound, tuple(flat))

    @property
    def args(self) -> tuple[Any, ...]:
        """What is given by its place."""
        return inspect.BoundArguments(self.signature, cast("Any", dict(self.parameters))).args

    @property
    def keywords(self) -> dict[str, Any]:
        """What is given by its name."""
        return inspect.BoundArguments(self.signature, cast("Any", dict(self.parameters))).kwargs

    def tensors(self) -> dict[str, torch.Tensor]:
        """All tensors, by their names, in order."""
        return dict(zip(self.names, _tensors(self.parameters), strict=True))

    def constants(self) -> list[Any]:
        """What is in the example beside tensors, and becomes part of the model."""
        leaves = pytree.tree_leaves(dict(self.parameters))
        return [leaf for leaf in leaves if leaf is not None and not isinstance(leaf, torch.Tensor)]

    def dynamic_shapes(self, axes: Axes) -> dict[str, Any]:
        """``axes`` as `tract_torch.load` wants them: by parameter, in structures like those of the arguments."""
        return self.shaped([dict(axes.get(name, {})) or None for name in self.names])

    def shaped(self, each: Sequence[Any]) -> dict[str, Any]:
        """One thing for each tensor, and None elsewhere, by parameter, in structures like those of the arguments."""
        return self._replaced(each, others=None)

    def with_tensors(self, tensors: Mapping[str, torch.Tensor]) -> Self:
        """The same structures with other tensors in them, by their names."""
        leaves = pytree.tree_leaves(dict(self.parameters))
        found = [tensors[name] for name in self.names]
        others = [leaf for leaf in leaves if not isinstance(leaf, torch.Tensor)]
        return replace(self, parameters=self._replaced(found, others=others))

    def _replaced(self, tensors: Sequence[Any], others: Sequence[Any] | None) -> dict[str, Any]:
        """The structures with one of ``tensors`` in the place of each tensor, of ``others`` or None in other places."""
        leaves, spec = pytree.tree_flatten(dict(self.parameters))
        in_place, elsewhere = iter(tensors), iter(others or ())
        return pytree.tree_unflatten(
            [next(in_place) if isinstance(leaf, torch.Tensor) else next(elsewhere, None) for leaf in leaves], spec
        )


def bound_arguments(module: torch.nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of the example by their names. Raises InputError where the module does not take them."""
    signature = inspect.signature(module.forward)
    try:
        return dict(signature.bind(*args, **kwargs).arguments)
    except TypeError as error:
        hint = f"it is called as forward{signature}"
        raise InputError(f"the example does not fit {type(module).__name__}: {error}", hint=hint) from None


def _tensors(value: Any) -> list[torch.Tensor]:
    leaves = pytree.tree_leaves(dict(value) if isinstance(value, dict) else value)
    return [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]


def _called(args: Any, signature: inspect.Signature) -> tuple[Sequence[Any], Mapping[str, Any]]:
    if isinstance(args, torch.Tensor):
        return (args,), {}
    if isinstance(args, Mapping):
        given = cast("Mapping[Any, Any]", args)
        if given and all(key in signature.parameters for key in given):
            return (), dict(given)
        return (given,), {}
    if isinstance(args, (tuple, list)):
        return cast("Sequence[Any]", args), {}
    hint = "args are a tensor, a list or tuple of what the module is called with, or a mapping"
    raise InputError(f"args is {type(args).__name__}", hint=hint)
