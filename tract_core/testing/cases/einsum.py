"""Cases of sums of products over named axes."""

from __future__ import annotations

from typing import Any

import numpy as np

from tract_core.data import DatumType
from tract_core.model.axes import AxesMapping
from tract_core.ops.einsum import EinSum
from tract_core.plugins.tables import Rows
from tract_core.testing.case import CASES, Arg, Case
from tract_core.testing.tolerance import Tolerance

ROWS = Rows()

_SIZES = {"B": 2, "S": 5, "M": 3, "K": 4, "N": 6}


def _by_hand(expression: str, *arrays: Any) -> Any:
    """The sum, index by index: slow, and as plain as the definition."""
    inputs, output = expression.split("->")
    terms = inputs.split(",")
    sizes: dict[str, int] = {}
    for term, array in zip(terms, arrays, strict=True):
        for name, size in zip(term, array.shape, strict=True):
            sizes[name] = max(size, sizes.get(name, 1))
    names = list(sizes)
    result = np.zeros([sizes[name] for name in output], np.result_type(*arrays, np.float64))
    for index in np.ndindex(*sizes.values()):
        at = dict(zip(names, index, strict=True))
        product: Any = 1
        for term, array in zip(terms, arrays, strict=True):
            place = tuple(min(at[name], size - 1) for name, size in zip(term, array.shape, strict=True))
            product = product * array[place]
        result[tuple(at[name] for name in output)] += product
    return result


def _case(expression: str, *inputs: str | Arg, acc: DatumType = DatumType.F32, tolerance: Any = None) -> Case:
    kinds = [(arg if isinstance(arg, str) else arg.fact) for arg in inputs]
    name = f"EinSum-{expression}-{';'.join(kinds)}"
    op = EinSum(AxesMapping.parse(expression), acc)
    return Case(name, op, inputs, lambda *arrays: _by_hand(expression, *arrays), _SIZES, tolerance)


def _product(acc: DatumType, *arrays: Any) -> Any:
    """The matrix product of integers, in Python's own numbers, wrapped into the accumulator."""
    a, b = (array.astype(object) for array in arrays)
    bits = acc.itemsize * 8
    wrapped = [[(int(x) + 2 ** (bits - 1)) % 2**bits - 2 ** (bits - 1) for x in row] for row in a @ b]
    return np.array(wrapped, acc.numpy)


def _integers(name: str, acc: DatumType, *inputs: Arg) -> Case:
    op = EinSum(AxesMapping.parse("mk,kn->mn"), acc)
    return Case(f"EinSum-{name}", op, inputs, lambda *arrays: _product(acc, *arrays), _SIZES)


def _quantized(a: Any, b: Any, bias: Any, *params: Any) -> Any:
    """Element by element: a zero point and a scale per row of a, one for all of b and of the output."""
    a0, a_scale, b0, b_scale, c0, c_scale = params
    result = np.zeros((a.shape[0], b.shape[1]), np.int8)
    for m, n in np.ndindex(*result.shape):
        total = sum((int(a[m, k]) - int(a0[m])) * (int(b[k, n]) - int(b0)) for k in range(a.shape[1]))
        real = (total + int(bias[n])) * float(a_scale[m]) * float(b_scale) / float(c_scale)
        result[m, n] = min(max(round(real) + int(c0), -128), 127)
    return result


_HALF = Tolerance(2e-3, 2e-3)

_CASES = [
    _case("mk,kn->mn", "M,K,f32", "K,N,f32"),
    _case("km,nk->nm", "K,M,f32", "N,K,f32"),
    _case("mk,kn->mn", "M,K,f64", "K,N,f64", acc=DatumType.F64),
    _case("mk,kn->mn", "M,K,f16", "K,N,f16", tolerance=_HALF),
    _case("mk,kn->mn", "M,K,bf16", "K,N,bf16"),
    _case("mk,kn->mn", "M,K,complex_f32", "K,N,complex_f32", acc=DatumType.COMPLEX_F32),
    _case("bmk,bkn->bmn", "B,M,K,f32", "B,K,N,f32"),
    _case("bmk,kn->bmn", "B,M,K,f32", "K,N,f32"),
    _case("abmk,abkn->abmn", "B,S,M,K,f32", "1,S,K,N,f32"),
    _case("bhqd,bkhd->bhqk", "B,3,S,4,f32", "B,6,3,4,f32"),
    _case("k,k->", "K,f32", "K,f32"),
    _case("m,n->nm", "M,f32", "N,f32"),
    _case("abc->ca", "B,S,M,f32"),
    _case("ab->", "B,S,f32"),
    _case("ii->", "M,M,f32"),
    _case("iij,j->i", "M,M,N,f32", "N,f32"),
    _case("ab,bc,cd->ad", "B,S,f32", "S,M,f32", "M,K,f32"),
    _case("ab,ab,b->a", "B,S,f32", "B,S,f32", "S,f32"),
    _case("ab,ab->ab", "B,S,f32", "B,1,f32"),
    _case(",a->a", "f32", "S,f32"),
    _integers("bytes into i32", DatumType.I32, Arg("M,K,i8", low=-128, high=127), Arg("K,N,u8", low=0, high=255)),
    _integers("i32 wraps around", DatumType.I32, Arg("M,K,i32", low=-(2**30), high=2**30), Arg("K,N,i32", high=2**20)),
    _integers("i64", DatumType.I64, Arg("M,K,i64", low=-(2**40), high=2**40), Arg("K,N,i64")),
    Case(
        "EinSum-quantized",
        EinSum(AxesMapping.parse("mk,kn,n,m,m,,,,->mn"), DatumType.I32, DatumType.I8),
        [
            Arg("M,K,i8", low=-128, high=127),
            Arg("K,N,u8", low=0, high=255),
            Arg("N,i32", low=-500, high=500),
            Arg("M,i8", low=-5, high=5),
            Arg("M,f32", low=0.01, high=0.1),
            Arg("u8", 128),
            Arg("f32", 0.03),
            Arg("i8", -3),
            Arg("f32", 0.2),
        ],
        _quantized,
        _SIZES,
    ),
]

ROWS.add(CASES, "einsum", _CASES)
