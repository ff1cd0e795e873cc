"""``run(inputs, out=...)``: arrays of the caller that a run fills, and those that it refuses."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tract_core import Model, Runnable, runtime_for_name
from tract_core.errors import InputError, PluginError
from tract_core.model import TypedModel
from tract_core.model.fact_text import parse_typed_fact
from tract_core.ops.axis import MoveAxis
from tract_core.ops.binary import Add
from tract_core.ops.elementwise import Neg
from tract_core.ops.non_zero import NonZero

Maker = Callable[[], Model]

A = np.array([[1, 2], [3, 4], [5, 6]], np.float32)
B = np.array([[10, 20], [30, 40], [50, 60]], np.float32)


@pytest.fixture
def pair(two_inputs: Maker) -> Runnable:
    return two_inputs().into_runnable()


def empty(*shape: int) -> Any:
    return np.full(shape, np.nan, np.float32)


def test_arrays_are_filled_and_returned(pair: Runnable) -> None:
    for run in (pair.run, pair.spawn_state().run):
        for order in (list, tuple):
            total, squashed = empty(3, 2), empty(3, 2)
            found = run([A, B], out=order([total, squashed]))
            assert found[0] is total
            assert found[1] is squashed
            assert total.tolist() == (A + B).tolist()
            np.testing.assert_allclose(squashed, np.tanh(np.float64(A) + B), rtol=1e-6)


def test_by_name(pair: Runnable) -> None:
    total, squashed = empty(3, 2), empty(3, 2)
    found = pair.run({"b": B, "a": A}, out={"squashed": squashed, "total": total})
    assert found[0] is total
    assert found[1] is squashed
    assert total.tolist() == (A + B).tolist()


@pytest.mark.parametrize("size", [0, 1, 3])
def test_part_of_a_larger_array(pair: Runnable, size: int) -> None:
    large = empty(2, 8, 2)
    pair.run([A[:size], B[:size]], out=[large[0, :size], large[1, :size]])
    assert large[0, :size].tolist() == (A + B)[:size].tolist()
    assert np.isnan(large[:, size:]).all()


def test_a_file_is_filled(pair: Runnable, tmp_path: Path) -> None:
    file = np.memmap(tmp_path / "total", np.float32, "w+", shape=(3, 2))
    found = pair.run([A, B], out=[file, empty(3, 2)])
    assert found[0] is file
    file.flush()
    assert np.fromfile(tmp_path / "total", np.float32).reshape(3, 2).tolist() == (A + B).tolist()


def test_inputs_are_read_as_they_were_given(pair: Runnable) -> None:
    """Filling an input in place gives what filling another array gives."""
    memory = np.stack([A, B])
    found = pair.run(list(memory), out=[memory[0], memory[1]])
    assert found[0].tolist() == (A + B).tolist()
    np.testing.assert_allclose(found[1], np.tanh(np.float64(A) + B), rtol=1e-6)
    shifted = np.arange(8, dtype=np.float32).reshape(4, 2)
    wanted = shifted[:3] + shifted[1:]
    assert pair.run([shifted[:3], shifted[1:]], out=[shifted[:3], empty(3, 2)])[0].tolist() == wanted.tolist()


def test_copies_of_inputs_are_read_only_too(affine: Maker) -> None:
    class Looks:
        def spawn(self) -> Looks:
            return self

        def run(self, inputs: Any, out: Any) -> Any:
            assert not inputs[0].flags.writeable
            assert not np.shares_memory(inputs[0], out[0])
            return out

    memory = np.zeros((2, 3), np.float32)
    runnable = Runnable(affine().into_typed(), Looks(), runtime_for_name("reference"))  # pyright: ignore[reportArgumentType]: it looks on
    assert runnable.run([memory], out=[memory])[0] is memory


def test_outputs_that_are_views_on_inputs() -> None:
    """One output is an input, the other a transposed view on it, and both arrays lie where the input lies."""
    model = TypedModel()
    x = model.add_source("x", parse_typed_fact("N,2,f32", model.symbols))
    model.set_outputs([*model.wire_node("turned", MoveAxis(0, 1), [x]), x, *model.wire_node("minus", Neg(), [x])])
    runnable = Model.from_typed(model).into_runnable()
    memory = np.zeros((3, 6), np.float32)
    given = memory[1].reshape(3, 2)
    given[...] = A
    out = [memory[1].reshape(2, 3), memory[0].reshape(3, 2), memory[2].reshape(3, 2)]
    turned, same, minus = runnable.run([given], out=out)
    assert (turned.tolist(), same.tolist(), minus.tolist()) == (A.T.tolist(), A.tolist(), (-A).tolist())


def test_texts(tmp_path: Path) -> None:
    model = TypedModel()
    model.set_outputs([model.add_source("x", parse_typed_fact("N,string", model.symbols))])
    found = np.array(["", ""], object)
    Model.from_typed(model).into_runnable().run([np.array(["a", "bc"])], out=[found])
    assert found.tolist() == ["a", "bc"]


REFUSED: list[tuple[str, Callable[[], Any], str]] = [
    ("an array", lambda: empty(3, 2), r"arrays to fill are given as a list, or as a dictionary by name; got ndarray"),
    ("too few", lambda: [empty(3, 2)], r"1 arrays to fill were given, the model gives 2: total \(N,2,f32\), squashed"),
    ("too many", lambda: [empty(3, 2)] * 3, "3 arrays to fill were given, the model gives 2"),
    (
        "missing name",
        lambda: {"total": empty(3, 2)},
        r"missing: squashed\n  hint: the model gives total \(N,2,f32\), squashed",
    ),
    (
        "unknown name",
        lambda: {"total": empty(3, 2), "squashed": empty(3, 2), "a": A},
        "no output is named a",
    ),
    (
        "none",
        lambda: [empty(3, 2), None],
        "array for output 'squashed': the array is a NoneType, which a run cannot fi",
    ),
    (
        "list",
        lambda: [[[0.0] * 2] * 3, empty(3, 2)],
        r"array for output 'total': .* is a list, which.*\n  hint: give an",
    ),
    ("masked", lambda: [np.ma.masked_array(empty(3, 2)), empty(3, 2)], "is a MaskedArray, which a run cannot fill"),
    ("read-only", lambda: [np.broadcast_to(np.float32(0), (3, 2)), empty(3, 2)], "'total': the array is read-only"),
    ("fortran", lambda: [np.asfortranarray(A), empty(3, 2)], "is not contiguous, aligned and in native byte order"),
    ("strided", lambda: [empty(3, 4)[:, ::2], empty(3, 2)], "is not contiguous, aligned and in native byte order"),
    ("swapped", lambda: [A.astype(">f4"), empty(3, 2)], "is not contiguous, aligned and in native byte order"),
    (
        "unaligned",
        lambda: [np.zeros(25, np.uint8)[1:].view(np.float32).reshape(3, 2), empty(3, 2)],
        "is not contiguous, aligned and in native byte order",
    ),
    (
        "type",
        lambda: [empty(3, 2).astype("f8"), empty(3, 2)],
        r"'total': the array is of type float64, the output is N,2,f32\n  hint: numpy\.empty\(shape, 'float32'\) makes",
    ),
    (
        "size",
        lambda: [empty(3, 2), empty(4, 2)],
        r"'squashed': the array has shape \[4,2\], the output is N,2,f32\n  hint: in this run its shape is \[3,2\]",
    ),
    ("stretched", lambda: [empty(1, 2), empty(3, 2)], r"'total': the array has shape \[1,2\]"),
    ("rank", lambda: [empty(3, 2), empty(6)], r"'squashed': the array has shape \[6\], the output is N,2,f32"),
]


@pytest.mark.parametrize(("make", "problem"), [case[1:] for case in REFUSED], ids=[case[0] for case in REFUSED])
def test_arrays_that_cannot_be_filled(pair: Runnable, make: Callable[[], Any], problem: str) -> None:
    for run in (pair.run, pair.spawn_state().run):
        with pytest.raises(InputError, match=problem):
            run([A, B], out=make())


def test_arrays_that_share_memory(pair: Runnable) -> None:
    one = empty(4, 2)
    with pytest.raises(InputError, match="'squashed': the array shares memory with that for 'total'\n  hint: give eac"):
        pair.run([A, B], out=[one[:3], one[1:]])


def test_nothing_is_written_where_an_array_is_refused(pair: Runnable) -> None:
    kept = np.zeros((3, 2), np.float32)
    with pytest.raises(InputError, match="'squashed'"):
        pair.run([A, B], out=[kept, empty(4, 2)])
    assert not kept.any()


def test_a_sequence_is_no_array() -> None:
    model = TypedModel()
    model.set_outputs([model.add_source("x", parse_typed_fact("sequence(2,f32)"))])
    runnable = Model.from_typed(model).into_runnable()
    with pytest.raises(InputError, match=r"array for output 'x': no array holds a sequence\(2,f32\)"):
        runnable.run([[A[0]]], out=[np.empty((), object)])


def test_sizes_that_the_run_tells() -> None:
    model = TypedModel()
    x = model.add_source("x", parse_typed_fact("N,f32", model.symbols))
    (places,) = model.wire_node("places", NonZero(model.symbols.new_symbol("count")), [x])
    model.set_outputs([places])
    runnable = Model.from_typed(model).into_runnable()
    found = np.empty((1, 2), np.int64)
    assert runnable.run([np.array([0, 3, 4], np.float32)], out=[found])[0].tolist() == [[1, 2]]
    with pytest.raises(InputError, match=r"the array has shape \[1,2\].*\n  hint: in this run its shape is \[1,1\]"):
        runnable.run([np.array([0, 3, 0], np.float32)], out=[found])


def test_a_runtime_that_forgets_to_fill(affine: Maker) -> None:
    """Its distribution is named, and nobody reads an array that was never written to."""

    class Forgets:
        def spawn(self) -> Forgets:
            return self

        def run(self, inputs: Any, out: Any = None) -> list[Any]:
            return [np.zeros((2, 3), np.float32)]

    runnable = Runnable(affine().into_typed(), Forgets(), runtime_for_name("reference"))  # pyright: ignore[reportArgumentType]: careless
    with pytest.raises((PluginError, ValueError), match="it returned other arrays than those that it was to fill"):
        runnable.run([np.zeros((2, 3), np.float32)], out=[empty(2, 3)])


def test_states_go_on(running_sum: ModuleType) -> None:
    model = TypedModel()
    x = model.add_source("x", parse_typed_fact("2,f64", model.symbols))
    (total,) = model.wire_node("sum", running_sum.RunningSum(0.5), [x])
    model.set_outputs(model.wire_node("twice", Add(), [total, total]))
    state = runtime_for_name("reference").prepare(Model.from_typed(model)).spawn_state()
    kept = np.empty(2)
    assert state.run([np.ones(2)], out=[kept])[0].tolist() == [3, 3]
    assert state.run([np.ones(2)], out=[kept])[0].tolist() == [5, 5]
    kept[:] = 1000
    assert state.run([np.ones(2)])[0].to_numpy().tolist() == [7, 7]
