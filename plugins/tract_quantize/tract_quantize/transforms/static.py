"""Products of bytes: data rounded by ranges that were found before, weights by channel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from tract_core.data import DatumType
from tract_core.errors import InputError, TransformError
from tract_core.model.graph import InletId, OutletId
from tract_core.model.op import TypedOp
from tract_core.model.translate import empty_twin, translate
from tract_core.model.typed import TypedModel, TypedNode
from tract_core.ops.binary import Mul
from tract_core.ops.quantize import DequantizeLinear
from tract_core.ops.wiring import wire_one
from tract_core.plugins.keys import Array
from tract_quantize.naming import check_not_quantized, chosen
from tract_quantize.plan import QuantizationPlan, bias_of, make_plan, products_of
from tract_quantize.ranges import Calibration
from tract_quantize.registry import Bound, Function, Product, role_of
from tract_quantize.steps import GATE, Steps, Weights, by_channel, least_scale, rounded_bias
from tract_quantize.transforms.rounding import end, wire_bytes, wire_sources, wire_weights
from tract_quantize.whole import with_whole_products

BITS = (7, 8)


@dataclass(frozen=True, slots=True)
class QuantizeStatic:
    """Compute products on bytes, in the ranges that a calibration found for this very model."""

    name: ClassVar[str] = "quantize_static"
    ranges: Calibration | str = field(
        metadata={"doc": "the ranges, as calibrate() gives them, or a file with them, as --save-ranges writes it"}
    )
    exclude: Sequence[str] = field(default=(), metadata={"doc": "names of nodes that stay in floats, with * and ?"})
    bits: int = field(default=8, metadata={"doc": "of weights: 8, or 7, which sums of pairs on old processors hold"})

    def apply(self, model: TypedModel) -> TypedModel:
        """The model with products of bytes, and floats wherever they would be no gain.

        Raises TransformError for a model that is quantised already, or has no product, for names that no product has,
        for a file that holds no ranges, and for those of another model.
        """
        return _Rewriting(self.rounding(model)).rewritten()

    def rounding(self, model: TypedModel) -> StaticRounding:
        """What `apply` is going to round. Raises as that does."""
        if self.bits not in BITS:
            raise TransformError(f"{self.name}: 'bits' is {self.bits}, wanted 7 or 8")
        check_not_quantized(model, self.name)
        model = with_whole_products(model)
        found = self.ranges if isinstance(self.ranges, Calibration) else _ranges_of(self.ranges)
        names = [node.name for node, _ in products_of(model)]
        plan = make_plan(model, _StepsByName(model, found), chosen(self.exclude, names))
        return StaticRounding(model, plan, self.bits)


def _ranges_of(path: str) -> Calibration:
    """Those of a file. Raises TransformError for what holds none."""
    try:
        return Calibration.load(path)
    except InputError as error:
        raise TransformError(error.problem, where=error.where, hint=error.hint) from None


class _StepsByName:
    """The steps of tensors, by their names."""

    def __init__(self, model: TypedModel, found: Calibration) -> None:
        self.model, self.found = model, found

    def __call__(self, outlet: OutletId) -> Steps | None:
        name = self.model.outlet_name(outlet)
        if name not in self.found.ranges:
            raise TransformError(
                f"there is no range of tensor {name!r}",
                where=QuantizeStatic.name,
                hint="ranges are those of one model, with the same transforms: calibrate this one",
            )
        return Steps.of(self.found.ranges[name])


class StaticRounding:
    """What a plan rounds."""

    def __init__(self, model: TypedModel, plan: QuantizationPlan, bits: int) -> None:
        self._model, self.plan, self._bits = model, plan, bits
        self._found: dict[int, Weights] = {}
        """Of nodes, by their ids, what was computed once."""

    @property
    def model(self) -> TypedModel:
        """The model that the plan is for."""
        return self._model

    @property
    def products(self) -> Mapping[int, Product]:
        """Those of the plan."""
        return self.plan.products

    @property
    def left(self) -> Mapping[str, str]:
        """What stays in floats, by name, with the reason."""
        return self.plan.left

    def weights(self, result: TypedModel, node: TypedNode, product: Product) -> OutletId:
        """As integers of 7 or 8 bits, with a scale for each channel."""
        name = self._model.outlet_name(node.inputs[product.weights])
        return wire_weights(
            result, name, self.integers(node, product), DequantizeLinear(DatumType.F32, product.channel)
        )

    def integers(self, node: TypedNode, product: Product) -> Weights:
        """The weights of a product, in steps in which its bias fits 32 bits."""
        if node.id not in self._found:
            self._found[node.id] = self._integers(node, product)
        return self._found[node.id]

    def _integers(self, node: TypedNode, product: Product) -> Weights:
        array = self._model.constant(node.inputs[product.weights])
        assert array is not None  # the plan looked
        bias, scale = bias_of(self._model, node, product), self.plan.points[node.inputs[product.data]].scale
        floor = 0.0 if bias is None else _of_channels(least_scale(bias[2], scale), array.shape[product.channel])
        return by_channel(array, product.channel, self._bits, floor)

    def data(self, result: TypedModel, outlet: OutletId, placed: OutletId) -> OutletId:
        """As bytes."""
        return wire_bytes(result, self._model.outlet_name(outlet), placed, self.plan.points[outlet])


class _Rewriting:
    """The model while it is wired anew."""

    def __init__(self, rounding: StaticRounding) -> None:
        self.model, self.plan, self.rounding = rounding.model, rounding.plan, rounding
        self.result = empty_twin(self.model)
        self._place: dict[OutletId, OutletId] = {}
        self._numbers: dict[OutletId, OutletId] = {}
        self._made: dict[tuple[OutletId, int, bytes], OutletId] = {}
        self._biases: dict[tuple[int, int], OutletId] = {}
        """Of nodes that add the bias of a quantised product, by the input that it is."""

    def rewritten(self) -> TypedModel:
        """The other model."""
        self._place.update(wire_sources(self.model, self.result))
        translate(self.model, self._place, self._wire)
        return end(self.model, self.result, self._place)

    def _wire(self, node: TypedNode, inputs: list[OutletId]) -> Sequence[OutletId]:
        for slot, outlet in enumerate(node.inputs):
            if outlet in self.plan.points and self.plan.reads(InletId(node.id, slot), outlet):
                inputs[slot] = self._numbers_of(outlet)
        product = self.plan.products.get(node.id)
        if product is not None:
            inputs[product.weights] = self._weights(node, product)
            self._note_bias(node, product)
        for slot in range(len(inputs)):
            inputs[slot] = self._biases.get((node.id, slot), inputs[slot])
        role = role_of(self.model, node)
        if isinstance(role, Function) and role.gate is not None and OutletId(node.id) in self.plan.native:
            return [self._gated(node.name, role.gate, inputs[0])]
        return self.result.wire_node(node.name, node.op, inputs)

    def _gated(self, name: str, gate: TypedOp, x: OutletId) -> OutletId:
        """A number times a function of it, which is rounded to bytes."""
        open_by = wire_one(self.result, f"{name}.gate", gate, x)
        return wire_one(self.result, name, Mul(), x, wire_bytes(self.result, f"{name}.gate", open_by, GATE))

    def _weights(self, node: TypedNode, product: Product) -> OutletId:
        """The weights of a product; those that several share, with the same scales, once."""
        outlet = node.inputs[product.weights]
        key = outlet, product.channel, self.rounding.integers(node, product).scale.tobytes()
        if key not in self._made:
            self._made[key] = self.rounding.weights(self.result, node, product)
        return self._made[key]

    def _numbers_of(self, outlet: OutletId) -> OutletId:
        """A tensor that was rounded to bytes, as numbers."""
        if outlet not in self._numbers:
            before = self._place[self._before_bounds(outlet)]
            self._numbers[outlet] = self.rounding.data(self.result, outlet, before)
        return self._numbers[outlet]

    def _before_bounds(self, outlet: OutletId) -> OutletId:
        """The tensor in front of bounds beyond which there is no byte, so that rounding bounds it all the same."""
        steps = self.plan.points[outlet]
        while outlet in self.plan.native or self.model.single_reader(outlet) is not None:
            node = self.model.nodes[outlet.node]
            role = role_of(self.model, node)
            if not isinstance(role, Bound) or not _is_saturated(self.model, node, role, steps):
                break
            outlet = node.inputs[role.data]
        return outlet

    def _note_bias(self, node: TypedNode, product: Product) -> None:
        """Let the bias of a product be in whole steps of its sums, which engines want."""
        found = bias_of(self.model, node, product)
        if found is None or not found[2].any():
            return
        reader, slot, values = found
        steps = self.rounding.integers(node, product).scale.astype(np.float64)
        steps *= self.plan.points[node.inputs[product.data]].scale
        rank = self.model.outlet_fact(OutletId(node.id)).rank
        axes = [-1 if axis == product.output else 1 for axis in range(rank)]
        rounded = rounded_bias(values, steps if values.ndim < 2 else steps.reshape(axes))
        self._biases[reader.id, slot] = self.result.add_const(f"{node.name}.bias", rounded)


def _of_channels(floor: Array, channels: int) -> Array:
    """One number for each channel, of one for all, or one in the axes of the result."""
    return np.broadcast_to(floor.reshape(-1), (channels,))


def _is_saturated(model: TypedModel, node: TypedNode, role: Bound, steps: Steps) -> bool:
    """Whether the number that bounds elements is the smallest or the largest byte."""
    bound = model.constant(node.inputs[1 - role.data])
    if bound is None:
        return False
    byte = steps.byte_of(float(bound.reshape(-1)[0]))
    return byte == (0 if node.op.name == "Max" else 255)
