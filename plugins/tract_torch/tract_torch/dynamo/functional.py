"""A graph of Dynamo without anything that writes into tensors, by PyTorch's own AOTAutograd.

Around what computes the graph, AOTAutograd copies results into inputs that the module changes, and lets outputs that
are views of inputs or of each other be views. Composed operators that have a row stay whole, as they do where a module
is exported.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Final

import torch
from torch._dynamo.backends.common import aot_autograd  # where PyTorch's own guide has it from
from torch._dynamo.exc import TorchDynamoException
from torch.fx import GraphModule

from tract_core.errors import TractError, Unsupported
from tract_core.plugins import Registry, default_registry
from tract_torch import private
from tract_torch.alone import alone
from tract_torch.capture.decomposing import kept_whole, ways_apart
from tract_torch.capture.rewritten import Rewritten

Computed = Callable[[list[Any]], Sequence[Any]]
"""What computes a graph: from a list of its inputs to a sequence of its outputs."""


_SPELLED: Final[Mapping[Any, Any]] = {torch.ops.aten.true_divide.Tensor: torch.ops.aten.div.Tensor}
"""Operators that PyTorch writes into graphs after it has decomposed them, and those with a row that are the same."""


def functional(
    module: GraphModule, inputs: Sequence[Any], computed: Callable[[GraphModule, Sequence[int]], Computed]
) -> Callable[..., Any]:
    """What computes a graph of Dynamo, where ``computed`` gives what computes one that writes nothing.

    ``computed`` is also told which of the inputs are weights that the graph does not change. Raises Unsupported for
    what PyTorch refuses.
    """

    def take(graph: GraphModule, _inputs: Sequence[Any]) -> Computed:
        for node in graph.graph.nodes:
            node.target = _SPELLED.get(node.target, node.target)
        return _boxed(computed(graph, _weights()))

    registry = default_registry()
    made: Any = aot_autograd(fw_compiler=take, inference_compiler=take, decompositions=dict(ways_apart(registry)))
    with alone(), Rewritten(), _keeping(registry):
        try:
            return made(module, inputs)
        except (TractError, TorchDynamoException):  # with some of these, PyTorch asks Dynamo to begin anew
            raise
        except Exception as error:  # whatever it is, it is PyTorch's
            text = " ".join(str(error).split())[:300]
            raise Unsupported(f"PyTorch cannot trace the graph: {type(error).__name__}: {text}") from error


def _boxed(computed: Computed) -> Computed:
    """The same, marked as what takes all inputs in one list, and empties it, so that nobody else holds them."""

    def call(args: list[Any]) -> Sequence[Any]:
        found = computed(args)
        args.clear()
        return found

    marked: Any = call
    marked._boxed_call = True
    return call


def _keeping(registry: Registry) -> AbstractContextManager[object]:
    overriding = private.overriding()
    return nullcontext() if overriding is None else overriding(kept_whole(registry))


def _weights() -> list[int]:
    """Places of inputs that are weights of the module, and that are not changed."""
    facts = private.traced_facts()
    if facts is None:
        return []
    return sorted(set(facts.static_input_indices) - set(facts.mutated_inp_runtime_indices))
