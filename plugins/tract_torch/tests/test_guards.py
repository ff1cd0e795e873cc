"""Sizes by name, and what PyTorch found out about them, which a run checks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import tract_torch
from agreement import agree
from torch.export import Dim

from tract_core.errors import TractError, Unsupported


class Calling(torch.nn.Module):
    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: torch.Tensor, more: Any = None) -> Any:
        return self.function(x) if more is None else self.function(x, more)


def assertions(model: Any) -> list[str]:
    return [str(one) for one in model.typed.symbols]


def run(model: Any, *shapes: tuple[int, ...]) -> Any:
    return model.clone().into_runnable().run([np.ones(shape, np.float32) for shape in shapes])


def test_ranges() -> None:
    model = agree(Calling(lambda x: x * 2), [torch.randn(8, 3)], dynamic_shapes={"x": {0: Dim("S", min=3, max=64)}})
    assert assertions(model) == ["S>=3", "S<=64"]
    for size in (2, 65):
        with pytest.raises(TractError, match="S"):
            run(model, (size, 3))


def test_a_text_is_a_symbol_of_whichever_sizes_are_right() -> None:
    def function(x: torch.Tensor, y: torch.Tensor) -> Any:
        return (x + y)[1:], x + 1 if x.shape[0] <= 10 else x

    shapes = {"x": {0: "S", -1: "T"}, "more": {0: "S", 1: "T"}}
    inputs = [torch.randn(8, 3), torch.randn(8, 3)]
    model = agree(Calling(function), inputs, [[torch.randn(3, 5), torch.randn(3, 5)]], dynamic_shapes=shapes)
    assert [str(fact) for fact in model.input_facts()] == ["S,T,f32", "S,T,f32"]
    assert {"S>=3", "S<=10"} <= set(assertions(model))
    with pytest.raises(TractError, match="S<=10"):
        run(model, (11, 3), (11, 3))


def test_sizes_of_a_multiple() -> None:
    model = agree(
        Calling(lambda x: x.reshape(-1, 4, 3)),
        [torch.randn(16, 3)],
        [[torch.randn(8, 3)]],
        dynamic_shapes={"x": {0: "S"}},
    )
    with pytest.raises(TractError, match="S"):
        run(model, (10, 3))
    model = agree(
        Calling(lambda x: x.reshape(-1, 4, 3)),
        [torch.randn(16, 3)],
        [[torch.randn(8, 3)]],
        dynamic_shapes={"x": {0: 4 * Dim("Rows", min=1, max=16)}},
    )
    assert [str(fact) for fact in model.input_facts()] == ["4*Rows,3,f32"]
    with pytest.raises(TractError, match="Rows"):
        run(model, (10, 3))


def test_a_branch_of_python_on_a_size_holds_for_sizes_of_that_branch_only() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        return x * 2 if x.shape[0] != 5 else x

    model = agree(Calling(function), [torch.randn(8, 3)], [[torch.randn(4, 3)]], dynamic_shapes={"x": {0: "S"}})
    with pytest.raises(TractError, match="S"):
        run(model, (5, 3))


def test_names_over_nested_arguments_in_any_order() -> None:
    class Nested(torch.nn.Module):
        def forward(self, x: torch.Tensor, *, state: dict[str, Any], y: torch.Tensor) -> torch.Tensor:
            return x.sum() + state["a"].sum() + state["b"][0].sum() + y.sum()

    kwargs = {"y": torch.randn(2), "state": {"a": torch.randn(3), "b": [torch.randn(4)]}}
    shapes = {"state": {"b": ["U"], "a": {0: "V"}}, "y": {0: Dim("W")}, "x": None}
    shapes["state"]["b"] = [{0: "U"}]
    model = tract_torch.load(Nested(), torch.randn(5), kwargs, dynamic_shapes=shapes)
    facts = dict(zip(model.input_names(), map(str, model.input_facts()), strict=True))
    assert facts == {"x": "5,f32", "y": "W,f32", "state_a": "V,f32", "state_b_0": "U,f32"}


def test_sizes_without_a_name_are_called_after_their_input() -> None:
    program = torch.export.export(Calling(torch.relu), (torch.randn(4, 3),), dynamic_shapes={"x": {0: Dim("S")}})
    model = tract_torch.load(program)
    assert [str(fact) for fact in model.input_facts()] == ["x_0,3,f32"]


def test_as_many_pieces_as_there_were_in_the_example() -> None:
    def first_two(x: torch.Tensor) -> Any:
        return [piece * 2 for piece in x.chunk(3)[:2]]

    model = tract_torch.load(Calling(first_two), torch.randn(4, 3), dynamic_shapes={"x": {0: Dim.AUTO}})
    runnable = model.into_runnable()
    with pytest.raises(TractError, match="does not hold for x_0=7"):  # there are three pieces, and the first is of 3
        runnable.run([np.ones((7, 3), np.float32)])
    assert [piece.shape for piece in runnable.run([np.ones((4, 3), np.float32)])] == [(2, 3), (2, 3)]


def test_what_pytorch_takes_for_granted_of_a_size_is_so_in_a_product_too() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        batch, length = x.shape[0], x.shape[1] // 10 - 1
        return x * 2 if batch * length != length else x

    shapes = {"x": {0: "B", 1: "N"}}
    model = agree(Calling(function), [torch.randn(3, 40)], [[torch.randn(2, 35)]], dynamic_shapes=shapes)
    assert run(model, (1, 40))[0].shape == (1, 40)
    with pytest.raises(TractError, match="N=19"):
        run(model, (3, 19))


def test_a_size_that_is_no_factor_of_its_own_is_asserted() -> None:
    model = agree(
        Calling(lambda x: x * 2 if x.shape[0] * x.shape[1] != 12 else x),
        [torch.randn(3, 5)],
        [[torch.randn(2, 5)]],
        dynamic_shapes={"x": {0: "B", 1: "N"}},
    )
    with pytest.raises(TractError, match="B=3, N=4"):
        run(model, (3, 4))


def test_a_size_is_divided_by_one_that_is_a_factor_of_it() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        both = x.unsqueeze(2) * x.unsqueeze(1)  # (B, S, S), shifted as scores of relative positions are
        shifted = torch.nn.functional.pad(both, (1, 0)).reshape(x.shape[0], x.shape[1] + 1, x.shape[1])
        part = shifted[:, 1:].reshape(x.shape[0], -1, x.shape[1])
        return part.reshape(x.shape[0], x.shape[1], -1)

    agree(
        Calling(function),
        [torch.randn(3, 4)],
        [[torch.randn(2, 7)]],
        dynamic_shapes={"x": {0: "B", 1: "S"}},
    )


def test_what_follows_from_a_multiple_is_not_told(recwarn: pytest.WarningsRecorder) -> None:
    shapes = {"x": {0: "S"}}
    agree(Calling(lambda x: x.reshape(-1, 4, 3)), [torch.randn(16, 3)], [[torch.randn(8, 3)]], dynamic_shapes=shapes)
    assert not [str(one.message) for one in recwarn if "PyTorch relies on" in str(one.message)]


def test_a_number_that_was_computed_from_a_size_holds_for_that_size() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.dropout(x, p=float(1 / x.shape[0]), training=False) * float(1 / x.shape[0])

    model = agree(Calling(function), [torch.randn(5, 3)], dynamic_shapes={"x": {0: "S"}})
    with pytest.raises(TractError, match="S==5"):
        run(model, (6, 3))


HALVES: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "alone": lambda x: x.view(-1, 8),
    "by its number": lambda x: x.view(x.shape[0] // 2, 8),
    "functions": lambda x: torch.nn.functional.hardshrink(x.view(-1, 8)),
    "products": lambda x: x.view(-1, 8) @ torch.ones(8, 3),
    "again": lambda x: x.view(-1, 8).view(-1, 2, 4),
    "windows": lambda x: torch.nn.functional.max_pool1d(x.view(-1, 8)[None], 2),
}


@pytest.mark.parametrize("name", HALVES)
def test_a_multiple_is_divided_by_its_half(name: str, recwarn: pytest.WarningsRecorder) -> None:
    """PyTorch has 4*(B//(B//2)) for 8, which is so as B is a multiple of 2."""
    others = [[torch.randn(6, 4)], [torch.randn(10, 4)]]
    model = agree(Calling(HALVES[name]), [torch.randn(4, 4)], others, dynamic_shapes={"x": {0: "B"}})
    assert not [str(one.message) for one in recwarn if "PyTorch relies on" in str(one.message)]
    with pytest.raises(TractError, match="B=5"):
        run(model, (5, 4))


@pytest.mark.filterwarnings("ignore:PyTorch relies on")
def test_a_guard_that_is_not_defined_for_some_sizes() -> None:
    """Where B is 1, PyTorch would divide by 0."""
    model = Calling(lambda x: x.view(x.shape[0] // 2, -1))
    with pytest.raises(Unsupported, match=r"cannot say the size B//\(B/2\)"):
        tract_torch.load(model, torch.ones(4, 4), dynamic_shapes={"x": {0: "B"}})
