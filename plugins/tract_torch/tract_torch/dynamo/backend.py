"""The backend of `torch.compile`, found by the entry point ``torch_dynamo_backends``.

What it takes runs as a model; what it does not take runs in PyTorch as it is, and a warning says which and why.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch.fx import GraphModule

from tract_core.errors import ModelWarning, TractError, Unsupported
from tract_torch.dynamo.functional import functional
from tract_torch.dynamo.lowered import Lowered
from tract_torch.dynamo.options import Options


def tract(
    module: GraphModule, inputs: Sequence[Any], *, options: Mapping[str, Any] | None = None, mode: str | None = None
) -> Callable[..., Any]:
    """What computes a graph of Dynamo: ``torch.compile(module, backend="tract", options={...})`` calls this.

    ``inputs``: what the graph is called with in the first call. ``options``: the fields of `Options`. ``mode``: none
    but "default". Graphs for which gradients are wanted run in PyTorch. Raises InputError for other options, and with
    ``fallback=False`` whatever says why a graph cannot be taken.
    """
    chosen = Options.of(options, mode)
    try:
        _check_gradients(inputs)
        return Compiled(module, inputs, chosen)
    except TractError as error:
        return _in_pytorch(module, error, chosen)


class Compiled:
    """A graph of Dynamo as a model, which is made in the first call; the graph itself once that turns out not to be."""

    def __init__(self, module: GraphModule, inputs: Sequence[Any], options: Options) -> None:
        self._options = options
        self._module = module
        self._call = functional(module, inputs, lambda graph, weights: _Model(graph, weights, options))

    def __call__(self, *args: Any) -> Any:
        """All outputs of the graph."""
        try:
            return self._call(*args)
        except _NotTaken as found:
            self._call = _in_pytorch(self._module, found.error, self._options)
            return self._call(*args)


class _NotTaken(Exception):
    """A graph is no model."""

    def __init__(self, error: TractError) -> None:
        super().__init__(str(error))
        self.error = error


class _Model:
    """A graph that writes nothing, as a model: made in the first call, and anew when weights changed."""

    def __init__(self, graph: GraphModule, weights: Sequence[int], options: Options) -> None:
        self._graph, self._weights, self._options = graph, weights, options
        self._lowered: Lowered | None = None
        self._lock = threading.Lock()

    def __call__(self, args: list[Any]) -> list[Any]:
        found = self._lowered
        if found is None or not found.weights.are_in(args):
            found = self._made(args)
        return found.run(args)

    def _made(self, args: Sequence[Any]) -> Lowered:
        with self._lock:
            found = self._lowered
            if found is None or not found.weights.are_in(args):
                self._lowered = None  # so that two are not in memory
                try:
                    found = self._lowered = Lowered(self._graph, self._weights, args, self._options)
                except TractError as error:
                    raise _NotTaken(error) from None
            return found


def _check_gradients(inputs: Sequence[Any]) -> None:
    """Raises Unsupported where PyTorch is to compute gradients afterwards."""
    if torch.is_grad_enabled() and any(isinstance(one, torch.Tensor) and one.requires_grad for one in inputs):
        hint = "call the module inside of torch.no_grad() or torch.inference_mode() where they are not"
        raise Unsupported("gradients are wanted", hint=hint)


def _in_pytorch(module: GraphModule, error: TractError, options: Options) -> Callable[..., Any]:
    """The graph as PyTorch computes it, with a warning of one line; raises the error where that is not wanted."""
    if not options.fallback:
        raise error
    warnings.warn(f"torch.compile: a graph runs in PyTorch: {' '.join(str(error).split())}", ModelWarning, stacklevel=2)
    return module.forward
