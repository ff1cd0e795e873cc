"""What all graphs and functions of one file share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace

from tract_core.errors import CorruptModel, LimitExceeded, TractError
from tract_core.frozen import frozen
from tract_core.limits import DEFAULT_LIMITS, LoadLimits
from tract_core.plugins.keys import Array
from tract_tensorflow.graphdef.operators import Operators
from tract_tensorflow.graphdef.protos import Message
from tract_tensorflow.graphdef.references import OUTPUTS
from tract_tensorflow.graphdef.tables import Contents
from tract_tensorflow.graphdef.tensors import TensorReader


@frozen
class TensorflowFile:
    """One file.

    ``ops``: what wires operators; ``tensors``: what reads constants. ``functions``: those of its library, by name;
    ``outputs``: the names of the outputs of functions, and of operators that have several. ``variables``, ``tables``:
    what reads each of them, by name.

    ``refused``: why nodes are not read, by their function (empty for the graph itself) and their name.
    ``problems``: where to note what is wrong with the file when all of it is asked for; ``None`` to stop at the first.
    ``callers``: the functions around the graph that is read.
    """

    ops: Operators
    tensors: TensorReader
    functions: Mapping[str, Message] = field(default_factory=dict[str, Message])
    outputs: Mapping[str, Sequence[str]] = field(default_factory=lambda: OUTPUTS)
    variables: Mapping[str, Callable[[], Array]] = field(default_factory=dict[str, Callable[[], Array]])
    tables: Mapping[str, Callable[[], Contents]] = field(default_factory=dict[str, Callable[[], Contents]])
    refused: Mapping[tuple[str, str], TractError] = field(default_factory=dict[tuple[str, str], TractError])
    problems: list[TractError] | None = None
    limits: LoadLimits = DEFAULT_LIMITS
    callers: tuple[str, ...] = ()

    __eq__ = object.__eq__  # a file is itself alone
    __hash__ = object.__hash__

    def inside(self, function: str, where: str) -> TensorflowFile:
        """The file as a function that the graph calls sees it.

        Raises CorruptModel for a function that calls itself, LimitExceeded for one that is called too deep inside.
        """
        if function in self.callers:
            circle = " -> ".join(name[:80] for name in (*self.callers[self.callers.index(function) :], function))
            raise CorruptModel(f"functions call each other in a circle: {circle}", where=where)
        if len(self.callers) >= self.limits.max_depth:
            raise LimitExceeded(f"functions call each other more than {self.limits.max_depth} deep", where=where)
        return replace(self, callers=(*self.callers, function))
