"""Writes graphdef/*.npz: graphs of one operator, what they are given, and what TensorFlow computes.

Run it where TensorFlow is installed: ``python make_graphdef_cases.py [FAMILY ...]``. Each file holds, for every case,
``NAME/graph``, a frozen graph as bytes, ``NAME/x0``, ... its inputs, and ``NAME/y0``, ... the results.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import graphdef_control  # noqa: F401  its functions are families
import graphdef_elements  # noqa: F401  its functions are families
import graphdef_places  # noqa: F401  the same
import graphdef_tables  # noqa: F401  the same
import numpy as np
import tensorflow as tf
from graphdef_drawn import FAMILIES, Chance

FOLDER = Path(__file__).parents[1] / "graphdef"


class Family:
    """Cases of one family: ``add(name, operator, inputs, fixed, attributes)``."""

    def __init__(self):
        self.cases = {}

    def add(self, name, op, *inputs, fixed=(), free=(), lists=(), **attributes):
        """``fixed``: the numbers of inputs that are constants of the graph; ``free``: inputs of unknown sizes.

        ``lists``: the argument that takes all inputs as a list. ``op``: its name, or a function of tensors that makes
        several nodes.
        """
        function = op if callable(op) else getattr(tf.raw_ops, op)
        graph = tf.Graph()
        with graph.as_default():
            tensors = []
            for slot, array in enumerate(inputs):
                if slot in fixed:
                    tensors.append(tf.constant(array, name=f"x{slot}"))
                else:
                    shape = [None] * array.ndim if slot in free else array.shape
                    kind = tf.string if array.dtype.kind == "U" else array.dtype
                    tensors.append(tf.compat.v1.placeholder(kind, shape, name=f"x{slot}"))
            result = function(*tensors) if callable(op) else function(**bind(function, tensors, lists), **attributes)
            outputs = list(result) if isinstance(result, (list, tuple)) else [result]
            for slot, output in enumerate(outputs):
                tf.identity(output, name=f"y{slot}")
            feeds = {f"x{slot}:0": array for slot, array in enumerate(inputs) if slot not in fixed}
            with tf.compat.v1.Session(graph=graph) as session:
                session.run(tf.compat.v1.tables_initializer())
                found = session.run([f"y{slot}:0" for slot in range(len(outputs))], feeds)
        assert name not in self.cases, name
        self.cases[name] = (strip(graph.as_graph_def()), feeds, found)


def bind(function, tensors, lists):
    """The tensors by the names of the operator's arguments."""
    import inspect

    names = list(inspect.signature(function).parameters)
    if lists:
        return {names[0]: tensors}
    return dict(zip(names, tensors, strict=False))


def strip(graph):
    for node in graph.node:
        for key in [key for key in node.attr if key.startswith("_")]:
            del node.attr[key]
    return graph.SerializeToString(deterministic=True)


def main(names):
    FOLDER.mkdir(exist_ok=True)
    count = 0
    for name in names or FAMILIES:
        Chance.rng = np.random.default_rng(38)
        cases = Family()
        FAMILIES[name](cases.add)
        packed = {}
        for case, (graph, feeds, found) in cases.cases.items():
            packed[f"{case}/graph"] = np.frombuffer(graph, np.uint8)
            packed |= {f"{case}/{key.partition(':')[0]}": stored(array) for key, array in feeds.items()}
            packed |= {f"{case}/y{slot}": stored(np.asarray(array)) for slot, array in enumerate(found)}
        np.savez_compressed(FOLDER / f"{name}.npz", **packed)
        count += len(cases.cases)
        sys.stdout.write(f"{name}: {len(cases.cases)} cases\n")
    sys.stdout.write(f"{count} cases\n")


def stored(array):
    """NumPy's files know no bfloat16: its bits, and who reads them knows the type from the graph; texts by letters."""
    if np.asarray(array).dtype.kind == "O":
        return np.vectorize(bytes.decode, otypes=["U"])(array)
    return np.asarray(array).view(np.uint16) if np.asarray(array).dtype.name == "bfloat16" else np.asarray(array)


if __name__ == "__main__":
    main(sys.argv[1:])
