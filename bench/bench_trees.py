"""How long do big decision trees take to load, to run, and how much memory? ``python bench/bench_trees.py [--json]``

A file of random trees is written, as exporters of LightGBM, XGBoost and scikit-learn write them: TreeEnsembleRegressor,
with a number for each node and each leaf. It is loaded and run in a fresh process. Memory is the peak of resident
memory above what the imported packages take, over the size of the file.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper

Array = np.ndarray[Any, Any]

CHILD = """
import json, resource, sys, time
import numpy as np
import tract_core as tract

def peak():
    # What getrusage gives begins with what the process that started this one had.
    try:
        status = open("/proc/self/status").read()
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return int(status.split("VmHWM:")[1].split()[0]) * 1024

tract.onnx().load_bytes(bytes.fromhex(sys.argv[2])).into_model().into_runnable()
base = peak()
start, used = time.perf_counter(), time.process_time()
model = tract.onnx().load(sys.argv[1]).into_model()
figures = {"load_s": time.perf_counter() - start, "load_cpu_s": time.process_time() - used}
figures["peak_bytes"] = peak() - base
runnable = model.into_runnable()
x = np.random.default_rng(0).normal(size=(1000, 40)).astype(np.float32)
start = time.perf_counter()
runnable.run([x])
print(json.dumps(figures | {"run_s": time.perf_counter() - start}))
"""


def write(path: Path, *, trees: int, leaves: int, features: int = 40, seed: int = 0) -> None:
    """A file of random trees: each splits a leaf at random until it has as many as that."""
    random = np.random.default_rng(seed)
    attributes: dict[str, list[Array]] = {}
    for tree in range(trees):
        for name, column in one_tree(random, tree, leaves, features).items():
            attributes.setdefault(name, []).append(column)
    node = onnx.NodeProto(op_type="TreeEnsembleRegressor", domain="ai.onnx.ml", input=["x"], output=["y"])
    node.attribute.append(helper.make_attribute("n_targets", 1))
    x = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["N", features])
    y = helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, ["N", 1])
    graph = helper.make_graph([], "trees", [x], [y]).SerializeToString()
    parts = [field(5, encoded(name, np.concatenate(columns))) for name, columns in attributes.items()]
    content = graph + field(1, node.SerializeToString() + b"".join(parts))
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("ai.onnx.ml", 3)]
    model = onnx.ModelProto(ir_version=10, opset_import=opsets)
    path.write_bytes(model.SerializeToString() + field(7, content))


def one_tree(random: np.random.Generator, tree: int, leaves: int, features: int) -> dict[str, Array]:
    """The columns of one tree: a node that asks leads to a node and its neighbour, both of which come later."""
    count = 2 * leaves - 1
    asks = np.zeros(count, np.bool_)
    to = np.zeros(count, np.int64)
    open_leaves = [0]
    for first in range(1, count, 2):
        place = int(random.integers(len(open_leaves)))
        parent, open_leaves[place] = open_leaves[place], first
        open_leaves.append(first + 1)
        asks[parent], to[parent] = True, first
    leaf = np.flatnonzero(~asks)
    return {
        "nodes_treeids": np.full(count, tree),
        "nodes_nodeids": np.arange(count),
        "nodes_featureids": np.where(asks, random.integers(0, features, count), 0),
        "nodes_modes": np.where(asks, "BRANCH_LEQ", "LEAF"),
        "nodes_values": np.where(asks, random.normal(size=count), 0).astype(np.float32),
        "nodes_hitrates": np.ones(count, np.float32),
        "nodes_truenodeids": to,
        "nodes_falsenodeids": np.where(asks, to + 1, 0),
        "nodes_missing_value_tracks_true": np.zeros(count, np.int64),
        "target_treeids": np.full(len(leaf), tree),
        "target_nodeids": leaf,
        "target_ids": np.zeros(len(leaf), np.int64),
        "target_weights": random.normal(size=len(leaf)).astype(np.float32),
    }


def encoded(name: str, column: Array) -> bytes:
    """A list as an attribute, one field per element, as protobuf writes it for version 2 of its language."""
    number, kind, content = {
        "f": (7, onnx.AttributeProto.FLOATS, floats),
        "i": (8, onnx.AttributeProto.INTS, ints),
        "U": (9, onnx.AttributeProto.STRINGS, texts),
    }[column.dtype.kind]
    return onnx.AttributeProto(name=name, type=kind).SerializeToString() + content(number, column)


def floats(number: int, column: Array) -> bytes:
    rows = np.empty((len(column), 5), np.uint8)
    rows[:, 0] = number << 3 | 5
    rows[:, 1:] = column.astype("<f4").view(np.uint8).reshape(-1, 4)
    return rows.tobytes()


def ints(number: int, column: Array) -> bytes:
    """Numbers of any size: seven bits in each byte, the lowest first, and a mark on all but the last."""
    rest = column[:, None] >> np.arange(0, 63, 7)
    used = np.maximum((rest > 0).sum(axis=1), 1)
    rows = np.empty((len(column), 10), np.uint8)
    rows[:, 0] = number << 3
    rows[:, 1:] = rest & 0x7F | np.where(np.arange(1, 10) < used[:, None], 0x80, 0)
    return rows[np.arange(10) <= used[:, None]].tobytes()


def texts(number: int, column: Array) -> bytes:
    fields = {text: field(number, text.encode()) for text in np.unique(column).tolist()}
    return b"".join(map(fields.__getitem__, column.tolist()))


def field(number: int, content: bytes) -> bytes:
    """A message, or a text, as part of another message."""
    size, sizes = len(content), bytearray()
    while size > 0x7F:
        sizes.append(size & 0x7F | 0x80)
        size >>= 7
    return bytes([number << 3 | 2]) + bytes(sizes) + bytes([size]) + content


def measure(path: Path) -> dict[str, float]:
    """Seconds and bytes; a small file is loaded before, so that what is imported on the way does not count."""
    small = path.with_name("small.onnx")
    write(small, trees=1, leaves=2)
    output = subprocess.check_output([sys.executable, "-c", CHILD, str(path), small.read_bytes().hex()])
    return {"file_bytes": path.stat().st_size, **json.loads(output)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trees", type=int, default=1000)
    parser.add_argument("--leaves", type=int, default=300)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trees.onnx"
        write(path, trees=options.trees, leaves=options.leaves)
        found = measure(path)
    if options.json:
        print(json.dumps(found, indent=1))
        return
    print(f"{options.trees} trees with {options.leaves} leaves, {found['file_bytes'] / 1e6:.0f} MB")
    seconds = f"{found['load_s']:.2f} s ({found['load_cpu_s']:.2f} s of the processor)"
    print(f"loaded in {seconds}, with {found['peak_bytes'] / found['file_bytes']:.2f} times the file")
    print(f"1000 rows in {found['run_s']:.2f} s")


if __name__ == "__main__":
    main()
