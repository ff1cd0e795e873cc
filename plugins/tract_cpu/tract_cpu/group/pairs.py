"""Sums of products of any number of factors, and over axes of one factor only, as products of two and reductions."""

from __future__ import annotations

from collections.abc import Sequence

from tract_core.data import DatumType
from tract_core.dims import is_one
from tract_core.model.axes import AxesMapping
from tract_core.model.fact import TypedFact
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel
from tract_core.ops.einsum import EinSum
from tract_core.ops.expect import wide
from tract_core.ops.reduce import Reduce, Reducer
from tract_core.ops.wiring import wire_cast, wire_one, wire_squeeze, wire_transpose

_Named = tuple[OutletId, str]
"""A tensor, and the name of each of its axes."""


def wire_pairs(op: EinSum, model: TypedModel, inputs: Sequence[OutletId]) -> OutletId:
    """The factors from left to right, two by two, all in the type in which the operator sums."""
    (output,) = op.axes.outputs
    kind = model.outlet_fact(inputs[0]).datum_type.storage
    compute = op.acc if op.acc.is_integer() else DatumType.from_numpy(wide(op.acc.numpy))
    factors = [
        _diagonal(model, f"factor{slot}", (wire_cast(model, f"factor{slot}.wide", x, compute), term), compute)
        for slot, (x, term) in enumerate(zip(inputs, op.axes.inputs, strict=True))
    ]
    found = factors[0]
    for slot, factor in enumerate(factors[1:], start=1):
        kept = set(output).union(*(term for _, term in factors[slot + 1 :]))
        found = _pair(model, f"product{slot}", (found, factor), kept, compute)
    x, term = _summed(model, "sum", found, set(output))
    x = wire_transpose(model, "turned", x, [term.index(name) for name in output])
    return wire_cast(model, "result", x, op.acc if op.acc.is_integer() else kind)


def _long(term: str, fact: TypedFact) -> set[str]:
    return {name for name, size in zip(term, fact.shape, strict=True) if not is_one(size)}


def _diagonal(model: TypedModel, name: str, x: _Named, compute: DatumType) -> _Named:
    outlet, term = x
    unique = "".join(dict.fromkeys(term))
    if unique == term:
        return x
    return wire_one(model, f"{name}.diagonal", EinSum(AxesMapping((term,), (unique,)), compute), outlet), unique


def _pair(model: TypedModel, name: str, factors: tuple[_Named, _Named], kept: set[str], compute: DatumType) -> _Named:
    """The product of two tensors, summed over the axes that are not ``kept``; what only one has is summed before."""
    pairs = (factors, factors[::-1])
    narrow = [_unstretched(model, f"{name}.{n}", one, other) for n, (one, other) in enumerate(pairs)]
    found: list[_Named] = []
    for number, (one, other) in enumerate((narrow, narrow[::-1])):
        found.append(_summed(model, f"{name}.{number}", one, kept | set(other[1])))
    terms = tuple(term for _, term in found)
    result = "".join(one for one in dict.fromkeys("".join(terms)) if one in kept)
    product = EinSum(AxesMapping(terms, (result,)), compute)
    return wire_one(model, name, product, *(x for x, _ in found)), result


def _unstretched(model: TypedModel, name: str, x: _Named, other: _Named) -> _Named:
    """Without the axes of size 1 that the other one has at another size."""
    outlet, term = x
    wanted = _long(other[1], model.outlet_fact(other[0]))
    drop = [axis for axis, size in enumerate(model.outlet_fact(outlet).shape) if is_one(size) and term[axis] in wanted]
    left = "".join(one for axis, one in enumerate(term) if axis not in drop)
    return wire_squeeze(model, f"{name}.narrow", outlet, drop), left


def _summed(model: TypedModel, name: str, x: _Named, kept: set[str]) -> _Named:
    """Summed over the axes that are not ``kept``."""
    outlet, term = x
    drop = [axis for axis, one in enumerate(term) if one not in kept]
    if not drop:
        return x
    outlet = wire_one(model, f"{name}.sum", Reduce(tuple(drop), Reducer.SUM), outlet)
    return wire_squeeze(model, f"{name}.summed", outlet, drop), "".join(one for one in term if one in kept)
