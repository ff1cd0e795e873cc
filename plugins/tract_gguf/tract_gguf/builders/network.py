"""A network while it is wired: its inputs and outputs, and the parts that networks are made of."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tract_core.data import DatumType
from tract_core.dims import Dim
from tract_core.errors import LimitExceeded
from tract_core.limits import count_node
from tract_core.model.fact import TypedFact
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel
from tract_core.ops.gather import Gather
from tract_core.ops.node_wiring import NodeWiring
from tract_core.ops.norm import RmsNorm, wire_layer_norm
from tract_core.ops.wired import Wired
from tract_core.ops.wiring_dyn import wire_range
from tract_gguf.builders.hyperparameters import Hyperparameters
from tract_gguf.builders.masks import causal_mask
from tract_gguf.builders.rotary import Rotary, rotary
from tract_gguf.reading.file import GgufFile


class Network(Hyperparameters):
    """A network, whose inputs are there already. ``tokens``: [B,S]; ``positions``: of them [S], in i64.

    The rest is wired by the parts below, from `embedded` to `finish`.
    """

    def __init__(self, file: GgufFile, model: TypedModel) -> None:
        super().__init__(file, model)
        if self.layers > model.limits.max_outputs // 2:
            raise LimitExceeded(f"the network has {self.layers} layers, {model.limits.max_outputs // 2} are allowed")
        self.model = model
        self._past: list[tuple[OutletId, OutletId]] = []
        self._present: list[OutletId] = []
        self._masks: dict[int | None, Wired] = {}
        self._take_inputs()

    def _take_inputs(self) -> None:
        """The inputs of the model: tokens, then the past."""
        self.tokens = self.source("tokens", DatumType.I64, (self.batch, self.count))
        self._past = [self._source(layer) for layer in range(self.layers)]
        self.positions = self.numbers(self.past, self.length)

    def source(self, name: str, kind: DatumType, shape: Sequence[Dim]) -> Wired:
        """An input of the model."""
        count_node()
        wire = NodeWiring(self.model, "network")
        return Wired(wire, self.model.add_source(name, TypedFact.of(kind, shape)))

    def _source(self, layer: int) -> tuple[OutletId, OutletId]:
        sizes = (("key", self.key_size), ("value", self.value_size))
        shapes = {name: (self.batch, self.key_heads, self.past, size) for name, size in sizes}
        key, value = (
            self.source(f"past.{layer}.{name}", DatumType.F32, shape).outlet for name, shape in shapes.items()
        )
        return key, value

    def numbers(self, start: Dim, end: Dim) -> Wired:
        """The integers from ``start`` up to and without ``end``, in i64."""
        wire = NodeWiring(self.model, "positions")
        return Wired(wire, wire.through(wire_range, *(wire.const(bound) for bound in (start, end, 1))))

    # --- what networks begin with ---

    def embedded(self, scale: float = 1.0) -> Wired:
        """The rows of tokens [B,S,width] of the matrix of the vocabulary, times ``scale``."""
        matrix = self.tokens.with_outlet(self.weights.matrix("token_embd.weight", self.vocabulary, self.width))
        wire = NodeWiring(self.model, "token_embd")
        found = Wired(wire, wire.op(Gather(0), matrix.outlet, self.tokens.outlet))
        return found if scale == 1 else found * float(np.float32(scale))

    def rotary(self, *, neighbours: bool, base: float | None = None, scaled: bool = True) -> Rotary:
        """The rotary embedding of the positions, as of `builders.rotary.rotary`."""
        wire = NodeWiring(self.model, "rotary")
        positions = Wired(wire, self.positions.outlet).cast(DatumType.F32)
        return rotary(self, positions, neighbours=neighbours, base=base, scaled=scaled)

    def mask(self, window: int | None) -> Wired:
        """What is added to scores [S,P+S], as of `causal_mask`; the same for all layers with that window."""
        if window not in self._masks:
            wire = NodeWiring(self.model, "mask")
            rows, columns = Wired(wire, self.positions.outlet), self.numbers(0, self.length)
            self._masks[window] = causal_mask(rows, Wired(wire, columns.outlet), window)
        return self._masks[window]

    def heads_of(self, x: Wired, heads: int, size: int) -> Wired:
        """``x`` [B,S,heads * size] as [B,S,heads,size]."""
        return x.reshape((self.batch, self.count, heads, size))

    # --- norms ---

    def rms_norm(self, x: Wired, name: str) -> Wired:
        """``x`` over its root mean square along the last axis, times the weights of that name."""
        size = x.shape[-1]
        assert isinstance(size, int)  # sizes of networks are numbers
        wire = NodeWiring(self.model, name)
        norm = RmsNorm(x.rank - 1, self.number("attention.layer_norm_rms_epsilon"))
        found = Wired(wire, x.outlet).op(norm)
        return found * found.with_outlet(self.weights.vector(f"{name}.weight", size))

    def layer_norm(self, x: Wired, name: str) -> Wired:
        """``x`` standardised along the last axis, times weights, plus a bias."""
        size = x.shape[-1]
        assert isinstance(size, int)  # sizes of networks are numbers
        wire = NodeWiring(self.model, name)
        eps = self.number("attention.layer_norm_epsilon")
        scale, bias = (self.weights.vector(f"{name}.{part}", size) for part in ("weight", "bias"))
        return Wired(wire, x.outlet).through(wire_layer_norm, x.rank - 1, eps=eps, scale=scale, bias=bias)

    # --- what networks end with ---

    def keep(self, keys: Wired, values: Wired) -> None:
        """The keys and values of a layer, past and new, are outputs of the model."""
        self._present += [keys.outlet, values.outlet]

    def past_of(self, layer: int) -> tuple[OutletId, OutletId]:
        """The keys and values of a layer, from the positions before those of tokens."""
        return self._past[layer]

    def logits(self, x: Wired) -> Wired:
        """A score for each token of the vocabulary; by the matrix that embeds them, where there is no other."""
        name = "output" if "output.weight" in self.weights else "token_embd"
        return self.weights.linear(x, name, self.vocabulary)

    def finish(self, logits: Wired) -> None:
        """The outputs of the model."""
        model = self.model
        model.set_outputs([logits.outlet, *self._present])
        names = [f"present.{layer}.{part}" for layer in range(self.layers) for part in ("key", "value")]
        model.outlet_labels.update(zip(model.outputs, ["logits", *names], strict=True))

    def check_all_was_read(self) -> None:
        """Raises Unsupported for weights that nothing reads."""
        self.weights.check_all_were_read()
