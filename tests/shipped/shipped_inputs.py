"""Inputs for a file of which nothing is known but the file: sizes and values that ONNX Runtime takes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper

Array = np.ndarray[Any, Any]
Sizes = dict[str, int]

IMAGE_SIDES: Final = (64, 96, 160, 224, 320, 480, 640)
LENGTHS: Final = (5, 9, 16, 32, 64, 160, 256, 512, 1600, 4000, 8000, 16000, 32000)
BATCHES: Final = (2, 1)

SAME_INTEGERS: Final = frozenset(
    {"Cast", "Identity", "Unsqueeze", "Squeeze", "Reshape", "Transpose", "Flatten", "Slice", "Gather", "Expand"}
)
"""Operators behind which an integer is still the same integer."""

MOST: Final = 4096
"""Integers to choose from that are looked at."""


@dataclass(frozen=True)
class Input:
    """One input of a file. ``shape``: numbers, and names of sizes. ``choices``: what its integers can be."""

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int | str, ...]
    choices: Sequence[int]

    def values(self, sizes: Mapping[str, int], random: np.random.Generator, *, positive: bool) -> Array:
        """Random values. ``positive``: floats from 0 to 1, else normal ones."""
        shape = tuple(size if isinstance(size, int) else sizes[size] for size in self.shape)
        match self.dtype.kind:
            case "O":
                values = random.choice(np.array(["a", "the", "Zürich", "7"], object), shape)
            case "i" | "u":
                values = random.choice(np.array(self.choices), shape)
            case "b":
                values = random.integers(0, 2, shape)
            case _:
                values = random.uniform(size=shape) if positive else random.normal(size=shape)
        return np.asarray(values).astype(self.dtype)


@dataclass(frozen=True)
class Case:
    """What a file is run on, and what ONNX Runtime makes of it. ``sizes``: the values of its symbols."""

    sizes: Sizes
    given: dict[str, Array]
    wanted: list[Array]


def session(model: str | bytes, threads: int = 1) -> onnxruntime.InferenceSession:
    """ONNX Runtime with a model, as its users have it, but silent, and on one thread unless somebody wants several.

    There, its DynamicQuantizeLSTM cuts a batch into groups and quantises each apart: the result depends on the machine.
    """
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = threads
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


Known = Mapping[str, int]
"""Sizes, and integers of inputs, that nobody can guess from a file, by name."""


def two_cases(path: Path, known: Sequence[Known] = ({}, {})) -> list[Case]:
    """Two cases, of different sizes where the file leaves any open. ``known``: for each case."""
    engine = session(str(path))
    proto = onnx.load(path)
    inputs = [_input(one, proto.graph) for one in engine.get_inputs()]
    cases: list[Case] = []
    for guessed in attempts(inputs):
        here = known[len(cases)]
        sizes = {name: here.get(name, size) for name, size in guessed.items()}
        if sizes and any(sizes == other.sizes for other in cases):
            continue
        given = [replace(one, choices=[here[one.name]]) if one.name in here else one for one in inputs]
        case = _tried(engine, given, sizes, seed=len(cases))
        if case is not None:
            cases.append(case)
        if len(cases) == 2:
            return cases
    raise AssertionError(f"ONNX Runtime takes {len(cases)} of the sizes that were tried, two are wanted")


def attempts(inputs: Sequence[Input]) -> Iterator[Sizes]:
    """Values of the symbols: small ones first, and first those of which all differ from the ones before.

    Axes that lead, or say so, are batches; where ONNX Runtime takes none of that, others may be.
    """
    names = {size: (one, axis) for one in inputs for axis, size in enumerate(one.shape) if isinstance(size, str)}
    free = [name for name, (_, axis) in names.items() if axis and "batch" not in name]
    is_image = any(len(names[name][0].shape) >= 4 for name in free)
    lengths = IMAGE_SIDES if is_image else LENGTHS
    for count, turn in product(range(len(free) + 1), (0, 1)):
        for more, (place, length) in product(combinations(free, count), enumerate(lengths)):
            sides = {name: length * (1 + axis % 2) for axis, name in enumerate(free) if name not in more}
            yield {**dict.fromkeys(names, BATCHES[(place + turn) % 2]), **sides}


def _tried(engine: onnxruntime.InferenceSession, inputs: Sequence[Input], sizes: Sizes, *, seed: int) -> Case | None:
    """The case of these sizes; ``None`` when ONNX Runtime does not take them, or makes nothing of them."""
    case = None
    for positive in (False, True):
        random = np.random.default_rng(seed)
        given = {one.name: one.values(sizes, random, positive=positive) for one in inputs}
        try:
            wanted = engine.run(None, given)
        except Exception:  # its exceptions have no class in common but this one
            return case
        if all(array.size for array in wanted):
            case = Case(sizes, given, wanted)
        if all(np.isfinite(array).all() for array in wanted if array.dtype.kind == "f"):
            break
    return case


_KINDS: Final = {"float": "f4", "double": "f8", "float16": "f2", "string": "O"}


def _input(one: Any, graph: onnx.GraphProto) -> Input:
    kind = one.type.removeprefix("tensor(").removesuffix(")")
    shape = tuple(
        size if isinstance(size, int) else size if isinstance(size, str) and size.isidentifier() else f"{one.name}_{i}"
        for i, size in enumerate(one.shape)
    )
    return Input(one.name, np.dtype(_KINDS.get(kind, kind)), shape, choices(one.name, graph))


def choices(name: str, graph: onnx.GraphProto) -> Sequence[int]:
    """What the integers of an input can be, by what the graph does with them.

    Places in a constant table lie inside it; integers that are compared with constants are among those. Others are 0
    or 1.
    """
    constants = {tensor.name: tensor for tensor in graph.initializer}
    constants |= {node.output[0]: node.attribute[0].t for node in graph.node if node.op_type == "Constant"}
    reached = {name}
    tables: list[int] = []
    for node in graph.node:
        others = [constants[other] for other in node.input if other in constants]
        if node.op_type in SAME_INTEGERS and reached & set(node.input[:1]):
            reached.update(node.output)
        elif node.op_type == "Gather" and node.input[1] in reached and others:
            axis = next((attribute.i for attribute in node.attribute if attribute.name == "axis"), 0)
            tables.append(others[0].dims[axis])
        elif node.op_type == "Equal" and reached & set(node.input) and others:
            return np.unique(numpy_helper.to_array(others[0])).tolist()[:MOST]
    return range(min(tables, default=2))
