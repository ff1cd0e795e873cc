"""A model for one agent at a time: any whose inputs have an axis of agents, also where it has to stay of size 1."""

from __future__ import annotations

from tract_core.dims import Dim, is_symbolic
from tract_core.frozen import frozen
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel
from tract_inferers.models.axes import places
from tract_inferers.models.policy import element_type
from tract_inferers.models.symbolic import AnyModel, both, for_one
from tract_inferers.slots import Shape, Slot


@frozen
class Single:
    """A model for one agent. ``inputs``, ``outputs``: what they are for it; the shapes are those that the model has.

    ``input_shapes``, ``output_shapes``: those.
    """

    typed: TypedModel
    inputs: tuple[Slot, ...]
    outputs: tuple[Slot, ...]
    input_shapes: tuple[Shape, ...]
    output_shapes: tuple[Shape, ...]


def single_of(model: AnyModel) -> Single:
    """The model for one agent; ``model`` itself stays as it is.

    The axis of agents of an input is that of a symbolic size, or else the first of size 1; an output that has no such
    axis is that of the agent as a whole. Raises Unsupported for an input without one.
    """
    typed = both(model)[1]
    axes = [place.axes[0] for place in places(typed)]
    one = for_one(typed)
    inputs = [_slot(one, outlet, axis) for outlet, axis in zip(one.inputs, axes, strict=True)]
    kept = [_axis(typed.outlet_fact(outlet).shape) for outlet in typed.outputs]
    outputs = [_slot(one, outlet, axis) for outlet, axis in zip(one.outputs, kept, strict=True)]
    shapes = [[one.outlet_fact(outlet).shape.concrete for outlet in side] for side in (one.inputs, one.outputs)]
    return Single(one, tuple(inputs), tuple(outputs), tuple(shapes[0]), tuple(shapes[1]))


def _axis(shape: tuple[Dim, ...]) -> int | None:
    symbolic = [axis for axis, size in enumerate(shape) if is_symbolic(size)]
    ones = [axis for axis, size in enumerate(shape) if size == 1]
    return next(iter(symbolic + ones), None)


def _slot(model: TypedModel, outlet: OutletId, axis: int | None) -> Slot:
    fact, name = model.outlet_fact(outlet), model.outlet_name(outlet)
    shape = fact.shape.concrete
    if axis is not None and shape[axis] == 1:
        shape = shape[:axis] + shape[axis + 1 :]
    return Slot(name, shape, element_type(fact, repr(name)))
