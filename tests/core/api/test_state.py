"""States: what they keep, snapshots of them, other processes, many threads."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tract_core import FrozenState, Model, Runnable, runtime_for_name
from tract_core.errors import InputError, TractError
from tract_core.model import TypedModel
from tract_core.model.fact_text import parse_typed_fact
from tract_core.plugins import default_registry
from tract_core.testing.conformance.models import running_sums


def _summing(module: ModuleType) -> Runnable:
    model = TypedModel()
    x = model.add_source("x", parse_typed_fact("2,f64", model.symbols))
    model.set_outputs(model.wire_node("sum", module.RunningSum(0.5), [x]))
    return runtime_for_name("reference").prepare(Model.from_typed(model))


def _ones(factor: float = 1.0) -> list[Any]:
    return [np.full(2, float(factor))]


def test_a_state_goes_on_and_run_does_not(running_sum: ModuleType) -> None:
    runnable = _summing(running_sum)
    state = runnable.spawn_state()
    assert state.run(_ones())[0].to_numpy().tolist() == [1.5, 1.5]
    assert state.run(_ones())[0].to_numpy().tolist() == [2.5, 2.5]
    assert runnable.spawn_state().run(_ones())[0].to_numpy().tolist() == [1.5, 1.5]
    assert runnable.run(_ones())[0].to_numpy().tolist() == [1.5, 1.5]


def test_earlier_outputs_are_not_changed_by_later_turns(running_sum: ModuleType) -> None:
    state = _summing(running_sum).spawn_state()
    (first,) = state.run(_ones())
    state.run(_ones())
    assert first.to_numpy().tolist() == [1.5, 1.5]


def test_writing_to_an_output_does_not_reach_the_state(running_sum: ModuleType) -> None:
    state = _summing(running_sum).spawn_state()
    (first,) = state.run(_ones())
    first.into_numpy()[:] = 1000
    assert state.run(_ones())[0].to_numpy().tolist() == [2.5, 2.5]


def test_freeze_and_unfreeze(running_sum: ModuleType) -> None:
    state = _summing(running_sum).spawn_state()
    state.run(_ones())
    frozen = state.freeze()
    assert isinstance(frozen, FrozenState)
    state.run(_ones(100))
    for _ in range(2):
        assert frozen.unfreeze().run(_ones(2))[0].to_numpy().tolist() == [3.5, 3.5]
    assert state.run(_ones())[0].to_numpy().tolist() == [102.5, 102.5]


def test_reset(running_sum: ModuleType) -> None:
    state = _summing(running_sum).spawn_state()
    state.run(_ones())
    frozen = state.freeze()
    state.reset()
    assert state.run(_ones())[0].to_numpy().tolist() == [1.5, 1.5]
    again = frozen.unfreeze()
    assert again.run(_ones())[0].to_numpy().tolist() == [2.5, 2.5]
    again.reset()
    assert again.run(_ones())[0].to_numpy().tolist() == [1.5, 1.5]


def test_counts_names_and_facts(running_sum: ModuleType) -> None:
    state = _summing(running_sum).spawn_state()
    assert (state.input_count(), state.output_count()) == (1, 1)
    assert (state.input_names(), state.output_names()) == (["x"], ["sum"])
    assert (state.input_name(0), state.output_name(0)) == ("x", "sum")
    assert str(state.input_fact(0)) == "2,f64"
    assert "State of Runnable on reference" in repr(state)


def test_notebooks_show_what_a_state_keeps(running_sum: ModuleType) -> None:
    state = _summing(running_sum).spawn_state()
    state.run(_ones())
    html = state._repr_html_()
    assert html.startswith("<b>State on reference</b><table>")
    assert "<td>input</td><td>x</td><td><code>2,f64</code></td>" in html
    assert "<td>keeps</td><td>sum</td><td><code>RunningSum</code></td>" in html
    frozen = state.freeze()._repr_html_()
    assert frozen.startswith("<b>FrozenState on reference</b><table>")
    assert "<td>keeps</td><td>sum</td><td><code>RunningSum: 2,f64</code></td>" in frozen


def test_names_of_what_keeps_are_escaped_and_cut_short(running_sum: ModuleType) -> None:
    model = TypedModel()
    x = model.add_source("x", parse_typed_fact("2,f64", model.symbols))
    for _ in range(20):
        (x,) = model.wire_node("<script>", running_sum.RunningSum(0.5), [x])
    model.set_outputs([x])
    html = runtime_for_name("reference").prepare(Model.from_typed(model)).spawn_state()._repr_html_()
    assert "<script>" not in html
    assert "<td>keeps</td><td>&lt;script&gt;</td>" in html
    assert "<td>keeps</td><td>...</td><td><code>4 more</code></td>" in html


def test_pickling_a_frozen_state(running_sum: ModuleType) -> None:
    state = _summing(running_sum).spawn_state()
    state.run(_ones())
    again: FrozenState = pickle.loads(pickle.dumps(state.freeze()))
    assert again.unfreeze().run(_ones())[0].to_numpy().tolist() == [2.5, 2.5]


def test_frozen_states_pickled_together_share_the_model(running_sum: ModuleType) -> None:
    model = TypedModel()
    x = model.add_source("x", parse_typed_fact("100000,f64", model.symbols))
    weights = model.add_const("weights", np.arange(100_000, dtype=np.float64))
    from tract_core.ops.binary import Add

    (summed,) = model.wire_node("sum", running_sum.RunningSum(), [x])
    model.set_outputs(model.wire_node("y", Add(), [summed, weights]))
    runnable = runtime_for_name("reference").prepare(Model.from_typed(model))
    one = len(pickle.dumps([runnable.spawn_state().freeze()]))
    five = len(pickle.dumps([runnable.spawn_state().freeze() for _ in range(5)]))
    assert one > 800_000
    assert five < one + 10_000


def test_a_live_state_says_what_to_pickle(running_sum: ModuleType) -> None:
    with pytest.raises(InputError, match=r"a State cannot be pickled\n  hint: pickle what freeze\(\) returns"):
        pickle.dumps(_summing(running_sum).spawn_state())


def test_another_process_goes_on(running_sum: ModuleType, run_script: Callable[[str], str], tmp_path: Path) -> None:
    state = _summing(running_sum).spawn_state()
    state.run(_ones())
    file = tmp_path / "state.pickle"
    file.write_bytes(pickle.dumps(state.freeze()))
    script = f"""
import pickle, pathlib, numpy
file = pathlib.Path({str(file)!r})
state = pickle.loads(file.read_bytes()).unfreeze()
print(state.run([numpy.full(2, 10.0)])[0].to_numpy().tolist())
file.write_bytes(pickle.dumps(state.freeze()))
"""
    assert run_script(script).strip() == "[11.5, 11.5]"
    back: FrozenState = pickle.loads(file.read_bytes())
    assert back.unfreeze().run(_ones())[0].to_numpy().tolist() == [12.5, 12.5]


def test_runnables_and_models_pickle(affine: Callable[[], Model]) -> None:
    x = np.ones((2, 3), np.float32)
    model: Model = pickle.loads(pickle.dumps(affine()))
    assert str(model.input_fact(0)) == "B,3,f32"
    runnable: Runnable = pickle.loads(pickle.dumps(model.into_runnable()))
    assert runnable.run([x])[0].to_numpy().tolist() == [[11, 12, 13]] * 2


def test_one_runnable_in_many_threads(running_sum: ModuleType) -> None:
    runnable = _summing(running_sum)

    def work(step: int) -> list[float]:
        state = runnable.spawn_state()
        return [float(state.run(_ones(step))[0].to_numpy()[0]) for _ in range(50)]

    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(work, range(16)))
    assert results == [[0.5 + step * turn for turn in range(1, 51)] for step in range(16)]


def test_threads_with_different_sizes(affine: Callable[[], Model]) -> None:
    runnable = affine().into_runnable()

    def work(size: int) -> bool:
        x = np.full((size, 3), size, np.float32)
        wanted = x * [1, 2, 3] + 10
        return all(np.array_equal(runnable.run([x])[0].to_numpy(), wanted) for _ in range(30))

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(1, 17)))


def test_a_failed_turn_is_an_error_of_ours(running_sum: ModuleType) -> None:
    state = _summing(running_sum).spawn_state()
    with pytest.raises(TractError, match="axis 0 has size 3, the model wants 2,f64"):
        state.run([np.zeros(3)])
    assert state.run(_ones())[0].to_numpy().tolist() == [1.5, 1.5]


@pytest.mark.parametrize("runtime", ["reference", "cpu"])
def test_a_second_user_is_refused_and_disturbs_nothing(runtime: str) -> None:
    """What is called while another thread's turn goes on, here as its input becomes an array."""
    runnable = runtime_for_name(runtime).prepare(Model.from_typed(running_sums(default_registry())))
    state, alone, refused = runnable.spawn_state(), runnable.spawn_state(), list[str]()
    x, start = np.ones((3, 2), np.float32), np.zeros((1, 2), np.float32)

    def uses() -> None:
        calls: list[Callable[[], Any]] = [lambda: state.run([x, start]), state.reset, state.freeze]
        for call in calls:
            with pytest.raises(
                InputError, match=r"the State is in use: .*\n  hint: give each thread a State"
            ) as caught:
                call()
            refused.append(caught.value.problem)

    class UsedMeanwhile:
        def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
            with ThreadPoolExecutor(1) as pool:
                pool.submit(uses).result()
            return x

    for _ in range(2):
        found = state.run([UsedMeanwhile(), start])
        assert [one.to_numpy().tolist() for one in found] == [one.to_numpy().tolist() for one in alone.run([x, start])]
    assert len(refused) == 6
    with pytest.raises(InputError, match="input 'x'"):
        state.run([None, start])
    assert isinstance(state.freeze(), FrozenState), "a turn that fails lets go of the state"


@pytest.mark.parametrize("runtime", ["reference", "cpu"])
def test_many_threads_of_one_state_do_no_harm(runtime: str, run_script: Callable[[str], str]) -> None:
    """In a process of its own: sizes change from turn to turn, so memory would be given back while others use it."""
    script = f"""
from concurrent.futures import ThreadPoolExecutor
import numpy as np
from tract_core import Model, runtime_for_name
from tract_core.errors import InputError
from tract_core.plugins import default_registry
from tract_core.testing.conformance.models import three_tensors
state = runtime_for_name({runtime!r}).prepare(Model.from_typed(three_tensors(default_registry()))).spawn_state()

def work(seed):
    done = 0
    for size in np.random.default_rng(seed).integers(0, 3000, 300).tolist():
        try:
            found = state.run([np.linspace(0, size, size, dtype=np.float32) % 7])
        except InputError:
            continue
        np.testing.assert_allclose(found[1].to_numpy(), np.exp(np.linspace(0, size, size) % 7 / 2), rtol=1e-4)
        done += 1
    return done

with ThreadPoolExecutor(3) as pool:
    print(sum(pool.map(work, range(3))) > 0)
"""
    assert run_script(script).strip() == "True"
