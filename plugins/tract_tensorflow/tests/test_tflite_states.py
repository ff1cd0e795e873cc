"""What models of TFLite keep from run to run: in states, in snapshots, and in what is written of them."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from lite_files import content_of, inputs_of, opened, outputs_of

import tract_core as tract
from tract_core.errors import CorruptModel, TractError

KEEPING = [
    ("recurrent", "lstm all floats time first True"),
    ("recurrent", "lstm both ways merged True floats"),
    ("recurrent", "rnn step tanh floats"),
    ("recurrent", "svdf rank 2 of 3 floats"),
    ("control", "variable that is added to"),
    ("control", "two variables that change places"),
    ("control_states", "variable in a branch True"),
    ("control_states", "variable in a loop 3 times"),
]
NEAR = 2e-6


def near(found: Any, wanted: Any) -> None:
    np.testing.assert_allclose(np.asarray(found), wanted, rtol=0, atol=NEAR * max(1.0, np.abs(wanted).max()))


def prepared(family: str, case: str, runtime: str) -> tract.Runnable:
    return tract.runtime_for_name(runtime).prepare(tract.load_bytes(content_of(family, case)))


@pytest.mark.parametrize("runtime", ["reference", "cpu"])
@pytest.mark.parametrize(("family", "case"), KEEPING)
def test_a_run_begins_with_zeros_and_a_snapshot_goes_on(family: str, case: str, runtime: str) -> None:
    runnable, inputs, wanted = prepared(family, case, runtime), inputs_of(family, case), outputs_of(family, case)
    assert not np.array_equal(wanted[0], wanted[1])
    for _ in range(2):
        near(runnable.run(inputs)[0], wanted[0])
    state = runnable.spawn_state()
    state.run(inputs)
    frozen = state.freeze()
    for going in (state, frozen.unfreeze(), frozen.unfreeze()):
        near(going.run(inputs)[0], wanted[1])
    state.reset()
    near(state.run(inputs)[0], wanted[0])


@pytest.mark.parametrize(("family", "case"), KEEPING)
def test_archives_keep_the_same(family: str, case: str, tmp_path: Path) -> None:
    path = tmp_path / "model.nnef.tar"
    tract.load_bytes(content_of(family, case)).declutter().save(path)
    state = tract.load(path).into_runnable("cpu").spawn_state()
    for wanted in outputs_of(family, case):
        near(state.run(inputs_of(family, case))[0], wanted)


@pytest.mark.parametrize(("family", "case"), KEEPING)
def test_states_are_inputs_and_outputs_of_onnx(family: str, case: str, tmp_path: Path) -> None:
    engine = pytest.importorskip("onnxruntime")
    path = tmp_path / "model.onnx"
    tract.load_bytes(content_of(family, case)).declutter().save(path)
    session = engine.InferenceSession(path)
    names = [one.name for one in session.get_inputs()]
    given = inputs_of(family, case)
    kinds = {"tensor(float)": np.float32, "tensor(int64)": np.int64}
    states = {one.name: np.zeros(one.shape, kinds[one.type]) for one in session.get_inputs()[len(given) :]}
    assert states
    for wanted in outputs_of(family, case):
        found = session.run(None, {**dict(zip(names, given, strict=False)), **states})
        results = dict(zip((one.name for one in session.get_outputs()), found, strict=True))
        near(found[0], wanted)
        states = {name: results[f"{name}_out"] for name in states}


def test_snapshots_travel() -> None:
    runnable = prepared(*KEEPING[0], "cpu")
    state = runnable.spawn_state()
    state.run(inputs_of(*KEEPING[0]))
    kept = pickle.loads(pickle.dumps(state.freeze().kept))
    near(state.freeze().with_kept(kept).unfreeze().run(inputs_of(*KEEPING[0]))[0], outputs_of(*KEEPING[0])[1])


def test_a_variable_that_nothing_was_assigned_to_is_named() -> None:
    content = content_of("control", "variable that is added to").replace(b"sum\0", b"mus\0", 1)
    with pytest.raises(CorruptModel, match=r"'variable (sum|mus)' is read before anything is assigned to it"):
        tract.load_bytes(content)


def test_a_branch_assigns_a_variable_that_holds_nothing() -> None:
    content = content_of("control_states", "variable in a branch True").replace(b"sum\0", b"mus\0", 1)
    with pytest.raises(CorruptModel, match=r"'variable (sum|mus)' is read before anything is assigned to it"):
        tract.load_bytes(content)


def test_a_loop_that_hands_on_another_variable_is_refused() -> None:
    content = content_of("control_states", "variable that a loop is given 3 times")
    graph = opened(content).graph(3)
    first, count = graph.numbers("outputs").tolist()[0], graph.length("tensors")
    place = content.rindex(np.array(graph.numbers("outputs"), np.int32).tobytes())
    assert first < count
    changed = content[:place] + np.int32(graph.numbers("outputs")[1]).tobytes() + content[place + 4 :]
    with pytest.raises(TractError, match=r"graph 3 has 4 outputs, 3 values go round"):
        tract.load_bytes(changed)
