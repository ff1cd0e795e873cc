"""How nodes name the tensors that they read: in graphs ``node`` or ``node:1``, in functions ``node:output:1``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from tract_core.errors import CorruptModel, LimitExceeded
from tract_core.texts import steers
from tract_tensorflow.graphdef.protos import Message

MAX_NAME: Final = 4096
"""Characters in the name of a node or an operator."""

MAX_OUTPUTS: Final = 4096
"""Outputs of one node."""

Reference = tuple[str, int]
"""A node or an argument, and the number of its output."""

_NORM: Final = ("y", "batch_mean", "batch_variance", "reserve_space_1", "reserve_space_2", "reserve_space_3")

OUTPUTS: Final[Mapping[str, tuple[str, ...]]] = {
    "CombinedNonMaxSuppression": ("nmsed_boxes", "nmsed_scores", "nmsed_classes", "valid_detections"),
    "FusedBatchNorm": _NORM,
    "FusedBatchNormV2": _NORM,
    "FusedBatchNormV3": _NORM,
    "ListDiff": ("out", "idx"),
    "MaxPoolWithArgmax": ("output", "argmax"),
    "Merge": ("output", "value_index"),
    "Moments": ("mean", "variance"),
    "NonMaxSuppressionV4": ("selected_indices", "valid_outputs"),
    "NonMaxSuppressionV5": ("selected_indices", "selected_scores", "valid_outputs"),
    "SoftmaxCrossEntropyWithLogits": ("loss", "backprop"),
    "SparseSoftmaxCrossEntropyWithLogits": ("loss", "backprop"),
    "Switch": ("output_false", "output_true"),
    "RefMerge": ("output", "value_index"),
    "RefSwitch": ("output_false", "output_true"),
    "TensorArrayV3": ("handle", "flow"),
    "TensorListConcatV2": ("tensor", "lengths"),
    "TensorListPopBack": ("output_handle", "tensor"),
    "TopK": ("values", "indices"),
    "TopKV2": ("values", "indices"),
    "Unique": ("y", "idx"),
    "UniqueV2": ("y", "idx"),
    "UniqueWithCounts": ("y", "idx", "count"),
    "UniqueWithCountsV2": ("y", "idx", "count"),
}
"""The names of the outputs of operators that have several of them, which functions name them by."""


def is_control(text: str) -> bool:
    """Whether an input only says what comes first."""
    return text.startswith("^")


def check_name(name: str) -> str:
    """``name``. Raises CorruptModel for one that is empty or cannot be shown, LimitExceeded for a long one."""
    if len(name) > MAX_NAME:
        raise LimitExceeded(f"a name has {len(name)} characters, {MAX_NAME} are allowed", where=f"{name[:80]!r}...")
    if not name or steers(name):
        raise CorruptModel(f"a node or an argument is named {name[:80]!r}", where="graph")
    return name


def in_graph(text: str) -> Reference:
    """What an input of a node in a graph reads. Raises CorruptModel."""
    name, colon, slot = text.rpartition(":")
    return (name, _number(slot, text)) if colon else (text, 0)


def in_function(text: str, ops: Mapping[str, str], outputs: Mapping[str, Sequence[str]]) -> Reference:
    """What an input of a node in a function reads.

    ``ops``: the operator of each node. ``outputs``: the names of the outputs of an operator, or of a function that is
    called by its name, where it has several. Raises CorruptModel.
    """
    parts = text.split(":")
    if len(parts) == 1:
        return text, 0
    if len(parts) != 3:
        raise CorruptModel(f"an input is {text[:200]!r}, wanted NODE:OUTPUT:NUMBER", where="function")
    name, output, number = parts
    several = outputs.get(ops.get(name, ""), ())
    first = several.index(output) if output in several else 0
    return name, first + _number(number, text)


def _number(digits: str, text: str) -> int:
    if not (digits.isascii() and digits.isdecimal() and len(digits) < 6):
        raise CorruptModel(f"an input is {text[:200]!r}, which has no number of an output at its end", where="graph")
    if int(digits) >= MAX_OUTPUTS:
        raise LimitExceeded(f"it reads {text[:200]!r}; a node has {MAX_OUTPUTS} outputs at most", where="graph")
    return int(digits)


def outputs_of_functions(functions: Mapping[str, Message]) -> Mapping[str, Sequence[str]]:
    """The names of outputs, of operators and of functions."""
    return {**OUTPUTS, **{name: [one.name for one in f.signature.output_arg] for name, f in functions.items()}}
