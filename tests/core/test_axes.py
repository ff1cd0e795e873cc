"""What the ``axes`` and ``cost`` tables say of every operator, held against what the operator does in its cases."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np
import pytest

from tract_core.dims import evaluate
from tract_core.errors import FactError
from tract_core.model.axes import AxesMapping, Axis
from tract_core.model.fact import TypedFact
from tract_core.model.op import TypedOp
from tract_core.model.substitute import substitute_in, symbols_needed
from tract_core.model.typed import TypedModel
from tract_core.ops.cumsum import CumSum
from tract_core.ops.downsample import Downsample
from tract_core.ops.fft import Fft
from tract_core.ops.norm import RmsNorm
from tract_core.ops.softmax import Softmax
from tract_core.plugins import default_registry
from tract_core.plugins.keys import AXES, COST
from tract_core.runtime.plan import TypedSimplePlan
from tract_core.testing.case import CASES, Case
from tract_core.testing.tolerance import Tolerance, mismatch, rounding_of

Array = np.ndarray[Any, Any]

ALL = [case for cases in default_registry()[CASES].rows().values() for case in cases]
TYPES = sorted({type(case.op) for case in ALL}, key=lambda kind: kind.__name__)

# The logarithm of a size is no expression of sizes.
_NO_EXPRESSION = (Fft,)

# A sum in another order may differ by more than one rounding of each term.
_ROUNDINGS = 16


def _facts(case: Case, *, symbolic: bool) -> tuple[TypedOp, list[TypedFact], list[TypedFact]]:
    model = case.model(symbolic=symbolic)
    node = model.producer(model.outputs[0])
    return node.op, model.input_facts(node), model.output_facts(node)


def _mapping(case: Case, *, symbolic: bool = False) -> AxesMapping:
    op, inputs, outputs = _facts(case, symbolic=symbolic)
    return default_registry()[AXES][type(op)](op, inputs, outputs)


def _run(case: Case, arrays: Sequence[Array]) -> list[Array]:
    """The case's operator on other arrays. Raises FactError when their sizes do not fit its attributes."""
    sizes = {name: case.sizes[name] for name in symbols_needed(case.op) if name in case.sizes}
    model = TypedModel()
    outlets, given = [], []
    for slot, (arg, array) in enumerate(zip(case.args, arrays, strict=True)):
        if arg.constant:
            outlets.append(model.add_const(f"input{slot}", array))
            continue
        fact = case.model(symbolic=False).outlet_fact(case.model(symbolic=False).inputs[len(given)])
        outlets.append(model.add_source(f"input{slot}", fact.with_shape(array.shape)))
        given.append(array)
    model.set_outputs(model.wire_node("op", substitute_in(case.op, sizes), outlets))
    return TypedSimplePlan(model).run(given)


def _tells(axis: Axis) -> bool:
    """Whether the mapping says anything about an axis: one that has a single place is disconnected."""
    read, written = sum(map(len, axis.inputs)), sum(map(len, axis.outputs))
    return read > 0 and read + written > 1


def _selected(arrays: Sequence[Array], places: Sequence[tuple[int, ...]], selection: Sequence[int]) -> list[Array]:
    return [
        reduce(lambda found, axis: np.take(found, selection, axis), axes, array)
        for array, axes in zip(arrays, places, strict=True)
    ]


def _problem(case: Case, axis: Axis, selection: Sequence[int]) -> str | None:
    """What is wrong with the outputs when the elements of one axis are selected in all inputs that carry it.

    Nothing is said of an output that does not carry an axis that another output carries.
    """
    arrays = case.arrays()
    wanted = _selected(_run(case, arrays), axis.outputs, selection)
    found = _run(case, _selected(arrays, axis.inputs, selection))
    for slot, (one, other, places) in enumerate(zip(found, wanted, axis.outputs, strict=True)):
        if any(axis.outputs) and not places:
            continue
        kind = _facts(case, symbolic=False)[2][slot].datum_type.storage
        tolerance = case.tolerance or rounding_of(kind)
        loose = Tolerance(tolerance.absolute * _ROUNDINGS, tolerance.relative * _ROUNDINGS, tolerance.outliers)
        problem = mismatch(one, other, loose)
        if problem is not None:
            return f"axis {axis.name}, elements {list(selection)}: output {slot}: {problem}"
    return None


def _check_axis(case: Case, axis: Axis, size: int) -> None:
    random = np.random.default_rng(zlib.crc32(str(case).encode()))
    shuffled = random.permutation(size).tolist()
    if shuffled == list(range(size)):
        shuffled = shuffled[::-1]
    assert _problem(case, axis, shuffled) is None
    if not any(axis.outputs):
        return
    # An element that depends on others changes when one of these is left out, and another is there twice.
    assert _problem(case, axis, random.integers(0, size, size).tolist()) is None
    assert _problem(case, axis, [size - 1] * size) is None
    if size < 3:  # one element would stretch
        return
    try:
        problem = _problem(case, axis, range(1, size))
    except FactError:
        return  # the attributes ask for the whole size
    assert problem is None


@pytest.mark.parametrize("kind", TYPES, ids=lambda kind: kind.__name__)
def test_every_operator_says_its_axes_and_its_cost(kind: type[TypedOp]) -> None:
    registry = default_registry()
    assert kind in registry[AXES]
    assert kind in registry[COST]


@pytest.mark.parametrize("symbolic", [False, True], ids=["fixed", "symbolic"])
@pytest.mark.parametrize("case", ALL, ids=str)
def test_mapping_names_every_axis(case: Case, symbolic: bool) -> None:
    _, inputs, outputs = _facts(case, symbolic=symbolic)
    mapping = _mapping(case, symbolic=symbolic)
    assert [len(term) for term in mapping.inputs] == [fact.rank for fact in inputs]
    assert [len(term) for term in mapping.outputs] == [fact.rank for fact in outputs]


@pytest.mark.parametrize("case", ALL, ids=str)
def test_places_of_an_axis_have_one_size(case: Case) -> None:
    _, inputs, outputs = _facts(case, symbolic=False)
    mapping = _mapping(case)
    for axis in mapping.axes():
        places = zip([*inputs, *outputs], [*axis.inputs, *axis.outputs], strict=True)
        sizes = {evaluate(fact.shape[place], case.sizes) for fact, axes in places for place in axes}
        assert len(sizes) == 1, f"{mapping}: {axis}"


@pytest.mark.parametrize("case", ALL, ids=str)
def test_elements_of_an_axis_go_where_the_mapping_says(case: Case) -> None:
    arrays = case.arrays()
    mappings = {_mapping(case), _mapping(case, symbolic=True)}
    for axis in {axis for mapping in mappings for axis in mapping.axes()}:
        if not _tells(axis):
            continue
        slot = next(slot for slot, places in enumerate(axis.inputs) if places)
        size = arrays[slot].shape[axis.inputs[slot][0]]
        if size > 1:
            _check_axis(case, axis, size)


@pytest.mark.parametrize("size", [2, 5])
@pytest.mark.parametrize("op", [CumSum(0), Downsample(0, -1), Softmax((0,)), RmsNorm(0, 1e-5)], ids=str)
def test_wrong_mapping_is_noticed(op: TypedOp, size: int) -> None:
    case = Case("wrong", op, ["S,f32"], lambda x: x, {"S": size})
    (axis,) = AxesMapping.parse("a->a").axes()
    with pytest.raises(AssertionError):
        _check_axis(case, axis, size)


@pytest.mark.parametrize("case", ALL, ids=str)
def test_symbolic_cost_is_the_cost(case: Case) -> None:
    cost = default_registry()[COST]
    op, inputs, outputs = _facts(case, symbolic=True)
    symbolic = cost[type(op)](op, inputs, outputs)
    op, inputs, outputs = _facts(case, symbolic=False)
    fixed = cost[type(op)](op, inputs, outputs)
    found = {kind: evaluate(count, case.sizes) for kind, count in symbolic.items()}
    wanted = {kind: evaluate(count, case.sizes) for kind, count in fixed.items()}
    assert found == wanted or (type(op) in _NO_EXPRESSION and not found)
    assert all(count >= 0 for count in found.values())
