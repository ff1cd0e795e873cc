from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tract_core.errors import FactError, RunError, Unsupported
from tract_core.model.bodies import bodies_of, map_bodies
from tract_core.model.fact import TypedFact
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.op import TypedOp
from tract_core.model.typed import TypedModel
from tract_core.ops import scan
from tract_core.ops.axis import AddAxis, RmAxis
from tract_core.ops.binary import Add, Mul
from tract_core.ops.if_then_else import Branch, IfThenElse
from tract_core.ops.if_then_else_wiring import wire_if
from tract_core.ops.reduce import Reduce, Reducer
from tract_core.ops.scan import (
    FullInput,
    FullOutput,
    InputMapping,
    OutputMapping,
    Scan,
    ScannedInput,
    StateInput,
    forgetful,
)
from tract_core.ops.submodel import SubmodelOp
from tract_core.ops.wiring import wire_one
from tract_core.runtime.plan import TypedSimplePlan
from tract_core.transforms.set_symbols import SetSymbols

Array = np.ndarray[Any, Any]


def fact(text: str, model: TypedModel | None = None) -> TypedFact:
    return parse_typed_fact(text, None if model is None else model.symbols)


def decay_body(model: TypedModel) -> TypedModel:
    """x [1, B], factor [1, B], s [1, B] -> s * factor + x, as output and as state"""
    body = model.empty_like()
    x, factor, s = (body.add_source(name, fact("1,B,f32", model)) for name in ("x", "factor", "s"))
    following = wire_one(body, "next", Add(), wire_one(body, "decayed", Mul(), s, factor), x)
    body.set_outputs([following])
    return body


INPUTS: tuple[InputMapping, ...] = (ScannedInput(0), FullInput(), StateInput())


def decay_op(model: TypedModel, **flags: Any) -> Scan:
    return Scan(decay_body(model), INPUTS, (OutputMapping(state=True, full=FullOutput(0, 0), last=1),), **flags)


def decay_model(**flags: Any) -> TypedModel:
    model = TypedModel()
    x = model.add_source("x", fact("S,B,f32", model))
    factor, start = (model.add_source(name, fact("1,B,f32", model)) for name in ("factor", "start"))
    model.set_outputs(model.wire_node("loop", decay_op(model, **flags), [x, factor, start]))
    return model


def by_hand(x: Array, factor: Array, start: Array, skip: int = 0) -> Array:
    state, rows = start[0].astype(np.float64), list[Array]()
    for index, row in enumerate(x):
        if index >= skip:
            state = state * factor[0] + row
        rows.append(state if index >= skip else 0 * state)
    return np.array(rows)


def data(steps: int = 11) -> tuple[Array, Array, Array]:
    random = np.random.default_rng(6)
    return tuple(random.uniform(0.5, 1.5, shape).astype(np.float32) for shape in ((steps, 2), (1, 2), (1, 2)))  # type: ignore[return-value]


def pieces(state: Any, x: Array, cuts: Sequence[int], *rest: Array) -> Array:
    return np.concatenate([state.run([piece, *rest])[0] for piece in np.split(x, list(cuts))])


@pytest.mark.parametrize("skip", [0, 4, 99])
def test_a_tensor_in_pieces_gives_what_the_whole_gives(skip: int) -> None:
    x, factor, start = data()
    found = pieces(TypedSimplePlan(decay_model(skip=skip)).spawn(), x, [1, 3, 3, 8], factor, start)
    np.testing.assert_allclose(found, by_hand(x, factor, start, skip), rtol=1e-5)


def test_last_values_of_a_loop_that_has_not_begun() -> None:
    x, factor, start = data()
    _, last = TypedSimplePlan(decay_model(skip=99)).run([x, factor, start])
    np.testing.assert_array_equal(last, start)


@pytest.mark.parametrize("flag", ["reset_every_turn", "external_state"])
def test_loops_that_begin_anew_in_every_turn(flag: str) -> None:
    x, factor, start = data()
    state = TypedSimplePlan(decay_model(**{flag: True})).spawn()
    for piece in np.split(x, [4]):
        np.testing.assert_allclose(state.run([piece, factor, start])[0], by_hand(piece, factor, start), rtol=1e-5)


def test_an_external_state_goes_from_turn_to_turn_through_the_caller() -> None:
    x, factor, start = data()
    state, last, found = TypedSimplePlan(decay_model(external_state=True)).spawn(), start, list[Array]()
    for piece in np.split(x, [2, 7]):
        rows, last = state.run([piece, factor, last])
        found.append(rows)
    np.testing.assert_allclose(np.concatenate(found), by_hand(x, factor, start), rtol=1e-5)


def test_the_state_is_no_view_of_what_the_caller_gave() -> None:
    x, factor, start = data()
    state = TypedSimplePlan(decay_model()).spawn()
    given = x[:4].copy()
    (first, last) = state.run([given, factor, start])
    for array in (given, first, last):
        array[...] = 1e9
    np.testing.assert_allclose(state.run([x[4:], factor, start])[0], by_hand(x, factor, start)[4:], rtol=1e-5)


def test_turns_with_another_batch_are_refused() -> None:
    x, factor, start = data()
    state = TypedSimplePlan(decay_model()).spawn()
    state.run([x, factor, start])
    with pytest.raises(RunError, match=r"state has shape \(1, 2\) from the turn before, this turn wants \(1, 1\)"):
        state.run([x[:, :1], factor[:, :1], start[:, :1]])


CHILD = """
import pickle, sys
from tract_core.runtime.plan import TypedSimplePlan
model, frozen, turns = pickle.load(open(sys.argv[1], "rb"))
state = TypedSimplePlan(model).spawn()
state.thaw(frozen)
pickle.dump([state.run(turn) for turn in turns], open(sys.argv[2], "wb"))
"""


def resumed_elsewhere(folder: Path, model: TypedModel, state: Any, turns: list[list[Array]]) -> list[list[Array]]:
    """What another process computes, given the model and the frozen state as pickles."""
    there, back = folder / "there", folder / "back"
    there.write_bytes(pickle.dumps((model, state.freeze(), turns)))
    subprocess.run([sys.executable, "-c", CHILD, str(there), str(back)], check=True, timeout=120)
    return pickle.loads(back.read_bytes())


@pytest.mark.parametrize("skip", [0, 6])
@pytest.mark.parametrize("declutter", [False, True])
def test_a_loop_frozen_in_mid_stream_goes_on_in_another_process(tmp_path: Path, skip: int, declutter: bool) -> None:
    x, factor, start = data()
    model = decay_model(skip=skip)
    if declutter:
        model.declutter()
    state = TypedSimplePlan(model).spawn()
    before = state.run([x[:4], factor, start])[0]
    turns = [[piece, factor, start] for piece in np.split(x[4:], [3])]
    after = resumed_elsewhere(tmp_path, model, state, turns)
    found = np.concatenate([before, *(turn[0] for turn in after)])
    np.testing.assert_allclose(found, by_hand(x, factor, start, skip), rtol=1e-5)
    # The state here was not touched by what went on there.
    here = np.concatenate([state.run(turn)[0] for turn in turns])
    np.testing.assert_array_equal(here, np.concatenate([turn[0] for turn in after]))


def test_loops_inside_submodels_and_branches_are_frozen_too(tmp_path: Path) -> None:
    """A loop in a submodel in a branch; the other branch has a loop that stays where it is meanwhile."""
    model = TypedModel()
    condition = model.add_source("condition", fact("bool"))
    outlets = [model.add_source(name, fact(f"{n},B,f32", model)) for name, n in (("x", "S"), ("factor", 1), ("s", 1))]
    inner = decay_model()
    inner.set_outputs(inner.outputs[:1])
    bodies: list[TypedModel] = []
    for _ in range(2):
        body = model.empty_like()
        sources = [body.add_source(name, model.outlet_fact(o)) for name, o in zip("xfs", outlets, strict=True)]
        body.set_outputs(body.wire_node("sub", SubmodelOp(inner), sources))
        bodies.append(body)
    model.set_outputs(wire_if(model, "if", condition, (bodies[0], outlets), (bodies[1], outlets)))
    x, factor, start = data()
    yes, no = np.array(True), np.array(False)
    state = TypedSimplePlan(model).spawn()
    first = state.run([yes, x[:4], factor, start])[0]
    other = state.run([no, x[:2], factor, start])[0]
    turns = [[yes, x[4:], factor, start], [no, x[2:], factor, start]]
    after = resumed_elsewhere(tmp_path, model, state, turns)
    wanted = by_hand(x, factor, start)
    np.testing.assert_allclose(np.concatenate([first, after[0][0]]), wanted, rtol=1e-5)
    np.testing.assert_allclose(np.concatenate([other, after[1][0]]), wanted, rtol=1e-5)


def nested_model(inner_flags: dict[str, Any]) -> TypedModel:
    """Over the first axis of x [R, S, B], a loop whose body is a loop over the second."""
    model = TypedModel()
    x = model.add_source("x", fact("R,S,B,f32", model))
    factor, start = (model.add_source(name, fact("1,B,f32", model)) for name in ("factor", "start"))
    body = model.empty_like()
    row = body.add_source("row", fact("1,S,B,f32", model))
    inner = [body.add_source(name, fact("1,B,f32", model)) for name in ("factor", "start")]
    flat = wire_one(body, "flat", Reduce((), Reducer.SUM), row)
    flat = wire_one(body, "row2", RmAxis(0), flat)
    found, _ = body.wire_node("inner", decay_op(model, **inner_flags), [flat, *inner])
    body.set_outputs([wire_one(body, "out", AddAxis(0), found)])
    op = Scan(body, (ScannedInput(0), FullInput(), FullInput()), (OutputMapping(full=FullOutput(0, 0)),))
    model.set_outputs(model.wire_node("outer", op, [x, factor, start]))
    return model


def test_a_forgetful_body_begins_anew_in_every_iteration() -> None:
    x, factor, start = data(12)
    model = nested_model({})
    kept = TypedSimplePlan(model).run([x.reshape(3, 4, 2), factor, start])[0]
    np.testing.assert_allclose(kept.reshape(12, 2), by_hand(x, factor, start), rtol=1e-5)
    changed = forgetful(model)
    anew = TypedSimplePlan(changed).run([x.reshape(3, 4, 2), factor, start])[0]
    wanted = np.stack([by_hand(part, factor, start) for part in x.reshape(3, 4, 2)])
    np.testing.assert_allclose(anew, wanted, rtol=1e-5)
    assert forgetful(changed) is changed


def test_facts_are_symbolic() -> None:
    model = decay_model()
    assert [str(model.outlet_fact(outlet)) for outlet in model.outputs] == ["S,B,f32", "1,B,f32"]


def test_the_number_of_iterations_is_rounded_up() -> None:
    body = TypedModel()
    x = body.add_source("x", fact("4,f32"))
    body.set_outputs([wire_one(body, "sum", Reduce((0,), Reducer.SUM), x)])
    op = Scan(body, (ScannedInput(0, 4),), (OutputMapping(full=FullOutput(0, 0)),))
    assert [str(found) for found in op.output_facts([fact("S,f32")])] == ["(S+3)/4,f32"]
    assert [str(found) for found in op.output_facts([fact("9,f32")])] == ["3,f32"]


def test_symbols_of_the_body_take_the_sizes_outside() -> None:
    model = TypedModel()
    op = decay_op(model)
    facts = op.output_facts([fact(text) for text in ("S,2*N,f32", "1,2*N,f32", "1,2*N,f32")])
    assert [str(found) for found in facts] == ["S,2*N,f32", "1,2*N,f32"]


def test_symbols_can_be_set_from_outside() -> None:
    model = SetSymbols({"B": 2}).apply(decay_model())
    (body,) = bodies_of(model.node_by_name("loop").op)
    assert [str(body.outlet_fact(outlet)) for outlet in body.inputs] == ["1,2,f32"] * 3
    x, factor, start = data()
    np.testing.assert_allclose(TypedSimplePlan(model).run([x, factor, start])[0], by_hand(x, factor, start), rtol=1e-5)


OUT = (OutputMapping(state=True, full=FullOutput(0, 0), last=1),)


@pytest.mark.parametrize(
    ("inputs", "outputs", "facts", "message"),
    [
        (INPUTS, OUT, ["S,B,f32", "1,B,f32"], "Scan takes 3 inputs, 2 were given"),
        (INPUTS, (*OUT, *OUT), ["S,B,f32", "1,B,f32", "1,B,f32"], "has 3 inputs and 1 outputs, 3 and 2 are mapped"),
        (INPUTS, OUT, ["S,B,f16", "1,B,f32", "1,B,f32"], r"input 0 \('x'\) gives the body 1,B,f16, it wants 1,B,f32"),
        (INPUTS, OUT, ["S,3,f32", "1,3,f32", "1,4,f32"], r"input 2 \('s'\) gives the body 1,4,f32, it wants 1,B,f32"),
        (
            (ScannedInput(2), FullInput(), StateInput()),
            OUT,
            ["S,B,f32", "1,B,f32", "1,B,f32"],
            r"input 0 \(S,B,f32\) cannot be cut along axis 2 by 1",
        ),
        ((FullInput(), FullInput(), StateInput()), OUT, ["1,B,f32"] * 3, "at least one input must be scanned"),
        (
            (ScannedInput(0), ScannedInput(0), StateInput()),
            OUT,
            ["5,B,f32", "6,B,f32", "1,B,f32"],
            "the scanned inputs want different numbers of iterations: 5, 6",
        ),
        (
            (ScannedInput(0), FullInput(), FullInput()),
            OUT,
            ["5,B,f32", "1,B,f32", "1,B,f32"],
            "0 state inputs, but 1 outputs of the body are fed back",
        ),
        (
            INPUTS,
            (OutputMapping(state=True, full=FullOutput(0, 0, 2)),),
            ["5,B,f32", "1,B,f32", "1,B,f32"],
            "output 0 of the body is 1,B,f32, which has no axis 0 of size 2 to join",
        ),
        (
            INPUTS,
            (OutputMapping(state=True, full=FullOutput(0, 0), last=2),),
            ["5,B,f32", "1,B,f32", "1,B,f32"],
            r"outputs must fill slots 0, 1, ... once each, found \[0, 2\]",
        ),
    ],
)
def test_refusals_say_what_was_found(
    inputs: tuple[InputMapping, ...], outputs: tuple[OutputMapping, ...], facts: Sequence[str], message: str
) -> None:
    op = Scan(decay_body(TypedModel()), inputs, outputs)
    with pytest.raises(FactError, match=message):
        op.output_facts([fact(text) for text in facts])


def test_a_state_that_changes_its_shape_is_refused() -> None:
    body = TypedModel()
    x, s = (body.add_source(name, fact(text)) for name, text in (("x", "1,4,f32"), ("s", "2,4,f32")))
    body.set_outputs([wire_one(body, "sum", Reduce((0,), Reducer.SUM), wire_one(body, "both", Add(), x, s))])
    op = Scan(body, (ScannedInput(0), StateInput()), (OutputMapping(state=True, last=0),))
    with pytest.raises(FactError, match="the state 's' is 2,4,f32, the body gives 1,4,f32 back"):
        op.output_facts([fact("S,4,f32"), fact("2,4,f32")])


@dataclass(frozen=True)
class Strange(TypedOp):
    """Has no meaning."""

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        return (inputs[0],)


def test_operators_without_meaning_in_a_body_are_reported_before_anything_runs() -> None:
    model = TypedModel()
    body = model.empty_like()
    x = body.add_source("x", fact("1,f32"))
    body.set_outputs(body.wire_node("odd", Strange(), [x]))
    source = model.add_source("x", fact("S,f32", model))
    op = Scan(body, (ScannedInput(0),), (OutputMapping(full=FullOutput(0, 0)),))
    model.set_outputs(model.wire_node("loop", op, [source]))
    with pytest.raises(Unsupported, match="no NumPy meaning for Strange \\(node 'loop/odd'\\)"):
        TypedSimplePlan(model)


def test_bodies_are_found_and_replaced() -> None:
    model = TypedModel()
    op = decay_op(model)
    other = decay_body(model)
    assert bodies_of(op) == [op.body]
    assert map_bodies(op, lambda body: body) is op
    assert map_bodies(op, lambda _: other) == decay_op_with(op, other)
    branch = Branch(op.body, (1, 2, 3))
    choice = IfThenElse(branch, Branch(other, (1, 2, 3)), ((1, 2),))
    assert bodies_of(choice) == [op.body, other]
    assert bodies_of(Add()) == []


def decay_op_with(op: Scan, body: TypedModel) -> Scan:
    return Scan(body, op.inputs, op.outputs, op.skip, op.reset_every_turn, op.external_state)


def test_operators_with_bodies_compare_by_the_content_of_the_body() -> None:
    model = TypedModel()
    op = decay_op(model)
    for same in (op.body, decay_body(model)):
        assert op == decay_op_with(op, same)
        assert hash(op) == hash(decay_op_with(op, same))
    other = decay_body(model)
    other.set_outputs([other.inputs[0], *other.outputs[1:]])
    assert op != decay_op_with(op, other)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
def test_models_with_bodies_can_be_copied(copied: Any) -> None:
    model, (x, factor, start) = decay_model(), data()
    other = copied(model)
    assert other.node_by_name("loop").op.body is not model.node_by_name("loop").op.body
    other.check_consistency()
    np.testing.assert_allclose(TypedSimplePlan(other).run([x, factor, start])[0], by_hand(x, factor, start), rtol=1e-5)
    other.declutter()
    model.check_consistency()


def test_removed_nodes_stay_removed_in_copies() -> None:
    model = decay_model()
    dead = model.wire_node("dead", Add(), [model.inputs[1], model.inputs[2]])
    model.remove_if_dead(dead[0].node)
    other = pickle.loads(pickle.dumps(model))
    assert [node.name for node in other.live_nodes()] == [node.name for node in model.live_nodes()]
    other.check_consistency()


def test_cost_is_that_of_the_body_times_the_iterations() -> None:
    model = decay_model()
    node = model.node_by_name("loop")
    found = scan.cost(node.op, model.input_facts(node), model.output_facts(node))
    assert {kind: str(count) for kind, count in found.items()} == {"FMA(F32)": "2*B*S"}


def test_axes_that_pass_through_the_body() -> None:
    model = decay_model()
    node = model.node_by_name("loop")
    mapping = scan.axes(node.op, model.input_facts(node), model.output_facts(node))
    assert mapping.track(("in", 0, 1), ("out", 0)) == 1
    assert mapping.track(("in", 2, 1), ("out", 1)) == 1
    assert mapping.track(("in", 0, 0), ("out", 0)) is None
    assert mapping.track(("in", 2, 0), ("out", 1)) is None


def test_an_axis_that_the_body_mixes_does_not_pass() -> None:
    body = TypedModel()
    x, s = (body.add_source(name, fact("1,B,C,f32", body)) for name in "xs")
    total = wire_one(body, "total", Reduce((2,), Reducer.SUM), x)
    body.set_outputs([wire_one(body, "next", Add(), s, total)])
    op = Scan(body, (ScannedInput(0), StateInput()), (OutputMapping(state=True, full=FullOutput(0, 0)),))
    facts = [fact("S,B,C,f32"), fact("1,B,C,f32")]
    mapping = scan.axes(op, facts, op.output_facts(facts))
    assert mapping.track(("in", 0, 1), ("out", 0)) == 1
    assert mapping.track(("in", 0, 2), ("out", 0)) is None


def test_an_axis_along_which_the_body_has_constants_does_not_pass() -> None:
    body = TypedModel()
    x = body.add_source("x", fact("1,B,3,f32", body))
    weights = body.add_const("weights", np.ones((1, 1, 3), np.float32))
    body.set_outputs([wire_one(body, "scaled", Mul(), x, weights)])
    op = Scan(body, (ScannedInput(0),), (OutputMapping(full=FullOutput(0, 0)),))
    facts = [fact("S,B,3,f32")]
    mapping = scan.axes(op, facts, op.output_facts(facts))
    assert mapping.track(("in", 0, 1), ("out", 0)) == 1
    assert mapping.track(("in", 0, 2), ("out", 0)) is None
