"""Operators that native code computes as several others: the steps of a small model that says the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from tract_core.errors import TractError
from tract_core.model.declutter import declutter
from tract_core.model.fact import TypedFact
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel
from tract_cpu.draft.lowering import Site
from tract_cpu.lower.bodies import BodyTarget, add_steps, done, inlined

WireFn = Callable[[TypedModel, Sequence[OutletId]], OutletId]
"""``(model, inputs) -> result``: wires the operators. Quantised tensors are there as the integers that are stored."""


def written_out(site: Site, wire: WireFn) -> str | None:
    """Compute a node by other operators where all of these are native. What they do to constants is done now."""
    lowering, views = site.lowering, site.known_inputs()
    model = TypedModel(lowering.model.symbols, lowering.model.registry)
    given = [view for slot, view in enumerate(views) if site.array(slot) is None]
    try:
        model.set_outputs([wire(model, [_input(site, model, slot) for slot in range(len(views))])])
        declutter(model)
    except TractError as error:
        return f"written out as other operators: {error.problem}"

    def lower() -> None:
        first = len(lowering.steps)
        (result,) = site.results()
        inputs = dict(zip(model.inputs, given, strict=True))
        add_steps(lowering, model, inputs, [BodyTarget(model.outputs[0], result)], "written out as other operators")
        lowering.steps[first:] = [replace(step, nodes=()) for step in lowering.steps[first:]]
        done(site, "kernels", first, views, [])

    return inlined(site, lower)


def _input(site: Site, model: TypedModel, slot: int) -> OutletId:
    array, fact = site.array(slot), site.facts()[slot]
    if array is not None:
        return model.add_const(f"input{slot}", array)
    return model.add_source(f"input{slot}", TypedFact.of(fact.datum_type.storage, tuple(fact.shape)))
