"""What a file says about sequences, optionals and maps."""

from __future__ import annotations

from typing import Final

import onnx

from tract_core.data import DType, ItemFact, MapType, OptionalType, SequenceType
from tract_core.data.stored import check_rank
from tract_core.dims import Dim
from tract_core.errors import CorruptModel, LimitExceeded, Unsupported
from tract_core.limits import limits_now
from tract_onnx.tensors import element_type

MAX_NESTING: Final = 8
"""Containers inside one another."""


def container_type(proto: onnx.TypeProto, depth: int = 0) -> DType:
    """The element type of a sequence, an optional or a map. Raises ModelError for anything else."""
    if depth >= MAX_NESTING:
        raise LimitExceeded(f"containers are nested more than {MAX_NESTING} deep")
    kind = proto.WhichOneof("value")
    if kind == "sequence_type":
        return SequenceType(item_fact(proto.sequence_type.elem_type, depth + 1))
    if kind == "optional_type":
        return OptionalType(item_fact(proto.optional_type.elem_type, depth + 1))
    if kind == "map_type":
        return MapType(element_type(proto.map_type.key_type), item_fact(proto.map_type.value_type, depth + 1))
    name = "of no known type" if kind is None else f"a {kind.removesuffix('_type').replace('_', ' ')}"
    raise Unsupported(f"it is {name}; tensors, sequences, optionals and maps are supported")


def item_fact(proto: onnx.TypeProto, depth: int = 0) -> ItemFact:
    """What a file says of the values inside a container.

    Sizes that it gives a name are unknown: the values may differ in them.
    """
    if proto.WhichOneof("value") != "tensor_type":
        return ItemFact(container_type(proto, depth), ())
    tensor = proto.tensor_type
    if not tensor.elem_type:
        raise CorruptModel("it does not say of what element type the tensors in a container are")
    if not tensor.HasField("shape"):
        return ItemFact(element_type(tensor.elem_type))
    check_rank(len(tensor.shape.dim), limits_now())
    return ItemFact(element_type(tensor.elem_type), tuple(_size(dim) for dim in tensor.shape.dim))


def _size(dim: onnx.TensorShapeProto.Dimension) -> Dim | None:
    if not dim.HasField("dim_value") or dim.dim_value == -1:
        return None
    if dim.dim_value < -1:
        raise CorruptModel(f"a size is {dim.dim_value}")
    return dim.dim_value
