"""What ``tract torch-export`` is given: a module that a function makes, and the example that facts describe."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import torch

from tract_core.data import DatumType
from tract_core.dims import Dim, SymbolScope, TDim
from tract_core.errors import InputError, TractError
from tract_core.model.fact import TypedFact
from tract_core.model.fact_text import parse_typed_fact
from tract_torch.capture.dynamic import Linear
from tract_torch.capture.watching import place_of_error
from tract_torch.tensors import torch_type

SIZES = (3, 5, 7, 11, 13, 17, 19, 23)
"""Sizes of symbols in examples: all are different, so that none stands for another by chance."""


@dataclass(frozen=True)
class Given:
    """``args``: of the example. ``names``: of the inputs, None for those by default. ``axes``: symbols by input."""

    args: Any
    names: list[str] | None = None
    axes: dict[str, dict[int, str]] = field(default_factory=dict[str, dict[int, str]])


@contextmanager
def importable(factory: str) -> Generator[None]:
    """Inside, what lies beside the file of ``factory``, or in the working directory, can be imported."""
    place = factory.rpartition(":")[0]
    folder = str((Path(place).parent if place.endswith(".py") else Path.cwd()).resolve())
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        with suppress(ValueError):  # somebody else took it out
            sys.path.remove(folder)


def made(factory: str) -> tuple[torch.nn.Module, Any]:
    """The module, and the arguments that come with it or None, of a function named as ``package.module:function``.

    In the place of a module's name may be that of a file. It is called inside of `importable`. Raises InputError where
    there is no such function, where it fails, with the line in which it does, and where it makes something else.
    """
    place, _, name = factory.rpartition(":")
    if not place or not name:
        raise InputError(f"{factory!r} names no function", hint="as in networks:classifier, or networks.py:classifier")
    with _told(place, "importing it"):
        function = getattr(_module(place), name, None)
    if not callable(function):
        raise InputError(f"there is no function {name!r}", where=place)
    with _told(place, f"{name}()"):
        found = function()
    module, args = cast("tuple[Any, Any]", found) if isinstance(found, tuple) and len(found) == 2 else (found, None)
    if not isinstance(module, torch.nn.Module):
        hint = "it returns a torch.nn.Module, or a pair of one and the arguments of the example"
        raise InputError(f"{name} returns {type(found).__name__}", where=place, hint=hint)
    return module, args


@contextmanager
def _told(place: str, step: str) -> Generator[None]:
    """Whatever code of the user raises is one error of ours, with the line that it is from."""
    try:
        yield
    except TractError:
        raise
    except (Exception, SystemExit) as error:
        line = place_of_error(error.__traceback__, torch.nn.Module())
        text = " ".join(str(error).split())[:300]
        raise InputError(f"{step} gave {type(error).__name__}: {text}", where=line or place) from error


def _module(place: str) -> Any:
    """What a name or a file stands for. Raises InputError where there is no such file, and whatever is raised in it."""
    if not place.endswith(".py"):
        return importlib.import_module(place)
    path = Path(place)
    if not path.is_file():
        raise InputError("there is no such file", where=place)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None  # noqa: PT018 - both are there for a file of Python
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(path.stem, module)
    spec.loader.exec_module(module)
    return module


def example_of(inputs: Sequence[str], sizes: Sequence[str], args: Any) -> Given:
    """The example that facts describe, or ``args`` where there are none. Raises InputError, FactError, DimError."""
    if not inputs:
        if args is None:
            hint = "describe arguments with --input, or let the factory return a module and its arguments"
            raise InputError("there is no example to export the module with", hint=hint)
        return Given(args)
    chosen = dict(_size(text) for text in sizes)
    scope = SymbolScope()
    names: list[str] = []
    tensors: list[torch.Tensor] = []
    axes: dict[str, dict[int, str]] = {}
    for place, text in enumerate(inputs):
        name, colon, fact = text.rpartition(":")
        name = name if colon else f"input_{place}"
        parsed = parse_typed_fact(fact, scope)
        symbols = {axis: str(dim) for axis, dim in enumerate(parsed.shape) if isinstance(dim, TDim)}
        names.append(name)
        tensors.append(_drawn(parsed, [_number(dim, scope, chosen) for dim in parsed.shape]))
        axes |= {name: symbols} if symbols else {}
    return Given(tuple(tensors), names, axes)


def _size(text: str) -> tuple[str, int]:
    name, _, number = text.partition("=")
    if not number.isdecimal():
        raise InputError(f"--size {text}: wanted a symbol and a number", hint="as --size B=4")
    return name, int(number)


def _number(dim: Dim, scope: SymbolScope, chosen: dict[str, int]) -> int:
    if isinstance(dim, int):
        return dim
    size = Linear.of(str(dim))
    return size.size(chosen.get(size.symbol, SIZES[list(scope.names).index(size.symbol) % len(SIZES)]))


def _drawn(fact: TypedFact, shape: list[int]) -> torch.Tensor:
    """Random elements: floats around 0, integers 0 and 1, which are places in whatever is not empty."""
    if fact.constant is not None:
        return torch.from_numpy(fact.constant.copy())
    random = torch.Generator().manual_seed(0)
    kind = torch_type(cast("DatumType", fact.datum_type))
    if kind.is_floating_point or kind.is_complex:
        return torch.randn(shape, generator=random).to(kind)
    return torch.randint(0, 2, shape, generator=random).to(kind)
