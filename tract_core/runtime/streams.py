"""What the properties of a model say of its streams: tensors of a whole signal that come, or leave, piece by piece.

``pulse.streaming_symbol``: the length of the signal. ``pulse.input_axes``, ``pulse.output_axes``: along which axis each
input and output comes, -1 for one that is whole. ``pulse.delay``: for each output, how many positions come before its
first. ``pulse.input_lengths``, ``pulse.output_lengths``: how many positions there are in the end, as texts; models of
the established engine lack them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tract_core.dims import Dim, bind, evaluate, is_symbolic, parse_dim, symbol, symbols_of
from tract_core.errors import DimError, InputError
from tract_core.frozen import frozen

if TYPE_CHECKING:
    from tract_core.model.typed import TypedModel


@frozen
class StreamEnd:
    """An input or output that comes piece by piece. ``length``: of the whole, ``None`` where nothing tells.

    ``axis``: along which. ``delay``: how many positions late.
    """

    axis: int
    delay: int
    length: Dim | None


@frozen
class Streamed:
    """What a tensor over a whole signal is in a model over pulses: part of the tensor of that name there.

    ``end``: which positions of it, and along which axis; ``None`` where it is the same in every pulse, and whole.
    """

    tensor: str
    end: StreamEnd | None


@frozen
class Streams:
    """``symbol``: the length of the signal. ``inputs``, ``outputs``: in order, ``None`` for a tensor that is whole."""

    symbol: str
    inputs: tuple[StreamEnd | None, ...]
    outputs: tuple[StreamEnd | None, ...]

    @staticmethod
    def of(model: TypedModel) -> Streams | None:
        """What a model says of itself; ``None`` where no input streams. Raises InputError where that fits no model."""
        found = model.properties
        if "pulse.input_axes" not in found or "pulse.output_axes" not in found:
            return None
        name = _texts(found.get("pulse.streaming_symbol", np.array(["S"], object)))[0]
        delays = _numbers(found.get("pulse.delay", np.zeros(len(model.outputs), np.int64)))
        inputs = _ends(model, "input", [0] * len(model.inputs), symbol(name))
        if all(one is None for one in inputs):
            return None
        return Streams(name, inputs, _ends(model, "output", delays, None))

    def symbol_for(self, counts: Sequence[int | None]) -> int:
        """The length of the signal, where the streams of the inputs have so many positions.

        Raises InputError where there is no such signal.
        """
        pairs = self._known(counts)
        try:
            return bind([length for length, _ in pairs], [count for _, count in pairs], {})[self.symbol]
        except (DimError, KeyError) as error:
            wanted, found = (", ".join(str(pair[side]) for pair in pairs) for side in (1, 0))
            hint = error.problem if isinstance(error, DimError) else None
            text = f"the signal has {wanted} positions, and the model takes streams of {found}"
            raise InputError(text, hint=hint) from None

    def is_own(self, end: StreamEnd) -> bool:
        """Whether a stream is as long as the signal."""
        return end.length == symbol(self.symbol)

    def length_within(self, counts: Sequence[int | None]) -> int:
        """The longest signal for which the streams of the inputs have no more positions than these; 0 for none."""
        pairs = self._known(counts)
        low, high = 0, max((count for _, count in pairs), default=0)
        middle = min((count for length, count in pairs if length == symbol(self.symbol)), default=(high + 1) // 2)
        while low < high:
            fits = all(evaluate(length, {self.symbol: middle}) <= count for length, count in pairs)
            low, high = (middle, high) if fits else (low, middle - 1)
            middle = (low + high + 1) // 2
        return low

    def _known(self, counts: Sequence[int | None]) -> list[tuple[Dim, int]]:
        return [
            (one.length, count)
            for one, count in zip(self.inputs, counts, strict=True)
            if one is not None and one.length is not None and count is not None
        ]

    def output_length(self, slot: int, length: int) -> int | None:
        """How many positions an output has for a signal of that length; ``None`` where nothing tells."""
        one = self.outputs[slot]
        if one is None or one.length is None or not symbols_of(one.length) <= {self.symbol}:
            return None
        return max(evaluate(one.length, {self.symbol: length}), 0)


def add_whole(model: TypedModel, inputs: int, outputs: int) -> None:
    """Have a model say that so many of its last inputs and outputs are whole in every turn, if it says it of others."""
    held = model.properties
    for what, count in (("input", inputs), ("output", outputs)):
        for name, one in ((f"pulse.{what}_axes", -1), (f"pulse.{what}_lengths", "")):
            if name in held:
                held[name] = np.append(held[name], np.array([one] * count, held[name].dtype))
    if "pulse.delay" in held:
        held["pulse.delay"] = np.append(held["pulse.delay"], np.zeros(outputs, np.int64))


def _ends(model: TypedModel, what: str, delays: Sequence[int], length: Dim | None) -> tuple[StreamEnd | None, ...]:
    """``length``: of streams of which the properties do not say it."""
    axes = _numbers(model.properties[f"pulse.{what}_axes"])
    outlets = model.inputs if what == "input" else model.outputs
    texts = model.properties.get(f"pulse.{what}_lengths")
    lengths = [length] * len(axes) if texts is None else [parse_dim(text) if text else None for text in _texts(texts)]
    if not len(axes) == len(lengths) == len(outlets) == len(delays):
        raise InputError(f"the model has {len(outlets)} {what}s, its properties tell of {len(axes)} streams")
    for axis, outlet in zip(axes, outlets, strict=True):
        if axis >= model.outlet_fact(outlet).rank:
            raise InputError(f"the properties of the model say axis {axis} of {what} {model.outlet_name(outlet)!r}")
    ends = zip(axes, delays, lengths, strict=True)
    return tuple(None if axis < 0 else StreamEnd(axis, delay, size) for axis, delay, size in ends)


def pulse_of(model: TypedModel, slot: int, end: StreamEnd) -> tuple[int, bool]:
    """How many positions an input takes in a turn, and whether it also takes a multiple of that."""
    size = model.outlet_fact(model.inputs[slot]).shape[end.axis]
    return evaluate(size, dict.fromkeys(symbols_of(size), 1)), is_symbolic(size)


def _numbers(array: np.ndarray[Any, Any]) -> list[int]:
    return [int(number) for number in array.ravel()]


def _texts(array: np.ndarray[Any, Any]) -> list[str]:
    return [str(text) for text in array.ravel()]
