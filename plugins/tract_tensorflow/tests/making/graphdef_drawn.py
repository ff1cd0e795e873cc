"""What the cases of graphs are given, and the families that they belong to."""

from __future__ import annotations

import numpy as np

FAMILIES = {}


class Chance:
    """Numbers drawn anew for each family: one of them can be made alone."""

    rng = np.random.default_rng(38)


def family(function):
    FAMILIES[function.__name__] = function
    return function


def floats(*shape, low=-2.0, high=2.0, kind=np.float32):
    return Chance.rng.uniform(low, high, shape).astype(kind)


def i32(*values):
    return np.array(values, np.int32)


def ints(*shape, low=-9, high=10, kind=np.int32):
    return Chance.rng.integers(low, high, shape).astype(kind)
