"""Whole networks, with dynamic sizes, against PyTorch itself."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.utils import _pytree as pytree
from torch_networks import NETWORKS, Network
from tract_torch.tensors import array_of

import tract_core as tract
from tract_core.api.model import Model


def worst_error(found: np.ndarray, wanted: np.ndarray) -> float:
    """The largest difference, relative to the largest magnitude of the tensor."""
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
    if found.dtype.kind != "f":
        return float(not np.array_equal(found, wanted))
    assert np.isfinite(wanted).all()
    return float(np.abs(found - wanted).max() / max(np.abs(wanted).max(), 1e-6))


def compare(network: Network, module: torch.nn.Module, model: Model, runtime: str) -> None:
    """At three sizes, what a runtime computes is what PyTorch does."""
    runnable = tract.runtime_for_name(runtime).prepare(model.clone())
    for sizes in network.sizes:
        given = network.given(sizes)
        with torch.no_grad():
            wanted = [array_of(one) for one in pytree.tree_leaves(module(**given))]
        found = runnable.run([array_of(one) for one in pytree.tree_leaves(given)])
        assert len(found) == len(wanted)
        errors = [worst_error(np.asarray(one), other) for one, other in zip(found, wanted, strict=True)]
        assert max(errors) < network.tolerance, (sizes, errors)


def check(network: Network) -> None:
    module = network.module()
    model = network.load(module)
    compare(network, module, model, "cpu")
    if network.small:
        compare(network, module, model, "reference")


@pytest.mark.parametrize("network", [one for one in NETWORKS if one.small], ids=str)
def test_small_networks(network: Network) -> None:
    check(network)


@pytest.mark.networks
@pytest.mark.parametrize("network", [one for one in NETWORKS if not one.small], ids=str)
def test_large_networks(network: Network) -> None:
    check(network)
