"""Not only outputs: every tensor of a model comes pulse by pulse as the transform says that it does."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest
from stream_cases import StreamCase
from test_reach import CASES
from tract_pulse.transform import Pulse

from tract_core.api.runtime import runtime_for_name
from tract_core.cli.assertions import Assertions
from tract_core.cli.commands.compare_stream import Pair, verdicts_of
from tract_core.runtime.plan import TypedSimplePlan
from tract_core.runtime.streams import Streams
from tract_core.transforms.apply import apply_transform


@pytest.mark.parametrize("case", CASES, ids=str)
def test_every_tensor_comes_as_the_transform_says(case: StreamCase) -> None:
    whole, pulse = case.model(), Pulse(case.pulse, case.symbol)
    model = apply_transform(whole, pulse)
    streams, arrays, wanted = Streams.of(model), case.arrays(case.lengths[-1]), dict[str, Any]()
    assert streams is not None
    plan = TypedSimplePlan(whole)
    watched = plan.spawn_observed(
        lambda _, seen: wanted.update({whole.outlet_name(outlet): np.array(array) for outlet, array in seen.items()})
    )
    watched.run(arrays)
    pair = Pair(whole, model, streams, pulse.streams(whole))
    backend = cast("Any", runtime_for_name("reference").backend)  # has a method `prepare`, as a request has
    verdicts = verdicts_of(backend, pair, arrays, wanted, Assertions(approx="approximate"))
    assert [(one.name, one.problem) for one in verdicts if one.problem] == []
    assert any(one.compared for one in verdicts if one.output) or not any(one.output for one in verdicts)
    assert all(len(row) == len(sheet.columns) for sheet in pulse.examine(whole) for row in sheet.rows)
