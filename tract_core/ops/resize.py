"""Resize axes by interpolation, with everything that ONNX's Resize can ask for.

The static form knows the factors or the sizes; the dynamic twin reads them from an input.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from enum import Enum
from fractions import Fraction
from math import lcm, prod
from typing import ClassVar, Final

import numpy as np

from tract_core.data import DatumType
from tract_core.dims import Dim, is_symbolic
from tract_core.errors import FactError, RunError
from tract_core.frozen import frozen
from tract_core.limits import check_run_time, check_tensor
from tract_core.model.axes import AxesMapping
from tract_core.model.conditions import may_be_at_most, may_be_of_shape, may_be_zero_only_with
from tract_core.model.fact import TypedFact
from tract_core.model.graph import OutletId
from tract_core.model.op import Op, TypedOp
from tract_core.model.typed import TypedModel
from tract_core.ops.expect import arity, axis_in, wide
from tract_core.ops.interpolate import Interpolator, blended_taps, nearest_tap
from tract_core.ops.rounding import cut_into
from tract_core.ops.wiring import fresh_size, wire_one
from tract_core.plugins.keys import AXES, COST, MEMORY, REFERENCE, Array
from tract_core.plugins.tables import Rows

ROWS = Rows()

Interval = tuple[float, float]
"""Where a region begins and ends on one axis, in parts of the axis: (0, 1) is all of it."""


class Coordinates(Enum):
    """Which place of the input an output position stands for. The formulas are those of ONNX's Resize."""

    HALF_PIXEL = "half_pixel"
    HALF_PIXEL_SYMMETRIC = "half_pixel_symmetric"
    PYTORCH_HALF_PIXEL = "pytorch_half_pixel"
    ALIGN_CORNERS = "align_corners"
    ASYMMETRIC = "asymmetric"
    TF_HALF_PIXEL_FOR_NN = "tf_half_pixel_for_nn"
    TF_CROP_AND_RESIZE = "tf_crop_and_resize"


class NearestMode(Enum):
    """Which neighbour is the nearest."""

    ROUND_PREFER_FLOOR = "round_prefer_floor"
    ROUND_PREFER_CEIL = "round_prefer_ceil"
    FLOOR = "floor"
    CEIL = "ceil"


class AspectPolicy(Enum):
    """What sizes mean: themselves, or bounds that the result, of unchanged proportions, stays within or fills."""

    STRETCH = "stretch"
    NOT_LARGER = "not_larger"
    NOT_SMALLER = "not_smaller"


@frozen
class Sampling:
    """How the elements of the output are computed.

    ``cubic_coeff_a``: of the cubic kernel. ``exclude_outside``: whether elements outside the input weigh nothing,
    instead of being those at its edge. ``antialias``: whether the kernel is stretched when an axis shrinks. ``roi``:
    per resized axis, the region that `Coordinates.TF_CROP_AND_RESIZE` resizes; what lies outside of the input is
    ``extrapolation_value``.
    """

    interpolator: Interpolator = Interpolator.NEAREST
    coordinates: Coordinates = Coordinates.HALF_PIXEL
    nearest_mode: NearestMode = NearestMode.ROUND_PREFER_FLOOR
    cubic_coeff_a: float = -0.75
    exclude_outside: bool = False
    antialias: bool = False
    extrapolation_value: float = 0.0
    roi: tuple[Interval, ...] = ()

    def region(self, axis: int) -> tuple[Fraction, Fraction]:
        """The region of the resized axis number ``axis``: all of it unless a crop was asked for."""
        start, end = self.roi[axis] if self.roi else (0.0, 1.0)
        return nearby_fraction(start), nearby_fraction(end)


@frozen
class AxisScale:
    """One resized axis, decided: the sizes, in elements, output elements per input element, and the region resized.

    ``scale``: these output elements per input element.
    """

    input: int
    output: int
    scale: Fraction
    region: tuple[Fraction, Fraction]


@frozen
class Scales:
    """Sizes given by factors, one per resized axis; the output has ``floor(size * factor)`` elements.

    This is so for a region too: ONNX's text counts its extent, ONNX's shape inference and all that computes do not.

    ``values``: these factors.
    """

    values: tuple[float, ...]

    def output(self, op: Op, sizes: Sequence[Dim]) -> tuple[Dim, ...]:
        """The output's sizes on the resized axes."""
        return tuple(map(scaled, sizes, self.values))

    def factors(self, sizes: Sequence[int], output: Sequence[int]) -> tuple[Fraction, ...]:
        """Output elements per input element: what was given, not what came out."""
        return tuple(map(nearby_fraction, self.values))


@frozen
class Sizes:
    """Sizes given as such, one per resized axis; ``policy`` says how exactly they are meant.

    ``values``: these sizes.
    """

    values: tuple[Dim, ...]
    policy: AspectPolicy = AspectPolicy.STRETCH

    def output(self, op: Op, sizes: Sequence[Dim]) -> tuple[Dim, ...]:
        """The output's sizes on the resized axes. Raises FactError when a policy meets symbolic sizes."""
        if self.policy is AspectPolicy.STRETCH:
            return self.values
        if any(is_symbolic(size) for size in (*sizes, *self.values)):
            raise FactError(
                f"{op.name}: {self.policy.value} needs sizes that are numbers, found {_text(sizes)} to "
                f"{_text(self.values)}",
                hint="use DynResize, whose output sizes are found when the model runs",
            )
        factor = self._common([int(size) for size in sizes])
        return tuple(int(factor * int(size) + Fraction(1, 2)) for size in sizes)

    def factors(self, sizes: Sequence[int], output: Sequence[int]) -> tuple[Fraction, ...]:
        """Output elements per input element; one number for all axes under a policy."""
        if self.policy is AspectPolicy.STRETCH:
            return tuple(Fraction(new, max(1, old)) for new, old in zip(output, sizes, strict=True))
        return (self._common(sizes),) * len(sizes)

    def _common(self, sizes: Sequence[int]) -> Fraction:
        wanted = (Fraction(int(new), max(1, old)) for new, old in zip(self.values, sizes, strict=True))
        return min(wanted) if self.policy is AspectPolicy.NOT_LARGER else max(wanted)


def _text(sizes: Sequence[Dim]) -> str:
    return f"[{','.join(map(str, sizes))}]"


def nearby_fraction(value: float) -> Fraction:
    """The number that was meant: a simple fraction that is ``value`` in f32, if there is one, else ``value`` in f32.

    A third is not a number of f32, and a third of 300 elements should be 100.
    """
    exact = Fraction(float(np.float32(value)))
    simple = exact.limit_denominator(4096)
    return simple if np.float32(float(simple)) == np.float32(value) else exact


_LARGEST: Final = float(1 << 62)
"""The largest factor: sizes are 64-bit integers."""


def scaled(size: Dim, factor: float) -> Dim:
    """``floor(size * factor)``"""
    ratio = nearby_fraction(factor)
    return size * ratio.numerator // ratio.denominator


@frozen
class Resize(TypedOp):
    """The input with ``axes`` resized as ``target`` says; all other axes stay."""

    axes: tuple[int, ...]
    target: Scales | Sizes
    sampling: Sampling = Sampling()

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """The input's type in the new sizes. Raises FactError when axes, target or type do not fit."""
        (x,) = arity(self, inputs, 1)
        _check(self, self.axes, self.sampling, x)
        if len(self.target.values) != len(self.axes):
            raise FactError(f"{self.name}: {len(self.target.values)} targets for the axes {list(self.axes)}")
        if isinstance(self.target, Scales) and not all(0 < value <= _LARGEST for value in self.target.values):
            wanted = f"positive ones are wanted, up to {_LARGEST:g}"
            raise FactError(f"{self.name}: factors {list(self.target.values)}; {wanted}")
        output = self.target.output(self, [x.shape[axis] for axis in self.axes])
        for axis, size in zip(self.axes, output, strict=True):
            if not may_be_at_most(0, size) or not may_be_zero_only_with(x.shape[axis], size):
                raise FactError(f"{self.name}: axis {axis} of {x} cannot be resized to {size}")
        return (x.with_shape(_replaced(x.shape, self.axes, output)),)


class TargetKind(Enum):
    """What the second input of `DynResize` holds."""

    SCALES = "scales"
    SIZES = "sizes"


@frozen
class DynResize(TypedOp):
    """Like `Resize`, the factors (f32) or sizes (i64) coming from a second input, one per resized axis.

    A third input, if there is one, holds the regions: the starts of all resized axes, then their ends. ``sizes``: the
    output's on the resized axes, mostly symbols that the run binds.
    """

    axes: tuple[int, ...]
    kind: TargetKind
    sizes: tuple[Dim, ...]
    sampling: Sampling = Sampling()
    policy: AspectPolicy = AspectPolicy.STRETCH

    announces: ClassVar[tuple[str, ...]] = ("sizes",)
    judges: ClassVar[tuple[int, ...]] = (1,)

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """The input's type in the sizes announced. Raises FactError when axes or inputs do not fit."""
        x, target, *roi = arity(self, inputs, 3 if len(inputs) == 3 else 2)
        _check(self, self.axes, self.sampling, x)
        for fact, count in [(target, len(self.axes)), *((one, 2 * len(self.axes)) for one in roi)]:
            if not may_be_of_shape(fact.shape, (count,)):
                raise FactError(f"{self.name}: {fact} was given for the axes {list(self.axes)}, [{count}] is wanted")
        if target.datum_type.is_float() != (self.kind is TargetKind.SCALES):
            raise FactError(f"{self.name}: {self.kind.value} cannot be {target}")
        return (x.with_shape(_replaced(x.shape, self.axes, self.sizes)),)

    def static(self, target: Sequence[Dim] | Array, roi: Array | None = None) -> Resize:
        """The static form, for known values of the second and third input."""
        sampling = self.sampling if roi is None else _with_roi(self.sampling, roi)
        if self.kind is TargetKind.SCALES:
            return Resize(self.axes, Scales(tuple(float(value) for value in target)), sampling)
        sizes = tuple(size if is_symbolic(size) else int(size) for size in target)
        return Resize(self.axes, Sizes(sizes, self.policy), sampling)


def _with_roi(sampling: Sampling, roi: Array) -> Sampling:
    starts, ends = roi.reshape(2, -1).tolist()
    return replace(sampling, roi=tuple(zip(starts, ends, strict=True)))


def _check(op: Op, axes: Sequence[int], sampling: Sampling, x: TypedFact) -> None:
    for axis in axes:
        axis_in(op, axis, x.rank)
    if len(set(axes)) != len(axes):
        raise FactError(f"{op.name}: an axis occurs twice in {list(axes)}")
    blends = sampling.interpolator is not Interpolator.NEAREST
    if blends and not (x.datum_type.is_float() or x.datum_type.is_integer()):
        raise FactError(f"{op.name}: {x} cannot be interpolated", hint="only the nearest element can be taken")
    if sampling.roi and len(sampling.roi) != len(axes):
        raise FactError(f"{op.name}: {len(sampling.roi)} regions for the axes {list(axes)}")
    if sampling.antialias and not blends:
        raise FactError(f"{op.name}: the nearest element cannot be antialiased", hint="use linear or cubic")


def _replaced(shape: Sequence[Dim], axes: Sequence[int], sizes: Sequence[Dim]) -> list[Dim]:
    result = list(shape)
    for axis, size in zip(axes, sizes, strict=True):
        result[axis] = size
    return result


def static_form(op: DynResize, facts: Sequence[TypedFact]) -> Resize | None:
    """The static form of ``op`` where the facts of its inputs tell the values; ``None`` where they do not."""
    x, target, *roi = facts
    values = target.constant if op.kind is TargetKind.SCALES else target.dims
    if values is None or (roi and roi[0].constant is None):
        return None
    symbolic = any(is_symbolic(dim) for dim in (*(x.shape[axis] for axis in op.axes), *(target.dims or ())))
    if symbolic and op.policy is not AspectPolicy.STRETCH and op.kind is TargetKind.SIZES:
        return None
    return op.static(values, roi[0].constant if roi else None)


def wire_resize(
    model: TypedModel, name: str, inputs: Sequence[OutletId], op: Callable[[tuple[Dim, ...]], DynResize]
) -> OutletId:
    """Wire a resize of ``inputs`` (data, target, perhaps regions) in its static form where the values are known.

    ``op`` makes the dynamic form from the output's sizes on the resized axes, which are new symbols if it is needed.
    """
    facts = [model.outlet_fact(outlet) for outlet in inputs]
    if any(fact.rank != 1 for fact in facts[1:]):
        raise FactError(f"sizes, factors and regions are lists, found {'; '.join(map(str, facts[1:]))}")
    dynamic = op(())
    static = static_form(dynamic, facts)
    if static is not None:
        return wire_one(model, name, static, inputs[0])
    return wire_one(model, name, op(tuple(fresh_size(model, f"{name}_{axis}") for axis in dynamic.axes)), *inputs)


@ROWS.row(REFERENCE, Resize)
def reference(op: Resize, x: Array) -> Array:
    """Axis by axis: for each output position, the elements read times their weights, added up."""
    sizes = [x.shape[axis] for axis in op.axes]
    output = [int(size) for size in op.target.output(op, sizes)]
    _check_sizes(op, sizes, output)
    if 0 in output:
        return np.zeros([int(size) for size in _replaced(x.shape, op.axes, output)], x.dtype)
    factors = op.target.factors(sizes, output)
    nearest = op.sampling.interpolator is Interpolator.NEAREST
    result = x if nearest else x.astype(_blending_type(x.dtype))
    outside = np.zeros((1,) * x.ndim, dtype=np.bool_)
    for index, axis in enumerate(op.axes):
        scale = AxisScale(sizes[index], output[index], factors[index], op.sampling.region(index))
        if keeps(op.sampling.coordinates, scale):
            continue
        check_tensor((*result.shape[:axis], output[index], *result.shape[axis + 1 :]), max(result.itemsize, 8))
        places = places_of(op.sampling.coordinates, scale)
        result = _resize_axis(op.sampling, scale, places, result, axis)
        if op.sampling.coordinates is Coordinates.TF_CROP_AND_RESIZE:
            missed = (places < 0) | (places > scale.input - 1)
            outside = outside | missed.reshape([-1 if a == axis else 1 for a in range(x.ndim)])
    if outside.any():
        result = np.where(outside, np.array(op.sampling.extrapolation_value).astype(result.dtype), result)
    return _rounded(result, x.dtype)


def _check_sizes(op: Resize, sizes: Sequence[int], output: Sequence[int]) -> None:
    if any(new < 0 or (new and not old) for new, old in zip(output, sizes, strict=True)):
        raise RunError(f"axes {list(op.axes)}, of sizes {sizes}, cannot be resized to {output}")


def keeps(coordinates: Coordinates, axis: AxisScale) -> bool:
    """Whether an axis stays as it is, even where the coordinates would move it by half an element."""
    return coordinates is not Coordinates.TF_CROP_AND_RESIZE and axis.scale == 1 and axis.input == axis.output


def _blending_type(dtype: np.dtype[np.generic]) -> np.dtype[np.generic]:
    return wide(dtype) if DatumType.from_numpy(dtype).is_float() else np.dtype(np.float64)


def _rounded(result: Array, dtype: np.dtype[np.generic]) -> Array:
    if result.dtype == dtype or DatumType.from_numpy(dtype).is_float():
        return result.astype(dtype, copy=False)
    return cut_into(np.rint(result), DatumType.from_numpy(dtype))


def _resize_axis(sampling: Sampling, scale: AxisScale, places: Array, x: Array, axis: int) -> Array:
    indices, weights = taps_of(sampling, scale, places)
    if sampling.interpolator is Interpolator.NEAREST:
        return np.take(x, indices[0], axis)
    shape = [-1 if a == axis else 1 for a in range(x.ndim)]

    def part(index: Array, weight: Array) -> Array:
        check_run_time()
        return np.take(x, index, axis) * weight.astype(x.dtype).reshape(shape)

    return sum(map(part, indices, weights), start=np.zeros((), x.dtype))


def taps_of(sampling: Sampling, scale: AxisScale, places: Array) -> tuple[Array, Array]:
    """The elements that are read, inside the axis, and their weights: two arrays of (elements, output positions)."""
    if sampling.interpolator is Interpolator.NEAREST:
        indices, weights = nearest_tap(places, _NEAREST[sampling.nearest_mode])
    else:
        stretch = max(1.0, float(1 / scale.scale)) if sampling.antialias and scale.scale > 0 else 1.0
        indices, weights = blended_taps(sampling.interpolator, places, sampling.cubic_coeff_a, stretch)
    if sampling.exclude_outside:
        weights = np.where((indices >= 0) & (indices < scale.input), weights, 0)
        weights = weights / weights.sum(axis=0)
    return np.clip(indices, 0, scale.input - 1), weights


_NEAREST: Mapping[NearestMode, Callable[[Array], Array]] = {
    NearestMode.ROUND_PREFER_FLOOR: lambda places: np.ceil(places - 0.5),
    NearestMode.ROUND_PREFER_CEIL: lambda places: np.floor(places + 0.5),
    NearestMode.FLOOR: np.floor,
    NearestMode.CEIL: np.ceil,
}


def places_of(coordinates: Coordinates, axis: AxisScale) -> Array:
    """For each output position, the place of the input that it stands for, in elements.

    Computed in fractions and rounded once, as neighbours are chosen by whether a place is a whole number or a half.
    """
    first, second = _PLACES[coordinates](np.array([Fraction(0), Fraction(1)], dtype=object), axis)
    step = second - first
    bottom = lcm(first.denominator, step.denominator)
    start, stride = int(first * bottom), int(step * bottom)
    if max(abs(start), abs(start + stride * axis.output), bottom) < _EXACT:
        return (np.arange(axis.output) * stride + start) / bottom  # of whole numbers that f64 holds exactly
    return np.array([float(first + step * position) for position in range(axis.output)])


_EXACT: Final = 1 << 53
"""Whole numbers up to here are exact in f64."""

_HALF: Final = Fraction(1, 2)


def _half_pixel(x: Array, axis: AxisScale) -> Array:
    return (x + _HALF) / axis.scale - _HALF


def _half_pixel_symmetric(x: Array, axis: AxisScale) -> Array:
    return (x + _HALF - Fraction(axis.output, 2)) / axis.scale + Fraction(axis.input, 2) - _HALF


def _pytorch_half_pixel(x: Array, axis: AxisScale) -> Array:
    return _half_pixel(x, axis) if axis.output > 1 else 0 * x


def _align_corners(x: Array, axis: AxisScale) -> Array:
    # As ONNX computes it, a length that a factor gives counts whole, with the part of an element that is cut off.
    length = axis.scale * axis.input
    return x * ((axis.input - 1) / (length - 1)) if length > 1 else 0 * x


def _asymmetric(x: Array, axis: AxisScale) -> Array:
    return x / axis.scale


def _tf_half_pixel_for_nn(x: Array, axis: AxisScale) -> Array:
    return (x + _HALF) / axis.scale


def _tf_crop_and_resize(x: Array, axis: AxisScale) -> Array:
    start, end = axis.region
    if axis.output <= 1:
        return 0 * x + (start + end) / 2 * (axis.input - 1)
    return (start + x * (end - start) / (axis.output - 1)) * (axis.input - 1)


_PLACES: Mapping[Coordinates, Callable[[Array, AxisScale], Array]] = {
    Coordinates.HALF_PIXEL: _half_pixel,
    Coordinates.HALF_PIXEL_SYMMETRIC: _half_pixel_symmetric,
    Coordinates.PYTORCH_HALF_PIXEL: _pytorch_half_pixel,
    Coordinates.ALIGN_CORNERS: _align_corners,
    Coordinates.ASYMMETRIC: _asymmetric,
    Coordinates.TF_HALF_PIXEL_FOR_NN: _tf_half_pixel_for_nn,
    Coordinates.TF_CROP_AND_RESIZE: _tf_crop_and_resize,
}


@ROWS.row(MEMORY, Resize)
def memory(op: Resize, made: int, x: Array) -> int:
    """Axis by axis what was there, what is read, its product and the sum; in the end what is rounded"""
    if op.sampling.interpolator is Interpolator.NEAREST:
        return 3 * max(made, x.nbytes)
    sizes = [x.shape[axis] for axis in op.axes]
    shape, most = list(x.shape), x.size
    for axis, size in zip(op.axes, op.target.output(op, sizes), strict=True):
        before, shape[axis] = prod(shape), int(size)
        most = max(most, before + 3 * prod(shape))
    return _blending_type(x.dtype).itemsize * max(most, 5 * prod(shape) if x.dtype.kind in "iu" else 0) + made


@ROWS.row(REFERENCE, DynResize)
def dyn_reference(op: DynResize, x: Array, target: Array, roi: Array | None = None) -> Array:
    """That of the static form, for the values at hand."""
    return reference(static_now(op, TypedFact.of(DatumType.from_numpy(x.dtype), x.shape), target, roi), x)


def static_now(op: DynResize, x: TypedFact, target: Array, roi: Array | None = None) -> Resize:
    """The static form for the values at hand, and an input of known sizes. Raises FactError or RunError for others."""
    static = op.static(target.astype(np.float32 if op.kind is TargetKind.SCALES else np.int64), roi)
    static.output_facts([x])
    sizes = [int(x.shape[axis]) for axis in op.axes]
    _check_sizes(static, sizes, [int(size) for size in static.target.output(static, sizes)])
    return static


@ROWS.row(MEMORY, DynResize)
def dyn_memory(op: DynResize, made: int, x: Array, target: Array, roi: Array | None = None) -> int:
    """That of the static form"""
    return memory(static_now(op, TypedFact.of(DatumType.from_numpy(x.dtype), x.shape), target, roi), made, x)


@ROWS.row(COST, Resize, DynResize)
def cost(op: Resize | DynResize, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> Mapping[str, Dim]:
    """One multiplication and addition per element read, axis by axis; antialiasing is not counted."""
    reach = op.sampling.interpolator.reach
    if op.sampling.interpolator is Interpolator.NEAREST:
        return {}
    total: Dim = 0
    shape = inputs[0].shape
    for axis in op.axes:
        shape = inputs[0].with_shape(_replaced(shape, [axis], [outputs[0].shape[axis]])).shape
        total = total + shape.volume * reach
    return {f"FMA({inputs[0].datum_type.storage.name})": total}


@ROWS.row(AXES, Resize, DynResize)
def axes(op: Resize | DynResize, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> AxesMapping:
    """Every axis that is not resized stays in place."""
    mapping = AxesMapping.disconnected([fact.rank for fact in inputs], [outputs[0].rank])
    source, target = mapping.inputs[0], mapping.outputs[0]
    kept = "".join(target[axis] if axis in op.axes else source[axis] for axis in range(len(source)))
    return mapping.with_output(0, kept)
