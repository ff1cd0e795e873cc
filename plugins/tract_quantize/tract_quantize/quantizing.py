"""From a model and data to a quantised model, and what is known of it: errors, losses, what stays in floats."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from time import perf_counter
from typing import TYPE_CHECKING, Final

import numpy as np

from tract_core.errors import InputError
from tract_core.frozen import frozen
from tract_core.model.typed import TypedModel
from tract_core.runtime.protocol import Plan
from tract_core.transforms.apply import apply_transform
from tract_quantize.calibration.calibrating import (
    Counts,
    Prepare,
    Say,
    counted,
    prepared,
    print_nothing,
    ranges_of,
    typed_of,
)
from tract_quantize.errors import OutputError, errors_of, worst
from tract_quantize.losses import NodeLoss, in_order, losses_of
from tract_quantize.naming import exact
from tract_quantize.ranges import Calibration
from tract_quantize.samples import Samples
from tract_quantize.transforms.static import QuantizeStatic
from tract_quantize.transforms.weights import QuantizeWeights

if TYPE_CHECKING:
    from tract_core.api.model import Model

COSTS: Final = "it costs too much"

LONG_ENOUGH: Final = 0.3
"""Seconds of runs that a time is the median of."""

Transform = QuantizeStatic | QuantizeWeights


@frozen
class Settings:
    """How to quantise.

    ``method``: of calibration, as `calibrate` has it, and ``percentile`` of it. ``bits``: of weights beside bytes of
    data, 7 or 8. ``weights_only``: the bits of weights, 8 or 4, where data stays in floats, in blocks of ``block``.
    ``exclude``: names of nodes that stay in floats, with ``*`` and ``?``. ``max_error``: the error of an output that
    is allowed. ``by_output``: whether the loss of a node is what it alone, quantised, costs the outputs: one model
    for each node. It always is where there is a ``max_error``.
    """

    method: str = "minmax"
    percentile: float = 99.999
    bits: int = 8
    weights_only: int | None = None
    block: int = 32
    exclude: Sequence[str] = ()
    max_error: float | None = None
    by_output: bool = False

    @property
    def at_outputs(self) -> bool:
        """Whether losses are measured at the outputs."""
        return self.by_output or self.max_error is not None


DEFAULTS: Final = Settings()


@frozen
class Quantized:
    """What came out.

    ``model``: the quantised one; ``transform``: what made it. ``errors``: of its outputs. ``losses``: of its
    products, those that lose most first, also of those that stay in floats for that. ``left``: what stays in floats,
    with the reason.
    """

    model: TypedModel
    transform: Transform
    errors: Sequence[OutputError]
    losses: Sequence[NodeLoss]
    left: Mapping[str, str]

    @property
    def error(self) -> float:
        """The largest of all outputs."""
        return worst(self.errors)


@frozen
class Trial:
    """One way to quantise: its ``name``, the ``error`` and the ``seconds`` of a run.

    ``quantized``: how many products it quantises.
    """

    name: str
    error: float
    seconds: float
    quantized: int


def quantize(model: Model | TypedModel, samples: Samples, settings: Settings = DEFAULTS) -> Quantized:
    """Calibrate a model, quantise it, and measure what that costs; ``model`` stays as it is.

    Raises InputError and TransformError as `calibrate` and the transforms do, and InputError where ``max_error`` is not
    met unless every product stays in floats.
    """
    return Quantizing(typed_of(model), samples).quantized(settings)


class Quantizing:
    """A model with data, of which what was found out once is kept."""

    def __init__(
        self, model: TypedModel, samples: Samples, prepare: Prepare = prepared, say: Say = print_nothing
    ) -> None:
        self.model, self.samples, self._prepare, self._say = model, samples, prepare, say

    @cached_property
    def _plan(self) -> Plan:
        """The model in floats, ready to run."""
        return self._prepare(self.model)

    @cached_property
    def _counts(self) -> Counts:
        return counted(self.model, self.samples, self._prepare, self._say)

    def calibration(self, settings: Settings) -> Calibration:
        """The ranges, by the method of the settings."""
        return ranges_of(self._counts, len(self.samples), settings.method, settings.percentile)

    def transform(self, settings: Settings) -> Transform:
        """What quantises as the settings say."""
        exclude = tuple(settings.exclude)
        if settings.weights_only is not None:
            return QuantizeWeights(settings.weights_only, settings.block, exclude=exclude)
        return QuantizeStatic(self.calibration(settings), exclude, settings.bits)

    def losses(self, transform: Transform) -> list[NodeLoss]:
        """What each product loses by itself."""
        return losses_of(transform.rounding(self.model), self.samples, self._prepare, self._say)

    def costs(self, transform: Transform) -> list[NodeLoss]:
        """What each product costs the outputs where it alone is quantised: the error, with a model for each."""
        rounding = transform.rounding(self.model)
        nodes = [rounding.model.nodes[node_id] for node_id in rounding.products]
        found: list[NodeLoss] = []
        for place, node in enumerate(nodes):
            self._say(f"measuring what nodes cost, {place + 1} of {len(nodes)}")
            others = [exact(one.name) for one in nodes if one is not node]
            alone = apply_transform(self.model, replace(transform, exclude=(*transform.exclude, *others)))
            error = worst(errors_of(self.model, (self._plan, self._prepare(alone)), self.samples))
            weights = rounding.model.constant(node.inputs[rounding.products[node.id].weights])
            found.append(NodeLoss(node.name, node.op.name, 0 if weights is None else weights.size, error))
        return in_order(found)

    def quantized(self, settings: Settings) -> Quantized:
        """Quantise, and leave in floats what loses most, until the error is one that is allowed."""
        transform = self.transform(settings)
        losses = self.costs(transform) if settings.at_outputs else self.losses(transform)
        if not losses:
            raise InputError(
                "no product is left to quantise", hint="exclude fewer nodes, or look at what stays in floats"
            )
        found = self._of(transform, losses)
        if settings.max_error is None or found.error <= settings.max_error:
            return found
        return self._within(settings.max_error, transform, losses)

    def _of(self, transform: Transform, losses: Sequence[NodeLoss], floats: Sequence[str] = ()) -> Quantized:
        """What the transform makes. ``floats``: names of nodes that stay in floats for the sake of the error."""
        self._say("quantising")
        excluded = (*transform.exclude, *map(exact, floats))
        made = apply_transform(self.model, replace(transform, exclude=excluded))
        errors = errors_of(self.model, (self._plan, self._prepare(made)), self.samples, self._say)
        left = {**transform.rounding(self.model).left, **dict.fromkeys(floats, COSTS)}
        return Quantized(made, replace(transform, exclude=excluded), errors, losses, left)

    def _within(self, allowed: float, transform: Transform, losses: Sequence[NodeLoss]) -> Quantized:
        """With the fewest nodes in floats, of those that lose most, that keep the error below what is allowed."""
        tried: dict[int, Quantized] = {}

        def fits(count: int) -> bool:
            self._say(f"trying with {count} of {len(losses)} nodes in floats")
            tried[count] = self._of(transform, losses, [one.name for one in losses[:count]])
            return tried[count].error <= allowed

        count = fewest(fits, len(losses) - 1)
        if count is None:
            raise InputError(
                f"the error is more than {allowed:g} with any product quantised",
                hint="allow more, take another method of calibration, or look at the nodes that lose most",
            )
        return tried[count]

    def trial(self, name: str, transform: Transform | None) -> Trial:
        """One way to quantise, or none: its error, and how long a run of the first sample takes."""
        self._say(f"trying {name}")
        if transform is None:
            return Trial(name, 0.0, self._seconds(self._plan), 0)
        plan = self._prepare(apply_transform(self.model, transform))
        errors = errors_of(self.model, (self._plan, plan), self.samples, self._say)
        return Trial(name, worst(errors), self._seconds(plan), len(transform.rounding(self.model).products))

    def _seconds(self, plan: Plan) -> float:
        """The median of runs of the first sample."""
        inputs = [np.ascontiguousarray(one) for one in next(iter(self.samples))]
        state, times, begin = plan.spawn(), list[float](), perf_counter()
        state.run(inputs)
        while perf_counter() - begin < LONG_ENOUGH or len(times) < 3:
            state.reset()
            start = perf_counter()
            state.run(inputs)
            times.append(perf_counter() - start)
        return float(np.median(times))


def fewest(fits: Callable[[int], bool], most: int) -> int | None:
    """The smallest count from 1 to ``most`` that fits, where larger ones fit as well; ``None`` where none does."""
    count, below = 1, 0
    while count <= most and not fits(count):
        below, count = count, count * 2
    if count > most:
        count = most
        if below >= most or not fits(count):
            return None
    while count - below > 1:
        middle = (below + count) // 2
        if fits(middle):
            count = middle
        else:
            below = middle
    return count
