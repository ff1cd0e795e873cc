"""The operators of the registry ``tract_py``: how one is declared, wired and spelled."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, Final

from tract_core.dims import Dim
from tract_core.errors import CorruptModel, TractError
from tract_core.model.fact import TypedFact
from tract_core.model.graph import OutletId
from tract_core.model.op import TypedOp
from tract_core.model.source import TypedSource
from tract_core.plugins import Registry
from tract_core.plugins.tables import Rows
from tract_nnef.reading.call import Call
from tract_nnef.reading.values import size_from_text
from tract_nnef.registry import ANY, NNEF, PY, Family, Operator, reads, row_key
from tract_nnef.schema.hints import DTYPE, entries, made, written_fields
from tract_nnef.schema.names import operator_class, operator_name
from tract_nnef.syntax import ast
from tract_nnef.writing.expressions import EXTERNAL, SIZE
from tract_nnef.writing.spelling import Spelling

ROWS = Rows()


class _LeftOut(str):
    """What a field is in a declaration that may be left out."""

    __slots__ = ()


_LEFT_OUT: Final = _LeftOut("its default")
_TENSOR: Final = ast.TensorOf(ast.Primitive("?"))


def _find(registry: Registry, name: str) -> Operator | None:
    kind = operator_class(registry, name)
    return None if kind is None else _operator(kind, name)


@cache
def _operator(kind: type[TypedOp], name: str) -> Operator:
    """The declaration of an operator: its inputs, in one array, and its fields."""

    def wire(call: Call) -> Sequence[OutletId]:
        return _wired(kind, call)

    default = ast.Literal(_LEFT_OUT)
    fields = [ast.Parameter(one.name, one.kind.type, default if one.optional else None) for one in entries(kind)]
    parameters = (ast.Parameter(_name_of_inputs(kind), ast.ArrayOf(_TENSOR)), *fields)
    return Operator(ast.Fragment(name, parameters, (ast.Result("outputs", _TENSOR),)), wire)


def _name_of_inputs(kind: type) -> str:
    """A name that no field has. It is never written: inputs are given by their place."""
    taken, name = {entry.name for entry in entries(kind)}, "tensors"
    while name in taken:
        name += "_"
    return name


def _wired(kind: type[TypedOp], call: Call) -> Sequence[OutletId]:
    """The operator with the fields that are given. Raises ModelError, naming it, for what cannot be."""
    given = {entry.name: call.value(entry.name) for entry in entries(kind)}
    try:
        op = made(kind, {name: value for name, value in given.items() if value is not _LEFT_OUT}, call.reader)
    except TractError as error:
        raise type(error)(f"{call.name}: {error.problem}", where=error.where, hint=error.hint) from None
    inputs = call.inputs(_name_of_inputs(kind))
    try:
        return call.ops(op, *inputs)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        found = "; ".join(str(call.fact(one)) for one in inputs) or "no inputs"
        raise CorruptModel(f"{call.name}: its fields do not fit {found}: {error}") from None


def _spelled(op: TypedOp, node: Spelling) -> ast.Invocation | None:
    """By its fields. ``None`` where the document may not use the registry. Raises Unsupported."""
    if not node.writer.use(PY):
        return None
    if isinstance(op, TypedSource):
        kind = DTYPE.write(op.fact.datum_type, node.writer)
        return node.invoke(EXTERNAL, datum_type=kind, shape=list(op.fact.shape), registry=PY)
    name = operator_name(node.writer.model.registry, type(op))
    fields = [ast.Argument(field, value) for field, value in written_fields(op, node.writer)]
    return ast.Invocation(name, (ast.Argument(None, ast.Array(tuple(node.inputs))), *fields))


ROWS.add(NNEF, row_key(PY, ANY), Family(_find, _spelled))


@reads(ROWS, PY, f"{SIZE}(text: string) -> (size: integer)")
def read_size(call: Call) -> Dim:
    """A size in the words of `tract_core.dims`, for what the format has no signs for. Raises CorruptModel."""
    return size_from_text(call.text("text"), call.model)


@reads(ROWS, PY, f"{EXTERNAL}(datum_type: ?, shape: integer[]) -> (output: tensor<?>)")
def read_external(call: Call) -> OutletId:
    """An input of any type, containers and quantised types too."""
    kind: Any = DTYPE.read(call.value("datum_type"), call.reader)
    return call.source(TypedFact.of(kind, call.dims("shape")))
