"""Maps: made of the rows of a tensor, and made tensors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, cast

import numpy as np

from tract_core.data import Constant, DatumType, ItemFact, MapType, SequenceType
from tract_core.data.boxes import boxed
from tract_core.dims import Dim, is_symbolic
from tract_core.errors import FactError, RunError
from tract_core.frozen import frozen
from tract_core.model.axes import AxesMapping
from tract_core.model.conditions import may_equal
from tract_core.model.fact import TypedFact
from tract_core.model.op import TypedOp
from tract_core.ops.expect import arity
from tract_core.ops.lookup import text_of
from tract_core.plugins.keys import AXES, COST, REFERENCE, Array
from tract_core.plugins.tables import Rows
from tract_onnx.onnx_only.strings import as_objects

ROWS = Rows()


@frozen
class ZipMap(TypedOp):
    """For each row of a matrix, a map from ``keys`` (one per column) to its elements; a list is one row."""

    keys: Constant
    pure: ClassVar[bool] = False  # an array cannot hold the result as a constant

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """A sequence of maps. Raises FactError unless there are as many columns as keys."""
        (x,) = arity(self, inputs, 1)
        count = len(self.keys.array)
        if x.rank not in (1, 2) or not may_equal(x.shape[-1], count):
            raise FactError(f"ZipMap wants rows of {count} elements, one per key, found {x}")
        kind = MapType(self.keys.datum_type, ItemFact(x.datum_type, ()))
        return (TypedFact.of(SequenceType(ItemFact(kind, ())), ()),)


@frozen
class DictVectorizer(TypedOp):
    """The values of a map (of type ``to``) as one row, each at the place where ``vocabulary`` has its key.

    Zeros (or empty texts) stand where the map has no such key; a key that is not in the vocabulary is left out.
    """

    vocabulary: Constant
    to: DatumType

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """One row. Raises FactError unless keys are of the type of the vocabulary, and values of the type ``to``."""
        (x,) = arity(self, inputs, 1)
        kind = map_type(self.name, x)
        if kind.key != self.vocabulary.datum_type or kind.item.datum_type != self.to:
            wanted = f"a map from {self.vocabulary.datum_type.short} to {self.to.short}"
            raise FactError(f"DictVectorizer wants {wanted}, found {x}")
        return (TypedFact.of(self.to, (1, len(self.vocabulary.array))),)


@frozen
class CastMap(TypedOp):
    """The values of a map as one row, in the type ``to``, in the order of their keys.

    ``sparse``: whether a value's place is its key, and zeros (or empty texts) fill the others. ``count``: how many
    places there are: of a sparse row, or else a fresh symbol, as a rule. Keys beyond a sparse row are left out.
    """

    to: DatumType
    sparse: bool
    count: Dim
    announces: ClassVar[tuple[str, ...]] = ("count",)

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """One row. Raises FactError unless the keys of the map are integers."""
        (x,) = arity(self, inputs, 1)
        if not map_type(self.name, x).key.is_integer():
            raise FactError(f"CastMap wants a map whose keys are integers, found {x}")
        return (TypedFact.of(self.to, (1, self.count)),)


def map_type(name: str, fact: TypedFact) -> MapType:
    """The type of a map. Raises FactError, for the operator ``name``, when it is none."""
    if not isinstance(fact.datum_type, MapType):
        raise FactError(f"{name} wants a map, found {fact}")
    return fact.datum_type


@ROWS.row(REFERENCE, ZipMap)
def zip_map(op: ZipMap, x: Array) -> Array:
    """A list with one dictionary per row"""
    keys = op.keys.array.tolist()
    if x.shape[-1] != len(keys):
        raise RunError(f"ZipMap has {len(keys)} keys, the rows have {x.shape[-1]} elements")
    rows: list[Array] = list(x.reshape(-1, len(keys))) if len(keys) else []
    return boxed([dict(zip(keys, map(np.asarray, row), strict=True)) for row in rows])


@ROWS.row(REFERENCE, DictVectorizer)
def dict_vectorizer(op: DictVectorizer, x: Array) -> Array:
    """Every key of the vocabulary, looked up in the map"""
    found = _entries(x)
    return _row((found.get(key, _empty(op.to)) for key in op.vocabulary.array.tolist()), op.to)


@ROWS.row(REFERENCE, CastMap)
def cast_map(op: CastMap, x: Array) -> Array:
    """Values sorted by their keys, or put at the places that these are"""
    found = _entries(x)
    if not op.sparse:
        return _row((_cast(found[key], op.to) for key in sorted(found)), op.to)
    if found and min(found) < 0:
        raise RunError(f"CastMap: a key is {min(found)}, and a place in a sparse row is 0 or more")
    size = 0 if is_symbolic(op.count) else int(op.count)
    return _row((_cast(found[place], op.to) if place in found else _empty(op.to) for place in range(size)), op.to)


def _empty(kind: DatumType) -> str | int:
    return "" if kind is DatumType.STRING else 0


def _entries(x: Array) -> dict[Any, Any]:
    """The keys and values of a map as Python objects."""
    held = cast("dict[Any, Any]", x.item())
    return {_plain(key): _plain(value) for key, value in held.items()}


def _plain(value: Any) -> Any:
    array: Array = np.asarray(value)
    if array.size != 1:
        raise RunError(f"a map holds a tensor of shape {array.shape}, wanted one element")
    element = array.reshape(-1)[0]
    return text_of(element) if isinstance(element, (str, bytes)) else element


def _cast(value: Any, to: DatumType) -> Any:
    if to is DatumType.STRING:
        return value if isinstance(value, str) else f"{value:f}"
    try:
        return int(float(value)) if to.is_integer() else float(value)
    except (ValueError, OverflowError):
        raise RunError(f"CastMap: {str(value)[:80]!r} is not a number that {to.short} holds") from None


def _row(values: Iterable[Any], to: DatumType) -> Array:
    listed = list(values)
    return (as_objects(listed) if to is DatumType.STRING else np.array(listed, to.numpy)).reshape(1, -1)


@ROWS.row(COST, ZipMap, DictVectorizer, CastMap)
def cost(op: TypedOp, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> Mapping[str, Dim]:
    """No arithmetic."""
    return {}


@ROWS.row(AXES, ZipMap, DictVectorizer, CastMap)
def axes(op: TypedOp, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> AxesMapping:
    """Nothing can be said: a map has no axes."""
    return AxesMapping.disconnected([fact.rank for fact in inputs], [fact.rank for fact in outputs])
