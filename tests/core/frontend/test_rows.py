"""Rows of frontends: what they raise and what they return, whatever the format."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tract_core.errors import CorruptModel, LimitExceeded, ModelError
from tract_core.frontend.rows import call_row, outlets_of
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel
from tract_core.ops.elementwise import Neg
from tract_core.ops.node_wiring import NodeWiring
from tract_core.ops.wired import Wired


def row() -> None:
    """A row that its errors name."""


def example() -> tuple[TypedModel, OutletId, Wired]:
    model = TypedModel()
    x = model.add_source("x", parse_typed_fact("2,f32"))
    return model, x, -Wired(NodeWiring(model, "y"), x)


def test_a_result_is_an_outlet_a_wired_tensor_or_several() -> None:
    model, x, y = example()
    assert outlets_of(model, row, x) == [x]
    assert outlets_of(model, row, y) == [y.outlet]
    assert outlets_of(model, row, (x, None, y)) == [x, None, y.outlet]
    assert outlets_of(model, row, [y]) == [y.outlet]
    assert outlets_of(model, row, ()) == []


WRONG: dict[str, tuple[Any, str]] = {
    "nothing": (None, "returned None, as if it had no return, wanted an outlet, or one per output"),
    "an operator": (Neg(), "returned a Neg, wanted"),
    "a list with a text": (["y"], "returned a list with a str, wanted"),
    "a tuple with a number": ((None, 3), "returned a tuple with a int, wanted"),
    "an outlet of nowhere": (OutletId(99), "returned an outlet of another model, wanted"),
    "an output that is not there": (OutletId(0, 1), "returned an outlet of another model, wanted"),
}


@pytest.mark.parametrize(("result", "message"), WRONG.values(), ids=WRONG)
def test_anything_else_is_an_error_that_names_the_row(result: Any, message: str) -> None:
    with pytest.raises(ModelError, match=message) as raised:
        outlets_of(example()[0], row, result)
    assert raised.value.hint is not None
    assert raised.value.hint.endswith(f"row in {__name__}")


def _raise(error: BaseException) -> Callable[[], None]:
    def failing() -> None:
        raise error

    return failing


def test_errors_of_the_family_pass_and_others_say_whose_defect_it_is() -> None:
    registry = TypedModel().registry
    with pytest.raises(CorruptModel, match="no such axis"):
        call_row(registry, _raise(CorruptModel("no such axis")))
    with pytest.raises(LimitExceeded, match="not enough memory to wire it"):
        call_row(registry, _raise(MemoryError()))
    with pytest.raises(ModelError, match="it cannot be wired: KeyError: 'axes'") as raised:
        call_row(registry, _raise(KeyError("axes")))
    assert raised.value.hint is not None
    assert f"failing in {__name__}; --debug shows the traceback" in raised.value.hint
    with pytest.raises(KeyboardInterrupt):
        call_row(registry, _raise(KeyboardInterrupt()))


def test_a_row_gets_its_arguments() -> None:
    assert call_row(TypedModel().registry, lambda a, b: (a, b), 1, b=2) == (1, 2)
