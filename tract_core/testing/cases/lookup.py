"""Cases of the operators that look values up."""

from __future__ import annotations

from typing import Any

import numpy as np

from tract_core.data import Constant
from tract_core.ops.lookup import Lookup
from tract_core.plugins.tables import Rows
from tract_core.testing.case import CASES, Arg, Case

ROWS = Rows()


def _list(values: list[Any], kind: Any) -> Constant:
    return Constant(np.array(values, object if kind is str else kind))


def _case(name: str, keys: list[Any], values: list[Any], default: Any, given: list[Any], *, kinds: Any) -> Case:
    """``kinds``: of the keys and of the values. Of equal keys the last one counts."""
    of_keys, of_values = kinds
    table = dict(zip(keys, values, strict=True))
    wanted = np.array([table.get(key, default) for key in given], object if of_values is str else of_values)
    fact = "N,string" if of_keys is str else f"N,{np.dtype(of_keys).kind}{8 * np.dtype(of_keys).itemsize}"
    op = Lookup(_list(keys, of_keys), _list(values, of_values), Constant(_list([default], of_values).array.reshape(())))
    return Case(f"Lookup-{name}", op, [Arg(fact, given)], lambda _: wanted, {"N": len(given)})


_CASES = [
    _case("numbers", [7, -1, 3, 7], [1, 2, 3, 4], -9, [3, 7, 0, -1, 3], kinds=(np.int64, np.int64)),
    _case("narrow", [1, 2], [0.5, 1.5], np.nan, [2, 1, 2, 2], kinds=(np.int32, np.float32)),
    _case("no-keys", [], [], 5, [1, 2], kinds=(np.int64, np.int32)),
    _case("no-elements", [1], [2], 5, [], kinds=(np.int64, np.int64)),
    _case("places", ["a", "", "b\u00e9"], [0, 1, 2], -1, ["b\u00e9", "c", "", "a"], kinds=(str, np.int64)),
    _case("texts", [0, 1], ["no", "yes"], "?", [1, 5, 0], kinds=(np.int64, str)),
]

ROWS.add(CASES, "lookup", _CASES)
