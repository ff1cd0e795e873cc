"""Compute in another float type.

The model is wired again node by node. A node that the filters leave out keeps its type, and gets its inputs in that
type; constants are converted when they are read, so that such a node reads them unrounded. The model's inputs and
outputs get the new type, whatever the filters say; where they are to keep theirs, casts stand behind the inputs and in
front of the outputs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeVar

import numpy as np

from tract_core.data import Constant, DatumType, DType
from tract_core.data.stored import let_go
from tract_core.errors import TractError, TransformError
from tract_core.frozen import frozen
from tract_core.model.const import Const
from tract_core.model.fields import changed
from tract_core.model.graph import OutletId
from tract_core.model.source import TypedSource
from tract_core.model.translate import empty_twin, translate
from tract_core.model.typed import TypedModel, TypedNode
from tract_core.ops.cast import Cast
from tract_core.plugins.parameters import texts

T = TypeVar("T")
_Names = Sequence[str] | None

_INCLUDE = "parts of node names: convert only nodes whose name contains one of them"
_EXCLUDE = "parts of node names: leave out nodes whose name contains one of them"
_KEEP_IO = "whether the model's inputs and outputs keep their types"
_FILTER = "the same in one text: '==a,b' converts only these nodes, '!=a,b' all others"


@frozen
class FloatPrecision:
    """Compute in another float type, in all nodes or in those that the filters choose; inputs and outputs too."""

    name: ClassVar[str] = "float_precision"
    from_: DatumType | str = field(metadata={"doc": "the float type to replace, as 'f32'"})
    to: DatumType | str = field(metadata={"doc": "the float type to compute in, as 'f16' or 'bf16'"})
    include: Sequence[str] | None = field(default=None, metadata={"doc": _INCLUDE})
    exclude: Sequence[str] | None = field(default=None, metadata={"doc": _EXCLUDE})
    keep_io_types: bool = field(default=False, metadata={"doc": _KEEP_IO})

    def apply(self, model: TypedModel) -> TypedModel:
        """The converted model. Raises TransformError for types that are no floats."""
        before, after = _float(self.name, "from", self.from_), _float(self.name, "to", self.to)
        if before is after:
            raise TransformError(f"float_precision: 'from' and 'to' are both {before.short}")
        return _converted(self.name, model, (before, after), (self.include, self.exclude), self.keep_io_types)


@frozen
class F32ToF16:
    """Compute in f16 where the model says f32, in its inputs and outputs too."""

    name: ClassVar[str] = "f32_to_f16"
    include: Sequence[str] | None = field(default=None, metadata={"doc": _INCLUDE})
    exclude: Sequence[str] | None = field(default=None, metadata={"doc": _EXCLUDE})
    filter: str | None = field(default=None, metadata={"doc": _FILTER})
    keep_io_types: bool = field(default=False, metadata={"doc": _KEEP_IO})

    def apply(self, model: TypedModel) -> TypedModel:
        """The converted model."""
        filters = _with_filter(self.name, self.include, self.exclude, self.filter)
        return _converted(self.name, model, (DatumType.F32, DatumType.F16), filters, self.keep_io_types)


@frozen
class F16ToF32:
    """Compute in f32 where the model says f16, in its inputs and outputs too."""

    name: ClassVar[str] = "f16_to_f32"
    include: Sequence[str] | None = field(default=None, metadata={"doc": _INCLUDE})
    exclude: Sequence[str] | None = field(default=None, metadata={"doc": _EXCLUDE})
    filter: str | None = field(default=None, metadata={"doc": _FILTER})
    keep_io_types: bool = field(default=False, metadata={"doc": _KEEP_IO})

    def apply(self, model: TypedModel) -> TypedModel:
        """The converted model."""
        filters = _with_filter(self.name, self.include, self.exclude, self.filter)
        return _converted(self.name, model, (DatumType.F16, DatumType.F32), filters, self.keep_io_types)


def _converted(
    transform: str,
    model: TypedModel,
    types: tuple[DatumType, DatumType],
    filters: tuple[_Names, _Names],
    keep_io_types: bool,
) -> TypedModel:
    if not isinstance(keep_io_types, bool):  # pyright: ignore[reportUnnecessaryIsInstance]: may come from JSON
        raise TransformError(f"{transform}: 'keep_io_types' is {keep_io_types!r}, wanted true or false")
    before, after = types
    return _Translation(model, before, after, _chooser(transform, *filters), keep_interface=keep_io_types).run()


def _float(transform: str, key: str, kind: Any) -> DatumType:
    try:
        found = DatumType.parse(kind) if isinstance(kind, str) else DatumType(kind)
    except (TractError, ValueError):
        found = None
    if found is None or not found.is_float():
        raise TransformError(f"{transform}: {key!r} is {kind}, wanted a float type", hint="as 'f32', 'f16' or 'bf16'")
    return found


def _with_filter(transform: str, include: _Names, exclude: _Names, text: str | None) -> tuple[_Names, _Names]:
    if text is None:
        return include, exclude
    names = [name.strip() for name in str(text)[2:].split(",") if name.strip()]
    if str(text)[:2] not in ("==", "!=") or not names or include is not None or exclude is not None:
        raise TransformError(
            f"{transform}: 'filter' is {text!r}, wanted '==a,b' or '!=a,b', and neither 'include' nor 'exclude' with it"
        )
    return (names, None) if text.startswith("==") else (None, names)


def _chooser(transform: str, include: _Names, exclude: _Names) -> Callable[[str], bool]:
    wanted = None if include is None else texts(transform, "include", include)
    unwanted = () if exclude is None else texts(transform, "exclude", exclude)

    def chosen(name: str) -> bool:
        return (wanted is None or any(part in name for part in wanted)) and not any(part in name for part in unwanted)

    return chosen


@dataclass(slots=True)
class _Translation:
    """One model, or one body, being wired again.

    ``versions``: each tensor of the source in every type that was asked for.
    """

    source: TypedModel
    before: DatumType
    after: DatumType
    chosen: Callable[[str], bool]
    keep_interface: bool
    target: TypedModel = field(init=False)
    versions: dict[OutletId, dict[DType, OutletId]] = field(default_factory=dict[OutletId, "dict[DType, OutletId]"])

    def run(self) -> TypedModel:
        """The target, complete."""
        self.target = empty_twin(self.source)
        translate(self.source, self.versions, self._wire, [*self.source.inputs, *self.source.outputs])
        self.target.inputs = [next(iter(self.versions[outlet].values())) for outlet in self.source.inputs]
        self.target.set_outputs(self._output(outlet) for outlet in self.source.outputs)
        return self.target

    def _wire(self, node: TypedNode, _: object) -> list[dict[DType, OutletId]]:
        if isinstance(node.op, Const):
            return [{}]  # it is added when it is read
        outlets = self._source(node) if isinstance(node.op, TypedSource) else self._node(node)
        for old, new in zip(node.outlets(), outlets, strict=True):
            self._label(old, new)
        return [{self.target.outlet_fact(new).datum_type: new} for new in outlets]

    def _source(self, node: TypedNode) -> Sequence[OutletId]:
        fact = node.outputs[0].fact
        if not self.keep_interface:
            fact = self._converted(fact)
        return [self.target.add_source(node.name, fact)]

    def _node(self, node: TypedNode) -> Sequence[OutletId]:
        convert = self.chosen(node.name)
        inputs = [self._read(outlet, self._type_of(outlet, converted=convert)) for outlet in node.inputs]
        op = self._converted(node.op) if convert else node.op
        return self.target.wire_node(node.name, op, inputs)

    def _type_of(self, outlet: OutletId, *, converted: bool) -> DType:
        kind = self.source.outlet_fact(outlet).datum_type
        return self.after if converted and kind == self.before else kind

    def _read(self, outlet: OutletId, kind: DType) -> OutletId:
        """A tensor of the source, in the target, in a type."""
        versions = self.versions[outlet]
        if kind not in versions:
            versions[kind] = self._constant(outlet, kind) if not versions else self._cast(outlet, kind)
        return versions[kind]

    def _constant(self, outlet: OutletId, kind: DType) -> OutletId:
        node = self.source.nodes[outlet.node]
        assert isinstance(node.op, Const)  # every other node was wired before its readers
        unchanged = node.op.value if kind == node.outputs[0].fact.datum_type else self._converted(node.op.value)
        return self.target.add_const(node.name, unchanged)

    def _cast(self, outlet: OutletId, kind: DType) -> OutletId:
        held = self.source.nodes[outlet.node]
        if isinstance(held.op, Const):
            return self._constant(outlet, kind)
        (version,) = list(self.versions[outlet].values())[:1]
        name = f"{self.source.outlet_name(outlet)}.as_{kind.short}"
        (result,) = self.target.wire_node(name, Cast(kind), [version])
        return result

    def _output(self, outlet: OutletId) -> OutletId:
        kind = self._type_of(outlet, converted=not self.keep_interface)
        result = self._read(outlet, kind)
        if result not in self.target.inputs:
            self.target.outlet_labels = {o: t for o, t in self.target.outlet_labels.items() if o != result}
            if self.target.outlet_name(result) != self.source.outlet_name(outlet):
                self.target.set_label(result, self.source.outlet_name(outlet))
        return result

    def _label(self, old: OutletId, new: OutletId) -> None:
        if old in self.source.outlet_labels:
            self.target.set_label(new, self.source.outlet_labels[old])

    def _converted(self, value: T) -> T:
        """An operator, a fact or a value in the new type: types, constants and bodies, at any depth."""
        return changed(value, self._leaf_converted)

    def _leaf_converted(self, leaf: Any) -> Any:
        if isinstance(leaf, DatumType):
            return self.after if leaf is self.before else leaf
        if isinstance(leaf, Constant):
            return _constant_as(leaf, self.after) if leaf.datum_type is self.before else leaf
        if isinstance(leaf, TypedModel):
            return _Translation(leaf, self.before, self.after, self.chosen, keep_interface=False).run()
        return leaf


def _constant_as(value: Constant, kind: DatumType) -> Constant:
    with np.errstate(over="ignore"):
        converted = Constant(value.array.astype(kind.numpy))
    let_go(value.array)
    return converted
