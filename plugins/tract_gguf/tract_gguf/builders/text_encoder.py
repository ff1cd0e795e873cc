"""An encoder of texts while it is wired: its inputs and outputs, and the parts that such networks are made of."""

from __future__ import annotations

from typing import Final

import numpy as np

from tract_core.data import DatumType
from tract_core.errors import Unsupported
from tract_core.ops.elementwise import GeluApproximate, GeluExact, Silu, Tanh
from tract_core.ops.gather import Gather
from tract_core.ops.node_wiring import NodeWiring
from tract_core.ops.norm import wire_layer_norm
from tract_core.ops.wired import Wired
from tract_gguf.builders.network import Network

FUNCTIONS: Final = {
    "gelu": GeluExact(),
    **dict.fromkeys(("gelu_new", "gelu_pytorch_tanh"), GeluApproximate()),
    "silu": Silu(),
    "tanh": Tanh(),
}
"""Those that networks name; ``relu`` is there too."""

MEAN: Final = "mean"
FIRST: Final = "cls"
"""What the head of an encoder reads: the mean of all tokens, or the first one."""


class TextEncoder(Network):
    """An encoder, whose inputs are there already: ``tokens`` and ``marks`` [B,S], in i64; ``positions``: [S].

    ``marks``, the input ``mask``, is 1 for each token of a text, and 0 behind it. ``types`` [B,S] is an input of
    networks that know several types of tokens, else ``None``. The rest is wired by the parts below, from `summed` to
    `finish_encoder`.
    """

    def _take_inputs(self) -> None:
        """Tokens, which of them count, and of which type each is."""
        if self.flag("attention.causal", default=False):
            raise Unsupported("each token sees those before it alone, which encoders are not built for")
        self.past, self.length = 0, self.count
        shape = (self.batch, self.count)
        self.tokens, self.marks = (self.source(name, DatumType.I64, shape) for name in ("tokens", "mask"))
        several = "token_types.weight" in self.weights and self.rows_of("token_types") > 1
        self.types = self.source("types", DatumType.I64, shape) if several else None
        self.positions = self.numbers(0, self.count)
        self._seen: dict[int | None, Wired] = {}

    def rows_of(self, name: str) -> int:
        """How many rows a matrix has; 1 for what is none, as files have a matrix of one row as a vector."""
        sizes = self.weights.sizes(f"{name}.weight")
        return sizes[0] if len(sizes) == 2 else 1

    # --- what networks begin with ---

    def summed(self) -> Wired:
        """The rows of tokens, of their positions and of their types, where there are such, added up and normed."""
        found = self._rows("token_embd", self.tokens)
        if "position_embd.weight" in self.weights:
            found += self._rows("position_embd", self.positions)[None]
        if self.types is not None:
            found += self._rows("token_types", self.types)
        elif "token_types.weight" in self.weights:
            found += self._matrix("token_types", found)[None]
        return self.layer_norm(found, "token_embd_norm")

    def _rows(self, name: str, which: Wired) -> Wired:
        wire = NodeWiring(self.model, name)
        return Wired(wire, wire.op(Gather(0), self._matrix(name, which).outlet, which.outlet))

    def _matrix(self, name: str, beside: Wired) -> Wired:
        return beside.with_outlet(self.weights.matrix(f"{name}.weight", self.rows_of(name), self.width))

    # --- which tokens see which ---

    def seen(self, window: int | None) -> Wired:
        """What is added to scores [B,1,S,S]: 0 for tokens that are seen, else -inf; [B,1,1,S] without a window.

        ``window``: how far a token sees at most, to both sides; ``None`` for all of the text. What is behind a text
        sees what is there, so that no token sees nothing: scores of that are no numbers, which spread.
        """
        if window not in self._seen:
            counts = Wired(NodeWiring(self.model, "mask"), self.marks.outlet).ne(0)
            found = counts[:, None, None]
            if window is not None:
                places = Wired(counts.wire, self.positions.outlet)
                near = abs(places[:, None] - places[None]) <= window
                found = (found | ~counts[:, None, :, None]) & near[None, None]
            zero, never = (found.operand(np.full((1,) * 4, one, np.float32)) for one in (0, -np.inf))
            self._seen[window] = found.where(zero, never)
        return self._seen[window]

    # --- parts ---

    def layer_norm(self, x: Wired, name: str) -> Wired:
        """``x`` standardised along the last axis, times weights; plus a bias, where there is one."""
        size = x.shape[-1]
        assert isinstance(size, int)  # sizes of networks are numbers
        eps = self.number("attention.layer_norm_epsilon")
        if not 0 <= eps <= 1:
            raise self.wrong("attention.layer_norm_epsilon", eps, "a number from 0 to 1")
        scale = self.weights.vector(f"{name}.weight", size)
        bias = self.weights.vector(f"{name}.bias", size) if f"{name}.bias" in self.weights else None
        wire = NodeWiring(self.model, name)
        return Wired(wire, x.outlet).through(wire_layer_norm, x.rank - 1, eps=eps, scale=scale, bias=bias)

    def activated(self, x: Wired, key: str, default: str) -> Wired:
        """A function of ``x``, which the file may name under ``key``. Raises Unsupported for one that is not known."""
        name = self.text(key, default)
        if name == "relu":
            return x.maximum(0.0)
        if name not in FUNCTIONS:
            raise Unsupported(f"units are of the function {name!r:.80}, known are relu, {', '.join(FUNCTIONS)}")
        return x.op(FUNCTIONS[name])

    # --- what networks end with ---

    def finish_encoder(self, hidden: Wired, *, function: str = "tanh", pooled: str = FIRST) -> None:
        """The outputs of the model: ``hidden`` [B,S,width], and ``scores`` [B,L] where there are weights of a head.

        ``function``, ``pooled``: of the head, and what it reads, where the file does not say.
        """
        found = {"hidden": hidden}
        if "cls.output.weight" in self.weights:
            found["scores"] = self._scores(hidden, function, self.text("classifier_pooling", pooled))
        self.model.set_outputs([one.outlet for one in found.values()])
        self.model.outlet_labels.update(zip(self.model.outputs, found, strict=True))

    def _scores(self, hidden: Wired, function: str, pooled: str) -> Wired:
        """What a head makes of a text: a layer with a function, where it has one, a norm, and a row for each score."""
        if pooled not in (MEAN, FIRST):
            raise Unsupported(f"the head reads {pooled!r:.80} of a text, known are {FIRST} and {MEAN}")
        x = self._mean(hidden) if pooled == MEAN else hidden[:, :1]
        if "cls.weight" in self.weights:
            x = self.activated(self.weights.linear(x, "cls", self.width), "classifier_activation", function)
        if "cls.norm.weight" in self.weights:
            x = self.layer_norm(x, "cls.norm")
        return self.weights.linear(x, "cls.output", self.rows_of("cls.output")).squeeze([1])

    def _mean(self, hidden: Wired) -> Wired:
        """The mean [B,1,width] of what a text has of its tokens."""
        counted = Wired(NodeWiring(self.model, "mean"), self.marks.outlet).cast(DatumType.F32)[..., None]
        return (hidden * counted).sum((1,)) / counted.sum((1,))
