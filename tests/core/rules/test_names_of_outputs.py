"""The outputs of a model keep their names, whatever rewrites make of the nodes that compute them."""

from __future__ import annotations

import pytest

from tract_core.model.graph import OutletId
from tract_core.model.identity import Identity
from tract_core.model.typed import TypedModel
from tract_core.ops.topk import Topk
from tract_core.testing.declutter import interface, sources


def _labelled(slot: int) -> TypedModel:
    """An output that an Identity makes of an output of another node, which has a name of its own."""
    model, (x,) = sources("B,4,f32")
    k = model.add_const("k", 2)
    values, indices = model.wire_node("top", Topk(1, True, 2), [x, k])
    for outlet, name in ((values, "inner_values"), (indices, "inner_indices")):
        model.set_label(outlet, name)
    found = model.wire_node("named", Identity(), [(values, indices)[slot]])
    model.set_outputs(found)
    return model


@pytest.mark.parametrize("slot", [0, 1])
def test_the_name_of_an_output_wins(slot: int) -> None:
    model = _labelled(slot)
    before = interface(model)
    model.declutter()
    assert interface(model) == before
    assert model.outlet_name(model.outputs[0]) == "named"
    assert not any(isinstance(node.op, Identity) for node in model.live_nodes())


def test_both_names_stay_where_both_are_outputs() -> None:
    model = _labelled(1)
    model.set_outputs([*model.outputs, OutletId(model.node_by_name("top").id, 1)])
    before = interface(model)
    assert interface(model.declutter()) == before
