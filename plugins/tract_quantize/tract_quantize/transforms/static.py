"""Products of bytes: data rounded by ranges that were found before, weights by channel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from tract_core.data import DatumType
from tract_core.errors import TransformError
from tract_core.model.graph import InletId, OutletId
from tract_core.model.translate import empty_twin, translate
from tract_core.model.typed import TypedModel, TypedNode
from tract_core.ops.quantize import DequantizeLinear, QuantizeLinear
from tract_core.ops.wiring import wire_one
from tract_core.plugins.keys import Array
from tract_quantize.calibration.ranges import Calibration
from tract_quantize.naming import check_not_quantized, chosen
from tract_quantize.plan import Plan, bias_of, make_plan, products_of
from tract_quantize.registry import Bound, Product, role_of
from tract_quantize.steps import Steps, by_channel, least_scale, rounded_bias

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

        Raises TransformError for a model that is quantised already, or has no product, InputError for names that no
        product has, and for ranges of another model.
        """
        return _Rewriting(model, self.plan(model), self.bits).rewritten()

    def plan(self, model: TypedModel) -> Plan:
        """What `apply` is going to do. Raises as that does."""
        if self.bits not in BITS:
            raise TransformError(f"{self.name}: 'bits' is {self.bits}, wanted 7 or 8")
        check_not_quantized(model, self.name)
        found = self.ranges if isinstance(self.ranges, Calibration) else Calibration.load(self.ranges)
        names = [node.name for node, _ in products_of(model)]
        return make_plan(model, _StepsByName(model, found), chosen(self.exclude, names))


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


class _Rewriting:
    """The model while it is wired anew."""

    def __init__(self, model: TypedModel, plan: Plan, bits: int) -> None:
        self.model, self.plan, self.bits = model, plan, bits
        self.result = empty_twin(model)
        self._place: dict[OutletId, OutletId] = {}
        self._numbers: dict[OutletId, OutletId] = {}
        self._biases: dict[tuple[int, int], OutletId] = {}
        """Of nodes that add the bias of a quantised product, by the input that it is."""

    def rewritten(self) -> TypedModel:
        """The other model."""
        model = self.model
        for outlet in model.inputs:
            self._place[outlet] = self.result.add_source(model.outlet_name(outlet), model.outlet_fact(outlet))
        translate(model, self._place, self._wire)
        self.result.set_outputs([self._place[outlet] for outlet in model.outputs])
        for outlet in model.outputs:
            self.result.outlet_labels[self._place[outlet]] = model.outlet_name(outlet)
        self.result.prune()
        return self.result

    def _wire(self, node: TypedNode, inputs: list[OutletId]) -> Sequence[OutletId]:
        for slot, outlet in enumerate(node.inputs):
            if outlet in self.plan.points and self.plan.reads(InletId(node.id, slot), outlet):
                inputs[slot] = self._numbers_of(outlet)
        product = self.plan.products.get(node.id)
        if product is not None:
            inputs[product.weights] = self._weights(node, product)
        for slot in range(len(inputs)):
            inputs[slot] = self._biases.get((node.id, slot), inputs[slot])
        return self.result.wire_node(node.name, node.op, inputs)

    def _numbers_of(self, outlet: OutletId) -> OutletId:
        """A tensor that was rounded to bytes, as numbers."""
        if outlet not in self._numbers:
            steps, name = self.plan.points[outlet], self.model.outlet_name(outlet)
            before = self._place[self._before_bounds(outlet)]
            scale = self.result.add_const(f"{name}.scale", np.array(steps.scale, np.float32))
            zero = self.result.add_const(f"{name}.zero", np.array(steps.zero, np.uint8))
            quantize, numbers = QuantizeLinear(DatumType.U8), DequantizeLinear(DatumType.F32)
            stored = wire_one(self.result, f"{name}.quantized", quantize, before, scale, zero)
            self._numbers[outlet] = wire_one(self.result, f"{name}.dequantized", numbers, stored, scale, zero)
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

    def _weights(self, node: TypedNode, product: Product) -> OutletId:
        """The weights of a product as integers, and what makes numbers of them. Notes its bias, in whole steps."""
        array = self.model.constant(node.inputs[product.weights])
        assert array is not None  # the plan looked
        scale = self.plan.points[node.inputs[product.data]].scale
        bias = bias_of(self.model, node, product)
        floor = 0.0 if bias is None else _of_channels(least_scale(bias[2], scale), array.shape[product.channel])
        found = by_channel(array, product.channel, self.bits, floor)
        if bias is not None:
            reader, slot, values = bias
            steps = found.scale.astype(np.float64) * scale
            rank = self.model.outlet_fact(OutletId(node.id)).rank
            along = steps if values.ndim < 2 else steps.reshape([-1 if axis == product.output else 1 for axis in range(rank)])
            rounded = rounded_bias(values, along) if values.any() else values
            self._biases[reader.id, slot] = self.result.add_const(f"{node.name}.bias", rounded)
        name = self.model.outlet_name(node.inputs[product.weights])
        integers = self.result.add_const(f"{name}.integers", found.integers)
        parameters = [
            self.result.add_const(f"{name}.scales", found.scale),
            self.result.add_const(f"{name}.zeros", np.zeros(found.scale.shape, np.int8)),
        ]
        op = DequantizeLinear(DatumType.F32, product.channel)
        return wire_one(self.result, f"{name}.numbers", op, integers, *parameters)


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
