"""What streams, as data: a model of one idea, how it is pulsed, and the delay that it must report."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tract_core.dims import evaluate
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel

LENGTHS = (0, 1, 3, 7, 8, 21)


class Net:
    """A model as it grows: ``net(op, x)`` adds a node and returns its outlet, or all of them if several."""

    def __init__(self, name: str) -> None:
        self.random = np.random.default_rng(zlib.crc32(name.encode()))
        self.model = TypedModel()
        self.count = 0

    def name(self) -> str:
        self.count += 1
        return f"node{self.count}"

    def source(self, fact: str) -> OutletId:
        return self.model.add_source(self.name(), parse_typed_fact(fact, self.model.symbols))

    def __call__(self, op: Any, *inputs: OutletId) -> Any:
        found = self.model.wire_node(self.name(), op, inputs)
        return found[0] if len(found) == 1 else found

    def const(self, value: Any, dtype: Any = None) -> OutletId:
        return self.model.add_const(self.name(), np.array(value, dtype))

    def weights(self, *shape: int) -> OutletId:
        return self.const(self.random.normal(size=shape) / 2, np.float32)

    def integers(self, low: int, high: int, shape: Sequence[int], dtype: Any) -> OutletId:
        return self.const(self.random.integers(low, high, shape), dtype)

    def wire(self, function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        """A function that wires several nodes: ``wire_matmul(model, name, ...)``."""
        return function(self.model, self.name(), *arguments, **options)


@dataclass(frozen=True)
class StreamCase:
    """A model, built by ``build(net, *inputs)``, whose outputs are ``delay`` positions late, in pulses of ``pulse``.

    ``least``: the shortest signal that the model takes; ``even``: it takes those of even lengths. ``sizes``: the value
    of every other symbol. ``high``: integers of the inputs are below it.
    """

    name: str
    build: Callable[..., Any]
    delay: int | Sequence[int]
    inputs: Sequence[str] = ("1,2,S,f32",)
    pulse: int | str = 4
    least: int = 0
    even: bool = False
    symbol: str = "S"
    sizes: Mapping[str, int] = field(default_factory=dict[str, int])
    high: int = 5
    tolerance: float = 1e-5

    @property
    def lengths(self) -> list[int]:
        """Of the signals that it is run on."""
        return [length * (1 + self.even) for length in LENGTHS if length >= self.least]

    def __str__(self) -> str:
        return self.name

    def model(self) -> TypedModel:
        net = Net(self.name)
        inputs = [net.source(fact) for fact in self.inputs]
        found = self.build(net, *inputs)
        net.model.set_outputs(
            found if isinstance(found, (list, tuple)) and not isinstance(found, OutletId) else [found]
        )
        return net.model.declutter()

    def arrays(self, length: int) -> list[Any]:
        """Random inputs for a signal of that length."""
        random = np.random.default_rng(length)
        found: list[Any] = []
        for text in self.inputs:
            fact = parse_typed_fact(text)
            shape = [evaluate(size, {**self.sizes, self.symbol: length}) for size in fact.shape]
            kind = fact.datum_type.storage
            if kind.is_float():
                found.append(random.normal(size=shape).astype(kind.numpy))
            elif kind.is_bool():
                found.append(random.integers(0, 2, shape).astype(bool))
            else:
                found.append(random.integers(0, self.high, shape).astype(kind.numpy))
        return found
