"""Documents of every operator with every parameter in every form that the grammar allows, which mean the same.

A value is written as a number, a float, an array of one, a variable, what is computed; or it is left out where
it is the default.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sweep_rows import COMPUTED, EXTRA_TENSORS, TABLE, Row
from tract_nnef.archive.tensors import tensor_file
from tract_nnef.documents.operators import declaration
from tract_nnef.registry import NNEF, Operator
from tract_nnef.syntax import ast
from tract_nnef.syntax.parser import parse_statements

from tract_core.data import DatumType
from tract_core.plugins import default_registry

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Document:
    """A text, the files beside it, and the inputs to run it on. ``is_list``: whether the form is one of a list."""

    form: str
    text: str
    files: Mapping[str, bytes]
    inputs: Sequence[Array]
    is_list: bool = False


def operators() -> Mapping[str, tuple[str, ast.Fragment]]:
    """The registry and the declaration of each operator that is read, by its name."""
    table = default_registry()[NNEF]
    found: dict[str, tuple[str, ast.Fragment]] = {}
    for key in sorted(table.names()):
        registry, name = key.split("/")
        held = table.find(key)
        if isinstance(held, Operator) and registry != "tract_py":
            found.setdefault(name, (registry, declaration(held.declaration)))
    return found


def forms(name: str) -> Iterator[Document]:
    """The documents of an operator, the plainest one first: tensors from outside, by place, all else by name."""
    registry, declared = operators()[name]
    case = _Case(name, registry, declared, TABLE[name])
    yield case.document("plain")
    yield case.document("by name", named=True)
    if all(one.name in case.row.values for one in declared.parameters):
        yield case.document("by place", named=False)
    yield case.in_fragment()
    for parameter in declared.parameters:
        for form, argument in case.others(parameter):
            document = case.document(f"{parameter.name}: {form}", **{parameter.name: argument})
            yield replace(document, is_list=isinstance(parameter.type, ast.ArrayOf))


@dataclass(frozen=True)
class Argument:
    """How an argument is written, statements before the one that has it, and files beside the text. ``text`` is
    ``None`` for one that is left out. ``inputs``: what it wants from outside."""

    text: str | None
    statements: str = ""
    files: Mapping[str, Array] = field(default_factory=dict)
    inputs: Mapping[str, Array] = field(default_factory=dict)


@dataclass(frozen=True)
class _Case:
    name: str
    registry: str
    declared: ast.Fragment
    row: Row

    def usual(self, parameter: str) -> Argument:
        """The plainest form."""
        value = self.row.values[parameter]
        if isinstance(value, str):
            return Argument(value, inputs={name: one for name, one in EXTRA_TENSORS.items() if name in value})
        if parameter in self.row.constants:
            return self.variable(parameter, value)
        return Argument(f"in_{parameter.lower()}", inputs={f"in_{parameter.lower()}": value})

    def variable(self, parameter: str, value: Array) -> Argument:
        held = f"{parameter.lower()}_held"
        shape = ", ".join(map(str, value.shape))
        return Argument(held, f"{held} = variable(label = '{held}', shape = [{shape}]);\n", {held: value})

    def document(self, form: str, named: bool | None = None, **others: Argument) -> Document:
        """``named``: whether all arguments have names, or none; if not said, all but tensors have."""
        parts: list[str] = []
        chosen: list[Argument] = []
        gap = False
        for parameter in self.declared.parameters:
            if parameter.name not in self.row.values:
                gap = True
                continue
            argument = others.get(parameter.name) or self.usual(parameter.name)
            chosen.append(argument)
            by_name = not isinstance(parameter.type, ast.TensorOf) if named is None else named
            gap |= argument.text is None
            if argument.text is not None:
                gap |= by_name
                parts.append(f"{parameter.name} = {argument.text}" if gap else argument.text)
        return self._document(form, f"{self.name}({', '.join(parts)})", chosen)

    def in_fragment(self) -> Document:
        """The operator in a fragment, whose parameters are its arguments."""
        given = [one for one in self.declared.parameters if one.name in self.row.values]
        chosen = [self.usual(one.name) for one in given]
        types = [_type(one.type) for one in given]
        own = [f"p{place}" for place in range(len(given))]
        results = [f"r{place}" for place in range(self.row.results)]
        parameters = ", ".join(f"{name}: {kind}" for name, kind in zip(own, types, strict=True))
        arguments = ", ".join(f"{one.name} = {name}" for one, name in zip(given, own, strict=True))
        body = f"{self._targets(results)} = {self.name}({arguments});"
        typed = ", ".join(f"{one}: tensor<?>" for one in results)
        before = f"fragment wrapped({parameters}) -> ({typed}) {{ {body} }}\n"
        call = f"wrapped({', '.join(str(one.text) for one in chosen)})"
        return self._document("in a fragment", call, chosen, before, as_tuple=True)

    def _targets(self, names: Sequence[str], *, as_tuple: bool = False) -> str:
        listed = isinstance(self.declared.results[0].type, ast.ArrayOf) and not as_tuple
        return f"[{', '.join(names)}]" if listed else ", ".join(names)

    def _document(
        self, form: str, call: str, chosen: Sequence[Argument], before: str = "", *, as_tuple: bool = False
    ) -> Document:
        inputs = {name: value for one in chosen for name, value in one.inputs.items()}
        lines = [
            f"{name} = tract_core_external(shape = {list(value.shape)}, datum_type = '{_kind(value)}');\n"
            for name, value in inputs.items()
        ]
        lines += dict.fromkeys(one.statements for one in chosen)
        outputs = [f"out{place}" for place in range(self.row.results)]
        lines.append(f"{self._targets(outputs, as_tuple=as_tuple)} = {call};\n")
        registries = dict.fromkeys(["tract_core", *([self.registry] if self.registry != "tract_nnef" else [])])
        head = "".join(f"extension tract_registry {one};\n" for one in registries)
        symbols = "extension tract_symbol n;\n" if "count_symbol" in self.row.values else ""
        graph = f"graph network({', '.join(inputs)}) -> ({', '.join(outputs)})\n{{\n{''.join(lines)}}}\n"
        files = {f"{name}.dat": _file(value) for one in chosen for name, value in one.files.items()}
        text = f"version 1.0;\n{head}{symbols}{self.row.fragments}{before}{graph}"
        return Document(form, text, files, list(inputs.values()))

    def others(self, parameter: ast.Parameter) -> Iterator[tuple[str, Argument]]:
        """Other forms of an argument, which mean the same."""
        value = self.row.values.get(parameter.name)
        if value is None:
            return
        if isinstance(value, str):
            yield from self.of_text(parameter, value)
            if parameter.default is not None and _same(parameter.default, value):
                yield "left out", Argument(None)
        else:
            yield from self.of_tensor(parameter.name, value)

    def of_tensor(self, name: str, value: Array) -> Iterator[tuple[str, Argument]]:
        yield "a variable", self.variable(name, value)
        if value.dtype in (np.float32, np.int64, bool) and value.size <= 24:
            text = _written(value.tolist())
            yield "a literal", Argument(text)
            yield "a name of a literal", Argument("named", f"named = {text};\n")
            if not value.ndim:
                yield "a literal in an array", Argument(f"[{text}]")
            if value.dtype == np.int64 and name in _INDICES:
                yield "floats", Argument(_written(value.astype(float).tolist()))

    def of_text(self, parameter: ast.Parameter, text: str) -> Iterator[tuple[str, Argument]]:
        kind = _type(parameter.type)
        if "tensor" in kind:
            return
        yield "a name of a literal", Argument("named", f"named = {text};\n")
        if kind == "string":
            yield "in other quotes", Argument(text.replace("'", '"'))
            yield "in an array", Argument(f"[{text}]")
        elif "string" not in kind:
            yield from self.of_numbers(parameter.name, kind, text)

    def of_numbers(self, name: str, kind: str, text: str) -> Iterator[tuple[str, Argument]]:
        """A number or an array of numbers, of whole ones, or of truth values."""
        value: Any = _value(text)
        whole = "integer" in kind
        if kind == "logical":
            yield "a number", Argument(str(int(value)))
        if not isinstance(value, list):
            yield "in an array", Argument(f"[{text}]")
            yield "in an array in an array", Argument(f"[[{text}]]")
        elif len(value) == 1 and kind == "integer[]":
            yield "a single number", Argument(str(value[0]))
        yield "arrays of arrays", Argument(text.replace("(", "[").replace(")", "]"))
        if whole:
            yield "floats", Argument(_written(_floats(value)))
        if value != []:
            natural = np.array(value, np.int64 if whole else bool if kind == "logical" else np.float32)
            yield "a variable", self.variable(name, natural)
            yield from self.of_whole(name, natural) if whole else ()

    def of_whole(self, name: str, value: Array) -> Iterator[tuple[str, Argument]]:
        """Whole numbers as tensors."""
        yield "a variable of floats", self.variable(name, value.astype(np.float32))
        yield "a variable of i32", self.variable(name, value.astype(np.int32))
        halves = _written((value / 2).tolist())
        yield "computed of floats", Argument("a2", f"a1 = mul({halves}, 2.0);\na2 = floor(a1);\n")
        if value.ndim < 2 and value.min() > 0:
            shape = Argument("a1", inputs={"a0": np.zeros(value.reshape(-1).tolist(), np.float32)})
            single = "" if value.ndim else "a1 = squeeze(a1, axes = [0]);\n"
            yield "the shape of a tensor", replace(shape, statements=f"a1 = tract_core_shape_of(a0);\n{single}")
        if value.ndim == 1:
            parts = [self.variable(f"e{place}", one.reshape(())) for place, one in enumerate(value)]
            together = "".join(one.statements for one in parts)
            held = {held: one for part in parts for held, one in part.files.items()}
            yield "an array of variables", Argument(f"[{', '.join(str(one.text) for one in parts)}]", together, held)
        if (self.name, name) in COMPUTED:
            yield "known to the run alone", Argument("a0", inputs={"a0": value})
            slices = [f"slice(a0, axes = [0], begin = [{k}], end = [{k + 1}])" for k in range(len(value))]
            parts = [f"squeeze({one}, axes = [0])" for one in slices]
            yield "an array of what the run knows", Argument(f"[{', '.join(parts)}]", inputs={"a0": value})


_INDICES = ("indices", "start", "end", "k")
"""Tensors of integers that may be given as floats."""


def _type(kind: ast.Type) -> str:
    if isinstance(kind, ast.Primitive):
        return kind.name
    if isinstance(kind, ast.TensorOf):
        return "tensor<?>"
    if isinstance(kind, ast.ArrayOf):
        return f"{_type(kind.item)}[]"
    return f"({', '.join(map(_type, kind.items))})"


def _kind(value: Array) -> str:
    return "complex_f32" if value.dtype == np.complex64 else DatumType.from_numpy(value.dtype).short


def _file(value: Array) -> bytes:
    return b"".join(map(bytes, tensor_file(value)))


def _value(text: str) -> Any:
    return _held(parse_statements(f"a = {text};")[0].value)


def _held(expression: ast.Expression) -> Any:
    if isinstance(expression, ast.Literal):
        return expression.value
    if not isinstance(expression, (ast.Array, ast.Tuple)):
        return expression
    items = [_held(one) for one in expression.items]
    return items if isinstance(expression, ast.Array) else tuple(items)


def _same(default: ast.Expression, text: str) -> bool:
    held, value = _held(default), _value(text)
    return type(held) is type(value) and held == value


def _floats(value: Any) -> Any:
    return type(value)(map(_floats, value)) if isinstance(value, (list, tuple)) else float(value)


def _written(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_written, value))}]"
    if isinstance(value, tuple):
        return f"({', '.join(map(_written, value))})"
    return str(value).lower() if isinstance(value, bool) else repr(value)
