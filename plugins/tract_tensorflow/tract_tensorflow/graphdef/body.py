"""Functions that nodes run themselves, branches and the bodies of loops, as models of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from tract_core.analysis import into_body
from tract_core.analysis.inference import InferenceModel
from tract_core.model.fact import InferenceFact, TypedFact
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel
from tract_tensorflow.graphdef.graph import (
    NodesReader,
    ReservedList,
    Value,
    arguments,
    as_outlet,
    result_of,
    wrong_count,
)
from tract_tensorflow.graphdef.node import GraphNode
from tract_tensorflow.graphdef.protos import Message
from tract_tensorflow.graphdef.wiring import GraphWiring, Reserved, Variable

Argument = TypedFact | Variable | tuple[Reserved, TypedFact]
"""What an argument of a function is: a tensor, a handle, or a list of which nothing is set, and its length."""

_NOTHING: Final[Mapping[str, TypedFact]] = MappingProxyType({})


def read_body(
    node: GraphNode,
    wire: GraphWiring,
    function: Message,
    given: Sequence[Argument],
    *,
    wanted: Sequence[str] | None = None,
    replaced: Mapping[str, TypedFact] = _NOTHING,
    own_scope: bool = False,
) -> TypedModel:
    """The model of a function that ``node`` runs. Its inputs are the arguments, and then what is ``replaced``.

    An argument or a replaced tensor whose value is known is no input. ``wanted``: the tensors that are the outputs, as
    the function names them; its own outputs by default. ``replaced``: nodes in whose place tensors are given. With
    ``own_scope``, what is found to be so wherever the function runs need not be so where it does not run. Raises
    ModelError.
    """
    symbols = wire.model.symbols.copy() if own_scope else wire.model.symbols
    untyped = InferenceModel(symbols, wire.model.registry)
    untyped.limits = wire.model.limits
    names = [one.name for one in function.signature.input_arg]
    if len(names) != len(given):
        raise wrong_count(function, len(given))
    values = [_value(untyped, name, argument) for name, argument in zip(names, given, strict=True)]
    known: dict[str, Value] = arguments(function, values)
    for name, fact in replaced.items():
        known[name] = untyped.add_source(name, InferenceFact.from_typed(fact))
    file = node.file.inside(function.signature.name, node.place)
    reader = NodesReader(file, untyped, function.node_def, known, scope=function.signature.name)
    if wanted is None:
        wanted = [result_of(function, one.name) for one in function.signature.output_arg]
    found = reader.read([reader.reference(text) for text in wanted])
    untyped.set_outputs([as_outlet(value) for value in found])
    typed = into_body(untyped, wire.model, node.place)
    wire.model.symbols.add_symbols(typed.symbols)
    return typed


def _value(model: InferenceModel, name: str, argument: Argument) -> Value:
    if isinstance(argument, Variable):
        return argument
    mark, fact = argument if isinstance(argument, tuple) else (None, argument)
    outlet = model.add_source(name, InferenceFact.from_typed(fact))
    return outlet if mark is None else ReservedList(outlet, mark)


def argument_of(wire: GraphWiring, slot: int) -> Argument:
    """What a function that is given an input of the node gets."""
    mark = wire.marks.get(slot)
    if isinstance(mark, Variable):
        return mark
    reserved = wire.reserved(slot)
    if reserved is not None:
        return reserved[0], wire.fact(reserved[1])
    return wire.fact(wire.input(slot))


def outlets_read(wire: GraphWiring, slots: Sequence[int]) -> list[OutletId]:
    """The tensors among some inputs of the node that are inputs of a body: those whose value is not known."""
    found = [wire.slots[slot] for slot in slots]
    return [outlet for outlet in found if outlet is not None and wire.fact(outlet).value is None]
