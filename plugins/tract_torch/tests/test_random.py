"""Numbers drawn at random: others in every run, and distributed as PyTorch's are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import tract_torch

import tract_core as tract
from tract_core.errors import Unsupported


class Calling(torch.nn.Module):
    def __init__(self, call: Callable[..., Any]) -> None:
        super().__init__()
        self.call = call

    def forward(self, x: torch.Tensor) -> Any:
        return self.call(x)


def runs(call: Callable[..., Any], x: torch.Tensor, runtime: str) -> list[np.ndarray[Any, Any]]:
    """The result of two runs of a model whose number of rows is another one than in the example."""
    rows = torch.export.Dim("S", min=2, max=5000)
    model = tract_torch.load(Calling(call), (x[:7],), dynamic_shapes=({0: rows},))
    runnable = tract.runtime_for_name(runtime).prepare(model)
    return [np.asarray(runnable.run([x.numpy()])[0]) for _ in range(2)]


CALLS: dict[str, tuple[Callable[..., Any], float, float]] = {
    "rand": (lambda x: torch.rand(x.shape), 0.5, 1 / 12),
    "rand_like": (torch.rand_like, 0.5, 1 / 12),
    "randn": (lambda x: torch.randn(x.shape[0], 3), 0, 1),
    "randn_like": (lambda x: torch.randn_like(x) * 3 + 1, 1, 9),
    "randint": (lambda x: torch.randint(-2, 3, x.shape), 0, 2),
    "randint_like": (lambda x: torch.randint_like(x, 4), 1.5, 1.25),
    "bernoulli": (lambda x: torch.bernoulli(torch.full_like(x, 0.3)), 0.3, 0.21),
    "bernoulli, a number": (lambda x: x.bernoulli(0.75), 0.75, 0.1875),
    "uniform": (lambda x: torch.zeros_like(x).uniform_(-1, 3), 1, 16 / 12),
    "normal": (lambda x: torch.normal(x * 0 + 2, 0.5), 2, 0.25),
    "normal, in place": (lambda x: x.clone().normal_(1, 2), 1, 4),
}


@pytest.mark.parametrize("runtime", ["reference", "cpu"])
@pytest.mark.parametrize("name", CALLS)
def test_distributions(name: str, runtime: str) -> None:
    call, mean, variance = CALLS[name]
    x = torch.zeros(3000, 3)
    first, second = runs(call, x, runtime)
    like = call(x)
    assert first.shape == like.shape
    assert str(first.dtype) == str(like.dtype).removeprefix("torch.")
    assert not np.array_equal(first, second)
    for found in (first, second):
        deviation = np.sqrt(variance / found.size)
        assert abs(found.mean() - mean) < 5 * deviation
        assert abs(found.var() - variance) < 0.1 * variance


@pytest.mark.parametrize("runtime", ["reference", "cpu"])
def test_permutations(runtime: str) -> None:
    first, second = runs(lambda x: torch.randperm(x.shape[0]), torch.zeros(40, 2), runtime)
    assert first.dtype == np.int64
    assert not np.array_equal(first, second)
    assert sorted(first) == sorted(second) == list(range(40))


def test_integers_stay_between_their_bounds() -> None:
    first, _ = runs(lambda x: torch.randint(-2, 3, x.shape), torch.zeros(2000, 3), "reference")
    assert set(first.flatten()) == {-2, -1, 0, 1, 2}


def test_dropout_in_training_mode_is_refused() -> None:
    with pytest.raises(Unsupported, match=r"dropout in training mode.*\n.*training=self.training"):
        tract_torch.load(Calling(lambda x: torch.nn.functional.dropout(x, 0.5, training=True)), (torch.ones(3),))
