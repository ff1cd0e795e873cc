"""Everything that streams, family by family: it gives what the whole signal gives, at the delay that it reports."""

from __future__ import annotations

import cases_attention
import cases_layout
import cases_loops
import cases_positions
import cases_values
import cases_windows
import pytest
from stream_cases import StreamCase
from stream_runs import assert_agrees, pulsed

from tract_core.runtime.streams import Streams

CASES = [
    case
    for family in (cases_attention, cases_windows, cases_layout, cases_positions, cases_loops, cases_values)
    for case in family.CASES
]


def test_cases_have_names_of_their_own():
    assert len({case.name for case in CASES}) == len(CASES)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_stream_gives_what_the_whole_signal_gives(case: StreamCase):
    model = case.model()
    streaming = pulsed(model, case.pulse, case.symbol)
    streams = Streams.of(streaming)
    assert streams is not None
    delays = [None if end is None else end.delay for end in streams.outputs]
    wanted = [case.delay] if isinstance(case.delay, int) else list(case.delay)
    assert delays == wanted
    for length in case.lengths:
        arrays = case.arrays(length)
        assert_agrees(model, streaming, arrays, case.tolerance)
