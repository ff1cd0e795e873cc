"""Branches and loops that a module has in it, and numbers that follow from sizes and from data."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import tract_torch
from agreement import agree
from torch._higher_order_ops import while_loop
from torch._higher_order_ops.map import map as map_slices
from torch._higher_order_ops.scan import scan

import tract_core as tract
from tract_core.errors import MissingOperator, TractError
from tract_core.ops.if_then_else import IfThenElse
from tract_core.ops.loop import Loop
from tract_core.ops.scan import Scan

S = torch.export.Dim("S", min=2)


class Calling(torch.nn.Module):
    """Calls a function, with a layer first."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(4, 4)
        self.function = function

    def forward(self, *inputs: torch.Tensor) -> Any:
        return self.function(self.layer, *inputs)


def shapes(*axes: dict[int, Any] | None) -> Any:
    return (tuple(axes),)


def has(model: Any, kind: type) -> bool:
    return any(isinstance(node.op, kind) for node in model.typed.live_nodes())


def test_a_branch_that_data_chooses() -> None:
    def function(layer: Any, x: torch.Tensor) -> torch.Tensor:
        count = x.shape[0]
        return torch.cond(x.sum() > 0, lambda y: layer(y) + count, lambda y: y * y.shape[0], (x,))

    others = [[torch.ones(3, 4)], [-torch.ones(7, 4)]]
    model = agree(Calling(function), [torch.randn(5, 4)], others, dynamic_shapes=shapes({0: S}))
    assert has(model, IfThenElse)


def test_a_branch_that_a_size_chooses() -> None:
    def function(_: Any, x: torch.Tensor) -> torch.Tensor:
        return torch.cond(x.shape[0] > 4, lambda y: y + 1, lambda y: y * 2, (x,))

    agree(Calling(function), [torch.randn(5, 4)], [[torch.ones(4, 4)]], dynamic_shapes=shapes({0: S}))


def test_branches_of_other_sizes() -> None:
    def function(_: Any, x: torch.Tensor) -> torch.Tensor:
        found = torch.cond(x.sum() > 0, lambda y: (y[:2] + 1, y + 1), lambda y: (y[:3] * 2, y * 2), (x,))
        return found[0] * 2

    agree(Calling(function), [torch.randn(5, 4)], [[torch.ones(5, 4)], [-torch.ones(5, 4)]])


def test_a_loop_that_data_ends() -> None:
    def function(layer: Any, x: torch.Tensor, n: torch.Tensor) -> Any:
        return while_loop(lambda i, _: i < n, lambda i, y: (i + 1, layer(y)), (torch.tensor(0), x))

    others = [[torch.ones(3, 4), torch.tensor(0)], [torch.ones(2, 4), torch.tensor(5)]]
    model = agree(Calling(function), [torch.randn(5, 4), torch.tensor(3)], others, dynamic_shapes=shapes({0: S}, None))
    assert has(model, Loop)


@pytest.mark.parametrize("backward", [False, True])
def test_a_scan(backward: bool) -> None:
    def function(layer: Any, x: torch.Tensor, start: torch.Tensor) -> Any:
        def step(state: torch.Tensor, y: torch.Tensor) -> Any:
            return state + layer(y), {"seen": state * y, "twice": y * 2}

        return scan(step, start, x, dim=0, reverse=backward)

    example, other = [torch.randn(5, 4), torch.zeros(4)], [torch.randn(3, 4), torch.ones(4)]
    model = agree(Calling(function), example, [other], dynamic_shapes=shapes({0: S}, None))
    assert has(model, Scan)


def test_a_scan_starts_anew_in_every_turn() -> None:
    def function(_: Any, x: torch.Tensor) -> Any:
        return scan(lambda state, y: (state + y, state * 2), torch.zeros(4), x)

    state = tract_torch.load(Calling(function), torch.ones(3, 4)).into_runnable().spawn_state()
    for _ in range(2):
        np.testing.assert_array_equal(state.run([np.ones((3, 4), np.float32)])[0], np.full(4, 3))


def test_a_map() -> None:
    def function(layer: Any, x: torch.Tensor, z: torch.Tensor) -> torch.Tensor:
        return map_slices(lambda y, z: layer(y) * z, x, z)

    example = [torch.randn(5, 4), torch.randn(4)]
    agree(Calling(function), example, [[torch.ones(3, 4), torch.ones(4)]], dynamic_shapes=shapes({0: S}, None))


def test_a_loop_in_a_branch() -> None:
    def function(layer: Any, x: torch.Tensor) -> torch.Tensor:
        def loop(y: torch.Tensor) -> torch.Tensor:
            return while_loop(lambda z: z.sum() < 100, lambda z: (z * 2 + 1,), (y,))[0]

        return torch.cond(x.sum() > 0, loop, layer, (x,))

    agree(Calling(function), [torch.ones(2, 4)], [[-torch.ones(3, 4)]], dynamic_shapes=shapes({0: S}))


def test_operators_that_are_missing_in_a_branch_are_told() -> None:
    def function(_: Any, x: torch.Tensor) -> torch.Tensor:
        return torch.cond(x.sum() > 0, lambda y: torch.linalg.lu(y)[1].sum(), lambda y: y.sum(), (x,))

    with pytest.raises(MissingOperator, match=r"there is no importer for aten.linalg_lu"):
        tract_torch.load(Calling(function), torch.randn(4, 4))


def test_numbers_of_sizes() -> None:
    def function(_: Any, x: torch.Tensor) -> Any:
        count = x.shape[0]
        return x * count**-0.5 + x / count, count / 2, count * 2 + 1, x.new_zeros(count % 3 + 2)

    agree(Calling(function), [torch.randn(5, 4)], [[torch.ones(3, 4)]], dynamic_shapes=shapes({0: S}))


def test_sizes_that_are_data() -> None:
    def function(_: Any, x: torch.Tensor, n: torch.Tensor) -> Any:
        count: Any = n.item()
        torch._check(count >= 1)
        torch._check(count <= x.shape[0])
        return x[:count] * 2, x * count, x + n.float().item()

    example = [torch.randn(5, 4), torch.tensor(3)]
    model = agree(Calling(function), example, [[torch.ones(5, 4), torch.tensor(1)]])
    with pytest.raises(TractError, match="u0"):
        model.into_runnable().run([np.ones((5, 4), np.float32), np.array(6)])
    assert isinstance(model, tract.Model)


class Sized(torch.nn.Module):
    """Decides and sizes by numbers that it keeps in buffers."""

    def __init__(self, way: Callable[[Any, torch.Tensor], Any]) -> None:
        super().__init__()
        self.way = way
        self.register_buffer("one", torch.tensor(3))
        self.register_buffer("two", torch.tensor([2, 1]))
        self.register_buffer("scale", torch.tensor(2.5))
        self.plain = torch.tensor(2)

    def forward(self, x: torch.Tensor) -> Any:
        return self.way(self, x)


def chosen_by_a_copy(own: Any, x: torch.Tensor) -> torch.Tensor:
    """Decides by what it computed of a buffer, and changed."""
    copy = own.two.clone()
    copy[0] += 5
    return x * 2 if own.two[0] + 1 > 2 else x * copy[0]


@pytest.mark.parametrize(
    "way",
    [
        lambda own, x: x[:, : int(own.one)] if own.one > 1 else x,
        lambda own, x: x.reshape(x.shape[0], own.two[0].item(), -1) * float(own.scale),
        lambda own, x: torch.nn.functional.pad(x, own.two.tolist()) if own.plain == 2 and own.scale else x,
        lambda own, x: [x, x * 2, x * 3][own.one - 1][:, : int(own.two.max() * 2)],
        lambda own, x: x * 2 if torch.equal(own.two, own.two.clone()) else x,
        chosen_by_a_copy,
    ],
)
def test_numbers_that_the_module_holds(way: Any) -> None:
    agree(Sized(way), [torch.randn(3, 6)], [[torch.randn(5, 6)]], dynamic_shapes=({0: S},))


def test_weights_that_a_number_was_read_of_stay() -> None:
    model = tract_torch.load(Sized(lambda own, x: x * float(own.scale)), torch.randn(2, 3), keep_parameters=True)
    (found,) = model.into_runnable().run([np.ones((2, 3), np.float32)])
    np.testing.assert_array_equal(found, np.full((2, 3), 2.5, np.float32))


def counting(own: Any, x: torch.Tensor) -> torch.Tensor:
    own.one.add_(1)
    return x[:, : int(own.one)]


def counting_anew(own: Any, x: torch.Tensor) -> torch.Tensor:
    own.one = own.one + 1
    return x * 2 if own.one > 4 else x


def counting_afterwards(own: Any, x: torch.Tensor) -> torch.Tensor:
    found = x * 2 if own.two[0] > 4 else x
    own.two[0:1].add_(1)
    return found


@pytest.mark.parametrize("way", [counting, counting_anew, counting_afterwards])
def test_numbers_that_the_module_changes(way: Any) -> None:
    module = Sized(way)
    with pytest.raises(TractError, match=r"only a run knows"):
        tract_torch.load(module, torch.randn(2, 8), states="inside")
    assert (int(module.one), module.two.tolist()) == (3, [2, 1])


def test_a_number_that_the_module_changes_and_computes_with() -> None:
    def scaled(own: Any, x: torch.Tensor) -> torch.Tensor:
        own.two[0:1].add_(1)
        return x * own.two[0].item()

    state = tract_torch.load(Sized(scaled), torch.ones(2), states="inside").into_runnable().spawn_state()
    assert [float(state.run([np.ones(2, np.float32)])[0][0]) for _ in range(3)] == [3, 4, 5]


def test_tensors_of_sizes() -> None:
    def function(_: Any, x: torch.Tensor) -> Any:
        rows, columns = x.shape
        made = (
            torch.as_tensor(rows),
            torch.as_tensor([rows, 2.5]),
            torch.as_tensor(((rows, columns),), dtype=torch.int32),
        )
        return (
            *made,
            x.new_tensor(rows),
            x.new_tensor([[rows], [3]]),
            torch.tensor(rows),
            x * rows**-0.5 / math.prod(x.shape),
        )

    agree(Calling(function), [torch.randn(3, 4)], [[torch.randn(5, 4)]], dynamic_shapes=shapes({0: S}))
