"""Running: every way to give inputs, every way to get them wrong."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tract_core import DatumType, Model, Runnable, Tensor
from tract_core.api.profile_text import ProfileText
from tract_core.data import QuantizedType
from tract_core.errors import InputError, TractError
from tract_core.model import TypedFact, TypedModel
from tract_core.model.fact_text import parse_typed_fact
from tract_core.ops.axis import MoveAxis
from tract_core.ops.binary import Add

Maker = Callable[[], Model]

X = np.arange(6, dtype=np.float32).reshape(2, 3)
Y = [[10, 12, 16], [13, 18, 25]]


@pytest.fixture
def runnable(affine: Maker) -> Runnable:
    return affine().into_runnable()


@pytest.fixture
def pair(two_inputs: Maker) -> Runnable:
    return two_inputs().into_runnable()


class Subclass(np.ndarray[Any, Any]):
    """An array with ideas of its own."""


class OnlyArray:
    """Something that NumPy can read."""

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        return X


class OnlyDlpack:
    """Something that speaks DLPack and nothing else."""

    def __dlpack__(self, **options: Any) -> Any:
        return X.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


class OnAGpu(OnlyDlpack):
    """A tensor that NumPy cannot reach."""

    def __dlpack__(self, **options: Any) -> Any:
        raise BufferError("the memory is on device 2")

    def __dlpack_device__(self) -> tuple[int, int]:
        return (2, 0)


class OnlyInterface:
    """As images of Pillow say what they hold."""

    __array_interface__ = X.__array_interface__


def test_interface(pair: Runnable) -> None:
    assert (pair.input_count(), pair.output_count()) == (2, 2)
    assert (pair.input_names(), pair.output_names()) == (["a", "b"], ["total", "squashed"])
    assert (pair.input_name(1), pair.output_name(1)) == ("b", "squashed")
    assert [str(f) for f in pair.input_facts()] == [str(pair.input_fact(i)) for i in range(2)] == ["N,2,f32"] * 2
    assert [str(f) for f in pair.output_facts()] == [str(pair.output_fact(i)) for i in range(2)] == ["N,2,f32"] * 2
    for method in (pair.input_fact, pair.output_fact, pair.input_name, pair.output_name):
        with pytest.raises(InputError, match="go by a number from 0 or by name"):
            method(2)


def test_properties_come_along(runnable: Runnable) -> None:
    assert runnable.property_keys() == ["maker"]
    assert runnable.property("maker").to_numpy().tolist() == "by hand"
    with pytest.raises(InputError, match="no property for name speed; properties: maker"):
        runnable.property("speed")


@pytest.mark.parametrize(
    "value",
    [
        X,
        Tensor.from_numpy(X),
        OnlyArray(),
        OnlyDlpack(),
        X.astype(">f4"),
        np.asfortranarray(X),
        np.repeat(np.repeat(X, 2, 0), 2, 1)[::2, ::2],
        X[::-1][::-1],
        np.frombuffer(b"\0" + X.tobytes(), np.uint8)[1:].view(np.float32).reshape(2, 3),
        X.view(Subclass),
        memoryview(X),
        OnlyInterface(),
    ],
    ids=[
        "array",
        "tensor",
        "array protocol",
        "dlpack",
        "swapped",
        "fortran",
        "strided",
        "flipped",
        "unaligned",
        "subclass",
        "buffer",
        "array interface",
    ],
)
def test_whatever_is_a_tensor_is_taken(runnable: Runnable, value: Any) -> None:
    (found,) = runnable.run([value])
    assert isinstance(found, Tensor)
    assert found.to_numpy().tolist() == Y
    assert runnable.run({"x": value})[0] == found
    assert runnable.run((value,))[0] == found


def test_torch_tensors_are_taken(runnable: Runnable) -> None:
    torch = pytest.importorskip("torch")
    assert runnable.run([torch.from_numpy(X)])[0].to_numpy().tolist() == Y


NO_TENSORS = [[[0.0, 1.0, 2.0]], (1.0,), 1.0, 3, None, "text", Path("x.npy"), b"bytes", object(), np, {"x": 1}]


@pytest.mark.parametrize("value", NO_TENSORS, ids=lambda value: type(value).__name__)
def test_what_is_no_tensor(runnable: Runnable, value: Any) -> None:
    with pytest.raises(
        InputError, match=r"input 'x': Inputs must be of type Tensor or numpy\.ndarray, got \w+"
    ) as caught:
        runnable.run([value])
    hint = "numpy.load(path)" if isinstance(value, (str, Path)) else "numpy.array(value, dtype='float32')"
    assert hint in str(caught.value)


@pytest.mark.parametrize("inputs", [X, None, 3, "x", iter([X]), {X.shape}], ids=type)
def test_inputs_are_a_list_or_a_dictionary(runnable: Runnable, inputs: Any) -> None:
    with pytest.raises(
        InputError, match=r"inputs are given as a list.*got \w+\n  hint: for one input, write \[array\]"
    ):
        runnable.run(inputs)


def test_a_tensor_on_another_device(runnable: Runnable) -> None:
    with pytest.raises(
        InputError,
        match=r"input 'x': a .*OnAGpu cannot be read as an array: Buffer.*on device 2\n  hint: bring it",
    ):
        runnable.run([OnAGpu()])


def test_masks_are_not_lost(runnable: Runnable) -> None:
    with pytest.raises(InputError, match=r"is a masked array.*\n  hint: give \.filled"):
        runnable.run([np.ma.masked_array(X, X > 3)])


def test_names(pair: Runnable) -> None:
    a, b = np.full((1, 2), 1, np.float32), np.full((1, 2), 2, np.float32)
    total, squashed = pair.run({"b": b, "a": a})
    assert total.to_numpy().tolist() == [[3, 3]]
    np.testing.assert_allclose(squashed.to_numpy(), np.tanh(3.0), rtol=1e-6)


@pytest.mark.parametrize(
    ("inputs", "problem"),
    [
        ({}, r"missing: a, b\n  hint: the model takes a \(N,2,f32\), b \(N,2,f32\)"),
        ({"a": X}, "missing: b"),
        ({"a": X, "b": X, "c": X}, "no input is named c"),
        ({"a": X, 1: X}, "no input is named 1; missing: b"),
        ([], r"0 inputs were given, the model takes 2: a \(N,2,f32\), b \(N,2,f32\)"),
        ([X], "1 inputs were given, the model takes 2"),
        ([X] * 3, "3 inputs were given, the model takes 2"),
    ],
)
def test_missing_and_surplus_inputs(pair: Runnable, inputs: Any, problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        pair.run(inputs)
    with pytest.raises(InputError, match=problem):
        pair.spawn_state().run(inputs)


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (X.astype(np.float64), r"input 'x': input is f64, the model wants B,3,f32\n  hint: convert it with \.astype"),
        (X.astype(np.int32), "input is i32"),
        (X[0], r"input has rank 1 \(shape \(3,\)\), the model wants B,3,f32"),
        (X.T, "axis 1 has size 2, the model wants B,3,f32"),
        (np.array(["a"]), "input is string"),
        (
            X.astype(object),
            r"an array of Python objects was given, the model wants f32\n  hint: .*\.astype\('float32'\)",
        ),
        (X.astype(ml_dtypes.bfloat16), "input is bf16"),
        (X.astype("M8[s]"), "no element type for NumPy's datetime64"),
        (np.float32(1), "input has rank 0"),
    ],
)
def test_arrays_that_do_not_fit(runnable: Runnable, value: Any, problem: str) -> None:
    with pytest.raises(TractError, match=problem):
        runnable.run([value])


@pytest.mark.parametrize(
    ("fact", "shape", "hint"),
    [
        ("B,1,8,8,f32", (1, 8, 8), "it lacks the first axis: array[None]"),
        ("B,3,f32", (3,), "it lacks the first axis: array[None]"),
        ("3,8,8,f32", (1, 3, 8, 8), "it has a first axis too much: array[0]"),
        ("B,1,8,8,f32", (2, 8, 8, 1), "its axes are in another order: array.transpose(0, 3, 1, 2) fits"),
        ("B,8,8,3,f32", (2, 3, 8, 8), "its axes are in another order: array.transpose(0, 2, 3, 1) fits"),
        ("B,20,T,f32", (2, 7, 20), "its axes are in another order: array.transpose(0, 2, 1) fits"),
        ("B,3,4,5,6,f32", (1, 4, 5, 6, 3), "array.transpose(0, 4, 1, 2, 3) fits"),
        ("B,1,8,8,f32", (8, 8), None),
        ("B,1,8,8,f32", (2, 9, 9, 1), None),
        ("B,3,f32", (3, 2), None),
        ("f32", (1,), "array[0]"),
        ("f32", (2,), None),
    ],
)
def test_an_array_whose_axes_are_others(fact: str, shape: tuple[int, ...], hint: str | None) -> None:
    model = TypedModel()
    model.set_outputs([model.add_source("x", parse_typed_fact(fact, model.symbols))])
    array = np.zeros(shape, np.float32)
    with pytest.raises(InputError, match="the model wants") as caught:
        Model.from_typed(model).into_runnable("reference").run([array])
    assert (hint in str(caught.value.hint)) if hint else caught.value.hint is None
    if hint and hint.startswith("its axes"):
        order = [int(axis) for axis in re.findall(r"\d", hint)]
        Model.from_typed(model).into_runnable("reference").run([array.transpose(order)])


def test_two_inputs_that_disagree_about_a_symbol(pair: Runnable) -> None:
    with pytest.raises(InputError, match="input 'b': axis 0 has size 3, but N is wanted and N is 2 by input 'a'"):
        pair.run([np.zeros((2, 2), np.float32), np.zeros((3, 2), np.float32)])


def test_each_run_binds_symbols_anew(runnable: Runnable) -> None:
    for size in (1, 5, 0, 2):
        assert runnable.run([np.zeros((size, 3), np.float32)])[0].shape == (size, 3)


def test_inputs_are_never_written_to() -> None:
    """Even an operator that computes in place cannot reach what the caller gave."""
    model = TypedModel()
    model.set_outputs([model.add_source("x", parse_typed_fact("2,f32"))])
    runnable = Model.from_typed(model).into_runnable()
    given = np.ones(2, np.float32)
    (array,) = runnable._calls.arrays([given])
    assert np.shares_memory(array, given)
    with pytest.raises(ValueError, match="read-only"):
        array[0] = 7
    assert given.flags.writeable


def test_an_output_that_is_an_input_is_a_copy() -> None:
    model = TypedModel()
    model.set_outputs([model.add_source("x", parse_typed_fact("2,f32"))])
    given = np.ones(2, np.float32)
    (found,) = Model.from_typed(model).into_runnable().run([given])
    given[:] = 5
    assert found.to_numpy().tolist() == [1, 1]


def test_an_output_that_is_a_constant_cannot_change_it() -> None:
    model = TypedModel()
    model.set_outputs([model.add_const("c", np.ones(2, np.float32))])
    runnable = Model.from_typed(model).into_runnable()
    runnable.run([])[0].into_numpy()[:] = 5
    assert runnable.run([])[0].to_numpy().tolist() == [1, 1]
    assert runnable.run({})[0].to_numpy().tolist() == [1, 1]


def test_strings_pass_through() -> None:
    model = TypedModel()
    model.set_outputs([model.add_source("x", parse_typed_fact("N,string", model.symbols))])
    (found,) = Model.from_typed(model).into_runnable().run([np.array(["a", "b"])])
    assert found.datum_type() is DatumType.STRING
    assert found.to_numpy().tolist() == ["a", "b"]


def test_quantised_inputs_and_outputs() -> None:
    kind = QuantizedType(DatumType.U8, 5, 0.5)
    model = TypedModel()
    model.set_outputs([model.add_source("x", TypedFact.of(kind, (2,)))])
    runnable = Model.from_typed(model).into_runnable()
    stored = np.array([5, 7], np.uint8)
    for value in (stored, Tensor.from_numpy(stored, kind), Tensor.from_numpy(stored)):
        (found,) = runnable.run([value])
        assert found.datum_type() == kind
        assert found.convert_to("f32").to_numpy().tolist() == [0, 1]
    other = Tensor.from_numpy(stored, QuantizedType(DatumType.U8, 5, 0.25))
    with pytest.raises(InputError, match=r"input is QU8\(Z:5 S:0.25\), the model wants QU8\(Z:5 S:0.5\)"):
        runnable.run([other])


def test_a_consumed_tensor_is_refused(runnable: Runnable) -> None:
    tensor = Tensor.from_numpy(X)
    tensor.into_numpy()
    with pytest.raises(TractError, match=r"consumed by Tensor\.into_numpy"):
        runnable.run([tensor])


def test_a_failing_node_is_named() -> None:
    model = TypedModel()
    x = model.add_source("x", parse_typed_fact("A,f32", model.symbols))
    y = model.add_source("y", parse_typed_fact("B,f32", model.symbols))
    model.set_outputs(model.wire_node("sum", Add(), [x, y]))
    runnable = Model.from_typed(model).into_runnable()
    with pytest.raises(TractError, match=r"node 'sum' \(Add\)"):
        runnable.run([np.zeros(2, np.float32), np.zeros(3, np.float32)])


def test_a_profile_is_a_text_that_notebooks_show_as_a_table(two_inputs: Maker) -> None:
    runnable = two_inputs().into_runnable("reference")
    arrays = [np.ones((3, 2), np.float32)] * 2
    measured = runnable.profile_json(arrays)
    nodes = json.loads(measured)["nodes"]
    html = measured._repr_html_()
    assert html.startswith("<b>Profile</b>: ")
    assert " ms a turn (median of " in html
    timed = sorted((one for one in nodes if one["secs_per_iter"] is not None), key=lambda one: -one["secs_per_iter"])
    places = [html.index(f"<td>{one['node_name']}</td>") for one in timed]
    assert places == sorted(places)
    assert len(places) > 1
    assert runnable.profile_json()._repr_html_().startswith(f"<b>Profile</b> of {len(nodes)} nodes, not run")


def test_a_long_profile_is_cut_short_and_names_are_escaped() -> None:
    node = {"qualified_id": [[], 0], "op_name": "<i>", "node_name": "<b>&", "cost": {}, "secs_per_iter": 0.5}
    info = {"iterations": 1, "secs_per_iter": 15.0, "median_secs_per_iter": 15.0}
    html = ProfileText(json.dumps({"nodes": [node] * 30, "groups": [], "profiling_info": info}))._repr_html_()
    assert html.count("<td>500.000 ms, 3.3 %</td><td>&lt;i&gt;</td><td>&lt;b&gt;&amp;</td>") == 20
    assert html.endswith("<p>and 10 more</p>")


def test_representations(runnable: Runnable) -> None:
    assert str(runnable) == repr(runnable) == "Runnable on cpu (x: B,3,f32 -> y: B,3,f32; 5 nodes)"
    assert "<td>output</td><td>y</td>" in runnable._repr_html_()
    assert dict(runnable.__rich_repr__())["runtime"] == "cpu"


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.array([["2020-01-01"] * 3], "M8[D]"), "input 'x': no element type for NumPy's datetime64"),
        (np.array([[1, None, 2]], object), "input 'x': an array of Python objects was given, the model wants f32"),
    ],
)
def test_elements_that_no_tensor_has(runnable: Runnable, value: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        runnable.run([value])


def test_outputs_are_no_way_into_the_model() -> None:
    model = TypedModel()
    x = model.add_source("x", parse_typed_fact("B,2,f32", model.symbols))
    held = model.add_const("held", np.array([[1, 2]], np.float32))
    model.set_outputs([held, *model.wire_node("moved", MoveAxis(0, 1), [held]), x])
    runnable = Model.from_typed(model).into_runnable()
    given = np.zeros((1, 2), np.float32)
    for found in runnable.run([given]):
        with pytest.raises(ValueError, match="read-only"):
            np.asarray(found)[...] = 7
        found.to_numpy()[...] = 7
    assert [found.to_numpy().tolist() for found in runnable.run([given])] == [[[1, 2]], [[1], [2]], [[0, 0]]]
    kept = runnable.run([given])[2]
    given[...] = 5
    assert kept.to_numpy().tolist() == [[0, 0]]


def test_sizes_keep_to_what_was_assumed() -> None:
    model = TypedModel()
    model.set_outputs([model.add_source("x", parse_typed_fact("S,2,f32", model.symbols))])
    model.symbols.add_assertion("S>=2")
    runnable = Model.from_typed(model).into_runnable()
    state = runnable.spawn_state()
    for run in (runnable.run, state.run, state.run):
        assert run([np.zeros((2, 2), np.float32)])[0].shape == (2, 2)
        with pytest.raises(InputError, match="S>=2 does not hold for S=1"):
            run([np.zeros((1, 2), np.float32)])
