"""Where one ONNX node becomes core operators.

Nodes added here are named after the ONNX node's first output, with a suffix; in the end, the node that yields an output
gets that output's name (`tract_onnx.op`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tract_core.data import Constant, DatumType, DType
from tract_core.frontend.wiring import SlotWiring
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel


def zero_of(kind: DType) -> Constant:
    """What the standard fills tensors of an element type up with, of rank 0: 0, false, or an empty text."""
    return Constant(np.array("", object) if kind is DatumType.STRING else np.zeros((), kind.numpy))


class Wiring(SlotWiring):
    """The typed model under construction, and one node's inputs in it.

    ``inputs``: one outlet per input of the ONNX node, ``None`` for an optional one that is left out. ``outer``: values
    that the graphs inside the node capture from around it, by name.
    """

    def __init__(
        self,
        model: TypedModel,
        name: str,
        inputs: Sequence[OutletId | None],
        outer: Mapping[str, OutletId] | None = None,
    ) -> None:
        super().__init__(model, name, inputs)
        self.outer = dict(outer or {})
