"""Run a model in floats over data, and count what its tensors hold."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from tract_core.errors import InputError, TractError
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel
from tract_core.plugins.keys import Array
from tract_quantize.calibration.histogram import Histogram
from tract_quantize.calibration.methods import method_for
from tract_quantize.naming import check_not_quantized
from tract_quantize.plan import watched
from tract_quantize.ranges import Calibration, Range
from tract_quantize.whole import with_whole_products

if TYPE_CHECKING:
    from tract_core.api.model import Model
    from tract_core.runtime.protocol import Plan
    from tract_quantize.samples import Samples

Prepare = Callable[[TypedModel], "Plan"]
Say = Callable[[str], None]

AT_ONCE: Final = 64
"""Tensors that one run gives: so many are in memory, and the data goes through the model once for each such group."""


def print_nothing(text: str) -> None:
    """Nobody waits."""


def calibrate(
    model: Model | TypedModel, samples: Samples, *, method: str = "minmax", percentile: float = 99.999
) -> Calibration:
    """The ranges of the tensors of a model that quantisation asks for, by running it on each sample.

    ``model``: stays as it is. ``method``: ``minmax``, ``percentile`` (of which ``percentile`` says how many in a
    hundred elements are kept), ``entropy`` or ``mse``. Raises InputError for samples that do not fit, and where a
    tensor holds infinities or what is no number, naming the node; and for a model without a product. Raises
    TransformError for a model that is quantised already.
    """
    found = counted(typed_of(model), samples)
    return ranges_of(found, len(samples), method, percentile)


def ranges_of(counts: Counts, samples: int, method: str, percentile: float = 99.999) -> Calibration:
    """The ranges that a method makes of what was counted. Raises InputError for a method that there is not."""
    ends_of = method_for(method, percentile)
    told = f"percentile {percentile:g}" if method == "percentile" else method
    ranges = {name: Range(*_ends(one, ends_of)) for name, one in counts.items()}
    return Calibration(ranges, told, samples)


Counts = dict[str, Histogram]
"""What was counted, by the names of tensors."""


def _ends(counts: Histogram, ends_of: Callable[[Histogram], tuple[float, float]]) -> tuple[float, float]:
    if not counts.limit:
        return 0.0, 0.0  # nothing but zeros, or nothing at all
    low, high = ends_of(counts)
    return min(low, high), max(low, high)


def counted(model: TypedModel, samples: Samples, prepare: Prepare | None = None, say: Say = print_nothing) -> Counts:
    """What the tensors that a plan asks for held. Raises as `calibrate` does."""
    check_not_quantized(model, "quantize")
    model = with_whole_products(model)
    outlets = watched(model)
    if not outlets:
        raise InputError("no node multiplies by weights in f32: there is nothing to quantise")
    if not len(samples):
        raise InputError("there is no sample to calibrate with")
    counts: Counts = {model.outlet_name(outlet): Histogram() for outlet in outlets}
    groups = [outlets[first : first + AT_ONCE] for first in range(0, len(outlets), AT_ONCE)]
    for number, group in enumerate(groups):
        plan = (prepare or prepared)(watching(model, group))
        for turn, arrays in enumerate(turns_of(plan, samples)):
            say(f"calibrating, sample {turn + 1} of {len(samples)}, part {number + 1} of {len(groups)}")
            for outlet, array in zip(group, arrays, strict=True):
                _check_finite(model, outlet, array, samples.where(turn))
                counts[model.outlet_name(outlet)].add(array)
    return counts


def watching(model: TypedModel, outlets: Sequence[OutletId]) -> TypedModel:
    """The model with other outputs."""
    copy = model.clone()
    copy.set_outputs(outlets)
    copy.prune()
    return copy


def turns_of(plan: Plan, samples: Samples) -> Iterator[Sequence[Array]]:
    """The results of each sample, each in a state of its own. Errors name the sample."""
    for turn, inputs in enumerate(samples):
        try:
            yield plan.spawn().run([np.ascontiguousarray(one) for one in inputs])
        except TractError as error:
            raise error.at(samples.where(turn)) from None


def prepared(model: TypedModel) -> Plan:
    """The model on the runtime that is the default one."""
    from tract_core.api.runtime import runtime_for_name

    return runtime_for_name("default").backend.prepare(model)


def typed_of(model: Model | TypedModel) -> TypedModel:
    """The graph of a model, as users or this package hold it."""
    return model if isinstance(model, TypedModel) else model.typed


def _check_finite(model: TypedModel, outlet: OutletId, array: Array, where: str) -> None:
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        found = "what is no number" if np.isnan(array).any() else "infinities"
        name = model.outlet_name(outlet)
        raise InputError(
            f"tensor {name!r} holds {found} with this data, which has no range",
            where=where,
            hint="look at the data; 'tract MODEL run' with it shows where that begins",
        )
