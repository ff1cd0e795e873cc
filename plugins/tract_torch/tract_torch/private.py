"""The private names of PyTorch that capturing a program uses: each of them is one that it can do without.

Nobody promises that they stay, so they are looked up when they are needed, here and nowhere else.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager
from typing import Any

from tract_core.frozen import frozen

Ways = dict[Any, Callable[..., Any]]
"""For operators, the functions that compute them by others."""


def printing_module() -> Any:
    """The module that prints the graph of what `torch.export` refuses; None where there is none of its name."""
    return _named("torch.export._trace")


def without_modes() -> Any:
    """What makes a context in which tensors are computed with, also while a module is exported; None for nothing."""
    return _named("torch.utils._python_dispatch:_disable_current_modes")


@frozen
class Composed:
    """How `ExportedProgram.run_decompositions` treats composed operators, which are those that C++ makes of others.

    ``every``: all that can be kept whole; ``is_one``: whether an operator, of whichever library, is among them;
    ``keep``: what a composed operator is computed by where it is kept; ``splitter`` of ``module``: the name of what
    divides a table of decompositions into that of composed operators and that of all others.
    """

    every: Callable[[], Collection[Any]]
    is_one: Callable[[Any], bool]
    keep: Callable[..., Any]
    module: Any
    splitter: str


def composed() -> Composed | None:
    """PyTorch's own; None where it lacks one of them."""
    utils = "torch._export.utils:"
    names = ("_collect_all_valid_cia_ops", "_is_preservable_cia_op", "_special_op_to_preserve_cia")
    found = [_named(f"{utils}{name}") for name in names]
    module, splitter = _named("torch.export.exported_program"), "_split_decomp_table_to_cia_and_python_decomp"
    if None in found or not hasattr(module, splitter):
        return None
    every, preservable, special = found
    return Composed(every, preservable, special, module, splitter)


def overriding() -> Callable[[Mapping[Any, Callable[..., Any]]], AbstractContextManager[object]] | None:
    """What makes a context in which composed operators are computed by these functions; None where it is not there."""
    return _named("torch.export.exported_program:_override_composite_implicit_decomp")


def traced_facts() -> Any:
    """What is known of the inputs of the graph that is being compiled in this thread; None where nothing is told."""
    contexts = _named("torch._guards:TracingContext")
    context = None if contexts is None else contexts.try_get()
    return None if context is None else context.fw_metadata


def _named(path: str) -> Any:
    """What there is under ``module:name`` or ``module``; None for nothing."""
    try:
        return pkgutil.resolve_name(path)
    except (ImportError, AttributeError):
        return None
