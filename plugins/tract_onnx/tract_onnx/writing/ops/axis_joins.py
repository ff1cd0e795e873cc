"""Axes that are moved, added and removed one after the other, and parts of one tensor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
import onnx
from onnx import helper

from tract_onnx.writing.joining import JoinFn, Site, told

_MOST_PARTS: Final = 256
"""Of a tensor that more nodes read, parts are not looked for: each of them would look at all others."""

_BROADCASTING: Final = (
    *("Add", "Sub", "Mul", "Div", "Pow", "And", "Or", "Xor", "Equal", "Less", "LessOrEqual", "Greater"),
    *("GreaterOrEqual", "Min", "Max", "Mod", "Where", "BitwiseAnd", "BitwiseOr", "BitwiseXor"),
)
"""Operators that give what they read the axes in front that it lacks."""


def transposed(site: Site) -> Sequence[onnx.NodeProto] | None:
    """One Transpose for two"""
    inner = site.made_by("Transpose", site.inputs[0])
    if inner is None:
        return None
    before, after = told(inner)["perm"], told(site.node)["perm"]
    return site.instead("Transpose", inner.input[0], perm=[before[axis] for axis in after])


def added(site: Site) -> Sequence[onnx.NodeProto] | None:
    """One Unsqueeze for two"""
    inner = site.made_by("Unsqueeze", site.inputs[0])
    first, later = (None if inner is None else site.ints(inner.input[1])), site.ints(site.inputs[1])
    if inner is None or not first or not later or min(first + later) < 0:
        return None
    places = [axis for axis in range(len(first) + len(later) + max(first + later) + 1) if axis not in later]
    axes = sorted([*later, *(places[axis] for axis in first)])
    return site.instead("Unsqueeze", inner.input[0], site.constant(np.array(axes, np.int64)))


def removed(site: Site) -> Sequence[onnx.NodeProto] | None:
    """One Squeeze for two"""
    inner = site.made_by("Squeeze", site.inputs[0])
    if inner is None or len(inner.input) != 2 or len(site.inputs) != 2:
        return None
    first, later = site.ints(inner.input[1]), site.ints(site.inputs[1])
    if not first or not later or min(first + later) < 0:
        return None
    places = [axis for axis in range(len(first) + max(first + later) + 1) if axis not in first]
    axes = sorted([*first, *(places[axis] for axis in later)])
    return site.instead("Squeeze", inner.input[0], site.constant(np.array(axes, np.int64)))


def concatenated(site: Site) -> Sequence[onnx.NodeProto] | None:
    """One Concat for two, along one axis"""
    names: list[str] = []
    for name in site.inputs:
        maker = site.made_by("Concat", name)
        names += [name] if maker is None or told(maker) != told(site.node) else maker.input
    return site.instead("Concat", *names, **told(site.node)) if names != site.inputs else None


def put_back(site: Site) -> Sequence[onnx.NodeProto] | None:
    """Axes that are removed and added again, or the other way round"""
    other = {"Squeeze": "Unsqueeze", "Unsqueeze": "Squeeze"}[site.node.op_type]
    inner = site.maker(site.inputs[0])
    if inner is None or inner.op_type != other or len(inner.input) != 2 or len(site.inputs) != 2:
        return None
    first, later = site.ints(inner.input[1]), site.ints(site.inputs[1])
    return site.same(inner.input[0]) if first is not None and first == later else None


def picked(site: Site) -> Sequence[onnx.NodeProto] | None:
    """Gather of one place, for a slice of size 1 whose axis goes"""
    inner = site.made_by("Slice", site.inputs[0])
    gone = site.ints(site.inputs[1]) if len(site.inputs) == 2 else None
    if inner is None or len(inner.input) != 4:
        return None
    start, axis, before = site.ints(inner.input[1]), site.ints(inner.input[3]), site.fact(inner.input[0])
    if not start or not axis or gone != axis or before is None or not isinstance(before.shape[axis[0]], int):
        return None
    return site.instead("Gather", inner.input[0], site.constant(np.array(start[0], np.int64)), axis=axis[0])


def reshaped(site: Site) -> Sequence[onnx.NodeProto] | None:
    """One Reshape for two, where no size is that of a place in front"""
    inner, sizes = site.made_by("Reshape", site.inputs[0]), site.ints(site.inputs[1])
    if inner is None or sizes is None or 0 in sizes:
        return None
    return site.instead("Reshape", inner.input[0], site.inputs[1], **told(site.node))


def broadcast(site: Site) -> Sequence[onnx.NodeProto] | None:
    """Without axes in front that the operator adds itself"""
    facts = [site.fact(name) for name in site.inputs]
    ranks = [fact.rank for fact in facts if fact is not None]
    if len(ranks) < len(facts):
        return None
    names = list(site.inputs)
    for slot, name in enumerate(names):
        maker = site.maker(name)
        axes = site.ints(maker.input[1]) if maker is not None and maker.op_type == "Unsqueeze" else None
        others = [rank for other, rank in enumerate(ranks) if other != slot]
        if maker is not None and axes and sorted(axes) == list(range(len(axes))) and max(others) == max(ranks):
            names[slot], ranks[slot] = maker.input[0], ranks[slot] - len(axes)
    return site.instead(site.node.op_type, *names, **told(site.node)) if names != site.inputs else None


def split(site: Site) -> Sequence[onnx.NodeProto] | None:
    """Split: slices of one tensor that follow each other, and are all of an axis"""
    x, axes = site.inputs[0], site.ints(site.inputs[3]) if len(site.inputs) == 4 else None
    fact = site.fact(x)
    size = fact.shape[axes[0]] if fact is not None and axes else None
    readers = site.readers(x)
    if not axes or not isinstance(size, int) or len(readers) > _MOST_PARTS:
        return None
    parts: dict[tuple[int, int], onnx.NodeProto] = {}
    for node in readers:
        if node.op_type == "Slice" and len(node.input) == 4 and site.ints(node.input[3]) == axes:
            start, end = site.ints(node.input[1]), site.ints(node.input[2])
            if start is not None and end is not None and node.input[0] == x:
                parts.setdefault((start[0], min(end[0], size)), node)
    ranges = sorted(parts)
    ends = [0, *(end for _, end in ranges)]
    if len(ranges) < 2 or [start for start, _ in ranges] != ends[:-1] or ends[-1] != size:
        return None
    if not any(site.node is node for node in parts.values()):
        return None
    names = [parts[one].output[0] for one in ranges]
    sizes = site.constant(np.array([end - start for start, end in ranges], np.int64))
    return [helper.make_node("Split", [x, sizes], names, name=site.node.name, axis=axes[0])]


def blocks(site: Site) -> Sequence[onnx.NodeProto] | None:
    """DepthToSpace, or SpaceToDepth: a Reshape, a Transpose and a Reshape"""
    moved = site.made_by("Transpose", site.inputs[0])
    cut = None if moved is None else site.made_by("Reshape", moved.input[0])
    if moved is None or cut is None:
        return None
    order = tuple(told(moved)["perm"])
    x, parts, result = (site.fact(name) for name in (cut.input[0], cut.output[0], site.result))
    if x is None or parts is None or result is None or (x.rank, parts.rank, result.rank) != (4, 6, 4):
        return None
    shape, made = tuple(parts.shape), tuple(result.shape)
    for (perm, one, other, channel, height, width), (op_type, told_by) in _BLOCKS.items():
        size = shape[one]
        if order != perm or not isinstance(size, int) or shape[other] != size:
            continue
        sizes = (shape[channel], shape[height], shape[width])
        large = (shape[0], sizes[0], sizes[1] * size, sizes[2] * size)
        deep = (shape[0], sizes[0] * size * size, *sizes[1:])
        before, after = (large, deep) if op_type == "SpaceToDepth" else (deep, large)
        if tuple(x.shape) == before and made == after:
            return site.instead(op_type, cut.input[0], blocksize=size, **told_by)
    return None


_BLOCKS: Final[Mapping[tuple[tuple[int, ...], int, int, int, int, int], tuple[str, dict[str, str]]]] = {
    ((0, 3, 4, 1, 5, 2), 1, 2, 3, 4, 5): ("DepthToSpace", {"mode": "DCR"}),
    ((0, 1, 4, 2, 5, 3), 2, 3, 1, 4, 5): ("DepthToSpace", {"mode": "CRD"}),
    ((0, 3, 5, 1, 2, 4), 3, 5, 1, 2, 4): ("SpaceToDepth", {}),
}
"""By the order of the six axes, and the places of both blocks, the channels, the rows and the columns."""


def renamed(site: Site) -> Sequence[onnx.NodeProto] | None:
    """A tensor that is made for an output alone has its name"""
    name = site.inputs[0]
    return None if site.maker(name) is None or not site.is_alone(name) else site.renamed(name)


JOINS: Final[Sequence[tuple[str, JoinFn]]] = (
    ("Identity", renamed),
    ("Transpose", transposed),
    ("Concat", concatenated),
    ("Unsqueeze", put_back),
    ("Squeeze", put_back),
    ("Unsqueeze", added),
    ("Squeeze", removed),
    ("Squeeze", picked),
    ("Reshape", blocks),
    ("Reshape", reshaped),
    ("Slice", split),
    *((op_type, broadcast) for op_type in _BROADCASTING),
)
