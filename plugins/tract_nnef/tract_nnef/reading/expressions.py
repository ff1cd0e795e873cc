"""What expressions stand for: names, numbers, arrays, and what is computed of these while a document is read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Protocol, cast

from tract_core.dims import TDim
from tract_core.errors import CorruptModel
from tract_core.limits import count_node, limits_now
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel
from tract_nnef.reading import values
from tract_nnef.reading.names import NamedValues
from tract_nnef.reading.remarks import RemarkKind, Remarks
from tract_nnef.reading.values import Value, shown
from tract_nnef.syntax import ast

_OPERATORS: Final = {
    "+": "add",
    "-": "sub",
    "*": "mul",
    "/": "div",
    "^": "pow",
    "<": "lt",
    "<=": "le",
    ">": "gt",
    ">=": "ge",
    "==": "eq",
    "!=": "ne",
    "&&": "and",
    "||": "or",
}
"""What infix operators are called as operators on tensors."""


class Evaluator(Protocol):
    """The document that an expression is in, as far as what the expression stands for depends on it."""

    @property
    def model(self) -> TypedModel:
        """The model that is made of it."""
        ...

    @property
    def remarks(self) -> Remarks:
        """What is noted of it."""
        ...

    def symbol(self, name: str) -> TDim | None:
        """The symbol of a name, if there is one."""
        ...

    def new_symbol(self, name: str) -> TDim:
        """The symbol of a name that no line of the file declares."""
        ...

    def call(self, scope: Scope, one: ast.Invocation, targets: Sequence[str]) -> Value:
        """What an operator gives. Raises TractError."""
        ...

    def invoke(self, scope: Scope, name: str, arguments: Mapping[str, Value], targets: Sequence[str]) -> Value:
        """What an operator gives for arguments whose values are known, by the order of its parameters."""
        ...


class Scope:
    """The names that an expression may use, and where it stands.

    ``names``: their values. ``prefix``: of the nodes that it adds. ``item``: the type that ``?`` stands for. ``sized``:
    whether sizes are wanted, where a name that is not known is that of a symbol.
    """

    def __init__(
        self, reader: Evaluator, names: NamedValues[Value], prefix: str = "", item: str = "", *, sized: bool = False
    ) -> None:
        self.reader = reader
        self.names = names
        self.prefix = prefix
        self.item = item
        self._sized = sized

    def evaluate(self, expression: ast.Expression, targets: Sequence[str] = ()) -> Value:
        """What an expression stands for. ``targets``: the names that it is assigned to. Raises TractError."""
        if isinstance(expression, ast.Literal):
            return expression.value
        return _MEANING[type(expression)](self, expression, targets)

    def argument(self, expression: ast.Expression, kind: ast.Type) -> Value:
        """What is given for a parameter of that type. Raises TractError."""
        if isinstance(expression, ast.Literal):
            return expression.value
        sized = _holds_integers(kind)
        scope = self if sized is self._sized else Scope(self.reader, self.names, self.prefix, self.item, sized=sized)
        return scope.evaluate(expression)

    def with_names(self, values: Mapping[str, Value]) -> Scope:
        """The same place with more names, which hide others."""
        return Scope(self.reader, self.names.with_more(values), self.prefix, self.item, sized=self._sized)

    def assigned(self, name: str) -> Value | None:
        """What was assigned to a name, or to the only one that is spelled like it; ``None`` where nothing was."""
        found = self.names.get(name)
        if found is None and (alike := self.names.alike(name)) is not None:
            self.reader.remarks.note(RemarkKind.SPELLING, name, alike)
            return self.names.get(alike)
        return found

    def find(self, name: str) -> Value:
        """What a name stands for. Raises CorruptModel for one that is not defined."""
        found = self.names.get(name)
        if found is None:
            found = self.reader.symbol(name)
        if found is None:
            found = self.assigned(name)
        if found is None and self._sized:
            found = self.reader.new_symbol(name)
        if found is None:
            raise CorruptModel(
                f"{name!r} is not defined",
                hint="a tensor is assigned before it is used; a symbol has a line 'extension tract_symbol'",
            )
        return found


def _holds_integers(kind: ast.Type) -> bool:
    """Whether a type is that of integers, in arrays and tuples or not."""
    if isinstance(kind, ast.ArrayOf):
        return _holds_integers(kind.item)
    if isinstance(kind, ast.TupleOf):
        return all(map(_holds_integers, kind.items))
    return isinstance(kind, ast.Primitive) and kind.name == "integer"


def _identifier(scope: Scope, one: ast.Identifier, targets: Sequence[str]) -> Value:
    return scope.find(one.name)


def _array(scope: Scope, one: ast.Array, targets: Sequence[str]) -> Value:
    return [scope.evaluate(item) for item in one.items]


def _tuple(scope: Scope, one: ast.Tuple, targets: Sequence[str]) -> Value:
    return tuple(scope.evaluate(item) for item in one.items)


def _subscript(scope: Scope, one: ast.Subscript, targets: Sequence[str]) -> Value:
    parts, place = _parts(scope, one.of), values.integer(scope.evaluate(one.index), scope.reader.model)
    if not 0 <= place < len(parts):
        raise CorruptModel(f"element {place} is asked for, of {len(parts)}")
    return parts[place]


def _range(scope: Scope, one: ast.Range, targets: Sequence[str]) -> Value:
    parts = _parts(scope, one.of)
    begin, end = (
        default if bound is None else values.integer(scope.evaluate(bound), scope.reader.model)
        for bound, default in ((one.begin, 0), (one.end, len(parts)))
    )
    if not 0 <= begin <= end <= len(parts):
        raise CorruptModel(f"elements {begin} to {end} are asked for, of {len(parts)}")
    return list(parts[begin:end])


def _parts(scope: Scope, expression: ast.Expression) -> Sequence[Value]:
    model = scope.reader.model
    value = values.written(scope.evaluate(expression), model)
    if isinstance(value, OutletId):
        raise CorruptModel(f"an array is wanted, found the computed tensor {model.outlet_name(value)!r}")
    return values.items(value)


def _unary(scope: Scope, one: ast.Unary, targets: Sequence[str]) -> Value:
    value = scope.evaluate(one.of)
    if isinstance(value, OutletId):
        name = {"-": "neg", "!": "not", "+": "copy"}[one.op]
        return scope.reader.invoke(scope, name, {"x": value}, targets)
    if one.op == "!" and isinstance(value, bool):
        return not value
    if one.op == "!" or isinstance(value, (bool, str, list, tuple)):
        raise CorruptModel(f"{one.op!r} of {shown(value)}")
    return -value if one.op == "-" else value


def _binary(scope: Scope, one: ast.Binary, targets: Sequence[str]) -> Value:
    left, right = scope.evaluate(one.left), scope.evaluate(one.right)
    if one.op == "in":
        return any(_same(left, item) for item in values.items(right))
    if isinstance(left, OutletId) or isinstance(right, OutletId) or _is_of_tensors(one.op, left, right):
        return scope.reader.invoke(scope, _OPERATORS[one.op], {"x": left, "y": right}, targets)
    return _computed(one.op, left, right)


def _is_of_tensors(op: str, left: Value, right: Value) -> bool:
    """Whether an infix operator is one on tensors that are written out; arrays are joined, repeated or compared."""
    if values.is_array(left) and values.is_array(right):
        return op not in ("+", "==", "!=")
    if values.is_array(left) and isinstance(right, int):
        return op != "*" and not isinstance(right, bool)
    numbers = isinstance(right if values.is_array(left) else left, (int, float, TDim))
    return (values.is_array(left) or values.is_array(right)) and numbers


def _same(left: Value, right: Value) -> bool:
    return type(left) is type(right) and left == right


def _computed(op: str, left: Any, right: Any) -> Value:
    """An infix operator on values. Integers are divided as sizes are: towards minus infinity."""
    if op in ("==", "!="):
        return (left == right) is (op == "==")
    wanted: Any = bool if op in ("&&", "||") else str if op == "+" and isinstance(left, str) else (int, float, TDim)
    flags = wanted is not bool and (isinstance(left, bool) or isinstance(right, bool))
    if flags or not isinstance(left, wanted) or not isinstance(right, wanted):
        if op == "+" and isinstance(left, list) and isinstance(right, list):
            return [*cast("list[Value]", left), *cast("list[Value]", right)]
        if op == "*" and isinstance(left, list) and isinstance(right, int) and not flags:
            return _repeated(cast("list[Value]", left), right)
        raise CorruptModel(f"{op!r} of {shown(cast('Value', left))} and {shown(cast('Value', right))}")
    try:
        return _INFIX[op](left, right)
    except (ZeroDivisionError, OverflowError, ValueError, TypeError) as error:
        raise CorruptModel(f"{op!r} of {shown(left)} and {shown(right)}: {error}") from None


def _repeated(items: list[Value], times: int) -> list[Value]:
    if not 0 <= len(items) * times <= limits_now().max_nodes:
        raise CorruptModel(f"an array of {len(items)} is wanted {times} times")
    return items * times


def _power(left: Any, right: Any) -> Any:
    if isinstance(left, int) and isinstance(right, int) and not (0 <= right <= 64 and abs(left) < 1 << 32):
        return float(left) ** right
    return left**right


def _quotient(left: Any, right: Any) -> Any:
    return left / right if isinstance(left, float) or isinstance(right, float) else left // right


_INFIX: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": _quotient,
    "^": _power,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "&&": lambda a, b: a and b,
    "||": lambda a, b: a or b,
}


def _select(scope: Scope, one: ast.Select, targets: Sequence[str]) -> Value:
    condition = scope.evaluate(one.condition)
    if not isinstance(condition, bool):
        raise CorruptModel(f"true or false is wanted behind 'if', found {shown(condition)}")
    return scope.evaluate(one.then if condition else one.otherwise, targets)


def _comprehension(scope: Scope, one: ast.Comprehension, targets: Sequence[str]) -> Value:
    names = [name for name, _ in one.loops]
    columns = [_parts(scope, expression) for _, expression in one.loops]
    if len({len(column) for column in columns}) > 1:
        raise CorruptModel(f"arrays of {' and '.join(str(len(column)) for column in columns)} are gone through at once")
    found: list[Value] = []
    for row in zip(*columns, strict=True):
        count_node()
        inner = scope.with_names(dict(zip(names, row, strict=True)))
        if one.condition is None or inner.evaluate(one.condition) is True:
            found.append(inner.evaluate(one.value))
    return found


def _invocation(scope: Scope, one: ast.Invocation, targets: Sequence[str]) -> Value:
    built_in = _BUILT_IN.get(one.name)
    if built_in is not None and len(one.arguments) == 1:
        return built_in(scope, scope.evaluate(one.arguments[0].value))
    return scope.reader.call(scope, one, targets)


def _shape_of(scope: Scope, value: Value) -> Value:
    """The sizes of a tensor; of a number or an empty array there are none."""
    return list(scope.reader.model.outlet_fact(value).shape) if isinstance(value, OutletId) else []


def _length_of(scope: Scope, value: Value) -> Value:
    return len(value if isinstance(value, str) else values.items(value))


def _range_of(scope: Scope, value: Value) -> Value:
    return list(range(len(value if isinstance(value, str) else values.items(value))))


def _to_integer(scope: Scope, value: Value) -> Value:
    return _converted(value, int)


def _to_scalar(scope: Scope, value: Value) -> Value:
    return value if isinstance(value, OutletId) else _converted(value, float)


def _to_logical(scope: Scope, value: Value) -> Value:
    return value != "false" and bool(value) if isinstance(value, str) else _converted(value, bool)


def _to_string(scope: Scope, value: Value) -> Value:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _converted(value: Any, kind: Callable[[Any], Any]) -> Value:
    if isinstance(value, TDim) and kind is int:
        return value
    try:
        return kind(value)
    except (TypeError, ValueError, OverflowError):
        raise CorruptModel(f"{shown(value)} cannot be converted") from None


_BUILT_IN: Final[Mapping[str, Callable[[Scope, Value], Value]]] = {
    "shape_of": _shape_of,
    "length_of": _length_of,
    "range_of": _range_of,
    "integer": _to_integer,
    "scalar": _to_scalar,
    "logical": _to_logical,
    "string": _to_string,
}

_MEANING: Final[Mapping[type, Callable[[Scope, Any, Sequence[str]], Value]]] = {
    ast.Identifier: _identifier,
    ast.Array: _array,
    ast.Tuple: _tuple,
    ast.Subscript: _subscript,
    ast.Range: _range,
    ast.Unary: _unary,
    ast.Binary: _binary,
    ast.Select: _select,
    ast.Comprehension: _comprehension,
    ast.Invocation: _invocation,
}
