"""Nodes and functions that are in no file: what is made of others, with the fields of their messages that are read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

from tract_core.frozen import frozen


@frozen
class RaisedNode:
    """A node. ``name``, ``op``, ``input``, ``attr``: as in its message."""

    name: str
    op: str
    input: Sequence[str]
    attr: Any = field(default_factory=dict[str, Any])

    __eq__ = object.__eq__  # a node is itself alone
    __hash__ = object.__hash__


@frozen
class RaisedArgument:
    """An argument, or an output, of a function. ``name``: its own."""

    name: str


@frozen
class RaisedSignature:
    """A function's ``name``; ``input_arg``, ``output_arg``: its arguments and its outputs."""

    name: str
    input_arg: Sequence[RaisedArgument]
    output_arg: Sequence[RaisedArgument]


@frozen
class RaisedFunction:
    """A function. ``signature``, ``node_def``: as in its message. ``ret``: the tensor that each output is."""

    signature: Any
    node_def: Sequence[Any]
    ret: Mapping[str, str]

    __eq__ = object.__eq__
    __hash__ = object.__hash__
