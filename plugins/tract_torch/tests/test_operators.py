"""Every operator of the catalogue, with fixed and with dynamic sizes, against PyTorch itself."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest
import torch
import tract_torch
from calling import Calling
from catalogue import CATALOGUE, Entry
from torch.utils import _pytree as pytree
from tract_torch.tensors import array_of

import tract_core as tract


def compare(entry: Entry, model: Any, runtime: str, inputs: list[torch.Tensor]) -> None:
    want = pytree.tree_leaves(entry.call(*inputs))
    found = tract.runtime_for_name(runtime).prepare(model.clone()).run([array_of(x) for x in inputs])
    assert len(found) == len(want)
    for one, other in zip(map(np.asarray, found), want, strict=True):
        theirs = array_of(other) if isinstance(other, torch.Tensor) else np.asarray(other)
        assert (one.dtype, one.shape) == (theirs.dtype, theirs.shape)
        wide = theirs.astype(np.float64) if theirs.dtype.kind == "V" else theirs
        ours = one.astype(np.float64) if one.dtype.kind == "V" else one
        np.testing.assert_allclose(ours, wide, rtol=entry.tolerance, atol=entry.tolerance)


FIXED = [one for one in CATALOGUE if os.environ.get("TRACT_TORCH_ALL") or not one.dynamic]
"""With all sizes fixed: every entry where everything is asked for, else those that cannot be dynamic."""


@pytest.mark.parametrize("entry", FIXED, ids=str)
def test_fixed_sizes(entry: Entry) -> None:
    model = tract_torch.load(Calling(entry.call), entry.drawn(5))
    for runtime in ("reference", "cpu"):
        for seed in (0, 1):
            compare(entry, model, runtime, entry.drawn(5, seed))


@pytest.mark.parametrize("entry", [one for one in CATALOGUE if one.dynamic], ids=str)
def test_dynamic_sizes(entry: Entry) -> None:
    size = torch.export.Dim("S", min=min(entry.sizes), max=1000)
    places = [entry.axis_of_size(text) for text in entry.inputs]
    shapes = tuple({place: size} if place is not None else None for place in places)
    model = tract_torch.load(Calling(entry.call), entry.drawn(5), dynamic_shapes=(shapes,))
    assert "S" in str(model)
    for runtime in ("reference", "cpu"):
        for rows in entry.sizes:
            compare(entry, model, runtime, entry.drawn(rows))


def test_the_names_of_the_catalogue_are_its_own() -> None:
    names = [entry.name for entry in CATALOGUE]
    assert sorted(set(names)) == sorted(names)
