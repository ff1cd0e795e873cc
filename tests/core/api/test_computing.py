"""Tensors compute as NumPy's arrays do: what comes out is compared with what arrays of the same elements give."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tract_core import Tensor
from tract_core.data import DatumType, QuantizedType
from tract_core.errors import ConsumedError, FactError, InputError

ARRAYS = [
    np.array([[1.5, -0.0, np.nan], [np.inf, 2, -3]], np.float32),
    np.array([3, 0, -7], np.int64),
    np.array([250, 3], np.uint8),
    np.array([True, False]),
    np.array(2.5),
    np.zeros((0, 3), np.float32),
    np.array([1, 2], ml_dtypes.bfloat16),
    np.array([1 + 2j]),
]

with_arrays = pytest.mark.parametrize("array", ARRAYS, ids=lambda array: f"{array.dtype}{list(array.shape)}")


def outcome(compute: Callable[[Any], Any], value: Any) -> Any:
    """What comes out, or the kind of exception."""
    with np.errstate(all="ignore"):
        try:
            return compute(value)
        except (TypeError, ValueError) as error:
            return type(error)


def check(compute: Callable[[Any], Any], array: np.ndarray[Any, Any]) -> None:
    found, wanted = outcome(compute, Tensor.from_numpy(array)), outcome(compute, array)
    assert type(found) is type(wanted)
    assert not isinstance(found, Tensor)
    if isinstance(wanted, tuple):
        found, wanted = np.array(found), np.array(wanted)
    if isinstance(wanted, (np.ndarray, np.generic)) and wanted.dtype != object:
        assert (found.dtype, found.shape, found.tobytes()) == (wanted.dtype, wanted.shape, wanted.tobytes())
    else:
        assert repr(found) == repr(wanted)


BINARY = [
    operator.add,
    operator.sub,
    operator.mul,
    operator.truediv,
    operator.floordiv,
    operator.mod,
    operator.pow,
    operator.matmul,
    operator.and_,
    operator.or_,
    operator.xor,
    operator.lshift,
    operator.rshift,
    operator.lt,
    operator.le,
    operator.gt,
    operator.ge,
    operator.eq,
    operator.ne,
    divmod,
]


@with_arrays
@pytest.mark.parametrize("compute", BINARY, ids=lambda compute: compute.__name__)
def test_operators_with_numbers_and_arrays_on_either_side(array: Any, compute: Any) -> None:
    for other in (2, np.float32(0.5), array):
        check(lambda x, other=other: compute(x, other), array)
        check(lambda x, other=other: compute(other, x), array)


@with_arrays
def test_operators_between_tensors(array: Any) -> None:
    check(lambda x: x + (Tensor.from_numpy(array) if isinstance(x, Tensor) else array), array)
    check(lambda x: (Tensor.from_numpy(array) if isinstance(x, Tensor) else array) > x, array)


@with_arrays
@pytest.mark.parametrize("compute", [operator.neg, operator.pos, abs, operator.invert])
def test_signs(array: Any, compute: Any) -> None:
    check(compute, array)


METHODS: list[Callable[[Any], Any]] = [
    lambda x: x.argmax(),
    lambda x: x.argmax(axis=-1),
    lambda x: x.argmin(0),
    lambda x: x.argsort(),
    lambda x: x.mean(),
    lambda x: x.mean(axis=0, keepdims=True),
    lambda x: x.sum(-1),
    lambda x: x.max(),
    lambda x: x.min(),
    lambda x: x.std(),
    lambda x: x.var(),
    lambda x: x.prod(),
    lambda x: x.cumsum(),
    lambda x: x.all(),
    lambda x: x.any(),
    lambda x: x.clip(0, 1),
    lambda x: x.round(1),
    lambda x: x.astype(np.float64),
    lambda x: x.reshape(-1),
    lambda x: x.ravel(),
    lambda x: x.flatten(),
    lambda x: x.squeeze(),
    lambda x: x.transpose(),
    lambda x: x.T,
    lambda x: x.swapaxes(0, 1),
    lambda x: x.dot(2),
    lambda x: x.tolist(),
    lambda x: 3 in x,
    np.argmax,
    np.exp,
    np.add.reduce,
    lambda x: np.concatenate([x, x]),
    lambda x: np.where(x > 0, x, 0),
    lambda x: [1, 2] * x,
    lambda x: x == [1, 2],
]


@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::numpy.exceptions.ComplexWarning")  # NumPy's own
@with_arrays
@pytest.mark.parametrize("number", range(len(METHODS)))
def test_methods_and_functions(array: Any, number: int) -> None:
    check(METHODS[number], array)


def test_what_is_no_array_is_not_equal() -> None:
    tensor = Tensor.from_numpy([1, 2])
    for other in (None, "1", b"1", {}, object(), (1, 2)):
        assert not tensor == other  # noqa: SIM201 (both operators are meant)
        assert tensor != other
    texts = Tensor.from_numpy(["cat", "dog"])
    assert (texts == "cat").tolist() == [True, False]
    assert (texts != np.array(["cat", "cat"])).tolist() == [False, True]


@pytest.mark.parametrize(
    "change",
    [
        lambda x: operator.iadd(x, 1),
        lambda x: operator.imul(x, x),
        lambda x: np.add(x, 1, out=x),
        lambda x: np.divmod(x, 2, out=(np.zeros(3), x)),
    ],
)
def test_a_tensor_does_not_change(change: Any) -> None:
    tensor = Tensor.from_numpy([1.0, 2.0, 3.0])
    with pytest.raises(InputError, match=r"a tensor does not change\n  hint: write x = x \+ 1, .* or take x.numpy\(\)"):
        change(tensor)
    assert tensor.tolist() == [1, 2, 3]
    with pytest.raises(ValueError, match="read-only"):
        tensor.reshape(-1)[0] = 5


def test_arrays_take_results() -> None:
    filled = np.zeros(2)
    assert np.add(Tensor.from_numpy([1.0, 2.0]), 1, out=filled) is filled
    assert filled.tolist() == [2, 3]
    array = np.ones(2)
    array += Tensor.from_numpy([1.0, 2.0])
    assert array.tolist() == [2, 3]


def test_numbers_are_written_as_one_likes() -> None:
    assert f"{Tensor.from_numpy([[0.123456]]):.2f}" == "0.12"
    assert f"{Tensor.from_numpy([1, 2])}" == "Tensor(2,I64 1, 2)"
    with pytest.raises(ValueError, match="can only convert an array of size 1"):
        f"{Tensor.from_numpy([1, 2]):.2f}"


def test_the_integers_of_a_quantised_tensor_are_no_numbers_to_compute_with() -> None:
    tensor = Tensor.from_numpy(np.array([5, 7], np.uint8), QuantizedType(DatumType.U8, 5, 0.5))
    for compute in (tensor.mean, tensor.tolist, lambda: tensor + 1, lambda: tensor == 1, lambda: np.exp(tensor)):
        with pytest.raises(FactError, match=r"stand for other numbers\n  hint: convert_to\('f32'\) gives those"):
            compute()
    assert (tensor.convert_to("f32") + 1).tolist() == [1, 2]
    assert np.asarray(tensor).tolist() == [5, 7]


def test_a_consumed_tensor_computes_nothing() -> None:
    tensor = Tensor.from_numpy([1.0])
    tensor.into_numpy()
    for compute in (tensor.mean, lambda: tensor + 1, lambda: 1 in tensor):
        with pytest.raises(ConsumedError):
            compute()


def test_mistakes_are_those_of_numpy() -> None:
    tensor = Tensor.from_numpy(np.zeros((2, 3)))
    with pytest.raises(ValueError, match="could not be broadcast"):
        tensor + np.zeros(4)
    with pytest.raises(AttributeError):
        _ = tensor.softmax
    with pytest.raises(np.exceptions.AxisError, match="axis 5 is out of bounds"):
        tensor.mean(axis=5)


def test_numpy_is_to_numpy() -> None:
    tensor = Tensor.from_numpy([1.0])
    tensor.numpy()[0] = 5
    assert tensor.numpy().tolist() == [1.0]
