"""A graph of ONNX nodes that grows, for random policies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np
from onnx import helper
from onnx_policies import node, tensor, weights

Shape = tuple[int, ...]
Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Held:
    """A tensor: its name, its shape for one agent, the kind of its elements, and where the agents are, if known."""

    name: str
    shape: Shape
    kind: type[np.generic] = np.float32
    agents: int | None = None


def body_of(name: str, nodes: Sequence[Any], inputs: Sequence[Any], outputs: Sequence[Any]) -> Any:
    """A graph inside a node."""
    return helper.make_graph(list(nodes), name, list(inputs), list(outputs))


def unsized(name: str, shape: Shape) -> Any:
    """A float input or output of so many axes, of sizes that the file does not say."""
    return tensor(name, [None] * len(shape))


class Garden:
    """A graph that grows."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.nodes: list[Any] = []
        self.constants: dict[str, Array] = {}
        self.pool: list[Held] = []
        self.read: set[str] = set()

    def choose(self, options: Sequence[Any]) -> Any:
        return self.random.choice(options)

    def maybe(self, odds: float) -> bool:
        return self.random.random() < odds

    def pick(self, *kinds: type[np.generic], rank: int = 0, most: int = 9) -> Held:
        """A tensor, one of the newest for the most part. Raises IndexError where there is none."""
        found = [one for one in self.pool if one.kind in (kinds or (np.float32,)) and rank <= len(one.shape) <= most]
        one = found[-1 - min(int(self.random.expovariate(0.7)), len(found) - 1)]
        self.read.add(one.name)
        return one

    def axis(self, x: Held, mixing: float = 0.1) -> int:
        """An axis; that of the agents rarely. Raises IndexError where there is none."""
        others = [axis for axis in range(len(x.shape)) if axis != x.agents]
        return self.choose(range(len(x.shape)) if self.maybe(mixing) or not others else others)

    def constant(self, value: Any) -> str:
        name = f"c{len(self.constants)}"
        self.constants[name] = np.asarray(value)
        return name

    def weights(self, *shape: int) -> str:
        return self.constant(weights(*shape, seed=self.random.randrange(100)))

    def add(
        self,
        kind: str,
        inputs: Sequence[str],
        shape: Shape,
        agents: int | None = None,
        *,
        of: type[np.generic] = np.float32,
        **attributes: Any,
    ) -> Held:
        """One node with one output, which joins the pool."""
        held = Held(f"t{len(self.nodes)}", tuple(map(int, shape)), of, agents)
        self.nodes.append(node(kind, inputs, [held.name], **attributes))
        self.pool.append(held)
        return held

    def add_hidden(self, kind: str, inputs: Sequence[str], **attributes: Any) -> str:
        """One node whose output is read by the next one only."""
        name = f"t{len(self.nodes)}"
        self.nodes.append(node(kind, inputs, [name], **attributes))
        return name
