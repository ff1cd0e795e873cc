"""Whether numbers at equal distances are as many as was said, as `tract_core.ops.range` counts them."""

from __future__ import annotations

from typing import Final

from tract_llvm.functions.rounding import ceil
from tract_llvm.language.function import Function
from tract_llvm.language.types import F64, I64, ElementType
from tract_llvm.language.values import Value

FAR: Final = 1 << 60
"""Integers from here on are never as many as was said, as differences might not fit."""


def are_so_many(k: Function, element: ElementType, bounds: tuple[Value, Value, Value], length: Value) -> Value:
    """Whether the numbers from a start to before an end, so far apart, are ``length`` ones for sure.

    ``bounds``: start, end and step, in ``element``. A number of steps that is none equals no length.
    """
    return _floats(k, bounds, length) if element.kind == "f" else _integers(k, bounds, length)


def _integers(k: Function, bounds: tuple[Value, Value, Value], length: Value) -> Value:
    start, end, step = (k.convert(one, I64) for one in bounds)
    near = [(one < FAR) & (one > -FAR) for one in (start, end, step)]
    up = step > 0
    size, way = k.select(up, step, -step), k.select(up, end - start, start - end)
    some = k.select(size.equals(0), size.like(1), size)
    count = k.select(way > 0, (way + some - 1) // some, 0)
    return near[0] & near[1] & near[2] & size.differs(0) & count.equals(k.convert(length, I64))


def _floats(k: Function, bounds: tuple[Value, Value, Value], length: Value) -> Value:
    start, end, step = (k.convert(one, F64) for one in bounds)
    count = ceil((end - start) / step)
    count = k.select(count < 0, count.like(0), count)
    return step.differs(0) & count.equals(k.convert(length, F64)) & (count < float(FAR))
