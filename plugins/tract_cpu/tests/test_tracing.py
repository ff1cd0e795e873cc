"""What functions of NumPy become, one by one: native code gives what NumPy gives, or the function is refused."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from tract_cpu.plan import CpuPlan
from tract_cpu.tracing.code import Reader
from tract_cpu.tracing.refused import NotTraced
from tract_cpu.tracing.table import FUNCTIONS
from tract_cpu.tracing.trace import Trace
from tract_cpu.tracing.traced import Traced
from tract_llvm.isa import of_this_machine

from tract_core.data import DatumType
from tract_core.model.fact import TypedFact
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.typed import TypedModel

TYPES = ("f2", "f4", "f8", "i1", "i4", "i8", "u1", "u8", "?")
FLOATS = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.5, 3.5, 7.0, 1e-3, 900.25, -1e4]
LEFT_OPEN = {np.maximum, np.minimum, np.fmax, np.fmin}
"""Those of which NumPy does not say which of two zeros they give."""


def elements(dtype: str) -> np.ndarray:
    """Numbers at and near all that is special in a type."""
    kind = np.dtype(dtype)
    if kind.kind == "b":
        return np.array([True, False] * 8)
    if kind.kind == "f":
        return np.array(FLOATS, kind)
    ends = np.iinfo(kind)
    small = [0, 1, 2, 3, 7, 8, 31, 64, ends.max, ends.max - 1, ends.min, ends.min + 1, ends.max // 2]
    return np.array([*small, *((-1, -2, -7) if ends.min < 0 else (5, 6, 100))], object).astype(kind)


def plan_of(function: Callable[..., Any], arrays: Sequence[np.ndarray]) -> CpuPlan:
    """What becomes of a function on arrays like these. Raises Refused."""
    body = TypedModel()
    facts = [TypedFact.of(DatumType.from_numpy(one.dtype), one.shape) for one in arrays]
    sources = [body.add_source(f"x{place}", fact) for place, fact in enumerate(facts)]
    trace = Trace(body, "traced", FUNCTIONS)
    found = function(*(Traced(trace, one, own=False) for one in sources))
    several = found if isinstance(found, (tuple, list)) else [found]
    body.set_outputs([trace.array(one).outlet for one in several])
    return CpuPlan(body, of_this_machine()[-1])


def check(found: np.ndarray, wanted: np.ndarray, *, zeros: bool, units: float = 8) -> None:
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
    if wanted.dtype.kind != "f":
        np.testing.assert_array_equal(found, wanted)
        return
    unit = float(np.finfo(wanted.dtype).eps)
    np.testing.assert_allclose(found, wanted, rtol=units * unit, atol=0 if units == 8 else units * unit)
    if zeros:
        np.testing.assert_array_equal(np.signbit(found[wanted == 0]), np.signbit(wanted[wanted == 0]))


@pytest.mark.parametrize("ufunc", FUNCTIONS.ufuncs, ids=lambda one: one.__name__)
def test_an_element_wise_function_gives_what_numpy_gives(ufunc) -> None:
    known = 0
    for dtype in TYPES:
        one = elements(dtype)
        arrays = [one] if ufunc.nin == 1 else [np.repeat(one, one.size), np.tile(one, one.size)]
        try:
            plan = plan_of(ufunc, arrays)
        except (NotTraced, TypeError):  # the latter is NumPy's
            continue
        with np.errstate(all="ignore"):
            wanted = ufunc(*arrays)
        check(plan.spawn().run(arrays)[0], wanted, zeros=ufunc not in LEFT_OPEN)
        known += 1
    assert known >= 1


NUMBERS = [
    lambda x: x + 1,
    lambda x: 3 - x,
    lambda x: x / 2,
    lambda x: x**2,
    lambda x: x * 2.5,
    lambda x: x % 3,
    lambda x: -x,
    abs,
    lambda x: (x > 1) & (x <= 3),
    lambda x: x.astype(np.float64) * 0.1,
    lambda x: np.where(x > 0, x, 0),
    lambda x: np.where(x > 0, 1.5, x),
    lambda x: np.clip(x, 1, 3),
    lambda x: np.clip(x, None, 2),
    lambda x: x.clip(min=0),
    lambda x: np.sum(x, axis=1),
    lambda x: x.sum(),
    lambda x: np.sum(x, axis=(0, 2), keepdims=True),
    lambda x: np.prod(x, axis=-1),
    lambda x: np.mean(x, axis=0),
    lambda x: x.mean(keepdims=True),
    lambda x: np.var(x, axis=-1, ddof=1),
    lambda x: x.std(axis=(1, 2)),
    lambda x: x.max(axis=2) - np.min(x, axis=2),
    lambda x: np.amax(x, 1),
    lambda x: np.argmax(x, axis=1),
    lambda x: x.argmin(axis=0),
    lambda x: np.any(x > 2, axis=1),
    lambda x: (x < 9).all(),
    lambda x: np.cumsum(x, axis=1),
    lambda x: np.linalg.norm(x, axis=2),
    np.linalg.norm,
    lambda x: np.linalg.norm(x, np.inf, 1, keepdims=True),
    lambda x: x.reshape(6, -1),
    lambda x: x.reshape((3, 2, 4)),
    lambda x: x.T,
    lambda x: x.transpose(1, 0, 2),
    lambda x: np.transpose(x, (2, 0, 1)),
    lambda x: x.swapaxes(0, -1),
    lambda x: np.moveaxis(x, 0, -1),
    lambda x: np.expand_dims(x, (0, 2)),
    lambda x: np.squeeze(x[:, :1]),
    lambda x: x.ravel() * 2,
    lambda x: np.broadcast_to(x[:, :, :1], (2, 3, 5)),
    lambda x: np.concatenate([x, x * 2], axis=1),
    lambda x: np.stack([x, -x], axis=-1),
    lambda x: np.split(x, 2, axis=-1),
    lambda x: np.split(x, [1, 3], axis=2),
    lambda x: x[0],
    lambda x: x[..., -1],
    lambda x: x[:, None, 1:, ::2],
    lambda x: x[:, :, ::-1],
    lambda x: x[-1:, :2, 5:],
    lambda x: np.zeros_like(x) + np.ones_like(x) * np.full_like(x, 3),
    lambda x: np.round(x) + np.nan_to_num(x),
    lambda x: np.add.reduce(x) + np.maximum.reduce(x, axis=0),
    lambda x: x * np.array([1, 2, 3, 4], np.int8),
    lambda x: np.float32(2) * x,
]
"""Each is called with NumPy's arrays and with symbolic ones."""


@pytest.mark.parametrize("dtype", ["f4", "f8", "i4", "u1"])
@pytest.mark.parametrize("place", range(len(NUMBERS)))
def test_a_function_gives_what_numpy_gives(place, dtype) -> None:
    x = np.random.default_rng(place).integers(0, 5, (2, 3, 4)).astype(dtype)
    if x.dtype.kind == "f":
        x += np.random.default_rng(place).standard_normal(x.shape).astype(dtype)
    wanted = NUMBERS[place](x)
    found = plan_of(NUMBERS[place], [x]).spawn().run([x])
    for one, right in zip(found, wanted if isinstance(wanted, list) else [wanted], strict=True):
        check(one, np.asarray(right), zeros=False, units=64)


PRODUCTS = [
    lambda x, y: x @ y,
    lambda x, y: np.matmul(x[0], y),
    lambda x, y: np.dot(x[0], y[1]),
    lambda x, y: x[1, 2] @ y[0],
    lambda x, y: np.einsum("bij,bjk->bki", x, y),
]


@pytest.mark.parametrize("place", range(len(PRODUCTS)))
def test_products_are_those_of_numpy(place) -> None:
    rng = np.random.default_rng(place)
    x, y = rng.standard_normal((2, 3, 4)).astype("f4"), rng.standard_normal((2, 4, 5)).astype("f4")
    (found,) = plan_of(PRODUCTS[place], [x, y]).spawn().run([x, y])
    wanted = PRODUCTS[place](x.astype("f8"), y.astype("f8"))
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)


def test_an_array_of_its_own_may_be_changed_in_place() -> None:
    def change(x):
        y = x * 2
        y += 1
        np.tanh(y, out=y)
        y *= x
        return y

    x = np.random.default_rng(0).standard_normal((3, 5)).astype("f4")
    (found,) = plan_of(change, [x]).spawn().run([x])
    np.testing.assert_allclose(found, np.tanh(x.astype("f8") * 2 + 1) * x, rtol=1e-5)


REFUSED = [
    (lambda x: float(x.sum()), "its meaning looks at values"),
    (lambda x: [one for one in x if one.all()], "its meaning looks at values"),
    (np.fft.fft, "its meaning calls numpy.fft.fft, which native code does not know"),
    (np.cbrt, "its meaning calls numpy.cbrt, which native code does not know"),
    (lambda x: np.sum(x, where=x > 0), "its meaning calls numpy.sum in a way that native code does not know"),
    (lambda x: np.add(x, 1, where=[True]), "its meaning calls numpy.add with `where`"),
    (np.add.accumulate, "its meaning calls numpy.add with `accumulate`"),
    (lambda x: x[x > 0], "its meaning picks elements by an array"),
    (lambda x: x.reshape(-1, order="F"), "its meaning calls numpy.reshape in a way that native code does not know"),
    (lambda x: x.astype(complex), "its meaning makes arrays of complex128, which native code does not know"),
    (lambda x: x.astype(np.float16).sum(), "its meaning sums float16 in float16"),
    (lambda x: x // 2, "its meaning calls numpy.floor_divide of floats, which native code does not know"),
    (lambda x: x.tofile("x"), "its meaning uses `.tofile` of an array, which native code does not know"),
    (lambda x: np.linalg.norm(x, 3, 1), "its meaning calls numpy.linalg.norm in a way that native code does not know"),
]


@pytest.mark.parametrize("place", range(len(REFUSED)))
def test_what_native_code_does_not_know_is_refused_by_name(place) -> None:
    function, reason = REFUSED[place]
    with pytest.raises(NotTraced) as refused:
        plan_of(function, [np.ones((2, 3), "f4")])
    assert refused.value.reason.startswith(reason)


def symbolic(text: str) -> Traced:
    body = TypedModel()
    source = body.add_source("x", parse_typed_fact(text, body.symbols))
    return Traced(Trace(body, "traced", FUNCTIONS), source, own=False)


def test_sizes_that_differ_from_run_to_run_are_computed_with() -> None:
    x = symbolic("N,M,6,f32")
    rows, columns, width = x.shape
    assert width == 6
    assert str((rows * columns + 2 * width).dim) in ("N*M+12", "M*N+12")
    assert rows + 1 > rows
    assert rows >= 0
    assert not rows < 0
    assert rows == x.shape[0]
    assert rows != rows + 1
    for ask in (lambda: rows == columns, lambda: rows > 3, lambda: bool(rows), lambda: range(rows), lambda: rows / 2):
        with pytest.raises(NotTraced, match="its meaning needs the number of a symbolic size"):
            ask()


def test_a_root_of_a_size_is_one_of_a_number_of_python() -> None:
    x = symbolic("N,6,f32")
    assert np.sqrt(x.shape[0]).dtype == np.float64
    assert (x * x.shape[0]).dtype == np.float32
    assert (x / np.sqrt(x.shape[0])).dtype == np.float64


def outer(values):
    def inner(x):
        return x * values

    return inner


def test_what_a_function_of_another_function_reads_is_looked_at_too() -> None:
    assert Reader().function(outer(2.0))(3) == 6
    with pytest.raises(NotTraced, match="its meaning reads `values`, a list, which may change"):
        Reader().function(outer([2.0]))
    with pytest.raises(NotTraced, match="its meaning reads `values`, a ndarray, which may change"):
        Reader().function(outer(np.ones(3)))
    frozen = np.ones(3)
    frozen.flags.writeable = False
    np.testing.assert_array_equal(Reader().function(outer(frozen))(2), [2, 2, 2])


def with_helper(x, scale=2.0):
    return helper(x) * scale


def helper(x, *, shift=1):
    return x + shift if isinstance(x, np.ndarray) else x


def test_functions_that_a_meaning_calls_are_part_of_it() -> None:
    x = np.ones((2, 3), "f4")
    (found,) = plan_of(Reader().function(with_helper), [x]).spawn().run([x])
    np.testing.assert_array_equal(found, with_helper(x))
