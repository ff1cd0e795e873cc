"""A document becomes a model, statement by statement."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final, cast

from tract_core.data import QuantizedType
from tract_core.dims import TDim, symbol
from tract_core.errors import CorruptModel, LimitExceeded, TractError
from tract_core.frontend.rows import call_row, outlets_of
from tract_core.limits import count_node, current_budget, limits_now
from tract_core.model.fact import ShapeFact, TypedFact
from tract_core.model.graph import OutletId
from tract_core.model.identity import Identity
from tract_core.model.source import TypedSource
from tract_core.model.typed import TypedModel
from tract_core.ops.wired import Wired
from tract_core.plugins.keys import Array
from tract_nnef.documents.extensions import Lines, declare, forget_what_follows, rename, shapes, split
from tract_nnef.documents.operators import Declared, Operators, matched
from tract_nnef.reading import values
from tract_nnef.reading.call import Call, Tensors
from tract_nnef.reading.expressions import Scope
from tract_nnef.reading.names import NamedValues, names_in
from tract_nnef.reading.quantized import as_assigned, wire_quantized
from tract_nnef.reading.remarks import RemarkKind, Remarks
from tract_nnef.reading.values import Value, is_array, shown
from tract_nnef.syntax import ast
from tract_nnef.writing.extensions import is_same_shape

LONGEST_MESSAGE: Final = 500
"""Characters of what is said of a statement: lists in it may be of any length."""

MOST_USES: Final = 1024
"""Bodies that one fragment may be: fragments that use each other twice would be read without end."""


class Reader:
    """The model that is made of a document, while it is made.

    ``quantized``: what ``graph.quant`` says of tensors, by their names. ``tensors``: the values of variables.
    ``within``: the bodies that it is in, by the names of their fragments.
    """

    def __init__(
        self,
        model: TypedModel,
        operators: Operators,
        tensors: Tensors,
        quantized: Mapping[str, QuantizedType] | None = None,
        within: Sequence[str] = (),
    ) -> None:
        self.model = model
        self.operators = operators
        self.tensors = tensors
        self._quantized = dict(quantized or {})
        self._within = within
        self._shapes: dict[str, ShapeFact] = {}
        """Shapes as the file has them, where wiring finds the same in other words."""
        self._uses: dict[str, int] = {}
        """How often a fragment is a body, in the whole document."""
        self._conditions = 0
        """How many conditions the file has."""
        self._taken: set[OutletId] = set()
        """Tensors that have the name that the file gives them."""
        self._open: list[str] = []
        """The fragments whose bodies are being read."""
        self._line = 0
        """The line of the statement that is being read."""
        self._sources: dict[str, OutletId] = {}
        """What is external, by the names that it was assigned to first: they stay its own when assigned again."""
        self.remarks = Remarks()

    def quantized(self, name: str) -> QuantizedType | None:
        """What ``graph.quant`` says of a tensor; one of a body has the name of the fragment in front."""
        return self._quantized.get(".".join([*self._within[-1:], name])) if self._quantized else None

    def keep_names(self, outlets: Iterable[OutletId]) -> None:
        """Tensors whose names are not changed when they are assigned to other ones."""
        self._taken.update(outlets)

    def symbol(self, name: str) -> TDim | None:
        """The symbol of a name, if there is one."""
        return symbol(name) if name in self.model.symbols else None

    def new_symbol(self, name: str) -> TDim:
        """The symbol of a name that no line of the file declares."""
        self.remarks.note(RemarkKind.SYMBOL, name)
        self.model.symbols.add(name)
        return symbol(name)

    def tensor(self, label: str) -> Array:
        """The tensor of a label. Raises ModelError."""
        return self.tensors.tensor(label)

    def read(self, graph: ast.Graph, extensions: Lines = ()) -> None:
        """Add what a graph and its extension lines say to the model. Raises TractError, naming the line."""
        self.declare(extensions)
        scope = Scope(self, NamedValues())
        self._quantized = as_assigned(self._quantized, graph.body, self.remarks)
        self.statements(graph.body, scope, outputs=frozenset(graph.outputs))
        self.model.inputs = self._inputs(graph.inputs, scope)
        self._conclude(graph.outputs, scope, extensions)

    def declare(self, extensions: Lines) -> None:
        """Know what extension lines say before anything is wired. Raises CorruptModel."""
        declare(self.model, extensions)
        self._shapes, self._conditions = shapes(self.model, extensions), len(self.model.conditions)

    def _conclude(self, outputs: Sequence[str], scope: Scope, extensions: Lines) -> None:
        """Set the outputs, and add what is said of a complete model."""
        self.model.set_outputs(self._outlet(name, scope) for name in outputs)
        tensors = {name: value for name, value in scope.names.items() if isinstance(value, OutletId)}
        tensors.update(zip(outputs, self.model.outputs, strict=True))
        rename(self.model, extensions, tensors)
        if self._conditions:
            forget_what_follows(self.model, self._conditions)

    # --- bodies ---

    def fragment(self, name: str, facts: Sequence[TypedFact], lines: Sequence[str] = ()) -> TypedModel:
        """The body that `Writer.fragment` wrote: a fragment as a model, with an input for each of its parameters.

        ``facts``: of the inputs, in order. Raises ModelError.
        """
        fragment, extensions = self._fragment(name), split(lines)
        if len(fragment.parameters) != len(facts):
            raise CorruptModel(f"the fragment {name!r} has {len(fragment.parameters)} parameters, {len(facts)} are fed")
        inner = self._inner(name)
        inner.model.symbols.add_symbols(self.model.symbols)
        for fact in facts:
            for mentioned in sorted(fact.symbols()):
                inner.model.symbols.add(mentioned)
        declare(inner.model, extensions)
        names = NamedValues[Value]()
        for parameter, fact in zip(fragment.parameters, facts, strict=True):
            outlet = inner.model.add_source(parameter.name, fact)
            names.assign(parameter.name, outlet)
            inner._taken.add(outlet)
        return inner._body(fragment, names, extensions)

    def body(self, name: str, lines: Sequence[str], properties: Iterable[tuple[str, str]]) -> TypedModel:
        """The body that `Writer.body` wrote. Raises ModelError."""
        fragment = self._fragment(name)
        if fragment.parameters:
            raise CorruptModel(f"the fragment {name!r} has parameters, of which nobody says what they are")
        inner, extensions = self._inner(name), split(lines)
        inner.declare(extensions)
        body = inner._body(fragment, NamedValues(), extensions)
        body.properties.update((key, self.tensor(label)) for key, label in properties)
        return body

    def _body(self, fragment: ast.Fragment, names: NamedValues[Value], extensions: Lines) -> TypedModel:
        outputs, scope = [result.name for result in fragment.results], Scope(self, names)
        self.statements(fragment.body or (), scope)  # outside, outputs have places and no names
        self._conclude(outputs, scope, extensions)
        return self.model

    def _fragment(self, name: str) -> ast.Fragment:
        found = self.operators.fragment(name)
        if found is None or found.body is None:
            raise CorruptModel(f"there is no fragment {name!r:.80} with a body")
        if name in self._within:
            raise CorruptModel(f"the body {name!r} is inside itself, through {' and '.join(self._within)}")
        self._uses[name] = self._uses.get(name, 0) + 1
        if self._uses[name] > MOST_USES:
            raise LimitExceeded(f"the fragment {name!r} is a body more than {MOST_USES} times")
        if len(self._within) >= limits_now().max_depth:
            raise LimitExceeded(
                f"bodies are inside one another more than {limits_now().max_depth} deep",
                hint="a model that needs so many can be loaded with LoadLimits(max_depth=...)",
            )
        return found

    def _inner(self, name: str) -> Reader:
        model = TypedModel(registry=self.model.registry)
        model.limits = self.model.limits
        inner = Reader(model, self.operators, self.tensors, self._quantized, (*self._within, name))
        inner._uses, inner.remarks = self._uses, self.remarks
        return inner

    def statements(
        self, body: Sequence[ast.Assignment], scope: Scope, *, outputs: frozenset[str] = frozenset()
    ) -> None:
        """Read assignments. ``outputs``: names under which tensors are found from outside."""
        for one in body:
            count_node()
            try:
                targets = names_in(one.targets)
                value = scope.evaluate(one.value, targets)
                self._line = one.line
                if isinstance(one.targets, ast.Identifier) and isinstance(one.value, ast.Identifier):
                    self._make_way(one.targets.name, scope)
                self._assign(one.targets, value, scope, outputs)
            except TractError as error:
                inside = [*self._within, *self._open]
                where = f"line {one.line} of fragment {inside[-1]!r}" if inside else f"line {one.line}"
                raise _shortened(error).at(where) from error.__cause__

    def call(self, scope: Scope, one: ast.Invocation, targets: Sequence[str]) -> Value:
        """What an operator gives. Raises TractError."""
        declared = self.operators.find(one.name)
        given = matched(declared, one.arguments, scope.argument)
        return self._run(scope, declared, given, targets, one.item)

    def invoke(self, scope: Scope, name: str, arguments: Mapping[str, Value], targets: Sequence[str]) -> Value:
        """What an operator gives for arguments whose values are known, by the order of its parameters."""
        declared = self.operators.find(name)
        return self._run(scope, declared, dict(zip(declared.parameters, arguments.values(), strict=False)), targets)

    def _run(
        self,
        scope: Scope,
        declared: Declared,
        arguments: dict[str, Value],
        targets: Sequence[str],
        item: ast.Primitive | None = None,
    ) -> Value:
        if declared.fragment.body is not None:
            return self._expand(scope, declared, arguments, targets, item)
        node = scope.prefix + (targets[0] if targets else declared.fragment.name)
        names = targets if not self._open else ()
        of = self._item(scope, declared, item)
        call = Call(self, declared.fragment.name, node, targets=names, arguments=arguments, item=of)
        found = call_row(self.model.registry, declared.row, call)
        if isinstance(found, (OutletId, TDim, int, float, str)):
            return found
        if isinstance(found, Wired) or not isinstance(found, (list, tuple)):
            return cast("Value", outlets_of(self.model, declared.row, found)[0])
        several: list[Value] = [one.outlet if isinstance(one, Wired) else one for one in found]
        results = declared.fragment.results
        if len(results) == 1 and isinstance(results[0].type, ast.ArrayOf):
            return several
        return several[0] if len(several) == 1 else tuple(several)

    def _item(self, scope: Scope, declared: Declared, item: ast.Primitive | None) -> str:
        """What the type in angle brackets stands for, or the one that there is without; empty where nothing says it."""
        item = item or declared.fragment.item
        name = item.name if item else ""
        return scope.item if name == "?" else name

    def _expand(
        self,
        scope: Scope,
        declared: Declared,
        arguments: dict[str, Value],
        targets: Sequence[str],
        item: ast.Primitive | None = None,
    ) -> Value:
        """The results of a fragment's body, which is read where it is called."""
        fragment = declared.fragment
        if fragment.name in self._open:
            raise CorruptModel(f"the fragment {fragment.name!r} calls itself, through {' and '.join(self._open)}")
        if len(self._open) >= limits_now().max_depth:
            raise LimitExceeded(
                f"fragments call each other more than {limits_now().max_depth} deep",
                hint="a model that needs so many can be loaded with LoadLimits(max_depth=...)",
            )
        budget = current_budget()
        if budget is not None:
            budget.has_room_for(self.operators.expansion.size(fragment.name))
        prefix = f"{scope.prefix}{targets[0] if targets else fragment.name}."
        given = self._as_declared(prefix, declared, arguments)
        inner = Scope(self, NamedValues(given), prefix, self._item(scope, declared, item))
        self._open.append(fragment.name)
        try:
            self.statements(fragment.body or (), inner)
        finally:
            self._open.pop()
        found = [inner.assigned(result.name) for result in fragment.results]
        for result, value in zip(fragment.results, found, strict=True):
            if value is None:
                raise CorruptModel(f"the fragment {fragment.name!r} never assigns its result {result.name!r}")
        results = [value for value in found if value is not None]
        return results[0] if len(results) == 1 else tuple(results)

    def _as_declared(self, prefix: str, declared: Declared, arguments: Mapping[str, Value]) -> dict[str, Value]:
        """Arguments of a fragment as what its parameters are declared to be: arrays of numbers become tensors."""
        given: dict[str, Value] = {}
        for name, value in arguments.items():
            kind = declared.parameters[name].type
            if isinstance(kind, ast.TensorOf) and is_array(value):
                call = Call(self, declared.fragment.name, prefix + name, targets=(), arguments=arguments)
                given[name] = call.input(name)
            else:
                given[name] = values.as_declared(value, kind, self.model)
        return given

    def _assign(self, targets: ast.Expression, value: Value, scope: Scope, outputs: frozenset[str]) -> None:
        if isinstance(targets, ast.Identifier):
            if targets.name in scope.names:
                self.remarks.note(RemarkKind.AGAIN, targets.name, self._line)
                self._make_way(targets.name, scope)
            if isinstance(value, OutletId):
                value = self._as_quantized(targets.name, value)
                value = self._named(scope.prefix + targets.name, value, wanted=targets.name in outputs)
                if not self._open and self._is_source(value):
                    self._sources.setdefault(targets.name, value)
                if not self._open and targets.name in self._shapes:
                    self._reshape(value, self._shapes[targets.name])
            scope.names.assign(targets.name, value)
            return
        wanted = targets.items if isinstance(targets, (ast.Array, ast.Tuple)) else ()
        if not is_array(value) or len(value) != len(wanted):
            raise CorruptModel(f"{len(wanted)} results are assigned, found {shown(value)}")
        for target, part in zip(wanted, value, strict=True):
            self._assign(target, part, scope, outputs)

    def _make_way(self, name: str, scope: Scope) -> None:
        """A name becomes that of another tensor, as archives of the established engine name their outputs."""
        before = scope.names.pop(name)
        if not isinstance(before, OutletId) or self.model.outlet_name(before) != scope.prefix + name:
            return
        if not self._is_source(before):
            self.model.rename(before.node, f"{scope.prefix}{name}.before")

    def _reshape(self, outlet: OutletId, shape: ShapeFact) -> None:
        """Say a shape otherwise. Raises CorruptModel where it is another one, as far as is known."""
        fact = self.model.outlet_fact(outlet)
        if not is_same_shape(self.model, fact.shape, shape):
            raise CorruptModel(f"{self.model.outlet_name(outlet)!r} is {fact}, an extension says {shape}")
        self.model.set_outlet_fact(outlet, replace(fact, shape=shape))

    def _as_quantized(self, name: str, outlet: OutletId) -> OutletId:
        """A result of the graph in the type that ``graph.quant`` has for its name, where it has another."""
        kind = None if self._open else self.quantized(name)
        if kind is None or self.model.outlet_fact(outlet).datum_type == kind:
            return outlet
        return wire_quantized(self.model, name, outlet, kind)

    def _named(self, name: str, outlet: OutletId, *, wanted: bool) -> OutletId:
        """The same tensor, under its name in the file.

        One that has a name already, as it passed through, keeps it; unless it is ``wanted`` under the new one.
        """
        if outlet in self._taken and wanted:
            (outlet,) = self.model.wire_node(name, Identity(), [outlet])
        elif outlet in self._taken:
            return outlet
        elif outlet.slot > 0:
            self.model.set_label(outlet, name)
        elif self.model.nodes[outlet.node].name != name:
            self.model.rename(outlet.node, name)
        if not self._open:  # what a fragment gives is called as the caller says
            self._taken.add(outlet)
        return outlet

    def _inputs(self, names: Sequence[str], scope: Scope) -> list[OutletId]:
        """What is external: by the names that are listed, then what is not listed.

        For a listed one that is computed, as fragments do that have an external tensor inside, the next external one is
        taken that is not listed by its own name. Raises CorruptModel where there is none.
        """
        listed: dict[OutletId, str] = {}
        for name in names:
            outlet = self._sources.get(name) or self._outlet(name, scope)
            if listed.setdefault(outlet, name) != name:
                raise CorruptModel(f"the inputs {listed[outlet]!r} and {name!r} of the graph are one tensor")
        others = (outlet for outlet in self.model.inputs if outlet not in listed)
        found = [outlet if self._is_source(outlet) else self._inside(name, others) for outlet, name in listed.items()]
        for outlet in others:
            self.remarks.note(RemarkKind.INPUT, self.model.outlet_name(outlet))
            found.append(outlet)
        return found

    def _inside(self, name: str, others: Iterator[OutletId]) -> OutletId:
        found = next(others, None)
        if found is None:
            raise CorruptModel(f"the input {name!r} of the graph is computed, wanted an external tensor")
        self.remarks.note(RemarkKind.COMPUTED, name, self.model.outlet_name(found))
        return found

    def _is_source(self, outlet: OutletId) -> bool:
        return isinstance(self.model.nodes[outlet.node].op, TypedSource)

    def _outlet(self, name: str, scope: Scope) -> OutletId:
        found = scope.assigned(name)
        if found is None:
            raise CorruptModel(f"{name!r} is an input or output of the graph and is never assigned")
        if isinstance(found, OutletId):
            return found
        outlet = Call(self, "graph", name, targets=[name], arguments={name: found}).input(name)
        self.model.rename(outlet.node, name)
        return outlet


def _shortened(error: TractError) -> TractError:
    """The same error, with what it says cut where it is very long."""
    if len(error.problem) > LONGEST_MESSAGE:
        error.problem = f"{error.problem[:LONGEST_MESSAGE]} …"
    if error.hint and len(error.hint) > LONGEST_MESSAGE:
        error.hint = f"{error.hint[:LONGEST_MESSAGE]} …"
    return error
