"""A row of a plugin that raises, or returns something else than its table takes, is left out; the model is right."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from tract_core.dims import symbol
from tract_core.model.axes import AxesMapping
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.op import TypedOp
from tract_core.model.questions import node_cost
from tract_core.model.typed import TypedModel
from tract_core.ops.axis import MoveAxis
from tract_core.ops.slice import Slice
from tract_core.plugins import PluginWarning, Registry, Rows
from tract_core.plugins.keys import AXES, COST, REFERENCE, SYMBOLIC
from tract_core.plugins.registry import rows_may_raise
from tract_core.rules.change_axes import RENAME_AXES
from tract_core.runtime.plan import TypedSimplePlan
from tract_core.testing.toys import toy_registry, toy_rows

TABLES = {key.name: key for key in (AXES, COST, SYMBOLIC, RENAME_AXES)}


@dataclass(frozen=True)
class Mine(TypedOp):
    """x"""

    def output_facts(self, inputs):
        return (inputs[0].without_value(),)


@pytest.fixture
def with_row() -> Callable[..., Registry]:
    """``with_row("axes", function)``: a registry of the plugin ``acme``, which brings `Mine` with that row."""

    def make(table: str, row: Callable[..., Any]) -> Registry:
        rows = Rows()
        rows.add(REFERENCE, Mine, lambda _, x: x)
        rows.add(TABLES[table], Mine, row)
        return toy_registry("acme", rows=dict.fromkeys(("reference", *TABLES), toy_rows("acme_rows", rows)))

    return make


def check(registry: Registry) -> None:
    """Models in which every table is asked about `Mine`: they load, and compute what they should."""
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    model = TypedModel(registry=registry)
    source = model.add_source("x", parse_typed_fact("S,4,f32", model.symbols))
    (moved,) = model.wire_node("moved", MoveAxis(0, 1), [source])
    (mine,) = model.wire_node("mine", Mine(), [moved])
    (back,) = model.wire_node("back", MoveAxis(1, 0), [mine])
    model.set_outputs(model.wire_node("slice", Slice(1, 1, 3), [back]))
    for node in model.declutter().live_nodes():
        node_cost(model, node)
    np.testing.assert_array_equal(TypedSimplePlan(model).run([x])[0], x[:, 1:3])
    for value in (np.array([1, 2]), [symbol("S"), 2]):
        model = TypedModel(registry=registry)
        model.set_outputs(model.wire_node("mine", Mine(), [model.add_const("c", value)]))
        model.declutter()


def raises(*_: Any) -> Any:
    return {}["nothing"]


WRONG: dict[str, tuple[str, Callable[..., Any], str]] = {
    "axes: raises": ("axes", raises, "KeyError: 'nothing'"),
    "axes: None": ("axes", lambda *_: None, "it is a NoneType, wanted an AxesMapping"),
    "axes: ranks": ("axes", lambda *_: AxesMapping.natural([3], [3]), "maps tensors of ranks"),
    "axes: arguments": ("axes", lambda _: None, "takes 1 positional argument but 3 were given"),
    "cost: raises": ("cost", raises, "KeyError: 'nothing'"),
    "cost: None": ("cost", lambda *_: None, "it is a NoneType, wanted a dictionary of counts"),
    "cost: a number": ("cost", lambda *_: 3, "it is a int, wanted a dictionary of counts"),
    "rename_axes: raises": ("rename_axes", raises, "KeyError: 'nothing'"),
}


@pytest.mark.parametrize(("table", "row", "problem"), WRONG.values(), ids=WRONG)
def test_it_is_left_out(with_row, table, row, problem):
    registry = with_row(table, row)
    with pytest.warns(PluginWarning, match="plugin 'acme' of acme: row of") as caught:
        check(registry)
    (failure,) = next(record for record in registry.plugins() if record.name == "acme").failures
    assert failure.doing == f"row of {table!r} for {__name__}:Mine"
    assert problem in failure.problem
    assert len(caught) == 1
    assert registry[TABLES[table]].find(Mine) is None


@pytest.mark.parametrize("row", [raises, lambda *_: None, lambda *_: "S"])
def test_a_value_that_a_row_cannot_tell_stays_unknown(with_row, row):
    check(with_row("symbolic", row))


def test_tests_of_plugins_see_what_is_raised(with_row):
    with rows_may_raise(), pytest.raises(KeyError, match="nothing"):
        check(with_row("axes", raises))
