"""Whether a traced meaning computes what NumPy computes, tried on arrays with all that is special in their types."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, cast

import numpy as np

from tract_core.data import DatumType
from tract_core.dims import evaluate
from tract_core.errors import DimError, TractError
from tract_core.model.fact import TypedFact
from tract_core.model.typed import TypedModel
from tract_core.plugins.keys import Array
from tract_core.runtime.plan import TypedSimplePlan
from tract_cpu.tracing.refused import NotTraced

_SIZES: Final = (3, 5, 7, 4, 6, 9, 2, 8)
"""What symbols are, one after the other."""

_MUCH: Final = 1 << 20
"""From so many elements on, arrays are tried once only."""

_SPECIAL: Final = (np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 300.5, -7e4, 3e9, -1e19, 1e30, 1e-30)

_UNITS: Final = 64
"""By how many units in the last place of the largest number results may differ: functions of several operators do."""


def check_meaning(
    model: TypedModel, meaning: Callable[..., Any], facts: Sequence[TypedFact], *, open_zeros: bool
) -> None:
    """Raises NotTraced where the traced model and the meaning, called on arrays, differ.

    ``facts``: of the inputs. ``open_zeros``: whether zeros may have another sign.
    """
    plan = TypedSimplePlan(model)
    tried = 0
    for values in _values(facts):
        try:
            shapes = [tuple(evaluate(size, values) for size in fact.shape) for fact in facts]
        except DimError:
            continue
        if any(size < 0 for shape in shapes for size in shape):
            continue
        large = sum(int(np.prod(shape)) for shape in shapes) > _MUCH
        for special in (True,) if large else (False, True):
            rng = np.random.default_rng(len(shapes) + special)
            arrays = [_filled(fact, shape, rng, special=special) for fact, shape in zip(facts, shapes, strict=True)]
            tried += _agree(plan, meaning, arrays, values, open_zeros=open_zeros)
    if not tried:
        raise NotTraced("no sizes were found on which its meaning could be compared with NumPy's")


def _values(facts: Sequence[TypedFact]) -> Iterator[Mapping[str, int]]:
    """Values of the symbols: several, all different, and all 0, 1 and 2."""
    names = sorted(frozenset[str]().union(*(fact.shape.symbols() for fact in facts)))
    yield {name: _SIZES[place % len(_SIZES)] for place, name in enumerate(names)}
    for size in (0, 1, 2) if names else ():
        yield dict.fromkeys(names, size)


def _filled(fact: TypedFact, shape: tuple[int, ...], rng: np.random.Generator, *, special: bool) -> Array:
    """An array of elements all over the type where they are to be special, else of small ones."""
    dtype = fact.datum_type.numpy
    if dtype.kind == "b":
        return rng.random(shape) < 0.5
    if fact.datum_type.is_integer():
        ends = np.iinfo(dtype)
        low, high = (ends.min, ends.max) if special else (max(ends.min, -9), min(ends.max, 9))
        found = rng.integers(low, high, shape, dtype, endpoint=True)
        picks = np.array([ends.min, ends.max, 0, 1], dtype)
    else:
        found = (rng.standard_normal(shape) * 2).astype(np.float32).astype(dtype)
        with np.errstate(all="ignore"):
            picks = np.array(_SPECIAL).astype(np.float32).astype(dtype)
    if special:
        found = np.where(rng.random(shape) < 0.4, picks[rng.integers(0, picks.size, shape)], found).astype(dtype)
    return found


def _agree(
    plan: TypedSimplePlan,
    meaning: Callable[..., Any],
    arrays: Sequence[Array],
    values: Mapping[str, int],
    *,
    open_zeros: bool,
) -> bool:
    """Whether both gave something: where sizes do not fit, both refuse. Raises NotTraced."""
    for one in arrays:
        one.flags.writeable = False
    with np.errstate(all="ignore"):
        try:
            found = plan.spawn().run(arrays, symbols=values)
        except TractError:
            found = None
        try:
            wanted = meaning(*arrays)
        except Exception as error:
            if found is None:
                return False
            raise NotTraced(
                f"its meaning raises {type(error).__name__}, where native code would not: {error}"
            ) from None
    if found is None:
        return False
    several = results_of(wanted)
    for one, right in zip(found, map(np.asarray, several), strict=True):
        _compare(one, right, open_zeros=open_zeros)
    return True


def results_of(found: Any) -> tuple[Any, ...]:
    """What a meaning gives, one or several."""
    return cast("tuple[Any, ...]", found) if isinstance(found, tuple) else (found,)


def _compare(found: Array, wanted: Array, *, open_zeros: bool) -> None:
    """Raises NotTraced where an array is not what it should be."""
    if found.dtype != wanted.dtype or found.shape != wanted.shape:
        sides = f"{wanted.dtype}{list(wanted.shape)}, traced {found.dtype}{list(found.shape)}"
        raise NotTraced(f"its meaning gives {sides}")
    if not DatumType.from_numpy(wanted.dtype).is_float():
        wrong = found != wanted
    else:
        kind = wanted.dtype
        unit = 2.0**-7 if kind.itemsize < 4 and kind != np.float16 else float(np.finfo(kind).eps)
        left, right = (one.astype(np.float64) for one in (found, wanted))
        largest = np.abs(right[np.isfinite(right)]).max(initial=0)
        with np.errstate(invalid="ignore"):
            wrong = ~((left == right) | (np.abs(left - right) <= _UNITS * unit * largest))
        wrong &= ~(np.isnan(left) & np.isnan(right))
        if not open_zeros:
            wrong |= (left == 0) & (right == 0) & (np.signbit(left) != np.signbit(right))
    if wrong.any():
        one, right = found[wrong][0], wanted[wrong][0]
        raise NotTraced(f"native code would give {one} where its meaning gives {right}")
