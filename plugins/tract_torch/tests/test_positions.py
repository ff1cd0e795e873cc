"""Positions and sizes that only a run tells: what is read, and what is refused, as PyTorch refuses it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
import tract_torch
from calling import Calling

import tract_core as tract
from tract_core.errors import RunError, Unsupported

RUNTIMES = ("reference", "cpu")


X = torch.arange(12.0).reshape(4, 3)
INSIDE = torch.tensor([1, 0])


@pytest.mark.parametrize(
    "call",
    [
        lambda x, i: x[i],
        lambda x, i: x[:, i],
        lambda x, i: x[i, i],
        lambda x, i: x.index_select(0, i),
        lambda x, i: x.gather(0, i[:, None]),
        lambda x, i: torch.nn.functional.embedding(i, x),
        lambda x, i: x.take(i * 20),
        lambda x, i: x.index_put((i,), x[0]),
        lambda x, i: x.scatter(0, i[:, None], 1.0),
        lambda x, i: x.index_add(0, i, x[:2]),
    ],
)
def test_positions_outside_are_refused(call: Any) -> None:
    model = tract_torch.load(Calling(call), (X, INSIDE))
    for outside in (4, -5):
        wrong = torch.tensor([1, outside])
        with pytest.raises((IndexError, RuntimeError)):
            call(X, wrong)
        for runtime in RUNTIMES:
            with pytest.raises(RunError, match="is outside axis"):
                tract.runtime_for_name(runtime).prepare(model.clone()).run([X.numpy(), wrong.numpy()])


def first(x: torch.Tensor, n: torch.Tensor) -> torch.Tensor:
    """So many rows as a tensor says."""
    return x[: n.item()] * 2


def between(x: torch.Tensor, n: torch.Tensor) -> torch.Tensor:
    """At least two rows."""
    count: Any = n.item()
    torch._check(count >= 2)
    torch._check(count <= x.shape[0])
    return x.narrow(0, 0, count)


def from_one_on(x: torch.Tensor, n: torch.Tensor) -> torch.Tensor:
    """Rows up to a place that a tensor says, whose number is a size of what is made of them."""
    part = x[1 : n + 1]
    return part.reshape(part.shape[0], 1, -1) * torch.ones(part.shape[0])[:, None, None]


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize(
    ("call", "numbers"),
    [
        (first, (0, 3, 4)),
        (from_one_on, (1, 3)),
        (between, (2, 4)),
        (lambda x, n: x[n.item()] + 1, (0, 3)),
        (lambda x, n: torch.zeros(n.item()) + x[0, 0], (0, 5)),
        (lambda x, n: torch.arange(n.item()).sum() + x, (0, 5)),
        (lambda x, n: x * n.item(), (-3, 7)),
        (lambda x, n: torch.full((2,), n.item()) + x[0, 0], (-3, 7)),
    ],
)
def test_numbers_out_of_tensors(call: Any, numbers: tuple[int, ...], runtime: str) -> None:
    model = tract_torch.load(Calling(call), (X, torch.tensor(3)))
    runnable = tract.runtime_for_name(runtime).prepare(model)
    for number in numbers:
        (found,) = runnable.run([X.numpy(), np.array(number)])
        np.testing.assert_array_equal(found, call(X, torch.tensor(number)))


def test_a_number_with_a_fraction_out_of_a_tensor() -> None:
    model = tract_torch.load(Calling(lambda x, n: x * n.item()), (X, torch.tensor(3.0)))
    np.testing.assert_array_equal(model.into_runnable().run([X.numpy(), np.float32(0.5)])[0], X.numpy() * 0.5)


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize(
    ("call", "number", "message"),
    [
        (first, -1, "negative dimensions are not allowed"),
        (between, 1, "size u0 must be 2 or more"),
        (between, 5, "size u0 must be at most 4"),
        (lambda x, n: x[n.item()] + 1, 4, "4"),
    ],
)
def test_sizes_that_cannot_be_are_refused(call: Any, number: int, message: str, runtime: str) -> None:
    model = tract_torch.load(Calling(call), (X, torch.tensor(3)))
    with pytest.raises(RunError, match=message):
        tract.runtime_for_name(runtime).prepare(model).run([X.numpy(), np.array(number)])


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_too_few_elements_for_a_mask_are_refused(runtime: str) -> None:
    call = Calling(lambda x, m, y: x.masked_scatter(m, y))
    model = tract_torch.load(call, (X, X > 2, X[0]))
    prepared = tract.runtime_for_name(runtime).prepare(model)
    few, many = np.zeros((4, 3), bool), np.ones((4, 3), bool)
    few[1, 1:] = True
    (found,) = prepared.run([X.numpy(), few, X[0].numpy()])
    np.testing.assert_array_equal(found, X.masked_scatter(torch.tensor(few), X[0]))
    with pytest.raises(RunError, match="index 4 is outside axis 0, which has size 4"):
        prepared.run([X.numpy(), many, X[0].numpy()])


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_other_repeats_than_were_said_are_refused(runtime: str) -> None:
    model = tract_torch.load(
        Calling(lambda x, n: x.repeat_interleave(n, 0, output_size=6)), (X, torch.tensor([1, 2, 0, 3]))
    )
    prepared = tract.runtime_for_name(runtime).prepare(model)
    (found,) = prepared.run([X.numpy(), np.array([6, 0, 0, 0])])
    np.testing.assert_array_equal(found, X.numpy()[[0] * 6])
    with pytest.raises(RunError, match="7"):
        prepared.run([X.numpy(), np.array([6, 0, 0, 1])])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: x.t().as_strided((2, 2), (1, 3)), "as_strided of a tensor that is a view of another one in memory"),
        (lambda x: torch.ops.aten.resize(x, [5, 3]), "12 elements become 15, of which PyTorch leaves some open"),
    ],
)
def test_what_depends_on_memory_is_refused(call: Any, message: str) -> None:
    with pytest.raises(Unsupported, match=message):
        tract_torch.load(Calling(call), X)
