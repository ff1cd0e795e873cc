"""What is taken back leaves no trace."""

from __future__ import annotations

from tract_core.data import DatumType
from tract_core.dims import SymbolScope
from tract_core.model.fact import TypedFact
from tract_core.model.typed import TypedModel
from tract_core.ops.elementwise import Exp, Neg
from tract_core.ops.wiring import wire_one


def test_nodes_of_a_graph() -> None:
    model = TypedModel()
    x = model.add_source("x", TypedFact.of(DatumType.F32, (3,)))
    y = wire_one(model, "y", Neg(), x)
    count = len(model.nodes)
    for _ in range(2):
        z = wire_one(model, "z", Exp(), wire_one(model, "y", Neg(), y))
        assert [node.name for node in model.nodes] == ["x", "y", "y.1", "z"]
        model.set_label(z, "result")
        model.set_outputs([z])
        model.rewind(count)
        assert [node.name for node in model.nodes] == ["x", "y"]
        assert (model.inputs, model.outputs, model.outlet_labels) == ([x], [], {})
        assert not model.outlet(y).successors
        model.check_edges()


def test_symbols_and_assertions_of_a_scope() -> None:
    scope = SymbolScope(["B", "S"])
    scope.add_assertion("S>=2")
    first = scope.new_symbol("size")
    mark = scope.mark()
    before = repr(scope)
    for _ in range(2):
        assert [str(scope.new_symbol(prefix)) for prefix in ("size", "size", "other")] == ["size_1", "size_2", "other"]
        scope.add_assertion("B==S")
        assert scope.same(scope.parse("B"), scope.parse("S"))
        scope.rewind(mark)
        assert repr(scope) == before
        assert scope.same(scope.parse("B"), scope.parse("S")) is None
        assert scope.less_or_equal(2, scope.parse("S"))
    assert first == scope.parse("size")
