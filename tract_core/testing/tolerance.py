"""How close two arrays must be: the classes of ``--approx``, by element type."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, cast

import numpy as np

from tract_core.data import DatumType
from tract_core.data.boxes import from_tensor

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class Tolerance:
    """``|found - wanted| <= absolute + relative * |wanted|``, but for a share of ``outliers`` of the elements."""

    absolute: float
    relative: float
    outliers: float = 0.0


EXACT: Final = Tolerance(0, 0)
CLOSE: Final = Tolerance(1e-7, 1e-7)
APPROXIMATE: Final = Tolerance(1e-4, 5e-4)
HALF_CLOSE: Final = Tolerance(1e-3, 1e-3)
HALF_APPROXIMATE: Final = Tolerance(1e-3, 5e-3)

APPROX_CLASSES: Final = {
    "exact": EXACT,
    "close": CLOSE,
    "approximate": APPROXIMATE,
    "very": Tolerance(5e-2, 1e-2),
    "super": Tolerance(0.1, 0.05, 1e-4),
    "ultra": Tolerance(0.2, 0.1, 5e-4),
}
"""The classes that users choose from, for f32 and f64."""

_HALVES: Final = {
    DatumType.F16: {"close": HALF_CLOSE, "approximate": HALF_APPROXIMATE},
    DatumType.BF16: {
        "close": Tolerance(8e-3, 8e-3),
        "approximate": Tolerance(8e-3, 4e-2),
        "very": Tolerance(5e-2, 5e-2),
    },
}
"""A step of bf16, up to 0.8 % of a number, is eight times as large as one of f16; as many are allowed of both."""

_BY_TYPE: Final = {
    DatumType.F64: Tolerance(1e-12, 1e-10),
    DatumType.F32: Tolerance(1e-5, 1e-5),
    DatumType.F16: HALF_CLOSE,
    DatumType.BF16: Tolerance(1e-2, 1e-2),
    DatumType.COMPLEX_F32: Tolerance(1e-5, 1e-5),
    DatumType.COMPLEX_F64: Tolerance(1e-12, 1e-10),
}


def approx_class(name: str, kind: DatumType) -> Tolerance:
    """The tolerance of a class for an element type: half floats are allowed more."""
    return _HALVES.get(kind, {}).get(name) or APPROX_CLASSES[name]


def rounding_of(kind: DatumType) -> Tolerance:
    """What a few correctly rounded operations in that type may differ by; integers must agree exactly."""
    if kind.is_float():
        return _BY_TYPE.get(kind, Tolerance(0.25, 0.25))
    return _BY_TYPE.get(kind, EXACT)


def distances(found: Array, wanted: Array) -> tuple[float, float] | None:
    """The largest and the mean of ``|found - wanted|``; ``None`` for what are no numbers, or of another shape.

    Not-a-numbers and equal infinities are at distance 0 from each other, and infinitely far from all else. Of arrays
    without elements both are 0.
    """
    kinds = {found.dtype.kind, wanted.dtype.kind}
    if found.shape != wanted.shape or kinds & set("OSU"):
        return None
    if kinds <= set("iu") and found.dtype == wanted.dtype:
        # The difference of two integers need not fit their type; modulo 2**64 it is exact, and it is positive.
        distance = np.maximum(found, wanted).astype(np.uint64) - np.minimum(found, wanted).astype(np.uint64)
        distance = distance.astype(np.float64)
    else:
        wide = np.complex128 if "c" in kinds else np.float64
        a, b = found.astype(wide), wanted.astype(wide)
        with np.errstate(all="ignore"):
            distance = np.where(
                (a == b) | (np.isnan(a) & np.isnan(b)), 0.0, np.nan_to_num(np.abs(a - b), nan=np.inf, posinf=np.inf)
            )
    if not distance.size:
        return 0.0, 0.0
    with np.errstate(over="ignore"):
        return float(distance.max()), float(distance.mean())


def mismatch(found: Array, wanted: Array, tolerance: Tolerance) -> str | None:
    """``None`` when the arrays agree; else one sentence with the worst element, where it is, and how many there are.

    Nothing-a-numbers agree with each other, infinities when their signs do.
    """
    if _holds_values(found) or _holds_values(wanted):
        return _contents_mismatch(from_tensor(found), from_tensor(wanted), tolerance)
    if found.shape != wanted.shape:
        return f"shape is {list(found.shape)}, wanted {list(wanted.shape)}"
    worst = worst_of(found, wanted, tolerance)
    return None if worst is None or worst.differing <= tolerance.outliers * worst.elements else str(worst)


@dataclass(frozen=True, slots=True)
class Worst:
    """The element of two arrays that differs most, beyond a tolerance. Its ``place``: an index per axis.

    ``differing``, ``elements``: how many of how many do. ``largest``: whether it is known to be the worst of them;
    of what has no distances, as truth values, it is the first. ``found``, ``wanted``: both values, as texts.
    """

    differing: int
    elements: int
    place: tuple[int, ...]
    found: str
    wanted: str
    largest: bool

    def __str__(self) -> str:
        what = "the worst, at" if self.largest else "at"
        return (
            f"{self.differing} of {self.elements} elements differ; "
            f"{what} {list(self.place)}: {self.found}, wanted {self.wanted}"
        )


def worst_of(found: Array, wanted: Array, tolerance: Tolerance) -> Worst | None:
    """Of two arrays of one shape: the element that differs most; ``None`` when all are as near as they must be.

    The outliers that a tolerance allows are not left out.
    """
    kinds = {found.dtype.kind, wanted.dtype.kind}
    if kinds & set("OSUb") or (kinds <= set("iu") and tolerance == EXACT):
        bad = np.asarray(found != wanted)
        return _worst(found, wanted, bad, bad, largest=False) if bad.any() else None
    wide = np.complex128 if "c" in kinds else np.float64
    a, b = found.astype(wide), wanted.astype(wide)
    bad = np.asarray(_differs(a, b, tolerance))
    if not bad.any():
        return None
    with np.errstate(all="ignore"):
        return _worst(found, wanted, bad, np.abs(a - b), largest=True)


def bit_mismatch(found: Array, wanted: Array) -> str | None:
    """``None`` when two arrays agree in type, shape and every bit, the signs of zeros included; else one sentence.

    Whatever is not a number agrees with whatever else is not.
    """
    if found.dtype != wanted.dtype:
        return f"type is {found.dtype}, wanted {wanted.dtype}"
    return mismatch(found, wanted, EXACT) or sign_mismatch(found, wanted)


def sign_mismatch(found: Array, wanted: Array) -> str | None:
    """``None`` when the elements of arrays of one shape have the same signs, those of zeros included; else a sentence.

    What is not a number has none.
    """
    if found.dtype.kind in "OSUbiuc":
        return None
    signs = (np.signbit(array.astype(np.float64)) for array in (found, wanted))
    bad = np.not_equal(*signs) & ~np.isnan(wanted.astype(np.float64))
    return str(_worst(found, wanted, bad, bad, largest=False)) if bad.any() else None


def _holds_values(array: Array) -> bool:
    """Whether it is a container: a sequence, an optional or a map."""
    return array.dtype.kind == "O" and array.ndim == 0 and from_tensor(array) is not array


def _contents_mismatch(found: object, wanted: object, tolerance: Tolerance) -> str | None:
    found, wanted = _as_array(found), _as_array(wanted)
    if isinstance(found, np.ndarray) and isinstance(wanted, np.ndarray):
        return mismatch(cast("Array", found), cast("Array", wanted), tolerance)
    if isinstance(found, list) and isinstance(wanted, list):
        ours, theirs = cast("list[object]", found), cast("list[object]", wanted)
        if len(ours) != len(theirs):
            return f"{len(ours)} items, wanted {len(theirs)}"
        pairs = [(f"item {place}", one, other) for place, (one, other) in enumerate(zip(ours, theirs, strict=True))]
        return _first_mismatch(pairs, tolerance)
    if isinstance(found, dict) and isinstance(wanted, dict):
        mine, others = cast("dict[object, object]", found), cast("dict[object, object]", wanted)
        if mine.keys() != others.keys():
            return f"keys are {list(mine)!r:.200}, wanted {list(others)!r:.200}"
        return _first_mismatch([(f"entry {key!r}", one, others[key]) for key, one in mine.items()], tolerance)
    if found is wanted is None:
        return None
    return f"holds {_brief(cast('object', found))}, wanted {_brief(wanted)}"


def _first_mismatch(pairs: Iterable[tuple[str, object, object]], tolerance: Tolerance) -> str | None:
    problems = ((place, _contents_mismatch(one, other, tolerance)) for place, one, other in pairs)
    return next((f"{place}: {problem}" for place, problem in problems if problem), None)


def _as_array(value: object) -> object:
    """A single number or text, as other engines have them in maps, as an array without axes."""
    return np.array(value, object if isinstance(value, str) else None) if isinstance(value, _SINGLE) else value


_SINGLE: Final = (bool, int, float, complex, str, np.generic)


def _brief(value: object) -> str:
    return "nothing" if value is None else f"a {type(value).__name__}"


def _differs(a: Array, b: Array, tolerance: Tolerance) -> Array:
    with np.errstate(all="ignore"):
        near = np.abs(a - b) <= tolerance.absolute + tolerance.relative * np.abs(b)
    near &= np.isfinite(a) & np.isfinite(b)
    return ~(near | (a == b) | (np.isnan(a) & np.isnan(b)))


def _worst(found: Array, wanted: Array, bad: Array, distance: Array, *, largest: bool) -> Worst:
    """That of the largest distance among those that are bad, the first of several."""
    error = np.where(bad, np.nan_to_num(distance.astype(np.float64), nan=np.inf), -1.0)
    place = tuple(int(i) for i in np.unravel_index(int(np.argmax(error)), error.shape))
    return Worst(int(bad.sum()), bad.size, place, _plain(found[place]), _plain(wanted[place]), largest)


def _plain(element: Any) -> str:
    """A number in the fewest digits that tell it from others of its type; anything else as Python writes it."""
    if not hasattr(element, "dtype"):
        return repr(element)
    return repr(element.item()) if element.dtype.kind in "SUb" else str(element)
