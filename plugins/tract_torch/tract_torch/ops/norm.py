"""Normalisations."""

from __future__ import annotations

import numpy as np

from tract_core.errors import Unsupported
from tract_core.model.graph import OutletId
from tract_core.ops.node_wiring import NodeWiring
from tract_core.ops.norm import wire_batch_norm, wire_group_norm, wire_instance_norm, wire_layer_norm
from tract_core.plugins.tables import Rows
from tract_torch.call import Call
from tract_torch.registry import aten

ROWS = Rows()


@aten(ROWS, "aten.layer_norm")
def layer_norm(call: Call, wire: NodeWiring) -> OutletId:
    """Standardised over the last axes, times a scale, plus a bias"""
    x = call.tensor("input")
    axis = wire.rank(x) - len(call.dims("normalized_shape"))
    scale, bias = call.optional("weight"), call.optional("bias")
    return wire.through(wire_layer_norm, x, axis, eps=float(call.value("eps")), scale=scale, bias=bias)


@aten(ROWS, "aten.group_norm")
def group_norm(call: Call, wire: NodeWiring) -> OutletId:
    """Each group of channels of each item standardised, times a scale, plus a bias"""
    x, eps = call.tensor("input"), float(call.value("eps"))
    scale, bias = _per_channel(call, wire, x)
    return wire.through(wire_group_norm, x, int(call.value("num_groups")), scale=scale, bias=bias, eps=eps)


@aten(ROWS, "aten.batch_norm", "aten._native_batch_norm_legit_no_training")
def batch_norm(call: Call, wire: NodeWiring) -> OutletId:
    """Each channel standardised by what is known of it, times a scale, plus a bias"""
    if "no_training" not in call.name and call.value("training"):
        raise Unsupported("batch normalisation by the batch itself", hint="call eval() on the module")
    x = call.tensor("input")
    scale, bias = _per_channel(call, wire, x)
    mean, variance = call.tensor("running_mean"), call.tensor("running_var")
    eps = float(call.value("eps"))
    return wire.through(wire_batch_norm, x, scale=scale, bias=bias, mean=mean, variance=variance, eps=eps)


@aten(ROWS, "aten.instance_norm")
def instance_norm(call: Call, wire: NodeWiring) -> OutletId:
    """Each channel of each item standardised, times a scale, plus a bias"""
    if not call.value("use_input_stats"):
        raise Unsupported("instance normalisation by what is known of channels", hint="that is what batch_norm does")
    x = call.tensor("input")
    scale, bias = _per_channel(call, wire, x)
    return wire.through(wire_instance_norm, x, scale=scale, bias=bias, eps=float(call.value("eps")))


def _per_channel(call: Call, wire: NodeWiring, x: OutletId) -> tuple[OutletId, OutletId]:
    """Scale and bias of each channel; 1 and 0 where there are none."""
    scale, bias = call.optional("weight"), call.optional("bias")
    channels, kind = wire.shape(x)[1], wire.dtype(x).numpy
    if scale is None:
        scale = wire.broadcast(wire.const(np.ones(1, kind)), (channels,))
    if bias is None:
        bias = wire.broadcast(wire.const(np.zeros(1, kind)), (channels,))
    return scale, bias
