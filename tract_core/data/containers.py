"""Element types of values that hold other values: sequences, optionals and maps.

Such a value is a tensor without axes whose one element is the container, so that graphs, branches and loops carry it as
they carry any tensor, and operators on numbers refuse it by its element type. What is known of the values inside (their
type, rank and sizes, each perhaps in part) is part of the type. A plain `==` compares all that is known; whether a
value of one type may stand where another is expected is asked with `compatible_types`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import reduce
from typing import Any, Final

import numpy as np

from tract_core.data.datum_type import DatumType, QuantizedType, parse_plain
from tract_core.dims import Dim, is_symbolic, parse_dim, same_dim, substitute, symbols_of
from tract_core.errors import FactError
from tract_core.frozen import frozen

KNOWN_ITEMS: Final = 256
"""Items of a sequence that are known one by one; of a longer one, only what all items have in common is known."""

SizeFn = Callable[[Dim], "Dim | None"]


@frozen
class ItemFact:
    """What is known of a value inside a container.

    ``shape``: ``None`` when not even the rank is known; an entry is ``None`` when that size is not. ``datum_type``:
    of its elements.
    """

    datum_type: DType
    shape: tuple[Dim | None, ...] | None = None

    def __str__(self) -> str:
        kind = self.datum_type.short
        if isinstance(self.datum_type, Container):
            return kind
        if self.shape is None:
            return f"..,{kind}"
        return ",".join([*("_" if dim is None else str(dim) for dim in self.shape), kind])


class Container:
    """What the types of containers answer, as plain element types do."""

    __slots__ = ()

    item: ItemFact
    """What is known of the values inside."""

    def __str__(self) -> str:
        return self.short

    @property
    def short(self) -> str:
        """The text form used in facts."""
        raise NotImplementedError

    @property
    def name(self) -> str:
        """The text form: the same as `short`."""
        return self.short

    @property
    def storage(self) -> DatumType:
        """BLOB: an object that only the operators on containers look into."""
        return DatumType.BLOB

    @property
    def numpy(self) -> np.dtype[Any]:
        """The type of an array without axes that holds a Python object."""
        return np.dtype(np.object_)

    @property
    def itemsize(self) -> int:
        """Bytes of the reference to the object."""
        return self.numpy.itemsize

    def is_bool(self) -> bool:
        """False."""
        return False

    def is_number(self) -> bool:
        """False: there is no arithmetic on containers."""
        return False

    def is_float(self) -> bool:
        """False."""
        return False

    def is_integer(self) -> bool:
        """False."""
        return False

    def is_signed(self) -> bool:
        """False."""
        return False

    def is_unsigned(self) -> bool:
        """False."""
        return False

    def is_complex(self) -> bool:
        """False."""
        return False

    def is_quantized(self) -> bool:
        """False."""
        return False


@frozen
class SequenceType(Container):
    """Any number of values of one type, in order. Its value is a Python list.

    ``item``: what all of them have in common. ``items``: what is known of each, where their number is known; see
    `sequence_of`.
    """

    item: ItemFact
    items: tuple[ItemFact, ...] | None = None

    @property
    def length(self) -> int | None:
        """How many items there are, where that is known."""
        return None if self.items is None else len(self.items)

    @property
    def short(self) -> str:
        """As ``sequence(2,_,f32)``, or ``sequence(..,f32)`` where the rank is not known."""
        return f"sequence({self.item})"


@frozen
class OptionalType(Container):
    """A value of one type, or none. Its value is that value, or ``None``. ``present``: which of them, where known."""

    item: ItemFact
    present: bool | None = None

    @property
    def short(self) -> str:
        """As ``optional(2,_,f32)``."""
        return f"optional({self.item})"


@frozen
class MapType(Container):
    """Values of one type, by keys of another. Its value is a Python dictionary."""

    key: DatumType
    item: ItemFact

    @property
    def short(self) -> str:
        """As ``map(i64,f32)``: the type of the keys, then what is known of the values."""
        return f"map({self.key.short},{self.item})"


DType = DatumType | QuantizedType | SequenceType | OptionalType | MapType


def sequence_of(datum_type: DType, items: Iterable[ItemFact]) -> SequenceType:
    """The type of a sequence whose items are known one by one. Raises FactError when their types differ."""
    items = tuple(items)
    item = ItemFact(datum_type)
    if items:
        joined = reduce(_join_or_none, items[1:], items[0])
        if joined is None or not compatible_types(joined.datum_type, datum_type):
            found = ", ".join(sorted({one.datum_type.short for one in items}))
            raise FactError(f"a sequence holds values of one type, found {found}; {datum_type.short} is wanted")
        item = joined
    return SequenceType(item, items if len(items) <= KNOWN_ITEMS else None)


def compatible_types(a: DType, b: DType) -> bool:
    """Whether a value of one type may stand where the other is expected: nothing that is known of them differs."""
    if a == b:
        return True
    if isinstance(a, SequenceType) and isinstance(b, SequenceType):
        return _compatible_sequences(a, b)
    if isinstance(a, OptionalType) and isinstance(b, OptionalType):
        contradiction = None not in (a.present, b.present) and a.present != b.present
        return compatible_items(a.item, b.item) and not contradiction
    if isinstance(a, MapType) and isinstance(b, MapType):
        return a.key == b.key and compatible_items(a.item, b.item)
    return False


def _compatible_sequences(a: SequenceType, b: SequenceType) -> bool:
    if not compatible_types(a.item.datum_type, b.item.datum_type):
        return False
    if a.items is not None and b.items is not None:
        return len(a.items) == len(b.items) and all(map(compatible_items, a.items, b.items))
    return () in (a.items, b.items) or compatible_items(a.item, b.item)


def compatible_items(a: ItemFact, b: ItemFact) -> bool:
    """Whether nothing that is known of two values differs."""
    if not compatible_types(a.datum_type, b.datum_type):
        return False
    if a.shape is None or b.shape is None:
        return True
    if len(a.shape) != len(b.shape):
        return False
    pairs = zip(a.shape, b.shape, strict=True)
    return not any(x is not None and y is not None and same_dim(x, y) is False for x, y in pairs)


def join_types(a: DType, b: DType) -> DType | None:
    """What is known of a value that is of one of two types; ``None`` when they have nothing in common."""
    if a == b:
        return a
    if isinstance(a, SequenceType) and isinstance(b, SequenceType):
        return _join_sequences(a, b)
    if isinstance(a, OptionalType) and isinstance(b, OptionalType):
        item = join_items(a.item, b.item)
        return None if item is None else OptionalType(item, a.present if a.present == b.present else None)
    if isinstance(a, MapType) and isinstance(b, MapType) and a.key == b.key:
        item = join_items(a.item, b.item)
        return None if item is None else MapType(a.key, item)
    return None


def _join_sequences(a: SequenceType, b: SequenceType) -> SequenceType | None:
    kind = join_types(a.item.datum_type, b.item.datum_type)
    if kind is None:
        return None
    # An empty sequence says nothing of the items of another one.
    item = b.item if a.items == () else a.item if b.items == () else join_items(a.item, b.item)
    if item is None:
        return None
    if a.items is None or b.items is None or len(a.items) != len(b.items):
        return SequenceType(item)
    items = [join_items(x, y) for x, y in zip(a.items, b.items, strict=True)]
    return SequenceType(item, tuple(one for one in items if one is not None))


def join_items(a: ItemFact, b: ItemFact) -> ItemFact | None:
    """What is known of a value that is one of two; ``None`` when their types have nothing in common."""
    kind = join_types(a.datum_type, b.datum_type)
    if kind is None:
        return None
    if a.shape is None or b.shape is None or len(a.shape) != len(b.shape):
        return ItemFact(kind)
    shape = [
        x if x is not None and y is not None and same_dim(x, y) else None for x, y in zip(a.shape, b.shape, strict=True)
    ]
    return ItemFact(kind, tuple(shape))


def _join_or_none(a: ItemFact | None, b: ItemFact) -> ItemFact | None:
    return None if a is None else join_items(a, b)


def meet_types(a: DType, b: DType) -> DType:
    """All that two types that are compatible say of a value."""
    if isinstance(a, SequenceType) and isinstance(b, SequenceType):
        if a.items is not None:
            return a
        return b if b.items is not None else SequenceType(_meet_items(a.item, b.item))
    if isinstance(a, OptionalType) and isinstance(b, OptionalType):
        return OptionalType(_meet_items(a.item, b.item), b.present if a.present is None else a.present)
    if isinstance(a, MapType) and isinstance(b, MapType):
        return MapType(a.key, _meet_items(a.item, b.item))
    return a


def _meet_items(a: ItemFact, b: ItemFact) -> ItemFact:
    kind = meet_types(a.datum_type, b.datum_type)
    if a.shape is None or b.shape is None:
        return ItemFact(kind, b.shape if a.shape is None else a.shape)
    return ItemFact(kind, tuple(_more_precise(x, y) for x, y in zip(a.shape, b.shape, strict=True)))


def _more_precise(a: Dim | None, b: Dim | None) -> Dim | None:
    return b if a is None or (b is not None and is_symbolic(a) and not is_symbolic(b)) else a


def map_sizes(kind: DType, function: SizeFn) -> DType:
    """``kind`` with every size inside it replaced; by ``None`` where it becomes unknown."""
    if isinstance(kind, SequenceType):
        item, items = _map_item(kind.item, function), kind.items
        if items is not None:
            changed = tuple(_map_item(one, function) for one in items)
            items = items if changed == items else changed
        return kind if item is kind.item and items is kind.items else SequenceType(item, items)
    if isinstance(kind, OptionalType):
        item = _map_item(kind.item, function)
        return kind if item is kind.item else OptionalType(item, kind.present)
    if isinstance(kind, MapType):
        item = _map_item(kind.item, function)
        return kind if item is kind.item else MapType(kind.key, item)
    return kind


def _map_item(item: ItemFact, function: SizeFn) -> ItemFact:
    kind = map_sizes(item.datum_type, function)
    shape = item.shape
    if shape is not None:
        shape = tuple(None if dim is None else function(dim) for dim in shape)
    return item if kind is item.datum_type and shape == item.shape else ItemFact(kind, shape)


def symbols_in_type(kind: DType) -> frozenset[str]:
    """Names of the symbols in the sizes that are known inside a container."""
    if not isinstance(kind, Container):
        return frozenset()
    found: set[str] = set()

    def note(dim: Dim) -> Dim:
        found.update(symbols_of(dim))
        return dim

    map_sizes(kind, note)
    return frozenset(found)


def substitute_in_type(kind: DType, values: Mapping[str, Dim]) -> DType:
    """``kind`` with symbols replaced."""
    return map_sizes(kind, lambda dim: substitute(dim, values))


def forget_symbols(kind: DType, known: frozenset[str]) -> DType:
    """``kind`` with the sizes forgotten that mention other symbols than ``known``: they mean nothing elsewhere."""
    return map_sizes(kind, lambda dim: dim if symbols_of(dim) <= known else None)


_CONTAINER: Final = r"(?is)\s*(sequence|optional|map)\s*\((.*)\)\s*"
_ENTRY: Final = r"(?:\((?:[^()]|\([^()]*\))*\)|[^,])+"
_MAX_NESTING: Final = 8


def parse_dtype(text: str, depth: int = 0) -> DType:
    """A type from its text form, as ``f32``, ``QU8(Z:5 S:0.1)`` or ``sequence(2,_,f32)``. Raises FactError."""
    match = re.fullmatch(_CONTAINER, text)
    if match is None:
        return parse_plain(text)
    if depth >= _MAX_NESTING:
        raise FactError(f"containers are nested more than {_MAX_NESTING} deep")
    name, content = match[1].lower(), match[2]
    if name == "map":
        key, _, rest = content.partition(",")
        return MapType(DatumType.parse(key), _parse_item(rest, text, depth))
    item = _parse_item(content, text, depth)
    return SequenceType(item) if name == "sequence" else OptionalType(item)


def _parse_item(content: str, text: str, depth: int) -> ItemFact:
    if re.fullmatch(_CONTAINER, content):
        return ItemFact(parse_dtype(content, depth + 1), ())
    *sizes, last = [token.strip() for token in re.findall(_ENTRY, content)] or [""]
    if not last:
        raise FactError(f"{text!r} does not say what it holds", hint="write it as in 'sequence(2,_,f32)'")
    kind = parse_plain(last)
    if sizes == [".."]:
        return ItemFact(kind)
    return ItemFact(kind, tuple(None if token in ("_", "?") else _size(token, text) for token in sizes))


def _size(token: str, text: str) -> Dim:
    dim = parse_dim(token)
    if not is_symbolic(dim) and int(dim) < 0:
        raise FactError(f"size {dim} in {text!r} is negative", hint="write _ for a size that is not known")
    return dim
