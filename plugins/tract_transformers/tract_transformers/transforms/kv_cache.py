"""Caches of keys and values inside the state of a model, or as inputs and outputs of it: from one to the other.

Names, and the order in which inputs and outputs come, are those of the tract engines.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from tract_core.dims import linear_in_one_symbol
from tract_core.frozen import frozen
from tract_core.model.graph import OutletId
from tract_core.model.source import TypedSource
from tract_core.model.typed import TypedModel
from tract_core.model.typed_graph import TypedNode
from tract_core.ops.concat import TypedConcat
from tract_core.runtime.streams import add_whole
from tract_transformers.ops.kv_cache import DynKvCache


@frozen
class UnfoldKvCache:
    """Have the caller keep what caches hold: an input with the past and an output with the present for each cache."""

    name: ClassVar[str] = "unfold_kv_cache"

    def apply(self, model: TypedModel) -> TypedModel:
        """The model with an input ``KEY`` and an output ``KEY_concat`` for each cache, by the keys of the caches.

        They come behind the inputs and outputs that there are, in the order in which the caches run. In the first turn
        the past has no positions. Caches in few bits, in pages or inside of attention stay, as do those in bodies.
        """
        result = model.clone()
        nodes = [result.nodes[place] for place in result.eval_order()]
        caches = [node for node in nodes if isinstance(node.op, DynKvCache)]
        for node in caches:
            _unfold(result, node)
        add_whole(result, len(caches), len(caches))
        result.check_consistency()
        return result


def _unfold(model: TypedModel, node: TypedNode) -> None:
    assert isinstance(node.op, DynKvCache)
    op, (new,) = node.op, node.inputs
    model.rename(node.id, f"{op.key}_concat")
    fact = model.outlet_fact(new)
    sizes = [op.past if axis == op.axis else size for axis, size in enumerate(fact.shape)]
    source = model.add_source(model.unique_name(op.key), fact.with_shape(sizes))
    model.rewire(node, TypedConcat(op.axis), [source, new])
    model.outputs.append(OutletId(node.id))


@frozen
class DetectKvCache:
    """Keep in the state what the caller keeps: an input that only has new positions put behind it, and comes out so.

    That is a cache where the input's size along the axis is a symbol that the new positions do not have, and something
    else in the model reads the result. A fresh state begins with no positions.
    """

    name: ClassVar[str] = "detect_kv_cache"

    def apply(self, model: TypedModel) -> TypedModel:
        """The model with caches, whose keys are the names of their inputs, without those inputs and outputs."""
        result = model.clone()
        for source in model.inputs:
            node = _extended(result, source)
            if node is not None:
                _fold(result, source, node)
        result.prune()
        result.check_consistency()
        return result


def _extended(model: TypedModel, source: OutletId) -> TypedNode | None:
    """The node that puts new positions behind an input that is a past, and gives an output; ``None`` for others."""
    node = model.single_reader(source)
    if node is None or not isinstance(node.op, TypedConcat) or len(node.inputs) != 2 or node.inputs[0] != source:
        return None
    whole = OutletId(node.id)
    if not isinstance(model.nodes[source.node].op, TypedSource) or whole not in model.outputs:
        return None
    if not model.outlet(whole).successors and model.outputs.count(whole) == 1:
        return None
    axis, past, new = node.op.axis, model.outlet_fact(source).shape, model.outlet_fact(node.inputs[1]).shape
    linear = linear_in_one_symbol(past[axis])
    if linear is None or linear[0] in new.symbols():
        return None
    return node if all(a == b for at, (a, b) in enumerate(zip(past, new, strict=True)) if at != axis) else None


def _fold(model: TypedModel, source: OutletId, node: TypedNode) -> None:
    assert isinstance(node.op, TypedConcat)
    axis, whole = node.op.axis, OutletId(node.id)
    past = model.outlet_fact(source).shape[axis]
    last = len(model.outputs) - 1 - model.outputs[::-1].index(whole)
    model.rewire(node, DynKvCache(model.outlet_name(source), axis, past), [node.inputs[1]])
    _forget(model, "input", model.inputs.index(source))
    _forget(model, "output", last)
    del model.inputs[model.inputs.index(source)], model.outputs[last]


def _forget(model: TypedModel, what: str, place: int) -> None:
    """Take what a model in pulses says of an input or an output out of its properties."""
    names = (f"pulse.{what}_axes", f"pulse.{what}_lengths", *(["pulse.delay"] if what == "output" else []))
    for name in names:
        if name in model.properties:
            model.properties[name] = np.delete(model.properties[name], place)
