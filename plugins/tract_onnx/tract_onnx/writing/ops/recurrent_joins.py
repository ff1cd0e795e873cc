"""Two recurrent networks over one signal, one in each direction, are one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import onnx

from tract_onnx.writing.joining import JoinFn, Site, told

_NETWORKS: Final = ("LSTM", "GRU", "RNN")


def both_ways(site: Site) -> Sequence[onnx.NodeProto] | None:
    """A network of both directions, whose results are laid side by side"""
    axis = told(site.node)["axis"]
    if len(site.inputs) != 2 or axis not in (1, 2):
        return None
    if axis == 1:
        made = _one(site, [site.maker(name) for name in site.inputs], site.inputs)
        return None if made is None else [made]
    squeezed = [site.made_by("Squeeze", name) for name in site.inputs]
    names = [one.input[0] for one in squeezed if one is not None and site.ints(one.input[1]) == [1]]
    made = _one(site, [site.maker(name) for name in names], names) if len(names) == 2 else None
    fact = site.fact(site.inputs[0])
    if made is None or fact is None or not isinstance(fact.shape[2], int):
        return None
    whole = site.before("Identity", "")
    made.output[0] = whole.output[0]
    made.name = f"{site.node.name}.both"
    moved = site.before("Transpose", whole.output[0], perm=[0, 2, 1, 3])
    shape = site.constant(np.array([0, 0, 2 * fact.shape[2]], np.int64))
    return [made, moved, *site.instead("Reshape", moved.output[0], shape)]


def _one(site: Site, makers: Sequence[onnx.NodeProto | None], names: Sequence[str]) -> onnx.NodeProto | None:
    """Two networks as one, where they differ in nothing but their directions and their weights, and give no states."""
    first, second = makers
    if first is None or second is None or first.op_type != second.op_type or first.op_type not in _NETWORKS:
        return None
    ways = [told(one).pop("direction") for one in (first, second)]
    if ways != [b"forward", b"reverse"] or len(first.input) != len(second.input) or first.input[0] != second.input[0]:
        return None
    if not all(site.is_alone(name) and one.output[0] == name for one, name in zip((first, second), names, strict=True)):
        return None
    states = [name for one in (first, second) for name in one.output[1:]]
    weights = [_beside(site, one, other) for one, other in zip(first.input[1:], second.input[1:], strict=True)]
    if any(site.is_read(name) for name in states) or None in weights:
        return None
    attributes = {**told(first), "direction": "bidirectional"}
    inputs = [first.input[0], *(one or "" for one in weights)]
    (made,) = site.instead(first.op_type, *inputs, **attributes)
    return made


def _beside(site: Site, one: str, other: str) -> str | None:
    """Two constants along a first axis; an empty name where both are missing."""
    if not one and not other:
        return ""
    values = site.value(one), site.value(other)
    if values[0] is None or values[1] is None:
        return None
    return site.constant(np.concatenate([values[0], values[1]]))


JOINS: Final[Sequence[tuple[str, JoinFn]]] = (("Concat", both_ways),)
