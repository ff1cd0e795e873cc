"""Archives of modules of PyTorch mean the same in the established engine. Tests skip without it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from calling import Calling
from torch import Tensor, nn
from tract_torch.check.eager import outputs_of
from tract_torch.example import Example
from tract_torch.export import export_model_to_nnef
from tract_torch.inference_target import TractNNEF
from tract_torch.tensors import array_of
from tract_torch.weights.compress import quantize_weights_q4_0

sys.path.insert(0, str(Path(__file__).parents[2] / "tract_nnef" / "tests"))

import established
from established import interchange

VERSION = "0.23.9"


def agree(
    module: nn.Module,
    path: Path,
    examples: list[tuple[Tensor, ...]],
    axes: dict[str, Any],
    tolerance: float = 1e-5,
    **options: Any,
) -> None:
    """The archive of a module, exported with the first example, gives there what the module gives, for all of them."""
    archive = path / "m.nnef.tar"
    keep = options.pop("keep_parameters", True)
    target = TractNNEF(VERSION, dynamic_axes=axes, **options)
    export_model_to_nnef(module, examples[0], archive, target, keep_parameters=keep)
    for given in examples:
        wanted = outputs_of(module, Example.of(module, given, None))
        found = established.run(archive, [array_of(one) for one in given])
        assert [one.shape for one in found] == [one.shape for one in wanted]
        for one, other in zip(found, wanted, strict=True):
            assert one.dtype == other.dtype
            np.testing.assert_allclose(one, other, tolerance, tolerance)


@pytest.fixture(autouse=True)
def _the_same_weights() -> None:
    torch.manual_seed(5)


class Masked(nn.Module):
    """Causal attention of tokens to all before them, by their positions"""

    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(16, 48)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(x).unflatten(-1, (3, 2, 8)).movedim(2, 0).transpose(2, 3)
        positions = torch.arange(x.shape[1])
        mask = positions <= positions[:, None]
        return nn.functional.scaled_dot_product_attention(q, k, v, mask)


@interchange
@pytest.mark.parametrize("reify", [False, True], ids=["in parts", "whole"])
def test_attention(tmp_path: Path, reify: bool) -> None:
    axes = {"input_0": {0: "B", 1: "S"}}
    examples = [(torch.randn(2, 5, 16),), (torch.randn(3, 9, 16),)]
    agree(Masked(), tmp_path, examples, axes, reify_sdpa_operator=reify)


@interchange
@pytest.mark.parametrize("keep", [False, True], ids=["folded", "kept"])
def test_an_encoder_layer(tmp_path: Path, keep: bool) -> None:
    module = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
    axes = {"input_0": {0: "B", 1: "S"}}
    examples = [(torch.randn(2, 5, 16),), (torch.randn(3, 9, 16),), (torch.randn(1, 7, 16),)]
    agree(module, tmp_path, examples, axes, keep_parameters=keep)


@interchange
def test_an_lstm_of_any_length(tmp_path: Path) -> None:
    module = nn.LSTM(6, 8, num_layers=2, batch_first=True)
    examples = [(torch.randn(2, 5, 6),), (torch.randn(3, 11, 6),)]
    agree(module, tmp_path, examples, {"input_0": {0: "B", 1: "S"}})


@interchange
@pytest.mark.parametrize("keep", [False, True], ids=["folded", "kept"])
def test_convolutions_on_images_of_any_size(tmp_path: Path, keep: bool) -> None:
    block = [nn.Conv2d(3, 8, 3, 2, 1), nn.BatchNorm2d(8), nn.SiLU(), nn.MaxPool2d(2), nn.Conv2d(8, 8, 3, groups=4)]
    module = nn.Sequential(*block, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 4)).eval()
    examples = [(torch.randn(2, 3, 24, 20),), (torch.randn(1, 3, 33, 41),)]
    agree(module, tmp_path, examples, {"input_0": {0: "B", 2: "H", 3: "W"}}, keep_parameters=keep)


@interchange
def test_floats_of_16_bits(tmp_path: Path) -> None:
    module = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4)).half()
    examples = [(torch.randn(size, 16).half(),) for size in (2, 5)]
    agree(module, tmp_path, examples, {"input_0": {0: "B"}}, tolerance=5e-3)


@interchange
def test_weights_of_4_bits(tmp_path: Path) -> None:
    module = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 8))
    quantize_weights_q4_0(module)
    agree(module, tmp_path, [(torch.randn(size, 64),) for size in (2, 5)], {"input_0": {0: "B"}}, tolerance=2e-2)


class Halved(nn.Module):
    """Two halves of a sequence, one after the other: what `torch.export` makes conditions of sizes of"""

    def forward(self, x: Tensor) -> Tensor:
        half = x.shape[1] // 2
        return torch.cat([x[:, :half] + x[:, half : 2 * half], x[:, ::2]], 1)


@interchange
def test_sizes_that_the_program_is_right_for(tmp_path: Path) -> None:
    examples = [(torch.randn(2, 8),), (torch.randn(2, 14),)]
    agree(Halved(), tmp_path, examples, {"input_0": {1: "S"}})


@interchange
def test_images_of_other_sizes(tmp_path: Path) -> None:
    module = nn.Sequential(nn.Upsample(size=(7, 5), mode="bilinear"), nn.Conv2d(3, 4, 3))
    examples = [(torch.randn(size, 3, 4, 6),) for size in (2, 3)]
    agree(module, tmp_path, examples, {"input_0": {0: "B"}})


@interchange
def test_the_last_of_a_batch_in_another_shape(tmp_path: Path) -> None:
    module = Calling(lambda x: x[-1:].reshape(-1, 2))
    agree(module, tmp_path, [(torch.randn(size, 6),) for size in (4, 2, 1)], {"input_0": {0: "B"}})


@interchange
def test_sums_and_extremes_so_far(tmp_path: Path) -> None:
    module = Calling(lambda x: (x.cumsum(1), x.cumprod(2), x.cummax(1), x.flip(1).logcumsumexp(1)))
    examples = [(torch.randn(size, steps, 3),) for size, steps in ((2, 5), (3, 1), (1, 8))]
    agree(module, tmp_path, examples, {"input_0": {0: "B", 1: "S"}})


@interchange
def test_images_whose_sizes_are_multiples(tmp_path: Path) -> None:
    module = nn.Sequential(nn.PixelUnshuffle(2), nn.Conv2d(12, 5, 3, padding=1))
    examples = [(torch.randn(2, 3, 2 * size, 6),) for size in (3, 1, 4)]
    agree(module, tmp_path, examples, {"input_0": {0: "B", 2: "2*H"}})


@interchange
def test_pads_that_go_around(tmp_path: Path) -> None:
    module = nn.Conv2d(2, 3, 3, padding=1, padding_mode="circular")
    examples = [(torch.randn(2, 2, 5, 6),), (torch.randn(1, 2, 7, 4),)]
    agree(module, tmp_path, examples, {"input_0": {0: "B", 2: "H", 3: "W"}})


@interchange
@pytest.mark.parametrize("pool", [nn.AdaptiveAvgPool1d(3), nn.AdaptiveMaxPool1d(2)], ids=["mean", "largest"])
def test_pools_of_so_many_windows(tmp_path: Path, pool: nn.Module) -> None:
    agree(pool, tmp_path, [(torch.randn(2, 3, size),) for size in (9, 7, 5)], {"input_0": {0: "B", 2: "H"}})
