"""A program falls apart into the same operators, whichever way PyTorch is asked for that."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import tract_torch
from torch._export import utils
from torch.export import exported_program

from tract_core.model.same import same_model
from tract_core.model.typed import TypedModel

X = torch.randn(2, 4, 6)


class Mixed(torch.nn.Module):
    """With composed operators that have a row and such that have none, and others of both kinds."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.linear = torch.nn.InstanceNorm1d(4), torch.nn.Linear(6, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.nn.functional.silu(self.norm(x), inplace=True)
        return torch.nn.functional.pairwise_distance(self.linear(x).fliplr(), x[..., :3]).var(0)


def wired(module: torch.nn.Module) -> TypedModel:
    return tract_torch.load(module, X, dynamic_shapes={"x": {0: "B"}}).typed


def test_a_pytorch_without_the_private_names_gives_the_same_model(monkeypatch: pytest.MonkeyPatch) -> None:
    module, tables = Mixed(), list[dict[Any, Any]]()
    split = exported_program._split_decomp_table_to_cia_and_python_decomp

    def noted(table: dict[Any, Any]) -> Any:
        tables.append(dict(table))
        return split(table)

    monkeypatch.setattr(exported_program, split.__name__, noted)
    quickly = wired(module)
    assert tables == []
    monkeypatch.delattr(utils, "_special_op_to_preserve_cia")
    assert same_model(wired(module), quickly)
    (table,) = tables
    assert torch.ops.aten.pairwise_distance.default in table
    assert torch.ops.aten.instance_norm.default not in table
