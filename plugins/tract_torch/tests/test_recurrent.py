"""Recurrent layers, whose numbers of steps and of items may be others than in the example."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import tract_torch
from agreement import agree

from tract_core.errors import Unsupported
from tract_core.ops.scan import Scan

CASES = {
    "LSTM": {},
    "LSTM, two layers, two directions": {"num_layers": 2, "bidirectional": True},
    "LSTM, projected": {"num_layers": 2, "bidirectional": True, "proj_size": 2},
    "LSTM, batch first, without bias": {"batch_first": True, "bias": False},
    "LSTM, with dropout": {"num_layers": 2, "dropout": 0.5},
    "GRU": {},
    "GRU, two layers, two directions, batch first": {"num_layers": 2, "bidirectional": True, "batch_first": True},
    "RNN": {"nonlinearity": "tanh"},
    "RNN, relu, two directions": {"nonlinearity": "relu", "bidirectional": True},
}


class Layer(torch.nn.Module):
    def __init__(self, kind: str, options: dict[str, Any]) -> None:
        super().__init__()
        self.layer = getattr(torch.nn, kind)(3, 4, **options)

    def forward(self, x: torch.Tensor, *states: torch.Tensor) -> Any:
        return self.layer(x, states if len(states) > 1 else states[0] if states else None)


def layer_of(name: str) -> tuple[Layer, Callable[[int, int], torch.Tensor], dict[int, Any]]:
    """A layer, what makes an input of it for so many steps and items, and which axes of that may change."""
    torch.manual_seed(0)
    module = Layer(name.partition(",")[0], CASES[name])
    steps, batch = torch.export.Dim("T", min=1), torch.export.Dim("B", min=1)
    first = "batch_first" in CASES[name]

    def make(length: int, items: int) -> torch.Tensor:
        return torch.randn(items, length, 3) if first else torch.randn(length, items, 3)

    return module, make, {0: batch, 1: steps} if first else {0: steps, 1: batch}


@pytest.mark.parametrize("name", CASES)
def test_steps_and_items_may_be_others(name: str) -> None:
    module, make, axes = layer_of(name)
    model = agree(module, [make(5, 2)], [[make(1, 1)], [make(7, 3)]], dynamic_shapes={"x": axes})
    loops = [node for node in model.typed.live_nodes() if isinstance(node.op, Scan)]
    assert len(loops) == module.layer.num_layers * (2 if module.layer.bidirectional else 1)


@pytest.mark.parametrize("name", ["LSTM, two layers, two directions", "LSTM, projected", "GRU"])
def test_states_may_be_given(name: str) -> None:
    module, make, axes = layer_of(name)
    count = module.layer.num_layers * (2 if module.layer.bidirectional else 1)
    sizes = [module.layer.proj_size or 4, 4] if name.startswith("LSTM") else [4]

    def inputs(length: int, items: int) -> list[torch.Tensor]:
        return [make(length, items), *(torch.randn(count, items, size) for size in sizes)]

    shapes = {"x": axes, "states": tuple({1: axes[1]} for _ in sizes)}
    agree(module, inputs(4, 2), [inputs(3, 1)], dynamic_shapes=shapes)


def test_one_sequence_without_a_batch() -> None:
    steps = torch.export.Dim("T", min=1)
    agree(torch.nn.GRU(3, 4, num_layers=2), [torch.randn(5, 3)], [[torch.randn(2, 3)]], dynamic_shapes=({0: steps},))


@pytest.mark.parametrize("kind", ["LSTMCell", "GRUCell", "RNNCell"])
def test_cells(kind: str) -> None:
    batch = torch.export.Dim("B", min=1)
    cell = getattr(torch.nn, kind)(3, 4)
    agree(cell, [torch.randn(5, 3)], [[torch.randn(2, 3)]], dynamic_shapes=({0: batch},))


def test_the_layer_is_as_it_was() -> None:
    layer = torch.nn.LSTM(3, 4, num_layers=2).train()
    held = dict(layer.__dict__)
    tract_torch.load(layer, torch.randn(5, 2, 3))
    assert layer.__dict__.keys() == held.keys()
    assert all(layer.__dict__[name] is value for name, value in held.items())
    assert layer.training


def test_packed_sequences_are_refused_with_what_to_do_instead() -> None:
    class Packing(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.LSTM(3, 4)

        def forward(self, x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
            packed = torch.nn.utils.rnn.pack_padded_sequence(x, lengths, enforce_sorted=False)
            return self.layer(packed)[0].data

    with pytest.raises(Unsupported, match=r"(?s)packs sequences.*hint: run the layer on the padded tensor"):
        tract_torch.load(Packing(), (torch.randn(5, 2, 3), torch.tensor([5, 3])))
