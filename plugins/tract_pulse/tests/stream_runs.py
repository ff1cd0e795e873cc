"""Run a model over a whole signal and, pulsed, over the pieces of it: both must give the same."""

from __future__ import annotations

from typing import Any

import numpy as np
from tract_pulse.transform import Pulse

import tract_core as tract
from tract_core.api.model import Model
from tract_core.model.typed import TypedModel
from tract_core.runtime.streams import Streams, pulse_of
from tract_core.transforms.apply import apply_transform


def whole_outputs(model: TypedModel, inputs: list[Any], runtime: str = "reference") -> list[Any]:
    """The outputs for the whole signal."""
    return [np.asarray(one) for one in runnable(model, runtime).run(inputs)]


def runnable(model: TypedModel, runtime: str = "reference") -> tract.Runnable:
    return tract.runtime_for_name(runtime).prepare(Model(model.clone()))


def pulsed(model: TypedModel, pulse: int | str, symbol: str = "S") -> TypedModel:
    return apply_transform(model, Pulse(pulse, symbol))


def streamed_outputs(model: TypedModel, inputs: list[Any], runtime: str = "reference", state: Any = None) -> list[Any]:
    """What a pulsed model gives, pulse by pulse, with garbage behind the signal, cut as its properties say.

    ``state``: what runs it, where that is no runtime of ours.
    """
    streams = Streams.of(model)
    assert streams is not None
    counts = [None if end is None else x.shape[end.axis] for x, end in zip(inputs, streams.inputs, strict=True)]
    length = streams.symbol_for(counts)
    state = runnable(model, runtime).spawn_state() if state is None else state
    found, turn = [list[Any]() for _ in model.outputs], 0
    wanted = [streams.output_length(slot, length) for slot in range(len(found))]
    seen = [0] * len(found)
    ended = False
    while turn == 0 or any(
        end is not None and n < end.delay + (size or 0)
        for end, n, size in zip(streams.outputs, seen, wanted, strict=True)
    ):
        pieces: list[Any] = []
        for slot, (x, end) in enumerate(zip(inputs, streams.inputs, strict=True)):
            if end is None:
                pieces.append(x)
                continue
            pulse, _ = pulse_of(model, slot, end)
            piece = x[(slice(None),) * end.axis + (slice(turn * pulse, (turn + 1) * pulse),)]
            missing = pulse - piece.shape[end.axis]
            if missing and not ended:
                state.end_of_stream(next(count for count in counts if count is not None))
                ended = True
            pads = [(0, 0)] * x.ndim
            pads[end.axis] = (0, missing)
            garbage = np.nan if x.dtype.kind == "f" else True if x.dtype.kind == "b" else 99
            pieces.append(np.pad(piece, pads, constant_values=garbage))
        for slot, out in enumerate(state.run(pieces)):
            found[slot].append(np.asarray(out))
            end = streams.outputs[slot]
            seen[slot] += out.shape[end.axis] if end is not None else 0
        turn += 1
        assert turn < 1000
    results: list[Any] = []
    for pieces, end, size in zip(found, streams.outputs, wanted, strict=True):
        if end is None:
            results.append(pieces[-1])
            continue
        laid = np.concatenate(pieces, end.axis)
        results.append(laid[(slice(None),) * end.axis + (slice(end.delay, end.delay + (size or 0)),)])
    return results


def chunked_outputs(model: TypedModel, inputs: list[Any], chunk: int, runtime: str = "reference") -> list[Any]:
    """What `Runnable.stream` gives for chunks of a length, the last one shorter, of a model whose inputs all stream.

    ``chunk``: of the first input; the others come in as many pieces.
    """
    streams = Streams.of(model)
    assert streams is not None
    chunks: list[list[Any]] = []
    for x, end in zip(inputs, streams.inputs, strict=True):
        assert end is not None
        if chunks:
            chunks.append(np.array_split(x, len(chunks[0]), end.axis))
        else:
            chunks.append(np.split(x, range(chunk, x.shape[end.axis], chunk), end.axis))
    pieces = [
        one if isinstance(one, list) else [one] for one in runnable(model, runtime).stream(zip(*chunks, strict=True))
    ]
    return [
        np.concatenate([np.asarray(piece[slot]) for piece in pieces], end.axis)
        for slot, end in enumerate(streams.outputs)
        if end is not None
    ]


def cut_outputs(model: TypedModel, inputs: list[Any], random: np.random.Generator, runtime: str = "reference") -> Any:
    """What `Runnable.stream` gives for chunks of random lengths, perhaps of 0, which differ between the inputs."""
    streams = Streams.of(model)
    assert streams is not None
    count = int(random.integers(1, 6))
    chunks, whole = list[list[Any]](), dict[str, Any]()
    for slot, (x, end) in enumerate(zip(inputs, streams.inputs, strict=True)):
        if end is None:
            whole[model.outlet_name(model.inputs[slot])] = x
        else:
            chunks.append(np.split(x, sorted(random.integers(0, x.shape[end.axis] + 1, count)), end.axis))
    given = [list(chunk) for chunk in zip(*chunks, strict=True)]
    found = [piece if isinstance(piece, list) else [piece] for piece in runnable(model, runtime).stream(given, whole)]
    return [
        np.concatenate([np.asarray(piece[slot]) for piece in found], end.axis)
        for slot, end in enumerate(streams.outputs)
        if end is not None
    ]


def assert_streams(
    model: TypedModel, pulse: int | str, inputs: list[Any], *, tolerance: float = 1e-5, **options: Any
) -> TypedModel:
    """Raises AssertionError unless the pulsed model gives what the model gives for the whole signal."""
    streaming = pulsed(model, pulse, options.pop("symbol", "S"))
    assert_agrees(model, streaming, inputs, tolerance, **options)
    return streaming


def assert_agrees(
    model: TypedModel, streaming: TypedModel, inputs: list[Any], tolerance: float = 1e-5, **options: Any
) -> None:
    """Raises AssertionError unless ``streaming`` gives, pulse by pulse, what ``model`` gives for the whole signal."""
    want = whole_outputs(model, inputs)
    got = streamed_outputs(streaming, inputs, **options)
    for one, other in zip(got, want, strict=True):
        assert_close(one, other, tolerance)


def assert_close(one: Any, other: Any, tolerance: float = 1e-5) -> None:
    """Raises AssertionError unless two arrays agree, relative to the largest element where they are floats."""
    assert one.shape == other.shape
    assert one.dtype == other.dtype
    scale = max(1.0, float(np.abs(other[np.isfinite(other)]).max(initial=0))) if other.dtype.kind == "f" else 1
    np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance * scale)
