"""The policy of this example: a recurrent cell and a layer, in NumPy as it is trained, and as a file of ONNX."""

from __future__ import annotations

from math import prod
from pathlib import Path

import numpy as np
from world import ACTIONS, SEEN, Array

NOISE = 0.5
"""What the noise counts beside the decision itself, before both are squashed."""


def shapes(hidden: int) -> dict[str, tuple[int, ...]]:
    """The weights by name. Those of the cell are for its gates update, reset and candidate, one beside the other."""
    return {
        "new": (SEEN, 3 * hidden),
        "old": (hidden, 3 * hidden),
        "bias": (3 * hidden,),
        "old_bias": (hidden,),
        "act": (hidden, ACTIONS),
        "act_at_once": (SEEN, ACTIONS),
        "act_bias": (ACTIONS,),
    }


def size(hidden: int) -> int:
    """How many weights there are."""
    return sum(map(prod, shapes(hidden).values()))


def initial(hidden: int, random: np.random.Generator) -> Array:
    """Weights to begin with: (size,)."""
    parts = [
        random.normal(0, 1 / np.sqrt(shape[0]), shape) if len(shape) == 2 else np.zeros(shape)
        for shape in shapes(hidden).values()
    ]
    return np.concatenate([part.ravel() for part in parts]).astype(np.float32)


def grown(weights: Array, hidden: int, wider: int, random: np.random.Generator) -> Array:
    """Weights of a wider cell that does the same: nobody listens to what is new in it yet. (size,)"""
    old, new = split(weights, hidden), split(initial(wider, random), wider)
    for gate in range(3):
        here, there = slice(gate * hidden, (gate + 1) * hidden), slice(gate * wider, gate * wider + hidden)
        new["new"][:, there], new["bias"][there] = old["new"][:, here], old["bias"][here]
        new["old"][:hidden, there], new["old"][hidden:, there] = old["old"][:, here], 0
    new["old_bias"][:hidden] = old["old_bias"]
    new["act"][:hidden], new["act"][hidden:] = old["act"], 0
    new["act_at_once"][:], new["act_bias"][:] = old["act_at_once"], old["act_bias"]
    return np.concatenate([part.ravel() for part in new.values()])


def split(weights: Array, hidden: int) -> dict[str, Array]:
    """Weights by name, each with the leading axes of ``weights``, which is (..., size)."""
    found, first = dict[str, Array](), 0
    for name, shape in shapes(hidden).items():
        found[name] = weights[..., first : first + prod(shape)].reshape(*weights.shape[:-1], *shape)
        first += prod(shape)
    return found


def decide(weights: dict[str, Array], seen: Array, memory: Array, noise: Array) -> tuple[Array, Array]:
    """Actions, (..., moths, ACTIONS), and the memory for the next step, (..., moths, hidden).

    ``weights``: as `split` gives them; their leading axes are those of ``memory``. The cell is the gated recurrent unit
    of Cho et al. (2014), with the reset gate behind the product.
    """
    hidden = memory.shape[-1]
    new = seen @ weights["new"] + weights["bias"][..., None, :]
    old = memory @ weights["old"]
    gates = np.float32(0.5) * np.tanh(np.float32(0.5) * (new + old)[..., : 2 * hidden]) + np.float32(0.5)
    update, reset = gates[..., :hidden], gates[..., hidden:]
    candidate = np.tanh(new[..., 2 * hidden :] + reset * (old[..., 2 * hidden :] + weights["old_bias"][..., None, :]))
    memory = candidate + update * (memory - candidate)
    drive = memory @ weights["act"] + seen @ weights["act_at_once"] + weights["act_bias"][..., None, :]
    return np.tanh(drive + np.float32(NOISE) * noise), memory


def export(weights: dict[str, Array], path: Path) -> None:
    """Write one policy, in the form that exporters give: agents along axis 0, their number a symbol, memory in and out.

    Inputs: ``seen``, (agents, SEEN), ``epsilon``, (agents, ACTIONS), and ``memory``, (agents, hidden). Outputs:
    ``action``, (agents, ACTIONS), and ``memory_out``.
    """
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    hidden = len(weights["old_bias"])
    bias = np.concatenate([weights["bias"], np.zeros(2 * hidden, np.float32), weights["old_bias"]])
    constants = {
        "w": weights["new"].T[None],
        "r": weights["old"].T[None],
        "b": bias[None],
        "act": weights["act"],
        "act_at_once": weights["act_at_once"],
        "act_bias": weights["act_bias"],
        "strength": np.array(NOISE, np.float32),
        "first": np.array([0], np.int64),
    }
    nodes = [
        helper.make_node("Unsqueeze", ["seen", "first"], ["seen_once"]),
        helper.make_node("Unsqueeze", ["memory", "first"], ["memory_in"]),
        helper.make_node(
            "GRU",
            ["seen_once", "w", "r", "b", "", "memory_in"],
            ["", "kept"],
            hidden_size=hidden,
            linear_before_reset=1,
        ),
        helper.make_node("Squeeze", ["kept", "first"], ["memory_out"]),
        helper.make_node("Gemm", ["memory_out", "act", "act_bias"], ["by_memory"]),
        helper.make_node("MatMul", ["seen", "act_at_once"], ["at_once"]),
        helper.make_node("Add", ["by_memory", "at_once"], ["decided"]),
        helper.make_node("Mul", ["epsilon", "strength"], ["tremor"]),
        helper.make_node("Add", ["decided", "tremor"], ["drive"]),
        helper.make_node("Tanh", ["drive"], ["action"]),
    ]
    sizes = {"seen": SEEN, "epsilon": ACTIONS, "memory": hidden, "action": ACTIONS, "memory_out": hidden}
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["agents", size]) for name, size in sizes.items()]
    held = [numpy_helper.from_array(np.ascontiguousarray(array), name) for name, array in constants.items()]
    graph = helper.make_graph(nodes, "policy", values[:3], values[3:], held)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, path)  # pyright: ignore[reportUnknownMemberType]: onnx declares the type of its path in part only
