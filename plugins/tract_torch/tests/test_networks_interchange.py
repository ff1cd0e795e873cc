"""Archives of whole networks, checked here beside the module, mean the same in the established engine."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils import _pytree as pytree
from torch_networks import NETWORKS, Network
from torch_networks.network import is_axes
from tract_torch import TractNNEF, export_model_to_nnef
from tract_torch.example import Example
from tract_torch.tensors import array_of

sys.path.insert(0, str(Path(__file__).parents[2] / "tract_nnef" / "tests"))

import established
from established import interchange

REFUSED: dict[str, str] = {
    "deeplabv3": "Undetermined symbol",
    "conformer": "should be equal to",
    "denoiser": "should be equal to",
    "spectral_mask": "No definition for operator",
}
"""What the engine says of networks that it does not take: it does not prove that two sizes are equal, wants numbers
where sizes are symbols, and was built without complex numbers."""


def dynamic_axes(network: Network, example: Example, given: dict[str, Any]) -> dict[str, dict[int, str]]:
    """The axes of the network, by the names of tensors. Symbols are in small letters: PyTorch knows ``S`` already."""
    leaves: list[Any] = []
    for name, value in given.items():
        axes, count = network.axes.get(name), len(pytree.tree_leaves(value))
        leaves += [None] * count if axes is None else pytree.tree_leaves(axes, is_leaf=is_axes)
    return {
        name: {axis: text.lower() for axis, text in axes.items()}
        for name, axes in zip(example.names, leaves, strict=True)
        if axes
    }


TOLERANCE = "very"
"""Random weights make more of rounding in a deep network than the check's usual tolerance allows for."""


@interchange
@pytest.mark.networks
@pytest.mark.parametrize("network", NETWORKS, ids=str)
def test_networks_in_the_established_engine(network: Network, tmp_path: Path) -> None:
    if network.name == "speaker":
        pytest.skip("the engine is still loading it after a minute")
    module, given = network.module(), network.given(network.sizes[0])
    axes = dynamic_axes(network, Example.of(module, given, None), given)
    archive = tmp_path / "m.nnef.tar"
    target = TractNNEF("0.23.9", dynamic_axes=axes, check_io_tolerance=TOLERANCE)
    export_model_to_nnef(module, given, archive, target)
    if network.name in REFUSED:
        with pytest.raises(established.Refused, match=REFUSED[network.name]):
            established.run(archive, [array_of(one) for one in pytree.tree_leaves(network.given(network.sizes[1]))])
        return
    for sizes in network.sizes[1:]:
        given = network.given(sizes)
        with torch.no_grad():
            wanted = [array_of(one) for one in pytree.tree_leaves(module(**given))]
        found = established.run(archive, [array_of(one) for one in pytree.tree_leaves(given)])
        for one, other in zip(found, wanted, strict=True):
            most = float(np.abs(other).max(initial=1e-6))
            np.testing.assert_allclose(one, other, rtol=0, atol=network.tolerance * most)
