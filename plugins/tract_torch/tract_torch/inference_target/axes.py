"""Which sizes may be others: what users say of it, and what is meant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import torch
from tract_nnef.syntax.names import is_plain

from tract_core.errors import InputError, meant
from tract_torch.capture.dynamic import Linear

Asked = Mapping[str, Mapping[int, str] | Sequence[int]]
"""By the name of a tensor: sizes by axis, as ``B`` or ``4*H+1``, or axes, whose sizes are symbols that get names."""


def named_axes(asked: Asked | None) -> dict[str, dict[int, str]]:
    """Symbols by tensor and axis; those of a list of axes are called ``<name>_dynamic_axes_<place>``.

    Raises InputError for what is no such mapping, and for symbols that archives cannot name.
    """
    if asked is not None and not isinstance(asked, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]: callers may be untyped
        raise InputError(f"dynamic_axes is {type(asked).__name__}, wanted a mapping of names to axes")
    wrong = next((name for name in asked or {} if not isinstance(name, str)), None)  # pyright: ignore[reportUnnecessaryIsInstance]: callers may be untyped
    if wrong is not None:
        raise InputError(f"dynamic_axes has the key {wrong!r}, wanted the name of an input")
    return {name: _axes_of(name, axes) for name, axes in (asked or {}).items()}


def _axes_of(name: str, axes: Any) -> dict[int, str]:
    where = f"dynamic_axes[{name!r}]"
    if isinstance(axes, Mapping):
        found = dict(cast("Mapping[Any, Any]", axes))
    elif isinstance(axes, Sequence) and not isinstance(axes, str):
        listed = cast("Sequence[Any]", axes)
        found = {axis: f"{name}_dynamic_axes_{place}" for place, axis in enumerate(listed)}
        if len(found) != len(listed):
            raise InputError(f"{list(listed)} names an axis twice", where=where)
    else:
        raise InputError(f"{axes!r} is neither a mapping of axes to symbols nor a list of axes", where=where)
    for axis, symbol in found.items():
        if not isinstance(axis, int) or isinstance(axis, bool):
            raise InputError(f"{axis!r} is no axis, wanted a number", where=where)
        if not isinstance(symbol, str) or not (is_plain(symbol) or is_plain(Linear.of(symbol).symbol)):
            hint = "symbols are words of letters, digits and _, as 'B' or 'batch'"
            raise InputError(f"{symbol!r} is no name of a symbol", where=where, hint=hint)
    return found


def counted_axes(
    axes: Mapping[str, Mapping[int, str]], tensors: Mapping[str, torch.Tensor]
) -> dict[str, dict[int, str]]:
    """The same with axes counted from the front. ``tensors``: those of the example, which tell values of symbols.

    Raises InputError for a name that no input has, for an axis that its tensor does not have, for one that is there
    twice, and where tensors of the example disagree on the size of a symbol.
    """
    found: dict[str, dict[int, str]] = {}
    sizes: dict[str, tuple[int, str]] = {}
    for name, symbols in axes.items():
        where = f"dynamic_axes[{name!r}]"
        if name not in tensors:
            likely = meant(name, tensors)
            hint = f"did you mean {likely[0]!r}?" if likely else f"inputs are {', '.join(tensors)}"
            raise InputError("there is no such input", where=where, hint=hint)
        shape = tensors[name].shape
        for axis, symbol in symbols.items():
            if not -len(shape) <= axis < len(shape):
                raise InputError(f"axis {axis} is outside a tensor of {len(shape)} axes", where=where)
            counted = axis % len(shape)
            if counted in found.setdefault(name, {}):
                raise InputError(f"axes {counted} and {counted - len(shape)} are one axis", where=where)
            found[name][counted] = symbol
            place, size = f"axis {counted} of {name!r}", Linear.of(symbol)
            value = size.solved(shape[counted])
            if value is None:
                raise InputError(f"{place} has size {shape[counted]} in the example, wanted {symbol}", where=where)
            before, other = sizes.setdefault(size.symbol, (value, place))
            if before != value:
                raise InputError(
                    f"{size.symbol} is {before} on {other} and {value} on {place} in the example", where=where
                )
    return found
