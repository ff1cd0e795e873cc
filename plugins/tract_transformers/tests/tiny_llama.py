"""A small network in the manner of Llama, with random weights: as a model, and as a plain loop over NumPy in f64."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import sqrt
from typing import Any

import numpy as np

from tract_core.api.model import Model
from tract_core.data import DatumType
from tract_core.model.axes import AxesMapping
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.typed import TypedModel
from tract_core.ops.einsum import EinSum
from tract_core.ops.gather import Gather
from tract_core.ops.node_wiring import NodeWiring
from tract_core.ops.range import Range
from tract_core.ops.softmax import Softmax
from tract_core.ops.wired import Wired

Array = np.ndarray[Any, np.dtype[Any]]

EPSILON = 1e-5


@dataclass
class TinyLlama:
    """``groups``: query heads for each head of keys. Weights are drawn from a seed."""

    vocabulary: int = 64
    layers: int = 2
    width: int = 32
    heads: int = 2
    groups: int = 2
    size: int = 8
    inner: int = 48
    seed: int = 0
    scale: float = 1.0
    weights: dict[str, Array] = field(init=False)

    def __post_init__(self) -> None:
        draw = np.random.default_rng(self.seed)

        def matrix(rows: int, columns: int) -> Array:
            return (self.scale * draw.normal(size=(rows, columns)) / sqrt(columns)).astype(np.float32)

        queries, keys = self.heads * self.groups * self.size, self.heads * self.size
        self.weights = {
            "embedding": matrix(self.vocabulary, self.width),
            "head": 3 * matrix(self.vocabulary, self.width),
        }
        for layer in range(self.layers):
            for name, rows, columns in (
                ("q", queries, self.width), ("k", keys, self.width), ("v", keys, self.width),
                ("o", self.width, queries),
                ("gate", self.inner, self.width), ("up", self.inner, self.width), ("down", self.width, self.inner),
            ):  # fmt: skip
                self.weights[f"{name}.{layer}"] = matrix(rows, columns)
            for name in ("before", "behind"):
                self.weights[f"{name}.{layer}"] = (1 + 0.1 * draw.normal(size=self.width)).astype(np.float32)

    # --- the plain loop ---

    def logits(self, tokens: list[int]) -> Array:
        """[S, V], in f64, of a whole text, without any cache."""
        w = {name: one.astype(np.float64) for name, one in self.weights.items()}
        x, count = w["embedding"][tokens], len(tokens)
        for layer in range(self.layers):
            normal = self._norm(x) * w[f"before.{layer}"]
            q, k, v = (self._turned(normal @ w[f"{name}.{layer}"].T, name) for name in ("q", "k", "v"))
            mixed = np.zeros((count, self.heads * self.groups, self.size))
            for head in range(self.heads * self.groups):
                for place in range(count):
                    scores = k[: place + 1, head // self.groups] @ q[place, head] / sqrt(self.size)
                    powers = np.exp(scores - scores.max())
                    mixed[place, head] = powers / powers.sum() @ v[: place + 1, head // self.groups]
            x = x + mixed.reshape(count, -1) @ w[f"o.{layer}"].T
            normal = self._norm(x) * w[f"behind.{layer}"]
            gate = normal @ w[f"gate.{layer}"].T
            x = x + (gate / (1 + np.exp(-gate)) * (normal @ w[f"up.{layer}"].T)) @ w[f"down.{layer}"].T
        return self._norm(x) @ w["head"].T

    def greedy(self, tokens: list[int], count: int) -> list[int]:
        """The likeliest next tokens, one after the other, each from the whole text before it."""
        found = list(tokens)
        for _ in range(count):
            found.append(int(self.logits(found)[-1].argmax()))
        return found[len(tokens) :]

    @staticmethod
    def _norm(x: Array) -> Array:
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + EPSILON)

    def _turned(self, x: Array, name: str) -> Array:
        """[S, heads, size], turned by the positions unless these are values."""
        x = x.reshape(len(x), -1, self.size)
        if name == "v":
            return x
        angles = np.arange(len(x))[:, None] * 10_000.0 ** (-np.arange(self.size // 2) * 2 / self.size)
        cos, sin = np.cos(angles)[:, None], np.sin(angles)[:, None]
        a, b = np.split(x, 2, axis=-1)
        return np.concatenate([a * cos - b * sin, b * cos + a * sin], axis=-1)

    # --- the model ---

    def typed(self, *, onnx_names: bool = False, past: bool = True) -> TypedModel:
        """The contract's form; or that of ONNX's exporters, with positions and a mask; or without a past."""
        model = TypedModel()
        wire = NodeWiring(model, "llama")
        symbols = model.symbols
        b, s, p = (symbols.new_symbol(name) for name in "BSP")
        tokens = model.add_source("input_ids" if onnx_names else "tokens", parse_typed_fact("B,S,i64", symbols))
        seen = p if past else 0
        positions = self._positions(model, wire, (b, s, seen), onnx_names)
        rows = positions.reshape((s, 1))
        columns = self._range(wire, 0, seen + s).reshape((1, seen + s))
        hidden = columns > rows
        kept: list[tuple[str, Any]] = []
        x = Wired(wire, wire.op(Gather(0), wire.const(self.weights["embedding"]), tokens))
        for layer in range(self.layers):
            x = self._layer(
                model, x, layer, (b, s, seen), positions, hidden, kept, "past_key_values" if onnx_names else "past"
            )
        scale = (x.square().mean((2,)) + EPSILON).rsqrt()
        logits = self._product(x * scale, "head")
        model.set_outputs([logits.outlet, *(one.outlet for _, one in kept)])
        for name, outlet in zip(["logits", *(name for name, _ in kept)], model.outputs, strict=True):
            model.set_label(outlet, name)
        return model

    def model(self, **form: bool) -> Model:
        """`typed`, in normal form, for a runtime."""
        return Model.from_typed(self.typed(**form)).declutter()

    def _positions(self, model: TypedModel, wire: NodeWiring, sizes: tuple[Any, Any, Any], given: bool) -> Wired:
        _, s, seen = sizes
        if not given:
            return self._range(wire, seen, seen + s)
        source = model.add_source("position_ids", parse_typed_fact("B,S,i64", model.symbols))
        mask = model.add_source("attention_mask", parse_typed_fact("B,P+S,i64", model.symbols))
        return Wired(wire, source)[0] * Wired(wire, mask)[0].max((0,))  # the mask is all ones

    @staticmethod
    def _range(wire: NodeWiring, start: Any, end: Any) -> Wired:
        ends = [wire.number(wire.const([one])) for one in (start, end, 1)]
        return Wired(wire, wire.op(Range(end - start), *ends))

    def _product(self, x: Wired, name: str) -> Wired:
        weights = x.operand(self.weights[name])
        return x.op(EinSum(AxesMapping.parse("bsk,nk->bsn"), DatumType.F32), weights)

    def _layer(self, model, x, layer, sizes, positions, hidden, kept, before):  # noqa: PLR0917
        b, s, seen = sizes
        normal = x * (x.square().mean((2,)) + EPSILON).rsqrt() * self.weights[f"before.{layer}"]
        angles = positions.cast(DatumType.F32).reshape((s, 1)) * np.array(
            10_000.0 ** (-np.arange(self.size // 2) * 2 / self.size), np.float32
        )
        cos, sin = angles.cos(), angles.sin()
        found = {}
        for name, heads in (("q", self.heads * self.groups), ("k", self.heads), ("v", self.heads)):
            y = self._product(normal, f"{name}.{layer}").reshape((b, s, heads, self.size)).transpose((0, 2, 1, 3))
            if name != "v":
                first, second = y[..., : self.size // 2], y[..., self.size // 2 :]
                y = (first * cos - second * sin).concat([second * cos + first * sin], 3)
            found[name] = y
        if not isinstance(seen, int):
            for name, key in (("key", "k"), ("value", "v")):
                fact = parse_typed_fact(f"B,{self.heads},P,{self.size},f32", model.symbols)
                source = Wired(x.wire, model.add_source(f"{before}.{layer}.{name}", fact))
                found[key] = source.concat([found[key]], 2)
                kept.append((f"present.{layer}.{name}", found[key]))
        q = found["q"].reshape((b, self.heads, self.groups, s, self.size))
        scores = q.op(EinSum(AxesMapping.parse("bhgsd,bhtd->bhgst"), DatumType.F32), found["k"]) * (1 / sqrt(self.size))
        chances = hidden.where(-1e30, scores).op(Softmax((4,)))
        mixed = chances.op(EinSum(AxesMapping.parse("bhgst,bhtd->bhgsd"), DatumType.F32), found["v"])
        mixed = mixed.reshape((b, self.heads * self.groups, s, self.size)).transpose((0, 2, 1, 3))
        x = x + self._product(mixed.reshape((b, s, self.heads * self.groups * self.size)), f"o.{layer}")
        normal = x * (x.square().mean((2,)) + EPSILON).rsqrt() * self.weights[f"behind.{layer}"]
        gate = self._product(normal, f"gate.{layer}")
        return x + self._product(gate * gate.sigmoid() * self._product(normal, f"up.{layer}"), f"down.{layer}")
