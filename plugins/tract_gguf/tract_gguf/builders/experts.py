"""Mixtures of experts: units of which each position asks a few that it chooses, and perhaps one that all ask."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tract_core.errors import Unsupported
from tract_core.model.op import TypedOp
from tract_core.ops.gather import Gather
from tract_core.ops.indexed_matmul import IndexedMatMul
from tract_core.ops.node_wiring import NodeWiring
from tract_core.ops.softmax import Softmax
from tract_core.ops.wired import Wired
from tract_core.ops.wiring_dyn import wire_topk
from tract_gguf.builders.layer import Layer

Gated = Callable[[Wired, Wired], Wired]
"""What becomes of gates and of what they let through, ``(gate, up)``."""

_SIGMOID: Final = 2
"""Of ``expert_gating_func``: experts are chosen by the sigmoid of each instead of by a softmax over all."""


def unit(layer: Layer, x: Wired, function: TypedOp, *, normed: bool) -> Wired:
    """The experts of a layer, as of `mixture`, gated by a function; the gated unit of one that has none."""
    if not layer.has("ffn_gate_inp"):
        return layer.gated_unit(x, function)
    return mixture(layer, x, lambda gate, up: gate.op(function) * up, normed=normed)


def mixture(layer: Layer, x: Wired, gated: Gated, *, normed: bool, in_pairs: bool = False) -> Wired:
    """What the chosen experts make of ``x`` [B,S,width], each with its share.

    Each expert is ``gated(x gate, x up) down``. Shares are the softmax over all experts. ``normed``: whether those of
    the chosen ones are divided by their sum, where the file does not say. ``in_pairs``: whether a matrix for both has
    gates and what they let through in turns. Raises Unsupported for other shares.
    """
    net = layer.network
    shares, which = chosen(layer, x, normed=net.flag("expert_weights_norm", default=normed))
    rows = x.reshape((net.batch, net.count, 1, net.width))
    made = product(layer, gated(*_factors(layer, rows, which, in_pairs=in_pairs)), which, "ffn_down_exps", net.width)
    mixed = (made * shares[..., None]).sum((2,)).squeeze([2])
    return mixed + shared(layer, x, gated) if layer.has("ffn_up_shexp") else mixed


def chosen(layer: Layer, x: Wired, *, normed: bool) -> tuple[Wired, Wired]:
    """The shares of the chosen experts, and their numbers, [B,S,E] each. ``normed``: whether shares sum up to 1."""
    net = layer.network
    if net.integer("expert_gating_func", 1) == _SIGMOID:
        raise Unsupported("experts are chosen by sigmoids, which is not built")
    count = net.positive("expert_count")
    used = net.positive("expert_used_count", most=count)
    scores = layer.linear(x, "ffn_gate_inp", count).op(Softmax((2,)))
    wire = NodeWiring(net.model, layer.name("experts"))
    values, places = wire_topk(net.model, wire.name, scores.outlet, wire.const(used), 2, largest=True)
    shares = Wired(wire, values)
    return (shares / shares.sum((2,)) if normed else shares), Wired(wire, places)


def product(layer: Layer, x: Wired, which: Wired, name: str, rows: int) -> Wired:
    """``x`` [B,S,E or 1,columns] times the matrix [rows,columns] of each chosen expert, plus its bias: [B,S,E,rows]."""
    weights, columns = layer.network.weights, x.shape[-1]
    assert isinstance(columns, int)  # sizes of networks are numbers
    count = layer.network.positive("expert_count")
    matrices = weights.matrices(f"{layer.name(name)}.weight", (count, rows, columns))
    wire = NodeWiring(layer.network.model, layer.name(name))
    found = Wired(wire, wire.op(IndexedMatMul(), x.outlet, matrices, which.outlet))
    bias = f"{layer.name(name)}.bias"
    if bias not in weights:
        return found
    return found + found.with_outlet(weights.matrix(bias, count, rows)).op(Gather(0), which)


def shared(layer: Layer, x: Wired, gated: Gated) -> Wired:
    """What the expert makes of ``x`` that all positions ask, times its own share where there are weights for that."""
    size = layer.network.weights.sizes(f"{layer.name('ffn_up_shexp')}.weight")[0]
    gate, up = (layer.linear(x, f"ffn_{part}_shexp", size) for part in ("gate", "up"))
    found = layer.linear(gated(gate, up), "ffn_down_shexp", layer.network.width)
    if not layer.has("ffn_gate_inp_shexp"):
        return found
    return found * layer.linear(x, "ffn_gate_inp_shexp", 1).sigmoid()


def _factors(layer: Layer, rows: Wired, which: Wired, *, in_pairs: bool) -> tuple[Wired, Wired]:
    """What becomes the gates, and what they let through, [B,S,E,units]; by one product where that is one matrix."""
    weights = layer.network.weights
    if layer.has("ffn_gate_up_exps"):
        size = weights.rows_of_each(f"{layer.name('ffn_gate_up_exps')}.weight")
        both = product(layer, rows, which, "ffn_gate_up_exps", size)
        if in_pairs:
            pairs = both.reshape((*both.shape[:-1], size // 2, 2))
            return pairs[..., 0], pairs[..., 1]
        return both[..., : size // 2], both[..., size // 2 :]
    size = weights.rows_of_each(f"{layer.name('ffn_gate_exps')}.weight")
    return product(layer, rows, which, "ffn_gate_exps", size), product(layer, rows, which, "ffn_up_exps", size)
