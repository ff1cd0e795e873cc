"""What torch-to-nnef 0.24 and earlier got wrong, one test each; those that other files test already are named here.

- 1 the module stays changed, 3 half an archive where writing fails, 6 exports in threads: `test_bad_input_torch`
- 2 ``m.nnef.tar.tar``, 4 archives that differ each time, 5 and tell of the user: `test_export`
- 9 a constructor that downloads: `test_seed_page_torch`
- 10 an exit status that nobody reads: `test_tract_cli`
- 11 an ``if`` on data that is baked: `test_refusals`; 12 buffers that change: `test_states`
- 13 a mask of the size of the example, 19 ``close`` that counts as looser than ``approximate``: `test_check`
- 15 bf16 that ends in a KeyError: `test_weights`
- 17 weights of recurrent layers without their names, 25 files of weights whose code is run: `test_tensor_export`
- 20 a ``.tgz`` of a debug bundle that is not compressed, 21 no bundle of a folder: `test_debug_bundle`
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from agreement import agree
from calling import Calling
from tract_torch import TractNNEF, export_model_to_nnef
from tract_torch.tensors import array_of

import tract_core as tract
from tract_core.errors import ModelWarning

TARGET = TractNNEF("0.23.9")


def run(path: Path, *inputs: torch.Tensor) -> list[Any]:
    return [np.asarray(one) for one in tract.load(path).into_runnable().run([array_of(x) for x in inputs])]


def test_7_inputs_that_are_not_used_stay(tmp_path: Path) -> None:
    module = Calling(lambda x, _: x * 2)
    path = export_model_to_nnef(module, (torch.ones(2), torch.ones(5)), tmp_path / "m.nnef", TARGET, ["x", "unused"])
    model = tract.load(path)
    assert [model.input_name(slot) for slot in range(model.input_count())] == ["x", "unused"]


def test_8_negative_axes_are_dynamic(tmp_path: Path) -> None:
    target = TARGET.with_dynamic_axes({"x": {-1: "T", -2: "B"}})
    path = export_model_to_nnef(Calling(torch.relu), torch.randn(3, 4), tmp_path / "m.nnef", target, ["x"])
    assert [str(fact) for fact in tract.load(path).input_facts()] == ["B,T,f32"]


def test_14_views_that_are_written_to(tmp_path: Path) -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        y = x * 1
        y[1:, 0].copy_(x[1:, 1])
        y.view(-1)[0] = 7
        y.t()[2] += 1
        return y

    x = torch.randn(3, 4)
    path = export_model_to_nnef(Calling(function), x, tmp_path / "m.nnef", TARGET)
    np.testing.assert_array_equal(run(path, x)[0], function(x).numpy())


def test_16_normalisations_keep_their_parameters(tmp_path: Path) -> None:
    layers = torch.nn.Sequential(torch.nn.LayerNorm(4), torch.nn.BatchNorm1d(4))
    path = export_model_to_nnef(layers, torch.randn(2, 4), tmp_path / "m.nnef", TARGET, compression_level=None)
    assert {f"{name}.dat" for name in ("0.weight", "0.bias", "1.running_mean")} <= {one.name for one in path.iterdir()}


def test_18_all_outputs_may_be_inputs(tmp_path: Path) -> None:
    x, y = torch.ones(2), torch.zeros(3)
    path = export_model_to_nnef(Calling(lambda x, y: (y, x)), (x, y), tmp_path / "m.nnef", TARGET)
    assert [one.tolist() for one in run(path, x, y)] == [[0, 0, 0], [1, 1]]


def test_22_sizes_are_computed_not_noted() -> None:
    shapes = ({0: "B", 1: "T"},)
    module = Calling(lambda x: (x.reshape(x.shape[0] * x.shape[1]) / x.shape[1], torch.arange(x.shape[1]) + x.shape[0]))
    agree(module, [torch.randn(3, 4)], [[torch.randn(5, 9)], [torch.randn(2, 6)]], dynamic_shapes={"inputs": shapes})


def test_23_shared_weights_are_written_once(tmp_path: Path) -> None:
    layer = torch.nn.Linear(4, 4)
    module = torch.nn.Sequential(layer, torch.nn.ReLU(), layer)
    path = export_model_to_nnef(module, torch.randn(2, 4), tmp_path / "m.nnef", TARGET, compression_level=None)
    assert sorted(one.name for one in path.iterdir()) == ["0.bias.dat", "0.weight.dat", "graph.nnef"]


def test_24_negative_padding_of_a_dynamic_axis() -> None:
    module = Calling(lambda x: torch.nn.functional.pad(x, (-2, 1)))
    agree(module, [torch.randn(2, 7)], [[torch.randn(2, 9)]], dynamic_shapes={"inputs": ({1: "T"},)})


def test_26_tensors_that_are_made_and_then_filled() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        held = torch.empty(3)
        held[0], held[1:] = 4.0, 5.0
        return x + held

    agree(Calling(function), [torch.randn(2, 3)])


def test_arguments_that_are_no_tensors_are_told(tmp_path: Path) -> None:
    module = Calling(lambda x, text: x * len(text))
    with pytest.warns(ModelWarning, match="'ab' in the example is no tensor, and becomes part of the model"):
        export_model_to_nnef(module, (torch.ones(2), "ab"), tmp_path / "m.nnef", TARGET)
