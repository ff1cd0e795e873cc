"""What a model gives, as users get it: a tensor as a `Tensor`, and containers of them as plain Python objects."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tract_core.api.tensor import Tensor
from tract_core.data import Container, DatumType, DType, MapType, SequenceType

if TYPE_CHECKING:
    from tract_core.plugins.keys import Array


def given_back(array: Array, kind: DType, copied: Callable[[Array], Array]) -> Any:
    """A `Tensor`; a list for a sequence, a value or ``None`` for an optional, a dictionary for a map.

    Single values in a map are NumPy's numbers, and texts. ``copied``: copies an array that the model may not give away.
    """
    return _held(array.item(), kind, copied) if isinstance(kind, Container) else Tensor.around(copied(array), kind)


def _held(value: Any, kind: DType, copied: Callable[[Array], Array]) -> Any:
    if not isinstance(kind, Container):
        return Tensor.around(copied(value), kind)
    item = kind.item.datum_type
    if isinstance(kind, SequenceType):
        return [_held(one, item, copied) for one in value]
    if isinstance(kind, MapType):
        return {key: _value(one, item, copied) for key, one in value.items()}
    return None if value is None else _held(value, item, copied)


def _value(value: Any, kind: DType, copied: Callable[[Array], Array]) -> Any:
    """What is in a map: a single number or text as such, so that entries can be sorted and printed."""
    single = isinstance(kind, DatumType) and value.ndim == 0
    return value[()] if single else _held(value, kind, copied)
