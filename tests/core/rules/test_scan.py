from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tract_core.model.typed import TypedModel
from tract_core.ops.binary import Add, Mul
from tract_core.ops.elementwise import Exp, Neg, Tanh
from tract_core.ops.scan import FullInput, FullOutput, OutputMapping, Scan, ScannedInput, StateInput
from tract_core.ops.wiring import wire_one
from tract_core.testing.declutter import checked_declutter, operators, sources


def _accumulator(*, late: bool = False) -> TypedModel:
    """state' = tanh(state * weight + x), given back with its exponential."""
    body, (x, state, weight) = sources("1,N,f32", "1,N,f32", "1,1,f32")
    product = wire_one(body, "product", Mul(), state, weight)
    new = wire_one(body, "new", Tanh(), wire_one(body, "sum", Add(), product, x))
    exp = wire_one(body, "exp", Exp(), wire_one(body, "neg", Neg(), new) if late else new)
    body.set_outputs([new, exp])
    return body


def _loop(body: TypedModel, **options: Any) -> Scan:
    mappings = (ScannedInput(0), StateInput(), FullInput())
    outputs = (OutputMapping(state=True, last=0), OutputMapping(full=FullOutput(1, 0)))
    return Scan(body, mappings, outputs, **options)


def _model(steps: str, op: Scan, *, constant: bool = True) -> TypedModel:
    model, outlets = sources(f"{steps},B,f32", "1,B,f32", "1,1,f32")
    if constant:
        outlets[2] = model.add_const("weight", np.full((1, 1), 0.5, np.float32))
    model.set_outputs(model.wire_node("loop", op, outlets))
    return model


SIZES = {"B": 2, "T": 4}


def test_one_iteration_is_no_loop() -> None:
    model = _model("1", _loop(_accumulator(), external_state=True), constant=False)
    found = operators(checked_declutter(model, SIZES))
    assert found == ["Mul", "Add", "Tanh", "Exp"]


@pytest.mark.parametrize(
    ("steps", "options"),
    [("T", {"external_state": True}), ("1", {}), ("1", {"external_state": True, "skip": 1})],
    ids=str,
)
def test_what_keeps_state_or_runs_more_often_stays_a_loop(steps: str, options: dict[str, Any]) -> None:
    assert "Scan" in operators(checked_declutter(_model(steps, _loop(_accumulator(), **options)), SIZES))


def test_a_constant_goes_into_the_body() -> None:
    simple = checked_declutter(_model("T", _loop(_accumulator())), SIZES)
    op = simple.node_by_name("loop").op
    assert isinstance(op, Scan)
    assert op.inputs == (ScannedInput(0), StateInput())


def test_an_input_that_is_given_stays_outside() -> None:
    op = checked_declutter(_model("T", _loop(_accumulator()), constant=False), SIZES).node_by_name("loop").op
    assert isinstance(op, Scan)
    assert len(op.inputs) == 3


def test_inputs_that_the_body_does_not_read_are_left_out() -> None:
    body, (x, state, *_) = sources("1,N,f32", "1,N,f32", "1,N,f32", "3,f32")
    body.set_outputs([wire_one(body, "tanh", Tanh(), wire_one(body, "sum", Add(), x, state))])
    inputs = (ScannedInput(0), StateInput(), ScannedInput(0), FullInput())
    model, outlets = sources("T,B,f32", "1,B,f32", "T,B,f32", "3,f32")
    loop = Scan(body, inputs, (OutputMapping(state=True, full=FullOutput(0, 0)),))
    model.set_outputs(model.wire_node("loop", loop, outlets))
    op = checked_declutter(model, SIZES).node_by_name("loop").op
    assert isinstance(op, Scan)
    assert op.inputs == (ScannedInput(0), StateInput())


def test_a_scanned_input_is_left_to_count() -> None:
    body, (_, state) = sources("1,N,f32", "1,N,f32")
    body.set_outputs([wire_one(body, "tanh", Tanh(), state)])
    model, outlets = sources("T,B,f32", "1,B,f32")
    loop = Scan(body, (ScannedInput(0), StateInput()), (OutputMapping(state=True, last=0),))
    model.set_outputs(model.wire_node("loop", loop, outlets))
    op = checked_declutter(model, SIZES).node_by_name("loop").op
    assert isinstance(op, Scan)
    assert op.inputs == (ScannedInput(0), StateInput())


@pytest.mark.parametrize("read", [0, 1])
def test_an_output_that_nothing_reads_is_left_out(read: int) -> None:
    model = _model("T", _loop(_accumulator(late=True)))
    model.set_outputs([wire_one(model, "out", Neg(), model.node_by_name("loop").outlets()[read])])
    simple = checked_declutter(model, SIZES)
    (op,) = (node.op for node in simple.live_nodes() if isinstance(node.op, Scan))
    joined = (OutputMapping(state=True), OutputMapping(full=FullOutput(0, 0)))
    assert op.outputs == ((OutputMapping(state=True, last=0),) if read == 0 else joined)
    assert operators(simple) == (["Scan", "Neg"] if read == 0 else ["Scan", "Neg", "Exp", "Neg"])


def test_the_body_is_in_normal_form() -> None:
    body, (x, state) = sources("1,N,f32", "1,N,f32")
    same = wire_one(body, "b", Neg(), wire_one(body, "a", Neg(), wire_one(body, "sum", Add(), x, state)))
    body.set_outputs([wire_one(body, "tanh", Tanh(), same)])
    model, outlets = sources("T,B,f32", "1,B,f32")
    loop = Scan(body, (ScannedInput(0), StateInput()), (OutputMapping(state=True, full=FullOutput(0, 0)),))
    model.set_outputs(model.wire_node("loop", loop, outlets))
    op = checked_declutter(model, SIZES).node_by_name("loop").op
    assert isinstance(op, Scan)
    assert operators(op.body) == ["Add", "Tanh"]


def test_a_loop_in_which_no_step_needs_another_one_vanishes() -> None:
    body, (x,) = sources("1,N,f32")
    body.set_outputs([wire_one(body, "exp", Exp(), wire_one(body, "tanh", Tanh(), x))])
    model, (y,) = sources("T,B,f32")
    loop = Scan(body, (ScannedInput(0),), (OutputMapping(full=FullOutput(0, 0)),))
    model.set_outputs(model.wire_node("loop", loop, [y]))
    simple = checked_declutter(model, SIZES)
    assert operators(simple) == ["Tanh", "Exp"]
    assert simple.outlet_name(simple.outputs[0]) == "loop"


def test_a_last_value_that_is_constant_needs_no_loop() -> None:
    body, (x,) = sources("1,N,f32")
    body.set_outputs([wire_one(body, "exp", Exp(), x), body.add_const("seven", np.float32([7]))])
    model, (y,) = sources("3,B,f32")
    loop = Scan(body, (ScannedInput(0),), (OutputMapping(full=FullOutput(0, 0)), OutputMapping(last=1)))
    model.set_outputs(model.wire_node("loop", loop, [y]))
    simple = checked_declutter(model, SIZES)
    value = simple.constant(simple.outputs[1])
    assert value is not None
    np.testing.assert_array_equal(value, [7])
