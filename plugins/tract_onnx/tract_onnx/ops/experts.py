"""Mixtures of experts, whose rows choose among several small networks (domain ``com.microsoft``)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import inf
from typing import Final

import numpy as np

from tract_core.data import Constant
from tract_core.dims import Dim, is_symbolic
from tract_core.errors import CorruptModel, FactError, Unsupported
from tract_core.frontend.precision import rounded_once
from tract_core.frozen import frozen
from tract_core.ops.elementwise import GeluApproximate
from tract_core.ops.gather import Gather, GatherElements
from tract_core.ops.indexed_matmul import IndexedMatMul
from tract_core.ops.quantize import DequantizeLinear
from tract_core.ops.softmax import Softmax
from tract_core.ops.wired import Wired
from tract_core.ops.wiring_dyn import wire_topk
from tract_core.plugins.tables import Rows
from tract_onnx.node import OnnxNode
from tract_onnx.ops.matmul_nbits import TYPES, unpacked
from tract_onnx.registry import MICROSOFT_DOMAIN, onnx_op
from tract_onnx.wiring import Wiring

ROWS = Rows()

SWIGLU: Final = "swiglu"

_ACTIVATIONS: Final[Mapping[str, Callable[[Wired], Wired]]] = {
    "relu": lambda x: x.maximum(0),
    "gelu": lambda x: x.op(GeluApproximate()),
    "silu": lambda x: x * x.sigmoid(),
    "identity": lambda x: x,
}

_ELSEWHERE: Final = ("fp4", "nvfp4", "fp8", "wfp4afp8")


@frozen
class Layer:
    """One layer of all experts. ``weights``: [experts, columns, depth]; ``bias``: [experts, columns], if any."""

    weights: Wired
    bias: Wired | None

    def of(self, rows: Wired, chosen: Wired) -> Wired:
        """Rows [t, 1 or k, depth] times the matrices that are chosen, [t, k]: [t, k, columns]."""
        if self.bias is not None:
            self.bias.wire.require_shape("bias", self.bias.outlet, self.weights.shape[:2])
        found = rows.op(IndexedMatMul(), self.weights, chosen)
        return found if self.bias is None else found + self.bias.op(Gather(0), chosen)


@onnx_op(ROWS, "MoE", domain=MICROSOFT_DOMAIN)
@rounded_once()
def experts(node: OnnxNode, wire: Wiring) -> Wired:
    """The sum of what the likeliest experts give for a row, each times its share"""
    layers = [_layer(wire.optional_tensor(slot), wire.optional_tensor(slot + 1)) for slot in (2, 4, 6)]
    return _mixture(node, wire, layers, None)


def _layer(weights: Wired | None, bias: Wired | None) -> Layer | None:
    return None if weights is None else Layer(weights, bias)


@onnx_op(ROWS, "QMoE", domain=MICROSOFT_DOMAIN)
@rounded_once()
def quantised_experts(node: OnnxNode, wire: Wiring) -> Wired:
    """As MoE, of weights that are integers of a few bits, centred and scaled by column, or block by block

    ``router_weights`` are the shares, where they are given. Rows are never rounded, also where ``accuracy_level``
    allows it.
    """
    kind = node.choice("quant_type", ("int", *_ELSEWHERE), "int")
    if kind != "int" or any(wire.optional_input(slot) is not None for slot in range(15, 21)):
        raise Unsupported(f"QMoE of weights of the type {kind!r} with global scales, or scales of activations")
    layers = [_quantised_layer(node, wire, number) for number in (1, 2, 3)]
    return _mixture(node, wire, layers, wire.optional_tensor(14))


def _quantised_layer(node: OnnxNode, wire: Wiring, number: int) -> Layer | None:
    slot = 3 * number - 1
    given, scale, zero = wire.optional_input(slot), wire.optional_tensor(slot + 1), wire.optional_input(10 + number)
    if given is None:
        return None
    if scale is None:
        raise CorruptModel(f"QMoE has weights of layer {number}, and no scales")
    bits = node.integer(f"fc{number}_expert_weight_bits", node.integer("expert_weight_bits", 4))
    if bits not in TYPES:
        raise Unsupported(f"QMoE with {bits} bits, known are {', '.join(map(str, TYPES))}")
    packed, kind = wire.known(given, "the weights of QMoE"), TYPES[bits]
    if packed.ndim != 3 or node.flag("weights_prepacked"):
        raise CorruptModel(f"QMoE has weights of {packed.ndim} axes, wanted experts, columns and bytes of a row")
    count, columns, depth = packed.shape[0], packed.shape[1], packed.shape[2] * 8 // bits
    block = node.integer("block_size", 0)
    block = block if block > 0 else max(depth, 1)
    blocks = -(-depth // block)
    quants = unpacked(packed, bits, count * columns, depth).reshape(count, columns, depth)
    middle = np.full((count, columns, blocks), 1 << (bits - 1))
    if zero is not None:
        rows, each = (count * columns, blocks) if scale.rank == 3 else (count, columns)
        spread = -(-each * bits // 8) * 8 // bits
        found = unpacked(wire.known(zero, "the zero points of QMoE"), bits, rows, spread)
        middle = found[:, :each].reshape(middle.shape)
    q, centre = (wire.const(Constant(one.astype(kind.numpy))) for one in (quants, middle))
    scale = scale.reshape((count, columns, blocks))
    weights = wire.op(DequantizeLinear(scale.dtype.storage, 2, block), q, scale.outlet, centre)
    return Layer(Wired(wire, weights), wire.optional_tensor(slot + 2))


def _mixture(node: OnnxNode, wire: Wiring, layers: list[Layer | None], shares: Wired | None) -> Wired:
    first, second, third = layers
    x, router = wire.tensor(0), wire.tensor(1)
    if first is None or second is None or x.rank not in (2, 3) or router.rank != 2:
        raise FactError(
            f"{node.op_type} wants rows of 2 or 3 axes and a matrix of scores, found {x.fact}, {router.fact}"
        )
    if node.flag("use_sparse_mixer"):
        raise Unsupported(f"{node.op_type} with a sparse mixer")
    rows = x.reshape((router.shape[0], x.shape[-1])) if x.rank == 3 else x
    weights, chosen = _chosen(node, wire, router, shares)
    inner = rows[:, None]
    hidden = _activated(node, first.of(inner, chosen), None if third is None else third.of(inner, chosen))
    found = (second.of(hidden, chosen) * weights[..., None].cast(hidden.dtype)).sum([1])[:, 0]
    return found.reshape(x.shape)


def _chosen(node: OnnxNode, wire: Wiring, router: Wired, shares: Wired | None) -> tuple[Wired, Wired]:
    """The shares of the likeliest experts of each row, and which these are: [t, k]."""
    count: Dim = router.shape[1]
    k = node.integer("k", 1)
    if k < 1 or (not is_symbolic(count) and k > int(count)):
        raise node.misfit("k", f"is {k}", f"a number from 1 to {count}")
    found = wire.through(wire_topk, router.outlet, wire.const(np.array(k, np.int64)), 1, largest=True)
    chosen = Wired(wire, found[1])
    shares = router.op(Softmax((1,))) if shares is None else shares
    weights = shares.op(GatherElements(1), chosen)
    return (weights / weights.sum([1]) if node.flag("normalize_routing_weights") else weights), chosen


def _activated(node: OnnxNode, x: Wired, beside: Wired | None) -> Wired:
    name = node.choice("activation_type", (*_ACTIVATIONS, SWIGLU), "relu")
    if name != SWIGLU:
        found = _ACTIVATIONS[name](x)
        return found if beside is None else found * beside
    gate, linear = _halves(node, x, beside)
    limit = node.number("swiglu_limit", inf)
    if limit != inf:
        gate, linear = gate.minimum(limit), linear.maximum(-limit).minimum(limit)
    alpha, beta = node.number("activation_alpha", 1.0), node.number("activation_beta", 0.0)
    return gate * (gate * alpha).sigmoid() * (linear + beta)


def _halves(node: OnnxNode, x: Wired, beside: Wired | None) -> tuple[Wired, Wired]:
    """The gate and what goes through it: beside each other, number by number, or in two tensors."""
    fusion, size = node.integer("swiglu_fusion", 0), x.shape[-1]
    if fusion == 0 and beside is not None:
        return x, beside
    if fusion not in (1, 2) or beside is not None or is_symbolic(size) or int(size) % 2:
        raise CorruptModel(f"swiglu_fusion is {fusion} for rows of {size} numbers, which are no gates")
    half = int(size) // 2
    if fusion == 2:
        return x[..., :half], x[..., half:]
    pairs = x.reshape((*x.shape[:-1], half, 2))
    return pairs[..., 0], pairs[..., 1]
