"""Quantised tensors as constants of models."""

from __future__ import annotations

from math import prod

from tract_core.data.blocks import Blocks
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel
from tract_core.ops.blocks import UnpackBlocks
from tract_core.ops.wiring import wire_reshape
from tract_torch.tensors import datum_type
from tract_torch.weights.qtensor import QTensor


def wire_quantised(model: TypedModel, name: str, tensor: QTensor) -> OutletId:
    """The floats of a quantised tensor: unpacked from blocks where it has such, else a constant."""
    stored = tensor.stored()
    if not isinstance(stored, Blocks):
        return model.add_const(name, stored)
    form, shape = stored.format, stored.shape
    rows, columns = shape[:-1], shape[-1]
    if columns % form.length:
        rows, columns = shape[:1], prod(shape[1:])
    content = stored.content.reshape(*rows, columns // form.length, form.size)
    packed = model.add_const(f"{name}.blocks", content)
    (found,) = model.wire_node(name, UnpackBlocks(form.name, datum_type(tensor.dtype)), [packed])
    return found if (*rows, columns) == shape else wire_reshape(model, f"{name}.shape", found, shape)
