"""How much of a signal comes at a time: the forms in which users say it, and pulses whose size only a run tells."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cases_layout
import cases_loops
import cases_positions
import cases_values
import cases_windows
import numpy as np
import pytest
from cases_windows import conv, spec
from stream_cases import StreamCase
from stream_runs import assert_agrees, chunked_outputs, pulsed, whole_outputs

import tract_core as tract
from tract_core.api.model import Model
from tract_core.errors import TransformError

FORMS: list[Callable[[str], Any]] = [
    lambda s: tract.Pulse(4, symbol=s),
    lambda s: tract.Pulse("4", symbol=s),
    lambda s: tract.Pulse(4).symbol(s),
    lambda s: tract.Pulse(4, symbol=s).to_json(),
    lambda s: f'{{"name": "pulse", "pulse": 4, "symbol": "{s}"}}',
    lambda s: f'{{"name": "pulse", "pulse": "4", "symbol": "{s}"}}',
    lambda s: f'{{"name": "pulse", "pulse": "{s}=4"}}',
]


@pytest.mark.parametrize("symbol", ["S", "T"])
@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_the_transform_gives_the_same_model(form: Callable[[str], Any], symbol: str):
    case = StreamCase("form", conv(spec(3, (1, 1))), 1, (f"1,2,{symbol},f32",), symbol=symbol)
    model = Model(case.model().clone())
    model.transform(form(symbol))
    typed = model.typed
    assert [str(typed.outlet_fact(outlet)) for outlet in typed.inputs] == ["1,2,4,f32"]
    assert typed.properties["pulse.streaming_symbol"].tolist() == [symbol]
    assert_agrees(case.model(), typed, case.arrays(13))


@pytest.mark.parametrize("pulse", [0, -4, "no size", "S=", True, 2.5])
def test_a_pulse_that_is_no_size_is_refused(pulse: Any):
    with pytest.raises(TransformError):
        pulsed(StreamCase("no size", conv(spec(3)), 0).model(), pulse)


ANY = [
    *(
        case
        for case in cases_windows.CASES
        if case.name in ("conv valid", "conv symmetric", "conv dilated", "mean pool")
    ),
    *(case for case in cases_layout.CASES if case.name in ("pad (5, 3)", "pad edge", "concat both, several pieces")),
    *(case for case in cases_positions.CASES if case.name in ("slice within", "positions and a delay", "embedding")),
    *(case for case in cases_loops.CASES if case.name in ("lstm", "conv, gru", "loop over two streams")),
    *(case for case in cases_values.CASES if case.name in ("three delays", "other symbols", "matmul")),
]
EVEN = [
    *(case for case in cases_windows.CASES if case.name in ("conv stride 2", "deconv stride 2, cut", "stft")),
    *(case for case in cases_positions.CASES if case.name == "every second"),
]


@pytest.mark.parametrize("chunk", [1, 3, 8])
@pytest.mark.parametrize("case", ANY, ids=str)
def test_a_pulse_may_be_of_any_size(case: StreamCase, chunk: int):
    _assert_chunks_agree(case, "P", chunk)


@pytest.mark.parametrize("chunk", [2, 6])
@pytest.mark.parametrize("case", EVEN, ids=str)
def test_a_pulse_may_be_any_multiple(case: StreamCase, chunk: int):
    _assert_chunks_agree(case, "4*N" if chunk % 4 == 0 else "2*N", chunk)


def _assert_chunks_agree(case: StreamCase, pulse: str, chunk: int) -> None:
    model = case.model()
    streaming = pulsed(model, pulse, case.symbol)
    for length in (8, 24):
        arrays = case.arrays(length)
        for one, other in zip(chunked_outputs(streaming, arrays, chunk), whole_outputs(model, arrays), strict=True):
            np.testing.assert_allclose(one, other, rtol=case.tolerance, atol=1e-4)
