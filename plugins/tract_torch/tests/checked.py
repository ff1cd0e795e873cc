"""Modules and archives for the tests of what is exported."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
import tract_torch

import tract_core as tract


class Encoder(torch.nn.Module):
    """Self-attention over tokens, with a causal mask, and a head."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.embedding = torch.nn.Embedding(11, 8)
        self.attention = torch.nn.MultiheadAttention(8, 2, batch_first=True)
        self.head = torch.nn.Sequential(torch.nn.Linear(8, 6), torch.nn.GELU(), torch.nn.Linear(6, 3))

    def forward(self, tokens: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        x = self.embedding(tokens)
        mask = torch.ones(tokens.shape[1], tokens.shape[1]).tril() == 0
        attended, _ = self.attention(x, x, x, need_weights=False, attn_mask=mask)
        return self.head(attended), attended.mean(1)


TOKENS = torch.tensor([[1, 5, 3, 10, 0], [2, 2, 9, 4, 7]])
AXES = {"tokens": {0: "B", 1: "S"}}


def archive_of(
    module: torch.nn.Module, args: Any, path: Path, shapes: Any = None, outputs: Sequence[str] | None = None
) -> Path:
    """An archive of a module, as it is loaded. ``shapes``: its dynamic ones."""
    model = tract_torch.load(module, args, dynamic_shapes=shapes, output_names=outputs)
    archive = path / "m.nnef.tar"
    tract.nnef().write_model_to_tar(model, archive)
    return archive


def encoder_archive(module: torch.nn.Module, path: Path) -> Path:
    """One of an `Encoder`, with sizes ``B`` and ``S``."""
    shapes = ({0: torch.export.Dim("B", max=64), 1: torch.export.Dim("S", min=2, max=64)},)
    return archive_of(module, TOKENS, path, shapes, ["logits", "mean"])
