"""What `tract_torch.load` makes of a module: names, sizes, and the module as it was."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import tract_torch
from agreement import agree

import tract_core as tract
from tract_core.errors import InputError, MissingOperator, Unsupported
from tract_core.plugins.write_index import index_text


class Network(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 4, 3, padding=1)
        self.norm = torch.nn.BatchNorm2d(4)
        self.head = torch.nn.Linear(4, 5)
        self.attention = torch.nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, image: torch.Tensor, tokens: torch.Tensor) -> dict[str, Any]:
        x = torch.relu(self.norm(self.conv(image))).mean((2, 3))
        attended, _ = self.attention(tokens, tokens, tokens, need_weights=False)
        return {"odds": torch.softmax(self.head(x), -1), "tokens": (attended.flatten(1), image.shape[0])}


def test_a_network_with_dynamic_sizes() -> None:
    network = Network().train()
    batch, length = torch.export.Dim("B", min=1, max=64), torch.export.Dim("S", min=2, max=100)
    shapes = {"image": {0: batch}, "tokens": {0: batch, 1: length}}
    example = torch.randn(2, 3, 8, 8), torch.randn(2, 6, 8)
    before = {name: value.clone() for name, value in network.state_dict().items()}
    model = tract_torch.load(network, example, dynamic_shapes=shapes)
    assert network.training
    assert network.conv.training
    assert all(torch.equal(value, before[name]) for name, value in network.state_dict().items())
    assert [str(fact) for fact in model.input_facts()] == ["B,3,8,8,f32", "B,S,8,f32"]
    assert model.input_names() == ["image", "tokens"]
    assert model.output_names() == ["odds", "tokens_0", "tokens_1"]
    network.eval()
    for runtime in ("reference", "cpu"):
        runnable = tract.runtime_for_name(runtime).prepare(model.clone())
        for rows, size in ((2, 6), (5, 3), (1, 9)):
            image, tokens = torch.randn(rows, 3, 8, 8), torch.randn(rows, size, 8)
            odds, attended, count = runnable.run([image, tokens])
            want = network(image, tokens)
            np.testing.assert_allclose(odds, want["odds"].detach(), rtol=1e-5, atol=1e-6)
            np.testing.assert_allclose(attended, want["tokens"][0].detach(), rtol=1e-4, atol=1e-5)
            assert np.asarray(count) == rows


def test_an_exported_program_is_taken_too() -> None:
    program = torch.export.export(torch.nn.Linear(3, 4), (torch.randn(2, 3),))
    model = tract_torch.load(program, input_names=["x"], output_names=["y"])
    assert str(model).startswith("Model(x: 2,3,f32 -> y: 2,4,f32")


def test_weights_are_not_copied() -> None:
    layer = torch.nn.Linear(300, 400)
    model = tract_torch.load(layer, torch.randn(1, 300))
    held = [outlet.fact.constant for node in model.typed.live_nodes() for outlet in node.outputs]
    weights = layer.weight.detach().numpy()
    assert any(array is not None and np.shares_memory(array, weights) for array in held)


def test_a_model_in_bf16_takes_and_gives_tensors_of_pytorch() -> None:
    layer = torch.nn.Linear(16, 3, dtype=torch.bfloat16)
    x = torch.randn(4, 16).bfloat16()
    runnable = tract.runtime_for_name("default").prepare(tract_torch.load(layer, x))
    (found,) = runnable.run([x])
    wanted = layer(x).detach()
    given = torch.from_dlpack(found)
    assert given.dtype is torch.bfloat16
    torch.testing.assert_close(given, wanted, rtol=2**-6, atol=2**-6)


def test_all_missing_operators_are_told_at_once_with_their_places() -> None:
    class Missing(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.linalg.ldl_factor(x)[0].sum() + torch.linalg.lu(x)[1].sum()

    with pytest.raises(MissingOperator, match=r"(?s)linalg_ldl_factor.*test_load.py.*linalg_lu"):
        tract_torch.load(Missing(), torch.randn(3, 3))


def test_a_module_that_changes_what_it_holds_is_refused() -> None:
    class Counting(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("count", torch.zeros(1))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.count += 1
            return x + self.count

    with pytest.raises(Unsupported, match="the module changes what it holds: count"):
        tract_torch.load(Counting(), torch.randn(3))


def test_what_is_no_module_is_refused() -> None:
    with pytest.raises(InputError, match=r"wanted a torch.nn.Module, an ExportedProgram or a path, got int"):
        tract_torch.load(5, ())  # pyright: ignore[reportArgumentType]: a mistake


def test_the_index_of_rows_is_true() -> None:
    kept = (Path(tract_torch.__file__).parent / "rows.json").read_text()
    assert json.loads(kept) == json.loads(index_text("tract_torch.plugin", ["tract_core.plugins.builtin"]))


@pytest.mark.parametrize(("layer", "name"), [(torch.nn.SiLU, "Silu"), (torch.nn.Hardswish, "HardSwish")])
def test_what_writes_in_place_is_the_operator_that_does_not(layer: Any, name: str) -> None:
    network = torch.nn.Sequential(torch.nn.Linear(3, 3), layer(inplace=True))
    model = tract_torch.load(network, torch.randn(2, 3)).typed
    assert [type(node.op).__name__ for node in model.live_nodes() if node.inputs] == ["EinSum", "Add", name]


def test_an_operator_has_one_row() -> None:
    index = json.loads((Path(tract_torch.__file__).parent / "rows.json").read_text())["aten"]
    rows = [name for keys in index.values() for name in keys]
    assert sorted(set(rows)) == sorted(rows)


@pytest.mark.parametrize("part", [slice(-9, None), slice(-9, 2), slice(-3, -1), slice(2, 9)], ids=str)
def test_parts_that_are_written_begin_and_end_within_the_axis(part: slice) -> None:
    class Written(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x = x.clone()
            x[part] = 3.0
            return x

    agree(Written(), [torch.randn(6, 2)], [[torch.randn(7, 2)]], dynamic_shapes=({0: "S"},))


def test_an_axis_that_was_kept_by_squeeze_is_not_of_one_element() -> None:
    class Squeezed(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.squeeze()

    size = torch.export.Dim("S", min=1, max=64)
    model = agree(Squeezed(), [torch.randn(4, 1, 3)], [[torch.randn(2, 1, 3)]], dynamic_shapes=({0: size},))
    with pytest.raises(InputError, match="S>=2 does not hold for S=1"):
        model.into_runnable().run([torch.randn(1, 1, 3)])


def test_arguments_may_be_a_list() -> None:
    model = tract_torch.load(torch.nn.Linear(3, 4), [torch.randn(2, 3)])
    assert [str(fact) for fact in model.input_facts()] == ["2,3,f32"]


def test_a_tensor_may_be_in_the_example_twice() -> None:
    class Sums(torch.nn.Module):
        def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
            return a.sum(0) + b.sum(0)

    x = torch.randn(4, 3)
    model = tract_torch.load(Sums(), (x, x), dynamic_shapes={"a": {0: "A"}, "b": {0: "B"}})
    assert [str(fact) for fact in model.input_facts()] == ["A,3,f32", "B,3,f32"]
    (found,) = model.into_runnable().run([torch.ones(2, 3), torch.ones(5, 3)])
    np.testing.assert_array_equal(found, np.full(3, 7, np.float32))
