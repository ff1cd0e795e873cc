"""Nothing needless is in a pulsed model: what waits for several nodes waits once."""

from __future__ import annotations

from typing import Any

import pytest
from cases_values import three_delays
from cases_windows import conv, spec
from stream_cases import StreamCase
from stream_networks import network
from stream_runs import assert_agrees, pulsed
from tract_pulse.ops.delay import Delay
from tract_pulse.ops.pad import PulsePad

from tract_core.dims import symbol
from tract_core.errors import FactError
from tract_core.model.typed import TypedModel, TypedNode
from tract_core.ops.binary import Add, Mul
from tract_core.ops.broadcast import MultiBroadcastTo
from tract_core.ops.downsample import Downsample
from tract_core.ops.slice import wire_slice


def nodes(model: TypedModel, kind: type) -> list[TypedNode]:
    return [model.nodes[one] for one in model.eval_order() if isinstance(model.nodes[one].op, kind)]


def built(build: Any) -> TypedModel:
    case = StreamCase("normal form", build, 0, least=7)
    model = case.model()
    streaming = pulsed(model, 4)
    for length in case.lengths:
        assert_agrees(model, streaming, case.arrays(length))
    return streaming


def test_windows_of_one_size_share_what_they_keep():
    def build(net: Any, x: Any) -> Any:
        first, second = (conv(spec(3, (1, 1)), (2, 2))(net, x) for _ in range(2))
        return net(Add(), first, second)

    model = built(build)
    assert len(nodes(model, Delay)) == len(nodes(model, PulsePad)) == 1


def test_a_stream_that_waits_twice_waits_once():
    """Behind a concatenation that delays it, a branch waits for another one."""

    def build(net: Any, x: Any) -> Any:
        late = net.wire(wire_slice, x, 2, start=3, end=None)
        early = net.wire(wire_slice, x, 2, start=0, end=-3)
        joined = net(Add(), early, late)
        return net(Mul(), net(Add(), joined, early), late)

    model = built(build)
    assert [node.op.delay for node in nodes(model, Delay)] == [3]


def test_what_is_the_same_everywhere_does_not_wait():
    def build(net: Any, x: Any) -> Any:
        same = net(MultiBroadcastTo((1, 2, symbol("S"))), net.weights(1, 2, 1))
        return net(Add(), conv(spec(3, (1, 1)), (2, 2))(net, x), same)

    assert [node.op.overlap for node in nodes(built(build), Delay)] == [2]


def test_branches_wait_as_long_as_the_longest():
    assert sorted(node.op.delay for node in nodes(built(three_delays), Delay)) == [0, 0, 1, 1]


@pytest.mark.parametrize("seed", range(60))
def test_no_node_of_a_random_network_does_nothing(seed: int):
    try:
        net = network(seed)
    except FactError:
        return
    model = pulsed(net.model.declutter(), net.unit)
    for node in nodes(model, Delay):
        assert node.op.kept
        before = model.nodes[node.inputs[0].node].op
        assert not isinstance(before, Delay) or before.overlap
    for node in nodes(model, PulsePad):
        assert (node.op.before, node.op.after) != (0, 0)
    for node in nodes(model, Downsample):
        assert node.op.stride != 1
    for kind in (Delay, PulsePad):
        kept = [(node.op, node.inputs) for node in nodes(model, kind)]
        assert all(kept.count(one) == 1 for one in kept)
