"""A language model whose past goes through inputs and outputs becomes one that keeps it in pages, for many texts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field
from typing import ClassVar, Final

import numpy as np

from tract_core.data import DatumType
from tract_core.dims import Dim, symbol_name
from tract_core.errors import TransformError
from tract_core.frozen import frozen
from tract_core.model.fact import TypedFact
from tract_core.model.graph import OutletId
from tract_core.model.patch import ModelPatch
from tract_core.model.substitute import symbols_in
from tract_core.model.typed import TypedModel
from tract_core.ops.gather import Gather
from tract_core.ops.node_wiring import NodeWiring
from tract_core.ops.softmax import Softmax
from tract_core.ops.wired import Wired
from tract_core.ops.wiring import wire_cast, wire_one
from tract_transformers.ops.paged_attention import CONTROLS, PagedAttention
from tract_transformers.transforms.causal import Causal, Finder, kept_tensors
from tract_transformers.transforms.wanted_logits import AXIS, wanted

PAGE: Final = 64
"""Positions of a page."""

ROWS: Final = "rows"
"""The input that says of which tokens logits are wanted."""

PAGE_SIZE: Final = "paged_cache.page"
PAGE_BYTES: Final = "paged_cache.page_bytes"
PAGE_KIND: Final = "paged_cache.kept"
"""The properties that say how many positions and bytes a page has, in all layers, and in which type."""

_TYPES: Final = (DatumType.F32, DatumType.F16, DatumType.BF16, DatumType.I8)


@frozen
class PagedCache:
    """Keeps keys and values in pages, for any number of texts that are computed side by side.

    The inputs with the past and the outputs with the present are gone; in their place are those that say what the
    tokens [1,S] are: ``positions`` [S], ``begins`` [R+1], ``pages`` [R,M], ``copies`` [C,2] and ``room`` [N], as
    `PagedAttention` takes them, and ``rows`` [W], of which tokens logits [1,W,V] are wanted.
    """

    name: ClassVar[str] = "paged_cache"
    page: int = field(default=PAGE, metadata={"doc": "positions of a page"})
    kept: str = field(default="f32", metadata={"doc": "the type of what is kept: f32, f16, bf16 or i8"})
    logits: str = field(default="logits", metadata={"doc": "the output with the logits"})

    def apply(self, model: TypedModel) -> TypedModel:
        """The changed model.

        Raises TransformError where the past is used for anything but causal attention, or tokens for other inputs.
        """
        kept = next((one for one in _TYPES if one.short == self.kept), None)
        if kept is None or self.page < 1:
            raise TransformError(f"{self.name}: pages of {self.page} positions in {self.kept!r} are not known")
        found = model.declutter()
        past = _past(found)
        found = found.substitute({past.batch: 1}) if past.batch else found.clone()
        return _Paging(found, past.symbol, kept, self).run()


@frozen
class _Past:
    """``symbol``: how many positions there are; ``batch``: the name of the size of the batch, empty for a number."""

    symbol: Dim
    batch: str


def _past(model: TypedModel) -> _Past:
    """What the inputs say of the past. Raises TransformError where they say nothing, or differ."""
    found = set(_lengths(model))
    if len(found) != 1:
        raise TransformError(f"{PagedCache.name}: no inputs with a past of one length are put in front of what is new")
    ((length, batch),) = found
    name = None if isinstance(batch, int) else symbol_name(batch)
    if isinstance(length, int) or symbol_name(length) is None or (name is None and batch != 1):
        raise TransformError(f"{PagedCache.name}: the past has {length} positions for a batch of {batch}")
    return _Past(length, name or "")


def _lengths(model: TypedModel) -> Iterator[tuple[Dim, Dim]]:
    """Of each tensor of the past, [batch,heads,length,size], its length and its batch."""
    for one in kept_tensors(model):
        shape = model.outlet_fact(one.source).shape
        if len(shape) == 4 and one.axis == 2:
            yield shape[2], shape[0]


class _Paging:
    """One model while it is changed, in place."""

    def __init__(self, model: TypedModel, past: Dim, kept: DatumType, options: PagedCache) -> None:
        self._model, self._past, self._kept, self._options = model, past, kept, options
        self._tensors = list(kept_tensors(model))
        self._facts = {one: model.outlet_fact(one.source) for one in self._tensors}
        self._finder = Finder(model, self._tensors, past)

    def run(self) -> TypedModel:
        """The model with pages, complete. Raises TransformError."""
        nodes = [node for node in self._model.nodes if isinstance(node.op, Softmax)]
        found = [one for one in map(self._finder.attention, nodes) if one is not None]
        self._check(found)
        controls = self._controls(self._count(found[0]))
        self._replace_positions(controls[0])
        for one in found:
            self._patched(one, controls)
        return self._finished()

    def _check(self, found: Sequence[Causal]) -> None:
        """Raise TransformError where a part of the past is for anything but attention, or for several of them."""
        used = {kept for one in found for kept in (one.keys, one.values)}
        if len(used) != len(self._tensors) or len(used) != 2 * len(found):
            left = ", ".join(self._model.outlet_name(one.source) for one in self._tensors if one not in used)
            raise TransformError(
                f"{self._options.name}: {len(found)} layers were found where tokens attend to all before them, which "
                f"leaves {left or 'none'} without one"
            )

    def _count(self, found: Causal) -> Dim:
        """How many tokens there are."""
        return self._model.outlet_fact(found.keys.new).shape[found.keys.axis]

    def _controls(self, count: Dim) -> list[OutletId]:
        """The inputs that say what tokens are."""
        texts, table, copies, room = (self._fresh(name) for name in ("R", "M", "C", "N"))
        shapes: Sequence[tuple[Dim, ...]] = [(count,), (texts + 1,), (texts, table), (copies, 2), (room,)]
        facts = [TypedFact.of(DatumType.I64, shape) for shape in shapes]
        taken = {self._model.outlet_name(one) for one in self._model.inputs} & {*CONTROLS, ROWS}
        if taken:
            raise TransformError(f"{self._options.name}: the model has an input {min(taken)!r} already")
        return [self._model.add_source(name, fact) for name, fact in zip(CONTROLS, facts, strict=True)]

    def _fresh(self, name: str) -> Dim:
        """A size that the model does not have yet."""
        return self._model.symbols.new_symbol(name)

    def _replace_positions(self, positions: OutletId) -> None:
        """Whoever counts the tokens on behind the past reads the input in place of that."""
        for node in list(self._model.nodes):
            if self._finder.masks.counted(node) == "query":
                patch = ModelPatch(self._model)
                kind = self._model.outlet_fact(OutletId(node.id)).datum_type
                source = wire_cast(patch.model, f"{node.name}.positions", patch.tap(positions), kind)
                patch.shunt(OutletId(node.id), source)
                patch.apply()

    def _patched(self, found: Causal, controls: Sequence[OutletId]) -> None:
        """Put the operator in the place of one attention."""
        model, patch = self._model, ModelPatch(self._model)
        wire = NodeWiring(patch.model, model.nodes[found.result.node].name)
        queries, keys, values, _, result = found.terms
        order = (found.query, found.head, found.shared, found.depth)
        q = _in_order(Wired(wire, patch.tap(found.queries)), queries, order)
        k = _in_order(Wired(wire, patch.tap(found.keys.new)), keys, (keys[found.keys.axis], found.head, found.depth))
        along = values[found.values.axis]
        v = _in_order(Wired(wire, patch.tap(found.values.new)), values, (along, found.head, found.width))
        others = [Wired(wire, patch.tap(one)) for one in controls]
        if found.sinks is not None:
            others.append(_in_order(Wired(wire, patch.tap(found.sinks)), found.terms[3], (found.head, found.shared)))
        numbers = found.scale, found.cap, found.window
        op = PagedAttention(*numbers, self._options.page, self._kept, found.sinks is not None)
        mixed = q.op(op, k, v, *others)
        out = _back(mixed, (found.query, found.head, found.shared, found.width), result)
        patch.shunt(found.result, out.outlet)
        patch.apply()

    def _finished(self) -> TypedModel:
        """Without the past, and with logits for those tokens that are asked for."""
        model = self._model
        sources, wholes = ({getattr(one, part) for one in self._tensors} for part in ("source", "whole"))
        rows = model.add_source(ROWS, TypedFact.of(DatumType.I64, (self._fresh("W"),)))
        label = model.unique_name(f"{self._options.logits}.{ROWS}")
        wanted(model, self._options.logits, lambda outlet: wire_one(model, label, Gather(AXIS), outlet, rows))
        model.set_outputs(one for one in model.outputs if one not in wholes)
        model.inputs = [one for one in model.inputs if one not in sources]
        model.prune()
        self._tell()
        return model

    def _tell(self) -> None:
        """Say how large pages are. Raises TransformError where the past counts for anything else."""
        bytes_ = self._options.page * self._bytes()
        self._model.properties |= {
            PAGE_SIZE: np.array(self._options.page),
            PAGE_BYTES: np.array(bytes_),
            PAGE_KIND: np.array(self._options.kept, object),
        }
        name = symbol_name(self._past) or ""
        if name in symbols_in(self._model):
            raise TransformError(f"{self._options.name}: the length of the past, {name}, counts beside attention too")

    def _bytes(self) -> int:
        """What one position takes in all layers: of each head a row, and a scale where there are such."""
        shapes = [self._facts[one].shape for one in self._tensors]
        scale = DatumType.F32.itemsize if self._kept is DatumType.I8 else 0
        return sum(int(shape[1]) * (int(shape[3]) * self._kept.itemsize + scale) for shape in shapes)


def _in_order(x: Wired, term: str, wanted: Sequence[str]) -> Wired:
    """A tensor with the axes ``wanted``, those of empty name of size 1; the others have size 1, and go."""
    x = x.squeeze([axis for axis, name in enumerate(term) if name not in wanted])
    x = _transposed(x, [name for name in term if name in wanted], [name for name in wanted if name])
    return x.unsqueeze([axis for axis, name in enumerate(wanted) if not name])


def _back(x: Wired, term: Sequence[str], wanted: str) -> Wired:
    """The other way: a tensor with the axes of ``term``, as one with all those of ``wanted``."""
    x = x.squeeze([axis for axis, name in enumerate(term) if not name])
    x = _transposed(x, [name for name in term if name], [name for name in wanted if name in term])
    return x.unsqueeze([axis for axis, name in enumerate(wanted) if name not in term])


def _transposed(x: Wired, term: Sequence[str], wanted: Sequence[str]) -> Wired:
    """A tensor with its axes in another order."""
    return x.transpose([term.index(name) for name in wanted])
