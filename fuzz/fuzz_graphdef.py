"""Feed damaged graphs of TensorFlow to the loader: only typed errors or right results may come of them.

    python fuzz/fuzz_graphdef.py [--seconds 60] [--seed 0] [--replay FILE ...]

Seeds are the frozen graphs and SavedModels of tract-tensorflow's tests. Each is changed at random, in its nodes and
their attributes or in its bytes, and looked at as `fuzz_onnx` does it.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from driver import Target, main
from fuzz_onnx import examined

HELD = Path(__file__).parents[1] / "plugins" / "tract_tensorflow" / "tests"
LARGEST_SEED = 20_000
"""Bytes of a seed."""

SAVED_MODEL = b"\x08\x01"
TEXTS = (b"", b"SAME", b"VALID", b"EXPLICIT", b"NCHW", b"NHWC", b"REFLECT", b"ij,jk->ik", b"\xff")
SPECIAL = (
    "Case",
    "Enter",
    "Exit",
    "LoopCond",
    "Merge",
    "NextIteration",
    "Switch",
    "_SwitchN",
    "TensorArrayV3",
    "HashTableV2",
    "VariableV2",
)


def seeds():
    """The contents of the graphs, always in the same order."""
    import numpy as np

    found = set()
    for path in sorted([*HELD.glob("graphdef/*.npz"), HELD / "saved_models.npz"]):
        with np.load(path) as arrays:
            names = [name for name in arrays.files if name.endswith(("/graph", "saved_model.pb"))]
            found |= {arrays[name].tobytes() for name in names}
    return sorted(content for content in found if len(content) <= LARGEST_SEED)


def parsed(contents):
    from tract_tensorflow.graphdef.protos import CLASSES

    messages = []
    for content in contents:
        message = CLASSES["SavedModel" if content.startswith(SAVED_MODEL) else "GraphDef"]()
        message.ParseFromString(content)
        messages.append(message)
    return messages


def nodes_of(message):
    """All nodes of a graph or a SavedModel, those of functions too."""
    graph = message.meta_graphs[0].graph_def if hasattr(message, "meta_graphs") else message
    return [*graph.node, *(node for function in graph.library.function for node in function.node_def)]


def mutated(messages, chance):
    """The content of a file with a few changes, in one case of ten also in its bytes."""
    from mutations import bytes_changed

    changed = type(message := chance.choice(messages))()
    changed.CopyFrom(message)
    for _ in range(chance.choice((0, 1, 1, 1, 2, 3, 6))):
        change_node(chance.choice(nodes_of(changed)), changed, messages, chance)
    content = changed.SerializeToString()
    return bytes_changed(content, chance) if chance.random() < 0.1 else content


def change_node(node, around, messages, chance):
    texts = [text for one in nodes_of(around) for text in (one.name, *one.input)]
    kind = chance.randrange(10)
    if kind == 0:
        node.op = chance.choice((*operators(), *SPECIAL))
    elif kind == 1:
        node.input.append(chance.choice(texts))
    elif kind == 2 and node.input:
        del node.input[chance.randrange(len(node.input))]
    elif kind == 3 and node.input:
        node.input[chance.randrange(len(node.input))] = chance.choice(texts)
    elif kind == 4:
        other = chance.choice(nodes_of(chance.choice(messages)))
        for name in sorted(other.attr):
            node.attr[name].CopyFrom(other.attr[name])
    elif kind == 5 and node.attr:
        del node.attr[chance.choice(sorted(node.attr))]
    elif node.attr:
        change_attribute(node.attr[chance.choice(sorted(node.attr))], chance)


def operators():
    from tract_tensorflow.plugin import tract_rows

    return sorted(key for keys in tract_rows()["tensorflow"].values() for key in keys)


def change_attribute(attribute, chance):
    from mutations import FLOATS, INTEGERS

    kind = attribute.WhichOneof("value")
    if kind == "i":
        attribute.i = chance.choice(INTEGERS)
    elif kind == "f":
        attribute.f = chance.choice(FLOATS)
    elif kind == "b":
        attribute.b = not attribute.b
    elif kind == "s":
        attribute.s = chance.choice(TEXTS)
    elif kind == "type":
        attribute.type = chance.choice((*range(32), 101, 120))
    elif kind == "shape":
        change_shape(attribute.shape, chance)
    elif kind == "list" and attribute.list.i:
        attribute.list.i[chance.randrange(len(attribute.list.i))] = chance.choice(INTEGERS)
    elif kind == "tensor":
        change_tensor(attribute.tensor, chance)


def change_shape(shape, chance):
    from mutations import INTEGERS

    if shape.dim and chance.random() < 0.7:
        chance.choice(shape.dim).size = chance.choice(INTEGERS)
    elif chance.random() < 0.5:
        shape.unknown_rank = True
    else:
        shape.dim.add().size = chance.choice((-1, 0, 1, 2))


def change_tensor(tensor, chance):
    from mutations import INTEGERS, other_numbers

    kind = chance.randrange(4)
    if kind == 0:
        change_shape(tensor.tensor_shape, chance)
    elif kind == 1:
        tensor.dtype = chance.randrange(27)
    elif tensor.int_val:
        tensor.int_val[0] = min(max(chance.choice(INTEGERS), -(1 << 31)), (1 << 31) - 1)
    elif tensor.tensor_content:
        tensor.tensor_content = other_numbers(tensor.tensor_content, chance)


def examine(content, chance):
    """What became of a file, as of `fuzz_onnx.examine`."""
    from tract_tensorflow.graphdef.loader import TensorflowLoader

    return examined(TensorflowLoader, content, chance)


TARGET = Target(__file__, ".pb", seeds, mutated, examine, parsed)

if __name__ == "__main__":
    sys.exit(main(TARGET, __doc__))
