"""Loops that end when a condition says so, as steps that are done again and again.

What iterations hand on lies where the loop gives it at the end. An iteration writes it elsewhere, as it may still read
what was handed to it, and it is copied when the iteration is done. Values of which only those of the last iteration
count are written to one place by all of them; a loop that makes no iteration is refused then.
"""

from __future__ import annotations

from tract_llvm.language.types import BOOL, ElementType
from tract_llvm.program.views import View

from tract_core.dims import Dim, product, symbols_of
from tract_core.errors import FactError
from tract_core.ops.loop import MAX_ITERATIONS, Loop, never_ends
from tract_core.plugins.tables import Rows
from tract_cpu.draft.lowering import Site
from tract_cpu.kernels.control import CountPlan, EndPlan, NumberPlan
from tract_cpu.lower.bodies import (
    BodyTarget,
    Unfit,
    add_body,
    add_conditions,
    begin_loop,
    body_with,
    done,
    inlined,
    repeat,
    supposing,
)
from tract_cpu.program.arguments import Given, arguments
from tract_cpu.program.places import Move, TensorPart
from tract_cpu.program.program import STATUS, ArgumentPlace, NativeStep
from tract_cpu.table import MOVES

ROWS = Rows()

_NO_LIMIT = (1 << 63) - 1


@ROWS.row(MOVES, Loop)
def lower_loop(op: Loop, site: Site) -> str | None:
    """A loop of native steps, where all nodes of the body are native, and no size changes."""
    site.known_inputs()  # those that are only there in another form are brought into this one before the loop
    return inlined(site, lambda: _Loop(op, site).lower())


class _Loop:
    """A loop that is about to become steps."""

    def __init__(self, op: Loop, site: Site) -> None:
        """Raises Unfit where the host has to run the loop."""
        self.op, self.site, self.lowering = op, site, site.lowering
        self.inputs = site.known_inputs()
        try:
            self.body = supposing(self.lowering, body_with(op.body, op.sizes(site.facts())))
        except FactError as error:
            raise Unfit(f"sizes do not fit: {error.problem}") from None
        given, outlets = self.lowering.given, [*self.body.inputs, *self.body.outputs]
        if any(not self.body.outlet_fact(outlet).shape.symbols() <= given for outlet in outlets):
            raise Unfit("sizes change from one iteration to the next")
        self.collected = len(self.body.outputs) > 1 + op.carried + op.last
        if self.collected and not never_ends(op.body):
            raise Unfit("a condition may end it before there is all that is collected")
        self.number = len(self.lowering.draft.loops)
        self.outputs = site.results()
        pairs = zip(self.inputs[2 : 2 + op.carried], self.outputs[: op.carried], strict=True)
        if any(before.shape != after.shape for before, after in pairs):
            raise Unfit("sizes change from one iteration to the next")

    def lower(self) -> None:
        """Add the steps. Raises Unfit."""
        lowering, op, body = self.lowering, self.op, self.body
        start = len(lowering.steps)
        carried = self.outputs[: op.carried]
        for value, output in zip(self.inputs[2 : 2 + op.carried], carried, strict=True):
            lowering.copy(value, output)
        limit, begins = self.inputs[:2]
        first = len(lowering.steps) + 1
        most = MAX_ITERATIONS if never_ends(op.body) else _NO_LIMIT
        wanted: dict[str, Given] = {"wanted": self.outputs[op.carried + op.last].shape[0]} if self.collected else {}
        plan, loop = CountPlan(limit.element, min(op.last, 1), most, self.collected), ArgumentPlace(first, 0)
        given = arguments(plan, status=STATUS, limit=limit.address, begins=begins.address, loop=loop, **wanted)
        lowering.steps.append(NativeStep(plan, given, 1, (), ()))
        begin_loop(lowering)
        condition, number = self._room(BOOL, ()), self._number(first)
        later = [self._room(view.element, view.shape) for view in carried]
        targets = [] if never_ends(op.body) else [BodyTarget(body.outputs[0], condition)]
        last = self.outputs[op.carried : op.carried + op.last]
        targets += [BodyTarget(outlet, view) for outlet, view in zip(body.outputs[1:], [*later, *last], strict=False)]
        held = op.carried + op.last
        collected = zip(body.outputs[1 + held :], self.outputs[held:], strict=True)
        targets += [BodyTarget(outlet, self._slice(whole)) for outlet, whole in collected]
        sources = dict(zip(body.inputs, [number, *carried, *self.inputs[2 + op.carried :]], strict=True))
        runs = add_conditions(self.site, body, sources)
        add_body(self.site, 0, body, sources, targets)
        for value, output in zip(later, carried, strict=True):
            lowering.copy(value, output)
        if not never_ends(op.body):
            end = EndPlan()
            lowering.steps.append(NativeStep(end, arguments(end, goes_on=condition.address, loop=loop), 1, (), ()))
        known = symbols_of(op.count) <= lowering.given
        repeat(lowering, self.number, op.count if known else 1)
        done(self.site, "loop", start, self.inputs, [(body, runs)])

    def _number(self, first: int) -> View:
        """Where the number of the iteration is."""
        fact = self.body.outlet_fact(self.body.inputs[0])
        element = self.lowering.element(fact.datum_type.storage)
        assert element is not None  # an integer
        number = self._room(element, tuple(fact.shape))
        plan = NumberPlan(element)
        given = arguments(plan, loop=ArgumentPlace(first, 0), target=number.address)
        self.lowering.steps.append(NativeStep(plan, given, 1, (), (number.storage,)))
        return number

    def _slice(self, whole: View) -> View:
        """The place of what an iteration gives, in what all of them give."""
        size = product(whole.shape[1:])
        move = Move(self.number, size * whole.element.bytes)
        part = self.lowering.draft.part(TensorPart(whole.storage, 0, whole.element.bytes, move))
        return View.contiguous(part, whole.element, whole.shape[1:])

    def _room(self, element: ElementType, shape: tuple[Dim, ...]) -> View:
        return View.contiguous(self.lowering.room(product(shape) * element.bytes), element, shape)
