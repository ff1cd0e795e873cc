"""A module and the model that was made of it give the same, for helpers of tests."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import torch
import tract_torch
from torch.utils import _pytree as pytree
from tract_torch.tensors import array_of

import tract_core as tract


def agree(
    module: torch.nn.Module,
    example: Sequence[torch.Tensor],
    others: Iterable[Sequence[torch.Tensor]] = (),
    *,
    tolerance: float = 1e-5,
    **options: Any,
) -> Any:
    """The model, after it gave what the module gives, for the example and other inputs, on both runtimes."""
    model = tract_torch.load(module, tuple(example), **options)
    module.eval()
    for runtime in ("reference", "cpu"):
        runnable = tract.runtime_for_name(runtime).prepare(model.clone())
        for inputs in (example, *others):
            with torch.no_grad():
                want = [one for one in pytree.tree_leaves(module(*inputs)) if one is not None]
            same(runnable.run([array_of(x) for x in inputs]), want, tolerance)
    return model


def same(found: Iterable[Any], want: Iterable[Any], tolerance: float = 1e-5) -> None:
    """Raises AssertionError unless types, shapes and elements agree."""
    for one, other in zip(map(np.asarray, found), want, strict=True):
        theirs = array_of(other) if isinstance(other, torch.Tensor) else np.asarray(other)
        assert (one.dtype, one.shape) == (theirs.dtype, theirs.shape)
        np.testing.assert_allclose(one, theirs, rtol=tolerance, atol=tolerance)
