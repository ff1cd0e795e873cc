"""Every operator of the catalogue, with fixed and with dynamic sizes, against PyTorch itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
import tract_torch
from operator_catalogue import CATALOGUE, Entry

import tract_core as tract

TYPES = {"f32": torch.float32, "i64": torch.int64}


class Calling(torch.nn.Module):
    def __init__(self, entry: Entry) -> None:
        super().__init__()
        self.entry = entry

    def forward(self, *inputs: torch.Tensor) -> Any:
        return self.entry.call(*inputs)


def drawn(entry: Entry, size: int) -> list[torch.Tensor]:
    """Inputs with ``size`` in the place of the letter."""
    random = torch.Generator().manual_seed(size)
    found: list[torch.Tensor] = []
    for text in entry.inputs:
        *sizes, kind = text.split(",")
        shape = [size if one == "S" else int(one) for one in sizes]
        found.append(_elements(entry.make, shape, TYPES[kind], random))
    return found


def _elements(make: str, shape: list[int], kind: torch.dtype, random: torch.Generator) -> torch.Tensor:
    if kind is torch.int64:
        low, high = (0, 3) if make == "below three" else (-4, 5)
        return torch.randint(low, high, shape, generator=random)
    x = torch.randn(shape, generator=random)
    if make == "special" and x.numel() > 2:
        x.view(-1)[:3] = torch.tensor([float("nan"), float("inf"), -float("inf")])
    ways = {"positive": x.abs() + 0.1, "unit": x.tanh(), "above one": x.abs() + 1, "integers": x.round()}
    return ways.get(make, x)


def compare(entry: Entry, model: Any, runtime: str, size: int) -> None:
    inputs = drawn(entry, size)
    want = entry.call(*inputs)
    (found,) = tract.runtime_for_name(runtime).prepare(model.clone()).run([x.numpy() for x in inputs])
    assert np.asarray(found).dtype == want.numpy().dtype
    np.testing.assert_allclose(np.asarray(found), want.numpy(), rtol=entry.tolerance, atol=entry.tolerance)


@pytest.mark.parametrize("entry", CATALOGUE, ids=str)
def test_fixed_sizes(entry: Entry) -> None:
    model = tract_torch.load(Calling(entry), drawn(entry, 5))
    for runtime in ("reference", "cpu"):
        compare(entry, model, runtime, 5)


@pytest.mark.parametrize("entry", [one for one in CATALOGUE if any("S" in text for text in one.inputs)], ids=str)
def test_dynamic_sizes(entry: Entry) -> None:
    size = torch.export.Dim("S", min=3, max=1000)
    shapes = [{text.split(",").index("S"): size} if "S" in text else None for text in entry.inputs]
    model = tract_torch.load(Calling(entry), drawn(entry, 5), dynamic_shapes=(tuple(shapes),))
    assert "S" in str(model)
    for runtime in ("reference", "cpu"):
        for rows in (3, 7):
            compare(entry, model, runtime, rows)
