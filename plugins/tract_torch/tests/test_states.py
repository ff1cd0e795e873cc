"""Modules that change what they hold, or what they are called with."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
import tract_torch
from agreement import agree, same

import tract_core as tract
from tract_core.errors import InputError, Unsupported


class Remembering(torch.nn.Module):
    """A running sum in a cache of four rows, of which each call fills one."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("rows", torch.zeros(4, 3))
        self.register_buffer("at", torch.zeros((), dtype=torch.int64), persistent=False)
        self.layer = torch.nn.Linear(3, 3)

    def forward(self, x: torch.Tensor) -> dict[str, Any]:
        here = torch.arange(4)[:, None] == self.at % 4
        self.rows.copy_(torch.where(here, self.layer(x).sum(0), self.rows))
        self.at += 1
        return {"sum": self.rows.sum(0), "x": x * self.at}


def test_buffers_that_change_are_refused_by_their_names() -> None:
    with pytest.raises(Unsupported, match=r"(?s)changes what it holds: rows, at.*states='inputs'.*states='inside'"):
        tract_torch.load(Remembering(), torch.randn(2, 3))


def test_buffers_as_inputs_and_outputs() -> None:
    torch.manual_seed(0)
    module = Remembering().eval()
    model = tract_torch.load(module, torch.randn(2, 3), states="inputs")
    assert model.input_names() == ["x", "rows", "at"]
    assert model.output_names() == ["sum", "x.1", "rows_out", "at_out"]
    rows, at = torch.zeros(4, 3).numpy(), np.array(0)
    for _ in range(6):
        x = torch.randn(2, 3)
        want = module(x)
        total, scaled, rows, at = map(np.asarray, model.clone().into_runnable().run([x.numpy(), rows, at]))
        same([total, scaled, rows, at], [want["sum"].detach(), want["x"], module.rows.detach(), module.at])


@pytest.mark.parametrize("runtime", ["reference", "cpu"])
def test_buffers_that_a_running_model_keeps(runtime: str) -> None:
    torch.manual_seed(0)
    module = Remembering().eval()
    batch = torch.export.Dim("B", min=1)
    model = tract_torch.load(module, torch.randn(2, 3), dynamic_shapes=({0: batch},), states="inside")
    assert (model.input_names(), model.output_names()) == (["x"], ["sum", "x.1"])
    assert int(module.at) == 0
    runnable = tract.runtime_for_name(runtime).prepare(model)
    state = runnable.spawn_state()
    kept = []
    for count in (2, 1, 3, 2, 5, 2):
        kept.append(torch.randn(count, 3))
        want = module(kept[-1])
        same(state.run([kept[-1].numpy()]), [want["sum"].detach(), want["x"]])
    again = Remembering().eval()
    again.load_state_dict({**module.state_dict(), "rows": torch.zeros(4, 3)})
    want = again(kept[0])
    same(runnable.run([kept[0].numpy()]), [want["sum"].detach(), want["x"]])


class Doubling(torch.nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        x.mul_(2)
        return x + y


def test_arguments_that_change() -> None:
    inputs = (torch.ones(3), torch.ones(3))
    with pytest.raises(Unsupported, match=r"(?s)changes its arguments in place: x.*x.clone\(\).*states='inputs'"):
        tract_torch.load(Doubling(), inputs)
    model = tract_torch.load(Doubling(), inputs, states="inputs")
    assert model.output_names()[1:] == ["x_out"]
    same(model.into_runnable().run([np.ones(3, np.float32)] * 2), [torch.full((3,), 3.0), torch.full((3,), 2.0)])


def test_outputs_that_are_inputs_or_numbers() -> None:
    class Passing(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> Any:
            return x, x, x + 1, 5, None, (x.shape[0], True)

    batch = torch.export.Dim("B", min=1)
    agree(Passing(), [torch.randn(2, 3)], [[torch.randn(4, 3)]], dynamic_shapes=({0: batch},))


def test_an_option_that_there_is_not() -> None:
    with pytest.raises(InputError, match="states='outside' is none of 'refuse', 'inputs' and 'inside'"):
        tract_torch.load(Doubling(), (torch.ones(3), torch.ones(3)), states="outside")  # pyright: ignore[reportArgumentType]: a mistake


class Normalising(torch.nn.Module):
    """A normalisation by the batch, which moves what it knows of the channels towards it."""

    def __init__(self, way: Any) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(3))
        self.register_buffer("variance", torch.ones(3))
        self.weight, self.bias = (torch.nn.Parameter(torch.randn(3)) for _ in range(2))
        self.way = way

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.way(x, self.mean, self.variance, self.weight, self.bias, True, momentum=0.2)


@pytest.mark.parametrize("way", [torch.nn.functional.batch_norm, torch.nn.functional.instance_norm])
@pytest.mark.parametrize("runtime", ["reference", "cpu"])
def test_what_a_normalisation_knows_of_its_batches_changes(way: Any, runtime: str) -> None:
    torch.manual_seed(0)
    module = Normalising(way).eval()
    with pytest.raises(Unsupported, match="changes what it holds: mean, variance"):
        tract_torch.load(module, torch.randn(4, 3, 5))
    batch = torch.export.Dim("B", min=2)
    model = tract_torch.load(module, torch.randn(4, 3, 5), dynamic_shapes=({0: batch},), states="inputs")
    runnable = tract.runtime_for_name(runtime).prepare(model)
    known = [np.zeros(3, np.float32), np.ones(3, np.float32)]
    for size in (4, 2, 7):
        x = torch.randn(size, 3, 5)
        want = module(x).detach()
        found, *known = runnable.run([x.numpy(), *known])
        same([found, *known], [want, module.mean, module.variance], 1e-5)


class Cache:
    """Rows that were written, and how many; no module."""

    def __init__(self) -> None:
        self.layers = [{"rows": torch.zeros(4, 3), "at": torch.tensor(0)}]

    def update(self, x: torch.Tensor) -> torch.Tensor:
        rows, at = self.layers[0].values()
        rows.index_copy_(0, at.view(1), x)
        at.add_(1)
        return rows


class Caching(torch.nn.Module):
    """Calls a cache, whose tensors it registers as buffers where that is asked."""

    def __init__(self, *, registers: bool) -> None:
        super().__init__()
        self.cache = Cache()
        if registers:
            self.register_buffer("rows", self.cache.layers[0]["rows"])
            self.register_buffer("at", self.cache.layers[0]["at"], persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.cache.update(x).cumsum(0)


@pytest.mark.parametrize("states", ["inputs", "inside"])
def test_buffers_that_a_cache_changes(states: Any) -> None:
    module = Caching(registers=True)
    model = tract_torch.load(module, torch.randn(1, 3), states=states)
    assert not module.rows.any()
    state = model.into_runnable().spawn_state()
    kept = [] if states == "inside" else [np.zeros((4, 3), np.float32), np.array(0)]
    for _ in range(4):
        x = torch.randn(1, 3)
        found, *kept = state.run([x.numpy(), *kept])
        same([found], [module(x)], 1e-6)


def test_what_a_cache_holds_has_to_be_a_buffer() -> None:
    says = (
        r"changes the tensor self.cache.layers\[0\]\['at'\], which is no buffer\n.*hint: register it before the export"
    )
    line = r", as self.register_buffer\('cache_layers_0_at', self.cache.layers\[0\]\['at'\]\), and so .*\['rows'\]"
    with pytest.raises(Unsupported, match=f"{says}{line}"):
        tract_torch.load(Caching(registers=False), torch.randn(1, 3), states="inside")


def test_statistics_of_batches_of_equal_weight() -> None:
    """The mean over all batches: how far the next one moves it depends on a counter, of which PyTorch wants a float."""
    module = torch.nn.Sequential(torch.nn.BatchNorm1d(3, momentum=None))
    module.eval = lambda: module  # pyright: ignore[reportAttributeAccessIssue]: it stays in training mode
    says = r"a number that only a run knows is used where .*\n  hint: give a BatchNorm that stays in .* a momentum"
    with pytest.raises(Unsupported, match=says):
        tract_torch.load(module, torch.randn(4, 3), states="inside")
