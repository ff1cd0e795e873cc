"""Where one operator of TFLite becomes core operators."""

from __future__ import annotations

from collections.abc import Sequence

from tract_core.frontend.wiring import SlotWiring
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel
from tract_tensorflow.tflite.node import TfliteNode


class Wiring(SlotWiring):
    """The typed model under construction, and one operator's inputs in it. ``node``: the operator."""

    def __init__(self, model: TypedModel, name: str, inputs: Sequence[OutletId | None], node: TfliteNode) -> None:
        super().__init__(model, name, inputs)
        self.node = node
