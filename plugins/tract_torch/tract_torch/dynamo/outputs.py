"""What a graph returns: numbers, sizes, arguments, and views of them or of what a model computes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch.fx import Graph, GraphModule, Node

from tract_core.dims import Dim, evaluate
from tract_core.errors import Unsupported
from tract_core.frozen import frozen
from tract_torch.dynamo.layouts import Laid, Layout, Values, known_size, laid_out, root_of
from tract_torch.wiring.graph import returned
from tract_torch.wiring.sizes import is_size


@frozen
class Same:
    """An output that is the same in each call. ``value``: a number, or None."""

    value: Any

    def of(self, _args: Sequence[Any], _results: Sequence[torch.Tensor], _values: Values) -> Any:
        """The output of one call, in which symbols have these values."""
        return self.value


@frozen
class Size:
    """An output that is a size. ``dim``: of which symbols it is made."""

    dim: Dim

    def of(self, _args: Sequence[Any], _results: Sequence[torch.Tensor], values: Values) -> Any:
        """The output of one call."""
        return evaluate(self.dim, values)


@frozen
class View:
    """An output in the memory of another tensor.

    ``place``: which one, among the arguments where it is ``of_argument``, else among the results. ``layout``: where in
    it; None for the whole as it is.
    """

    place: int
    of_argument: bool
    layout: Layout | None

    def of(self, args: Sequence[Any], results: Sequence[torch.Tensor], values: Values) -> Any:
        """The output of one call."""
        base: torch.Tensor = args[self.place] if self.of_argument else results[self.place]
        if self.layout is None:
            return base
        sizes, strides, offset = self.layout.at(values)
        return base.as_strided(sizes, strides, base.storage_offset() + offset)


class Returned:
    """What a graph returns. ``names``: symbols that arguments tell. Raises Unsupported."""

    def __init__(self, module: GraphModule, names: Mapping[str, int]) -> None:
        self._module, self._names = module, names
        self._placeholders: list[Node] = module.graph.find_nodes(op="placeholder")
        self.computed: list[Node] = []
        """Tensors that have to be computed, in whose memory the others are."""
        self._all = [self._output(value) for value in returned(module)]
        values = [node.meta["val"] for node in self.computed]
        self._layouts = [Layout.of(value, value, names) for value in values]
        self._types: list[torch.dtype] = [value.dtype for value in values]

    def computing(self) -> GraphModule:
        """The graph that returns what has to be computed, and does nothing else."""
        graph, copied = Graph(), dict[Node, Node]()
        graph.graph_copy(self._module.graph, copied)
        graph.output(tuple(copied[node] for node in self.computed))
        graph.eliminate_dead_code()
        return GraphModule(self._module, graph)

    def laid(self, values: Values) -> list[Laid]:
        """Sizes, strides and offset of what has to be computed, in one call."""
        return [layout.at(values) for layout in self._layouts]

    def empty(self, laid: Sequence[Laid]) -> list[torch.Tensor]:
        """Tensors to put in what has to be computed, whose elements lie one after the other."""
        return [torch.empty(sizes, dtype=kind) for (sizes, _, _), kind in zip(laid, self._types, strict=True)]

    def of(
        self, args: Sequence[Any], results: Sequence[torch.Tensor], laid: Sequence[Laid], values: Values
    ) -> list[Any]:
        """All outputs of one call. ``results``: what was computed, in the order of `computed`."""
        placed = [laid_out(one, sizes, strides) for one, (sizes, strides, _) in zip(results, laid, strict=True)]
        return [output.of(args, placed, values) for output in self._all]

    def _output(self, value: Any) -> Same | Size | View:
        known = value.meta["val"] if isinstance(value, Node) else value
        if isinstance(known, torch.Tensor):
            return self._view(value)
        if is_size(known):
            return Size(known_size(known, self._names))
        if known is not None and not isinstance(known, float):
            raise Unsupported(f"the graph returns {type(known).__name__}, wanted tensors and sizes")
        return Same(known)

    def _view(self, node: Node) -> View:
        root = root_of(node)
        layout = None if root is node else Layout.of(node.meta["val"], root.meta["val"], self._names)
        if root.op == "placeholder":
            return View(self._placeholders.index(root), of_argument=True, layout=layout)
        if root not in self.computed:
            self.computed.append(root)
        return View(self.computed.index(root), of_argument=False, layout=layout)
