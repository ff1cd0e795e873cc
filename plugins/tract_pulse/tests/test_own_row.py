"""An operator of somebody else streams by a row of his own, as docs/pulse.md shows it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from stream_runs import assert_streams
from tract_pulse.pulsing.node import PulseNode
from tract_pulse.registry import PULSE
from tract_pulse.stream import Wire

from tract_core.errors import TransformError
from tract_core.frozen import frozen
from tract_core.model.fact import TypedFact
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.op import TypedOp
from tract_core.model.typed import TypedModel
from tract_core.plugins import Registry, hookimpl
from tract_core.plugins.keys import REFERENCE
from tract_core.plugins.tables import Rows
from tract_core.transforms.apply import apply_transform

ROWS = Rows()


@frozen
class SumOfThree(TypedOp):
    """Sums of three positions that follow each other."""

    axis: int

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """Two positions less."""
        shape = list(inputs[0].shape)
        shape[self.axis] = shape[self.axis] - 2
        return (inputs[0].with_shape(shape),)


@ROWS.row(REFERENCE, SumOfThree)
def sum_of_three(op: SumOfThree, x: Any) -> Any:
    count = x.shape[op.axis] - 2
    return sum(np.take(x, range(first, first + count), op.axis) for first in range(3))


@ROWS.row(PULSE, SumOfThree)
def pulse_sum_of_three(op: SumOfThree, node: PulseNode) -> Wire | None:
    """Along its axis, each pulse sees the last two positions of the one before."""
    if node.stream(0).axis != op.axis:
        return None  # along another axis, the axes mapping says how it streams
    wire = node.delayed(node.wires[0], 0, overlap=2)
    return node.output(node.wire(op, wire.outlet), op.axis, node.stream(0).delay + 2)


class Plugin:
    @hookimpl
    def tract_api_version(self) -> str:
        return "1.0"

    @hookimpl
    def tract_rows(self) -> Mapping[str, Sequence[str]]:
        return {"reference": [__name__], "pulse": [__name__]}


def model(registry: Registry, axis: int) -> TypedModel:
    found = TypedModel(registry=registry)
    x = found.add_source("x", parse_typed_fact("1,5,S,f32", found.symbols))
    found.set_outputs(found.wire_node("sums", SumOfThree(axis), [x]))
    return found


@pytest.fixture
def registry() -> Registry:
    import tract_pulse.plugin

    return Registry({"pulse": tract_pulse.plugin, "own": Plugin()}, discover=False, strict=True)


@pytest.mark.parametrize("length", [2, 3, 4, 9])
def test_an_operator_with_a_row_streams(registry: Registry, length: int) -> None:
    x = np.random.default_rng(length).normal(size=(1, 5, length)).astype(np.float32)
    found = assert_streams(model(registry, 2), 4, [x])
    assert [node.op.name for node in found.live_nodes()] == ["TypedSource", "Delay", "SumOfThree"]


def test_a_row_may_leave_it_to_the_axes_mapping(registry: Registry) -> None:
    with pytest.raises(TransformError, match=r"node 'sums' \(SumOfThree\) cannot be streamed: nothing is known of how"):
        apply_transform(model(registry, 1), "pulse(pulse=4)")
