"""Whole networks, with dynamic sizes, against PyTorch itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
import tract_torch
import transformers as hf
from torch.utils import _pytree as pytree
from torch_networks import NETWORKS, Network
from tract_torch.tensors import array_of
from transformers.integrations.executorch import TorchExportableModuleWithStaticCache

import tract_core as tract
from tract_core.api.model import Model
from tract_core.testing.sizes import longest_size


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
    assert len(longest_size(model.typed)) <= 200
    compare(network, module, model, "cpu")
    if network.small:
        compare(network, module, model, "reference")


@pytest.mark.parametrize("network", [one for one in NETWORKS if one.small], ids=str)
def test_small_networks(network: Network) -> None:
    check(network)


@pytest.mark.parametrize("states", ["inputs", "inside"])
def test_a_decoder_with_a_static_cache(states: Any) -> None:
    """As transformers prepares it for an export: the cache is an object, whose tensors are buffers of the module."""
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "intermediate_size": 32, "num_attention_heads": 2, "num_key_value_heads": 1}
    network = hf.LlamaForCausalLM(hf.LlamaConfig(vocab_size=32, num_hidden_layers=2, **sizes)).eval()
    network.generation_config.cache_implementation = "static"
    module = TorchExportableModuleWithStaticCache(network, 1, 8)
    given = torch.tensor([[3]]), None, torch.tensor([0])
    model = tract_torch.load(module, given, states=states)
    assert len(model.input_names()) == (2 if states == "inside" else 8)
    held = dict(module.named_buffers())
    kept = [array_of(held[name].clone()) for name in model.input_names()[2:]]
    state = tract.runtime_for_name("cpu").prepare(model).spawn_state()
    for place, word in enumerate([3, 7, 1, 30]):
        ids, at = torch.tensor([[word]]), torch.tensor([place])
        with torch.no_grad():
            wanted = array_of(module(ids, cache_position=at))
        found, *kept = state.run([array_of(ids), array_of(at), *kept])
        assert worst_error(np.asarray(found), wanted) < 1e-4


@pytest.mark.networks
@pytest.mark.parametrize("network", [one for one in NETWORKS if not one.small], ids=str)
def test_large_networks(network: Network) -> None:
    check(network)
