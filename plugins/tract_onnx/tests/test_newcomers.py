"""Rows that other distributions bring for the table of this one."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from tract_onnx import plugin as own
from tract_onnx.frontend import OnnxLoader
from tract_onnx.registry import onnx_op

from tract_core.errors import ModelError
from tract_core.model.graph import OutletId
from tract_core.ops.binary import Add
from tract_core.ops.elementwise import Neg
from tract_core.plugins import PluginWarning, Registry, Rows
from tract_core.runtime.plan import TypedSimplePlan
from tract_core.testing.toys import toy_plugin, toy_rows

Newcomer = Callable[[Rows], Registry]


@pytest.fixture
def newcomer() -> Newcomer:
    """``newcomer(rows)``: a registry in which the plugin ``aaa``, asked before that of this distribution, has rows."""

    def make(rows: Rows) -> Registry:
        plugin = toy_plugin(rows={"onnx": toy_rows("aaa_rows", rows)})
        return Registry({"aaa": plugin, "onnx": own}, discover=False)

    return make


def run(registry: Registry, op: str, x: list[float], *, domain: str = "", version: int = 14) -> list[float]:
    """``op(x)``, in a model of that version of the standard."""
    value = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [len(x)]) for name in "xy"]
    domains = [helper.make_opsetid("", version), *([helper.make_opsetid(domain, 1)] if domain else [])]
    node = helper.make_node(op, ["x"], ["y"], name="mine", domain=domain)
    graph = helper.make_graph([node], "one", value[:1], value[1:])
    model = onnx.ModelProto.SerializeToString(helper.make_model(graph, opset_imports=domains))
    typed = OnnxLoader(registry=registry).load_bytes(model).into_typed()
    (y,) = TypedSimplePlan(typed).run([np.array(x, np.float32)])
    return y.tolist()


@pytest.mark.parametrize("since", [1, 14, 29])
def test_an_operator_of_the_standard_stays_what_it_is(newcomer, since):
    """Also where the newcomer brings a version that the standard does not have."""
    rows = Rows()

    @onnx_op(rows, "Relu", since=since)
    def relu(node, wire):
        return wire.input(0)

    @onnx_op(rows, "Twice", domain="org.example")
    def twice(node, wire):
        return wire.binary(Add(), wire.input(0), wire.input(0))

    registry = newcomer(rows)
    problem = (
        f"rows in aaa_rows: table 'onnx': both onnx and aaa have a row for ai.onnx/Relu/{since}; that of onnx is used"
    )
    with pytest.warns(PluginWarning, match=problem):
        assert run(registry, "Relu", [-1, 2]) == [0, 2]
    assert run(registry, "Relu", [-1, 2], version=22) == [0, 2]
    assert run(registry, "Twice", [-1, 2], domain="org.example") == [-2, 4]
    assert run(registry, "Abs", [-1, 2]) == [1, 2]


WRONG = {
    "None": (lambda _: None, "returned None, as if it had no return, wanted an outlet, or one per output"),
    "a fact": (lambda wire: wire.fact(wire.input(0)), "returned a TypedFact, wanted an outlet"),
    "an operator": (lambda _: Neg(), "returned a Neg, wanted an outlet"),
    "a text": (lambda _: "y", "returned a str, wanted an outlet"),
    "a list of facts": (lambda wire: [wire.fact(wire.input(0))], "returned a list with a TypedFact, wanted an outlet"),
    "a pair of None and a number": (lambda _: (None, 3), "returned a tuple with a int, wanted an outlet"),
    "an outlet of nowhere": (lambda _: OutletId(999), "returned an outlet of another model, wanted"),
}


@pytest.mark.parametrize(("answer", "problem"), WRONG.values(), ids=WRONG)
def test_what_an_importer_returns_is_told_as_what_it_is(newcomer, answer, problem):
    rows = Rows()

    @onnx_op(rows, "Twice", domain="org.example")
    def twice(node, wire):
        return answer(wire)

    twice.__module__ = "aaa_rows"
    with pytest.raises(ModelError, match=f"the function that wires it {problem}") as caught:
        run(newcomer(rows), "Twice", [1], domain="org.example")
    assert caught.value.where == "node 'mine' (org.example.Twice)"
    assert caught.value.hint == "this is a defect of module aaa_rows: twice in aaa_rows"


def test_an_outlet_and_a_list_of_one_are_the_same(newcomer):
    rows = Rows()
    onnx_op(rows, "One", domain="org.example")(lambda _, wire: wire.op(Neg(), wire.input(0)))
    onnx_op(rows, "List", domain="org.example")(lambda _, wire: [wire.op(Neg(), wire.input(0))])
    registry = newcomer(rows)
    assert run(registry, "One", [1], domain="org.example") == run(registry, "List", [1], domain="org.example") == [-1]


def test_an_importer_that_raises_is_told_with_its_home(newcomer):
    rows = Rows()

    @onnx_op(rows, "Twice", domain="org.example")
    def twice(node):
        return None

    with pytest.raises(
        ModelError, match=r"it cannot be wired: TypeError: .*takes 1 positional argument but 2"
    ) as caught:
        run(newcomer(rows), "Twice", [1], domain="org.example")
    assert "this is a defect of module " in str(caught.value.hint)
    assert str(caught.value.hint).endswith("; --debug shows the traceback")


def test_the_domain_may_be_written_as_files_write_it():
    rows = Rows()
    onnx_op(rows, "Mine", domain="")(print)
    assert [row.key for row in rows] == ["ai.onnx/Mine/1"]
