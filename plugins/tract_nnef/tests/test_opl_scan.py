"""Loops whose bodies are fragments: what their texts mean, in all forms, and that they come back."""

from __future__ import annotations

import numpy as np
import pytest
from cycles import cycle_of_cases
from documents import document, load, run_text
from tract_nnef.documents.loader import NnefLoader
from tract_nnef.documents.saver import NnefWriter
from tract_nnef.options import Writing

from tract_core import errors
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.refine import simplify_sizes
from tract_core.model.same import same_model
from tract_core.model.typed import TypedModel
from tract_core.ops.binary import Add
from tract_core.ops.scan import FullOutput, OutputMapping, Scan, ScannedInput, StateInput

X = np.arange(1, 13, dtype=np.float32).reshape(6, 2)
START = np.array([[10, 20]], np.float32)
SUM = """
fragment step(slice: tensor<scalar>, s: tensor<scalar>) -> (next: tensor<scalar>)
{ next = s + sum_reduce(slice, axes = [0]); }
"""


def scan(given, fragment=SUM, shapes=("F32[6, 2]", "F32[1, 2]"), outputs=("o",)):
    targets = f"({', '.join(outputs)})" if len(outputs) > 1 else outputs[0]
    body = f"{targets} = tract_core_scan(body = 'step', {given});"
    return document(body, shapes, outputs, symbols=["S"], fragments=fragment)


STATE = "state = [('s', y, 'next')]"


@pytest.mark.parametrize("size", [0, 1, 2, 5, 6])
@pytest.mark.parametrize("shape", ["F32[S, 2]", None])
def test_the_sums_so_far(size, shape) -> None:
    text = scan(
        f"scan = [('slice', x, 0, 1)], full = [], {STATE}, output = [('next', 'full', 0, 1), ('next', 'last', 0, 1)]",
        shapes=(shape or f"F32[{size}, 2]", "F32[1, 2]"),
        outputs=("all", "last"),
    )
    every, last = run_text(text, X[:size], START)
    np.testing.assert_array_equal(every, START + np.cumsum(X[:size], 0))
    np.testing.assert_array_equal(last, START + X[:size].sum(0, keepdims=True))


def test_chunks_may_go_backward_and_leave_out_what_is_skipped() -> None:
    given = f"scan = [('slice', x, 0, -2)], {STATE}, output = [('next', 'full', 0, -1)], skip = 1"
    (found,) = run_text(scan(given), X, START)
    middle = START[0] + X[2:4].sum(0)
    np.testing.assert_array_equal(found, [middle + X[:2].sum(0), middle, [0, 0]])


def test_outputs_without_a_chunk_have_one_of_1() -> None:
    given = f"scan = [('slice', x, 0, 1)], {STATE}, output = [('next', 'full', 0)], reset_every_turn = 0"
    np.testing.assert_array_equal(run_text(scan(given), X, START)[0], START + np.cumsum(X, 0))


def test_a_running_loop_keeps_its_state_unless_it_is_reset() -> None:
    given = f"scan = [('slice', x, 0, 1)], {STATE}, output = [('next', 'last', 0, 1)]"
    total = START + X.sum(0)
    for more, wanted in [("", total + X.sum(0)), (", reset_every_turn = true", total), (", external_state = 1", total)]:
        state = load(scan(given + more)).into_runnable().spawn_state()
        first, second = (state.run([X, START])[0].to_numpy() for _ in range(2))
        np.testing.assert_array_equal(first, total)
        np.testing.assert_array_equal(second, wanted)


def test_names_that_nnef_cannot_write_are_found_by_what_is_written_for_them() -> None:
    fragment = SUM.replace("slice", "a_slice_0").replace("next", "the_next")
    given = "scan = [('a.slice/0', x, 0, 1)], state = [('s', y, 'the-next')], output = [('the.next', 'last', 0, 1)]"
    np.testing.assert_array_equal(run_text(scan(given, fragment), X, START)[0], START + X.sum(0))


TWO = """
fragment step(a: tensor<scalar>, b: tensor<scalar>, slice: tensor<scalar>, whole: tensor<scalar>)
-> (later: tensor<scalar>, sooner: tensor<scalar>, slice: tensor<scalar>)
{ sooner = a + slice; later = b * 2.0 + whole; }
"""


def test_states_whole_tensors_and_what_is_handed_on() -> None:
    given = (
        "scan = [('slice', x, 0, 1)], full = [('whole', [[0.5, 1.0]])], "
        "state = [('a', y, 'sooner'), ('b', y, 'later')], "
        "output = [('later', 'last', 0, 1), ('sooner', 'full', 0, 1), ('slice', 'full', 0, -1), "
        "('sooner', 'last', 0, 1)]"
    )
    last, every, back, total = run_text(scan(given, TWO, outputs=("p", "q", "r", "t")), X, START)
    wanted = START.copy()
    for _ in X:
        wanted = wanted * 2 + [0.5, 1]
    np.testing.assert_array_equal(last, wanted)
    np.testing.assert_array_equal(every, START + np.cumsum(X, 0))
    np.testing.assert_array_equal(back, X[::-1])
    np.testing.assert_array_equal(total, START + X.sum(0))


def test_one_result_may_be_several_states_and_outputs() -> None:
    fragment = """
    fragment step(a: tensor<scalar>, b: tensor<scalar>, slice: tensor<scalar>) -> (next: tensor<scalar>)
    { next = a + b + slice; }
    """
    given = (
        "scan = [('slice', x, 0, 1)], state = [('a', y, 'next'), ('b', y, 'next')], "
        "output = [('next', 'full', 0, 1), ('next', 'full', 1, 2), ('next', 'last', 0, 1)]"
    )
    down, across, last = run_text(scan(given, fragment, outputs=("p", "q", "r")), X, START)
    states, now = [], (START, START)
    for one in X:
        total = now[0] + now[1] + one
        now = (total, total)
        states.append(total)
    np.testing.assert_array_equal(down, np.concatenate(states, 0))
    np.testing.assert_array_equal(across, np.concatenate(states, 1))
    np.testing.assert_array_equal(last, states[-1])


def test_bodies_may_have_loops_inside() -> None:
    fragment = """
    fragment inner(one: tensor<scalar>, t: tensor<scalar>) -> (next: tensor<scalar>) { next = t + one; }
    fragment step(slice: tensor<scalar>, s: tensor<scalar>) -> (next: tensor<scalar>)
    {
      next = tract_core_scan(body = 'inner', scan = [('one', slice, 1, 1)], full = [],
        state = [('t', s, 'next')], output = [('next', 'last', 0, 1)]);
    }
    """
    given = "scan = [('slice', x, 0, 1)], state = [('s', y, 'next')], output = [('next', 'last', 0, 1)]"
    text = scan(given, fragment, shapes=("F32[6, 2]", "F32[1, 1]"))
    np.testing.assert_array_equal(run_text(text, X, START[:, :1])[0], [[10 + X.sum()]])


SCANNED = "scan = [('slice', x, 0, 1)]"
LAST = "output = [('next', 'last', 0, 1)]"
WRONG = [
    (f"{SCANNED}, {LAST}", "nothing is fed to the parameters s"),
    (f"{SCANNED}, {STATE}, full = [('s', y)], {LAST}", "'s' of the body is fed twice"),
    (f"scan = [('piece', x, 0, 1)], {STATE}, {LAST}", "no parameter 'piece'; it has slice, s"),
    (f"{SCANNED}, state = [('s', y, 'after')], {LAST}", "no result 'after'; it has next"),
    (f"{SCANNED}, {STATE}, output = [('next', 'first', 0, 1)]", "'first', wanted 'full' or 'last'"),
    (f"{SCANNED}, {STATE}, output = [('next', 'last')]", "wanted 4 parts"),
    (f"scan = [('slice', x, 2, 1)], {STATE}, {LAST}", "cut along axis 2"),
    (f"scan = [('slice', x, 0, 0)], {STATE}, {LAST}", "in pieces of 0"),
    (f"scan = [], full = [('slice', x)], {STATE}, {LAST}", "at least one input must be scanned"),
    (f"{SCANNED}, {STATE}, {LAST}, facts = ['1,2,f32']", "1 facts for 2 inputs"),
    (f"{SCANNED}, {STATE}, {LAST}, facts = ['1,3,f32', '1,2,f32']", "1,3,f32"),
    (f"{SCANNED}, {STATE}, output = [('next', 'full', 3, 1)]", "axis 3"),
]


@pytest.mark.parametrize(("given", "message"), WRONG)
def test_what_does_not_fit_is_refused(given, message) -> None:
    with pytest.raises(errors.TractError, match=f"(?s)line .*{message}"):
        load(scan(given))


def test_a_body_that_is_not_there_is_named() -> None:
    with pytest.raises(errors.CorruptModel, match="there is no fragment 'step' with a body"):
        load(scan(f"{SCANNED}, {STATE}, {LAST}", ""))


def test_a_body_inside_itself_is_refused() -> None:
    again = f"{SCANNED}, {STATE}, {LAST}".replace(" x,", " slice,").replace(" y,", " s,")
    fragment = SUM.replace("next = s", f"next = s + tract_core_scan(body = 'step', {again})")
    with pytest.raises(errors.CorruptModel, match=r"'step'.* is inside itself"):
        load(scan(f"{SCANNED}, {STATE}, {LAST}", fragment))


test_a_case_comes_back = cycle_of_cases("scan")


def test_what_a_body_knows_of_its_sizes_comes_back(tmp_path) -> None:
    body = TypedModel()
    x, s = (
        body.add_source(name, parse_typed_fact(fact, body.symbols))
        for name, fact in (("x", "1,N,f32"), ("s", "1,M,f32"))
    )
    body.set_outputs(body.wire_node("next", Add(), [x, s]))
    body.symbols.add_assertion("N >= 2")
    simplify_sizes(body)
    assert len(body.conditions)
    model = TypedModel()
    given = [model.add_source(name, parse_typed_fact("S,5,f32", model.symbols)) for name in "x"]
    given += [model.add_source("s", parse_typed_fact("1,5,f32", model.symbols))]
    op = Scan(body, (ScannedInput(0), StateInput()), (OutputMapping(state=True, full=FullOutput(0, 0), last=1),))
    model.set_outputs(model.wire_node("y", op, given))
    NnefWriter(how=Writing()).write(model, tmp_path / "m.tar")
    assert same_model(NnefLoader().load(tmp_path / "m.tar"), model)
