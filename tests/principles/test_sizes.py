"""Sizes that must be equal are equal, and nothing is assumed about a tensor because only its shape is read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

from tract_core.dims import SymbolScope, symbol
from tract_core.errors import FactError, TractError
from tract_core.model.fact import TypedFact
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel
from tract_core.plugins import default_registry
from tract_core.runtime.plan import TypedSimplePlan
from tract_core.testing.case import Case
from tract_core.testing.conformance.selection import all_cases
from tract_core.testing.strategies import Grown, typed_models

Array = np.ndarray[Any, Any]

SIZES = (0, 1, 2, 3, 4, 7)


def _only_shapes(model: TypedModel) -> TypedModel:
    """A model that gives the shapes of the outputs of ``model``."""
    shapes = model.clone()
    found = [shapes.outlet_fact(outlet).shape for outlet in shapes.outputs]
    shapes.set_outputs(shapes.add_const(f"shape{slot}", shape) for slot, shape in enumerate(found))
    return shapes


def _run(model: TypedModel, inputs: Sequence[Array]) -> list[Array] | TractError:
    """The outputs, or why there are none."""
    try:
        return TypedSimplePlan(model).run(inputs)
    except TractError as error:
        return error


def _judged(model: TypedModel) -> bool:
    """Whether some node may refuse a run for the elements of a tensor, which nobody looks at for a shape."""
    return any(node.op.judges for node in model.live_nodes())


def _check_shapes(model: TypedModel, inputs: Sequence[Array]) -> None:
    whole, shapes = _run(model, inputs), _only_shapes(model)
    for alone in (shapes, shapes.clone().declutter()):
        found = _run(alone, inputs)
        if isinstance(whole, TractError) or isinstance(found, TractError):
            assert isinstance(whole, TractError), f"only the shape is refused: {found}"
            assert isinstance(found, TractError) or _judged(model), f"only the tensor is refused: {whole}"
        else:
            assert [array.tolist() for array in found] == [list(array.shape) for array in whole]


@given(typed_models(steps=12))
def test_a_shape_alone_is_that_of_the_tensor_or_refused_as_it_is(grown: Grown) -> None:
    for sizes in grown.sizings:
        _check_shapes(grown.model, grown.inputs(sizes))


def _has_axes(case: Case) -> bool:
    return not case.sizes and not any(arg.constant for arg in case.args) and any(array.ndim for array in case.arrays())


_CASES: dict[str, Case] = {case.name: case for case in all_cases(default_registry()) if _has_axes(case)}


def _apart(case: Case) -> TypedModel:
    """The operator of a case, every axis of its inputs a symbol of its own. Raises FactError where it wants numbers."""
    model = TypedModel(SymbolScope(sorted(case.sizes)))
    arrays = case.arrays()
    outlets: list[OutletId] = []
    for slot, array in enumerate(arrays):
        fact = case.model(symbolic=False).outlet_fact(OutletId(slot))
        shape = [symbol(f"x{slot}_{axis}") for axis in range(array.ndim)]
        outlets.append(model.add_source(f"x{slot}", TypedFact.of(fact.datum_type, shape)))
    model.set_outputs(model.wire_node("the_node", case.op, outlets))
    return model


@given(st.data(), st.sampled_from(sorted(_CASES)))
def test_an_operator_of_sizes_that_do_not_go_together(data: st.DataObject, name: str) -> None:
    case = _CASES[name]
    arrays = case.arrays()
    axes = [(slot, axis) for slot, array in enumerate(arrays) for axis in range(array.ndim)]
    try:
        model = _apart(case)
    except FactError:
        assume(False)  # some operators want a number of channels, of axes ...
        raise
    slot, axis = data.draw(st.sampled_from(axes))
    shape = list(arrays[slot].shape)
    shape[axis] = data.draw(st.sampled_from(SIZES))
    arrays[slot] = np.resize(arrays[slot], shape)
    whole, simple = _run(model, arrays), _run(model.clone().declutter(), arrays)
    if isinstance(whole, TractError) or isinstance(simple, TractError):
        assert isinstance(whole, TractError), simple
        assert isinstance(simple, TractError), whole
        assert "the_node" in str(whole), whole
    _check_shapes(model, arrays)
