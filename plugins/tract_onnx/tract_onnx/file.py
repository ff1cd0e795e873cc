"""What all graphs of one file share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace

from tract_core.errors import LimitExceeded, TractError
from tract_core.frozen import frozen
from tract_core.limits import DEFAULT_LIMITS, LoadLimits
from tract_onnx.local_functions import LocalFunctions
from tract_onnx.operators import OnnxOps
from tract_onnx.tensors import TensorReader


@frozen
class OnnxFile:
    """One file.

    ``versions``: the version of each domain's operator set that the file asks for. ``functions``: the operators that it
    defines itself.

    ``ignore_value_info``, ``ignore_output_shapes``, ``ignore_output_types``: whether what the file says about tensors
    inside it, and about its outputs, counts for nothing. ``strict_facts``: whether it is an error where that is wrong.
    ``own_symbols``: whether each size of an input is one of its own, also where several have one name.
    ``growing_caches``: whether new keys and values are put behind those of the past, which no row of a batch has fewer
    of than others.

    ``problems``: where to note what is wrong with the file when all of it is asked for; ``None`` to stop at the first.
    ``depth``: how many graphs and functions are around the one that is read.
    """

    versions: Mapping[str, int]
    ops: OnnxOps
    tensors: TensorReader
    ignore_value_info: bool = False
    ignore_output_shapes: bool = False
    ignore_output_types: bool = False
    strict_facts: bool = False
    own_symbols: bool = False
    growing_caches: bool = False
    problems: list[TractError] | None = None
    functions: LocalFunctions = field(default_factory=LocalFunctions)
    limits: LoadLimits = DEFAULT_LIMITS
    depth: int = 0

    __eq__ = object.__eq__  # a file is itself alone
    __hash__ = object.__hash__

    def inside(self, where: str) -> OnnxFile:
        """The file as a graph inside the one that is read sees it. Raises LimitExceeded when that is too deep."""
        if self.depth >= self.limits.max_depth:
            raise LimitExceeded(f"graphs and functions are nested more than {self.limits.max_depth} deep", where=where)
        return replace(self, depth=self.depth + 1)

    def refuse(self, error: TractError) -> None:
        """Raise ``error``; or note it, so that the caller goes on without what it concerns."""
        if self.problems is None:
            raise error
        self.problems.append(error)
