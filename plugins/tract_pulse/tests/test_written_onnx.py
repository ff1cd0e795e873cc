"""Models in pulses as files of ONNX: what they keep between pulses comes in and goes out, and is 0 at first."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Final

import cases_attention
import cases_layout
import cases_loops
import cases_positions
import cases_values
import cases_windows
import numpy as np
import onnx
import onnxruntime
import pytest
from stream_cases import StreamCase
from stream_runs import assert_close, pulsed, streamed_outputs, whole_outputs
from tract_onnx.writing.saver import OnnxWriter

from tract_core.dims import evaluate, parse_dim, symbols_of
from tract_core.errors import Unwritable
from tract_core.model.typed import TypedModel
from tract_core.runtime.streams import Streams

FAMILIES: Final = (cases_attention, cases_layout, cases_loops, cases_positions, cases_values, cases_windows)
EVERY: Final = 1 if "TRACT_LONG" in os.environ else 3
"""Of so many cases, one is run."""

WITHOUT_WORDS: Final = (
    *("running product", "running product after a delay", "unit norm", "unit norm of pairs", "unit norm after a delay"),
    *("unit norm with steps to skip", "unit norm across", "mean norm", "mean norm across", "quantised matrix product"),
    *("conv of integers", "max pool of integers"),
)
"""Cases of operators that are not written, in version 21 or at all."""

NO_KERNEL: Final = ("lrn on another axis",)
"""Cases of shapes that ONNX Runtime does not take."""

CASES: Final[list[StreamCase]] = [case for family in FAMILIES for case in family.CASES if case.name not in NO_KERNEL][
    ::EVERY
]
NOT_YET: Final = 1 << 40
"""The length of a signal that has not ended."""


class Stream:
    """A written model, run pulse by pulse in ONNX Runtime by who knows nothing of it but the names."""

    def __init__(self, model: TypedModel, content: bytes, sizes: Mapping[str, int]) -> None:
        made = onnx.load_from_string(content)
        onnx.checker.check_model(made, full_check=True)
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        self._session = onnxruntime.InferenceSession(content, options)
        self._names = [model.outlet_name(outlet) for outlet in model.inputs]
        streams = Streams.of(model)
        assert streams is not None
        self._streams = streams
        self._count = len(model.outputs)
        self._outputs = [one.name for one in self._session.get_outputs()]
        states = {name.removesuffix("_out") for name in self._outputs[self._count :]}
        self._kept: dict[str, np.ndarray[Any, Any]] = {}
        self._lengths: dict[str, np.ndarray[Any, Any]] = {}
        for one in made.graph.input:
            if one.name in states:
                dims = [_at_first(dim, sizes) for dim in one.type.tensor_type.shape.dim]
                self._kept[one.name] = np.zeros(
                    dims, onnx.helper.tensor_dtype_to_np_dtype(one.type.tensor_type.elem_type)
                )
            elif one.name not in self._names:
                self._lengths[one.name] = np.array([NOT_YET])

    def end_of_stream(self, count: int) -> None:
        """The first signal has so many positions."""
        first = next(place for place, end in enumerate(self._streams.inputs) if end is not None)
        counts = [count if place == first else None for place in range(len(self._names))]
        self._lengths = dict.fromkeys(self._lengths, np.array([self._streams.symbol_for(counts)]))

    def run(self, pieces: list[Any]) -> list[Any]:
        """One pulse."""
        given = {**dict(zip(self._names, pieces, strict=True)), **self._kept, **self._lengths}
        found = self._session.run(self._outputs, given)
        kept = dict(zip(self._outputs[self._count :], found[self._count :], strict=True))
        self._kept = {name.removesuffix("_out"): value for name, value in kept.items()}  # pyright: ignore[reportAttributeAccessIssue]: tensors
        return list(found[: self._count])


def _at_first(dim: onnx.TensorShapeProto.Dimension, sizes: Mapping[str, int]) -> int:
    """A size of a state in front of the first pulse: of what grows, nothing came yet."""
    found = parse_dim(dim.dim_param) if dim.dim_param else dim.dim_value
    return evaluate(found, {**dict.fromkeys(symbols_of(found), 0), **sizes})


@pytest.mark.parametrize("case", CASES, ids=str)
def test_what_is_written_goes_on_from_pulse_to_pulse(case: StreamCase) -> None:
    model = case.model()
    streaming = pulsed(model, case.pulse, case.symbol)
    if case.name in WITHOUT_WORDS:
        with pytest.raises(Unwritable):
            OnnxWriter().to_bytes(streaming)
        return
    content = OnnxWriter().to_bytes(streaming)
    for length in case.lengths[-2:]:
        arrays = case.arrays(length)
        found = streamed_outputs(streaming, arrays, state=Stream(streaming, content, case.sizes))
        for one, other in zip(found, whole_outputs(model, arrays), strict=True):
            assert_close(one, other, max(case.tolerance, 1e-5))
