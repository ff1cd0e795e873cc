"""Random policies as ONNX files, grown node by node, for property tests.

What is tracked is the shape of each tensor for one agent, as the file of a model for one agent has it: nodes fit there,
and for several agents they may or may not. Agents stand where the exporter put them, as a symbol, as an unknown size or
as a 1, and nodes may mix them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any

import numpy as np
from onnx_policies import onnx_file, tensor
from policy_garden import Garden, Held
from policy_nodes import STEPS


@dataclass(frozen=True)
class Grown:
    """A random policy: its file, and what `grow` makes it of. ``inputs``: with shapes for one agent."""

    seed: int
    steps: int
    content: bytes = field(repr=False)
    inputs: tuple[Held, ...]
    sizes: tuple[tuple[Any, ...], ...]
    text: str = field(repr=False)

    def __repr__(self) -> str:
        return f"grow({self.seed}, {self.steps})\n{self.text}"


def grow(seed: int, steps: int) -> Grown:
    """The policy that a seed leads to in so many steps."""
    random = Random(seed)
    g = Garden(random)
    style = random.choice(["N", "N", "N", 1, 1, None, "two", "mixed"])
    sources: list[Held] = []
    sizes: list[tuple[Any, ...]] = []
    for number in range(random.choice([1, 1, 2, 3])):
        rest = random.choice([(3,), (4,), (1, 3), (2, 4), (4, 1), (1,), (), (1, 2), (2, 3, 4), (1, 1, 2), (0,)])
        agents = 0 if random.random() < 0.75 else random.randrange(len(rest) + 1)
        kind = random.choice([np.float32] * 5 + [np.int64, np.bool_])
        size = {"two": ["A", "B"][number % 2], "mixed": random.choice(["N", 1, None])}.get(str(style), style)
        shape = (*rest[:agents], 1, *rest[agents:])
        sources.append(Held(f"x{number}", shape, kind, agents))
        sizes.append((*rest[:agents], size, *rest[agents:]))
    g.pool += sources
    for _ in range(steps):
        try:
            random.choice(STEPS)(g)
        except (IndexError, ValueError, KeyError):  # no tensor that fits: no step
            continue
    return _grown(g, seed, steps, sources, sizes, exact=style == 1 and random.random() < 0.5)


def _grown(
    g: Garden, seed: int, steps: int, sources: list[Held], sizes: list[tuple[Any, ...]], *, exact: bool
) -> Grown:
    made = [one for one in g.pool if one not in sources]
    ends = [one for one in made if one.name not in g.read] or made[-1:] or sources[:1]
    outputs = [tensor(one.name, list(one.shape) if exact else [None] * len(one.shape), one.kind) for one in ends[-3:]]
    inputs = [tensor(one.name, size, one.kind) for one, size in zip(sources, sizes, strict=True)]
    content = onnx_file(g.nodes, inputs, outputs, g.constants)
    lines = [f"  {one.name}: {size} {one.kind.__name__}" for one, size in zip(sources, sizes, strict=True)]
    for one in g.nodes:
        read = ", ".join(
            str(g.constants[name].tolist() if g.constants[name].size < 9 else g.constants[name].shape)
            if name in g.constants
            else name
            for name in one.input
        )
        more = " ".join(f"{a.name}={a.i or list(a.ints) or a.s or ''}" for a in one.attribute)
        lines.append(f"  {','.join(one.output)} = {one.op_type}({read}) {more}")
    lines.append("  outputs: " + ", ".join(one.name for one in ends[-3:]))
    return Grown(seed, steps, content, tuple(sources), tuple(sizes), "\n".join(lines))
