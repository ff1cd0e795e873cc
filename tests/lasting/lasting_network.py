"""The network whose archives and states are kept: what it is made of, and what it gives, by NumPy in float64."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

import tract_core as tract
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.typed import TypedModel
from tract_core.ops.binary import Add, Mul
from tract_core.ops.concat import TypedConcat
from tract_core.ops.conv import Conv
from tract_core.ops.cumsum import CumSum
from tract_core.ops.elementwise import Tanh
from tract_core.ops.pool_spec import DataFormat, PoolSpec, Valid

Array = np.ndarray[Any, Any]

PULSE: Final = 4
SIGNAL: Final = np.sin(np.arange(24, dtype=np.float64)).reshape(1, 2, 12)
WEIGHTS: Final = (np.arange(8, dtype=np.float64).reshape(2, 2, 2) - 3) / 8
SCALE: Final = np.array([[[0.5], [-1.5]]])


def network() -> TypedModel:
    """1,2,S to 1,4,S-1: a convolution of kernel 2 and its running sums, one above the other."""
    model = TypedModel()
    x = model.add_source("x", parse_typed_fact("1,2,S,f32", model.symbols))
    kernel = model.add_const("kernel", WEIGHTS.astype(np.float32))
    bias = model.add_const("bias", np.zeros(2, np.float32))
    spec = PoolSpec(DataFormat.NCHW, (2,), Valid())
    found = model.wire_node("conv", Conv(spec), [x, kernel, bias])
    found = model.wire_node("scaled", Mul(), [*found, model.add_const("scale", SCALE.astype(np.float32))])
    found = model.wire_node("tanh", Tanh(), found)
    sums = model.wire_node("sums", CumSum(2), found)
    shifted = model.wire_node("shifted", Add(), [*sums, *found])
    model.set_outputs(model.wire_node("y", TypedConcat(1), [*found, *shifted]))
    model.properties["purpose"] = np.array("to be read by every later version", object)
    return model


def expected(signal: Array) -> Array:
    """What the network gives for a signal of shape 1,2,S."""
    pairs = np.stack([signal[:, :, :-1], signal[:, :, 1:]], axis=-1)  # batch, channel, position, place in the kernel
    found = np.tanh(np.einsum("bcsk,ock->bos", pairs, WEIGHTS) * SCALE)
    return np.concatenate([found, np.cumsum(found, 2) + found], 1)


def pulsed() -> tract.Model:
    """The network over pulses, whose output is one position late."""
    model = tract.Model.from_typed(network())
    model.transform(tract.Pulse(PULSE, symbol="S"))
    return model
