"""Scores by relative position: which are refused, and what becomes of distances that the table does not have."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from cases_attention import S, band, by_relative_position
from stream_cases import Net, StreamCase
from stream_runs import pulsed, runnable, streamed_outputs, whole_outputs

from tract_core.errors import InputError, TransformError
from tract_core.model.typed import TypedModel


def model(**options: Any) -> TypedModel:
    build = partial(by_relative_position, mask=band(2, 1), **options)
    return StreamCase("relative", build, 0, ("S,4,f32",), 4).model()


def refusal(whole: TypedModel, pulse: int | str = 4) -> str:
    with pytest.raises(TransformError) as found:
        pulsed(whole, pulse)
    return str(found.value)


@pytest.mark.parametrize("first", [0, 50 - S + 1 - S], ids=["from the first row", "from a row that moves by two"])
def test_a_table_whose_middle_moves_is_refused(first: Any) -> None:
    """Where the distance 0 is would depend on the length of the signal."""
    assert "grows with the signal, but is neither the axis of its rows nor that of its columns" in refusal(
        model(first=first, table=100)
    )


def test_a_table_of_unknown_size_is_refused() -> None:
    """Which distances it has cannot be told before the model runs."""
    net = Net("table")
    x, table = net.source("S,4,f32"), net.source("M,4,f32")
    build = partial(by_relative_position, mask=band(2, 1), rows=table)
    net.model.set_outputs([build(net, x)])
    assert "grows with the signal, but is neither" in refusal(net.model.declutter())


def test_a_pulse_that_is_no_number_is_refused() -> None:
    assert "a pulse of P is no number, which scores by relative position want" in refusal(model(), "P")


def test_signals_that_are_longer_than_the_table_are_refused_at_their_end() -> None:
    whole = model(table=9)
    state = runnable(pulsed(whole, 4)).spawn_state()
    state.run([np.zeros((4, 4), np.float32)])
    with pytest.raises(InputError, match=r"size .* must be"):
        state.end_of_stream(10)


def test_distances_beyond_the_table_are_those_of_columns_that_do_not_count() -> None:
    """The window is wider than the table: what is missing of it is masked, and may hold anything."""
    whole = model(table=3)
    signal = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)
    (found,), (wanted,) = streamed_outputs(pulsed(whole, 8), [signal]), whole_outputs(whole, [signal])
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)
