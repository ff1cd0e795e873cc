"""Recurrent layers stay whole while a module is exported.

`torch.export` takes LSTM, GRU and RNN apart into as many cells as the example has steps, so that the number of steps is
fixed. While a module is exported, operators of a library of our own stand for their functions (see `rewritten`), which
say no more than which shapes come out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import torch

from tract_core.errors import Unsupported

_LIBRARY: Final = torch.library.Library("tract_torch", "DEF")
_OPTIONS: Final = (
    "Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional, bool batch_first"
)
_PLAIN: Final[Mapping[str, Callable[..., Any]]] = {
    "gru": torch.gru,
    "rnn_tanh": torch.rnn_tanh,
    "rnn_relu": torch.rnn_relu,
}
"""Networks with one state."""
_LSTM: Final[Callable[..., Any]] = torch.lstm


def _lstm(input: torch.Tensor, hx: Sequence[torch.Tensor], *options: Any) -> tuple[torch.Tensor, ...]:  # noqa: A002 - the name in the schema
    return _LSTM(input, list(hx), *options)


def _lstm_shapes(input: torch.Tensor, hx: Sequence[torch.Tensor], *options: Any) -> tuple[torch.Tensor, ...]:  # noqa: A002
    y = _outputs(input, hx[0], bidirectional=options[5], batch_first=options[6])
    return y, hx[0].new_empty(hx[0].shape), hx[1].new_empty(hx[1].shape)


def _plain_shapes(input: torch.Tensor, hx: torch.Tensor, *options: Any) -> tuple[torch.Tensor, torch.Tensor]:  # noqa: A002
    return _outputs(input, hx, bidirectional=options[5], batch_first=options[6]), hx.new_empty(hx.shape)


def _outputs(x: torch.Tensor, h: torch.Tensor, *, bidirectional: bool, batch_first: bool) -> torch.Tensor:
    """What all steps give, as x but for its last axis; in memory, steps come before the batch."""
    first, second = x.shape[:2]
    width = h.shape[2] * (2 if bidirectional else 1)
    return x.new_empty((second, first, width)).transpose(0, 1) if batch_first else x.new_empty((first, second, width))


def _define(name: str, states: str, results: str, compute: Callable[..., Any], shapes: Callable[..., Any]) -> None:
    _LIBRARY.define(f"{name}(Tensor input, {states} hx, {_OPTIONS}) -> ({results})")
    _LIBRARY.impl(name, compute, "CompositeExplicitAutograd")
    torch.library.register_fake(f"tract_torch::{name}", shapes, lib=_LIBRARY)


_define("lstm", "Tensor[]", "Tensor, Tensor, Tensor", _lstm, _lstm_shapes)
for _name, _function in _PLAIN.items():
    _define(_name, "Tensor", "Tensor, Tensor", _function, _plain_shapes)


def _refuse_packing(*_args: Any, **_kwargs: Any) -> Any:
    raise Unsupported(
        "the module packs sequences: how many elements that gives depends on data",
        hint="run the layer on the padded tensor, and take or mask its outputs by the lengths",
    )


def _kept(name: str) -> Callable[..., Any]:
    operator = getattr(torch.ops.tract_torch, name)

    def call(*args: Any) -> Any:
        return operator(*args) if isinstance(args[3], bool) else _refuse_packing()

    return call


KEPT: Final[Mapping[Any, Callable[..., Any]]] = {
    torch.lstm: _kept("lstm"),
    **{function: _kept(name) for name, function in _PLAIN.items()},
    torch._VF._pack_padded_sequence: _refuse_packing,  # pyright: ignore[reportPrivateUsage]: what the public one calls
}
"""Functions that PyTorch takes apart, and what stands for them while a module is exported."""
