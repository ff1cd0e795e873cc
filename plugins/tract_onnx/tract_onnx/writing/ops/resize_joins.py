"""Elements that are repeated along axes: what `Resize` to the nearest element is in normal form."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import onnx

from tract_core.data import DatumType
from tract_core.dims import Dim, is_one, product
from tract_core.model.fact import TypedFact
from tract_onnx.writing.joining import JoinFn, Site

_CHAIN: Final = ("Expand", "Reshape", "Unsqueeze")

_LONGEST: Final = 16
"""So many nodes are looked at."""

_RESIZED: Final = (DatumType.F32, DatumType.U8, DatumType.I8)
"""Types that engines resize."""

_NEAREST: Final = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}

Factor = tuple[int | None, Dim]
"""A part of an axis: which axis it was before, and its size; or none, and how often each element is there."""

Axes = Sequence[Sequence[Factor]]
"""Of each axis its parts, in order."""


def repeated(site: Site) -> Sequence[onnx.NodeProto] | None:
    """Resize, for axes that are added, expanded, and merged with those in front of them, the last one too

    Where that is not repeated, Expand copies in pieces, and is as fast.
    """
    chain = _chain(site)
    for first, node in enumerate(chain):
        x = site.fact(node.input[0])
        factors = None if x is None else _factors(site, chain[first:], x)
        if factors is not None and factors[-1] > 1 and set(factors[:2]) == {1}:
            scales = site.constant(np.array(factors, np.float32))
            return site.instead("Resize", node.input[0], "", scales, **_NEAREST)
    return None


def _chain(site: Site) -> list[onnx.NodeProto]:
    """The nodes up to this one that only arrange and repeat elements, the first one first."""
    found = [site.node]
    while len(found) < _LONGEST:
        before = site.maker(found[0].input[0])
        if before is None or before.op_type not in _CHAIN or not site.is_alone(before.output[0]):
            break
        found.insert(0, before)
    return found


def _factors(site: Site, chain: Sequence[onnx.NodeProto], x: TypedFact) -> list[int] | None:
    """How often each element is there, axis by axis; ``None`` where elements are anywhere else."""
    if x.datum_type not in _RESIZED:
        return None
    before: Axes = [[] if is_one(size) else [(axis, size)] for axis, size in enumerate(x.shape)]
    axes: Axes | None = before
    for node in chain:
        after = site.fact(node.output[0])
        if axes is None or after is None:
            return None
        axes = (_expanded if node.op_type == "Expand" else _arranged)(site, axes, after)
    if axes is None or len(axes) != x.rank or x.rank < 3:
        return None
    counts = [_count(parts, whole) for parts, whole in zip(axes, before, strict=True)]
    return None if None in counts else [one for one in counts if one is not None]


def _expanded(site: Site, axes: Axes, after: TypedFact) -> Axes | None:
    """Axes of size 1 are as long as they are behind it."""
    missing: list[Sequence[Factor]] = [() for _ in range(after.rank - len(axes))]
    found: list[Sequence[Factor]] = []
    for parts, size in zip([*missing, *axes], after.shape, strict=True):
        if parts and not site.equal(_size(parts), size):
            return None
        found.append(parts or ([] if is_one(size) else [(None, size)]))
    return found


def _arranged(site: Site, axes: Axes, after: TypedFact) -> Axes | None:
    """The same parts in the same order, as axes of other sizes."""
    pending = [part for parts in axes for part in parts]
    found: list[Sequence[Factor]] = []
    for size in after.shape:
        lengths = range(len(pending) + 1)
        count = next((count for count in lengths if site.equal(_size(pending[:count]), size)), None)
        if count is None:
            return None
        found.append(pending[:count])
        pending = pending[count:]
    return None if pending else found


def _size(parts: Sequence[Factor]) -> Dim:
    return product([size for _, size in parts])


def _count(parts: Sequence[Factor], before: Sequence[Factor]) -> int | None:
    """How often each element of an axis is there; ``None`` where the axis is none of that kind."""
    counts = [size for axis, size in parts[len(before) :] if axis is None and isinstance(size, int)]
    is_repeated = [*parts[: len(before)]] == [*before] and len(counts) == len(parts) - len(before)
    return int(np.prod(counts)) if is_repeated else None


JOINS: Final[Sequence[tuple[str, JoinFn]]] = (("Reshape", repeated),)
