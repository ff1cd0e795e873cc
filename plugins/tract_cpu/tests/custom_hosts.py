"""Operators as others write them, of which native code cannot be made: each for a reason of its own."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import numpy as np
from custom_operators import LikeFirst

from tract_core.data import DatumType
from tract_core.model.op import TypedOp
from tract_core.plugins.keys import REFERENCE
from tract_core.plugins.tables import Rows

ROWS = Rows()
FACTORS = [2.0, 3.0]
CALLS = 0
SCALE = 2.0


def set_scale(scale):
    global SCALE  # noqa: PLW0603 - what is tested
    SCALE = scale


@dataclass(frozen=True)
class Branch(LikeFirst):
    pass


@ROWS.row(REFERENCE, Branch)
def branch(op, x):
    if x.sum() > 0:
        return x * 2
    return x


@dataclass(frozen=True)
class Caught(LikeFirst):
    """A branch, in code that goes on whatever happens."""


@ROWS.row(REFERENCE, Caught)
def caught(op, x):
    try:
        return x * 2 if (x > 0).any() else x
    except Exception:
        return x


@dataclass(frozen=True)
class Solved(LikeFirst):
    pass


@ROWS.row(REFERENCE, Solved)
def solved(op, x):
    return np.linalg.solve(np.eye(x.shape[-1], dtype=x.dtype), x.T).T


@dataclass(frozen=True)
class Sorted(LikeFirst):
    pass


@ROWS.row(REFERENCE, Sorted)
def in_order(op, x):
    return np.sort(x, axis=-1)


@dataclass(frozen=True)
class Noise(LikeFirst):
    pass


@ROWS.row(REFERENCE, Noise)
def noise(op, x):
    return x + np.random.normal() * 0


@dataclass(frozen=True)
class OwnNoise(LikeFirst):
    generator: object = field(default_factory=lambda: np.random.default_rng(0))


@ROWS.row(REFERENCE, OwnNoise)
def own_noise(op, x):
    return x + x.dtype.type(op.generator.random()) * 0


@dataclass(frozen=True)
class InPlace(LikeFirst):
    pass


@ROWS.row(REFERENCE, InPlace)
def in_place(op, x):
    x += 1
    return x


@dataclass(frozen=True)
class Written(LikeFirst):
    pass


@ROWS.row(REFERENCE, Written)
def written(op, x):
    y = x * 2
    y[y < 0] = 0
    return y


@dataclass(frozen=True)
class SeenTwice(LikeFirst):
    """A view on an array that is changed later."""


@ROWS.row(REFERENCE, SeenTwice)
def seen_twice(op, x):
    y = x * 2
    view = y.T
    y += 1
    return view.T


@dataclass(frozen=True)
class Counted(LikeFirst):
    pass


@ROWS.row(REFERENCE, Counted)
def counted(op, x):
    global CALLS  # noqa: PLW0603 - what is tested
    CALLS += 1
    return x * 2


def _counting():
    calls = 0

    def meaning(op, x):
        nonlocal calls
        calls += 1
        return x * 2

    return meaning


@dataclass(frozen=True)
class CountedInside(LikeFirst):
    pass


ROWS.add(REFERENCE, CountedInside, _counting())


@dataclass(frozen=True)
class Remembered(LikeFirst):
    pass


@ROWS.row(REFERENCE, Remembered)
def remembered(op, x):
    remembered.last = x
    return x * 2


@dataclass(frozen=True)
class Listed(LikeFirst):
    pass


@ROWS.row(REFERENCE, Listed)
def listed(op, x):
    return x * FACTORS[0]


@dataclass(frozen=True)
class Scaled(LikeFirst):
    pass


@ROWS.row(REFERENCE, Scaled)
def scaled(op, x):
    return x * SCALE


@dataclass(frozen=True)
class Timed(LikeFirst):
    pass


@ROWS.row(REFERENCE, Timed)
def timed(op, x):
    return x + time.monotonic() * 0


@dataclass(frozen=True)
class Printed(LikeFirst):
    pass


@ROWS.row(REFERENCE, Printed)
def printed(op, x):
    print("called")  # noqa: T201 - what is tested
    return x * 2


@dataclass(frozen=True)
class RowByRow(LikeFirst):
    pass


@ROWS.row(REFERENCE, RowByRow)
def row_by_row(op, x):
    return np.stack([row - row.mean() for row in x]) if len(x) else x


@dataclass(frozen=True)
class Places(LikeFirst):
    pass


@ROWS.row(REFERENCE, Places)
def places(op, x):
    return x + np.arange(x.shape[0], dtype=x.dtype)[:, None]


@dataclass(frozen=True)
class EvenRows(LikeFirst):
    pass


@ROWS.row(REFERENCE, EvenRows)
def even_rows(op, x):
    return x * 2 if x.shape[0] % 2 == 0 else x


@dataclass(frozen=True)
class Raises(LikeFirst):
    pass


@ROWS.row(REFERENCE, Raises)
def raises(op, x):
    raise NotImplementedError("not on this machine")


@dataclass(frozen=True)
class Whole(TypedOp):
    """Floats as integers, those too that no integer is near."""

    def output_facts(self, inputs):
        return (inputs[0].with_type(DatumType.I32),)


@ROWS.row(REFERENCE, Whole)
def whole(op, x):
    return x.astype(np.int32)


@dataclass(frozen=True)
class OtherType(LikeFirst):
    """One that gives what it does not announce."""


@ROWS.row(REFERENCE, OtherType)
def other_type(op, x):
    return x * np.float64(2)


@dataclass(frozen=True)
class HalfSum(TypedOp):
    def output_facts(self, inputs):
        return (inputs[0].with_shape(inputs[0].shape[:-1]),)


@ROWS.row(REFERENCE, HalfSum)
def half_sum(op, x):
    return x.sum(axis=-1)


@dataclass(frozen=True)
class Bits(LikeFirst):
    """The memory of numbers, looked at as another type."""


@ROWS.row(REFERENCE, Bits)
def bits(op, x):
    return (x.view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)


@dataclass(frozen=True)
class Picked(LikeFirst):
    pass


@ROWS.row(REFERENCE, Picked)
def picked(op, x):
    return x[:, np.array([2, 0, 1])]
