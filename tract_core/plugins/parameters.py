"""The parameters of transforms and runtimes: how they are documented, listed, and read.

A transform, or a runtime, is a frozen dataclass, and its fields are its parameters. They are written as Python writes a
call, ``cpu(threads=2)``, wherever a text is wanted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from typing import Any, Final, cast

from tract_core.errors import InputError, TractError, TransformError
from tract_core.frozen import frozen
from tract_core.plugins.annotations import fits, hints_of, wanted


@frozen
class Parameter:
    """One parameter: a field of a dataclass. ``doc`` is taken from the field's metadata.

    ``key``: its name in JSON and on the command line; ``type``: the annotation, as text; ``default``: ``None`` also
    where there is none, see ``required``.
    """

    key: str
    field: str
    doc: str
    type: str
    required: bool
    default: Any


def parameters_of(kind: Any) -> list[Parameter]:
    """The parameters of a transform or a runtime, in order. A field such as ``from_`` is written ``from``."""
    return [_describe(field) for field in fields(kind) if field.init] if is_dataclass(kind) else []


def given_parameters(made: Any) -> dict[str, Any]:
    """The parameters of a transform or a runtime that are not the default, by their keys."""
    found = {one.key: (getattr(made, one.field), one) for one in parameters_of(type(made))}
    return {key: value for key, (value, one) in found.items() if one.required or value != one.default}


def _describe(field: Field[Any]) -> Parameter:
    factory: Any = field.default_factory
    default: Any = field.default if field.default is not MISSING else None if factory is MISSING else factory()
    required = field.default is MISSING and factory is MISSING
    kind = field.type if isinstance(field.type, str) else getattr(field.type, "__name__", str(field.type))
    return Parameter(field.name.rstrip("_"), field.name, field.metadata.get("doc", ""), kind, required, default)


def build(
    kind: type[Any],
    name: str,
    given: Mapping[str, Any],
    what: str = "transform",
    error: type[TractError] = TransformError,
) -> Any:
    """The transform, or the runtime, with these parameters, by their keys (``-`` is ``_``); lists become tuples.

    Raises ``error`` for a parameter that is unknown, missing or of another type than its field, and for one of which
    the class makes no sense.
    """
    known = {one.key: one for one in parameters_of(kind)}
    values = {key.replace("-", "_"): value for key, value in given.items()}
    unknown = [key for key in values if key not in known]
    if unknown:
        listed = ", ".join(known) or "none"
        problem = f"{name} has no parameter {', '.join(map(repr, unknown))}; its parameters: {listed}"
        raise error(problem, hint=_as_call(name, known) if known else None)
    required = [one.key for one in known.values() if one.required]
    if any(key not in values for key in required):
        plural = "parameters" if len(required) > 1 else "parameter"
        problem = f"{name} {what} requires {' and '.join(map(repr, required))} {plural}"
        raise error(problem, hint=_as_call(name, required))
    fitting = {known[key].field: _fixed(value) for key, value in values.items()}
    _check_types(kind, name, fitting, error)
    try:
        return kind(**fitting)
    except TractError:
        raise
    except (TypeError, ValueError) as wrong:
        raise error(f"{name}: {wrong}", hint=f"given were {dict(given)!r}") from wrong


def _as_call(name: str, keys: Iterable[str]) -> str:
    return f"write it as {name}({', '.join(f'{key}=...' for key in keys)})"


def check_parameters(made: Any, error: type[TractError] = TransformError) -> None:
    """Raises ``error`` for a parameter of a transform, or of a runtime, that is of another type than its field."""
    kind = cast("type[Any]", type(made))
    values = {one.field: getattr(made, one.field) for one in parameters_of(kind)}
    _check_types(kind, getattr(made, "name", kind.__name__), values, error)


def _check_types(kind: type[Any], name: str, values: Mapping[str, Any], error: type[TractError]) -> None:
    """``values``: by the names of fields."""
    hints = hints_of(kind)
    for field, value in values.items():
        if field in hints and not fits(value, hints[field]):
            raise error(f"{name}: {field.rstrip('_')!r} is {value!r}, wanted {wanted(hints[field])}")


def _fixed(value: Any) -> Any:
    """A list as a tuple, which a frozen transform can hold; anything else as it is."""
    return tuple(cast("list[Any]", value)) if isinstance(value, list) else value


def texts(name: str, key: str, value: Any) -> tuple[str, ...]:
    """``value`` as a tuple of texts; a single text is a tuple of one. Raises TransformError for anything else."""
    items: list[Any] = list(value) if isinstance(value, (list, tuple)) else [value]  # pyright: ignore[reportUnknownArgumentType]: checked next
    if not all(isinstance(item, str) for item in items):
        raise TransformError(f"{name}: {key!r} is {value!r}, wanted a list of texts")
    return tuple(items)


_CALL: Final = r"(?s)\s*([A-Za-z_][A-Za-z0-9_.-]*)\s*(?:\((.*)\))?\s*"
_PAIR: Final = r"(?s)\s*([A-Za-z0-9_-]+)\s*[=:](.*)"
_BARE_KEY: Final = r"([{,]\s*)([A-Za-z_]\w*)\s*:"
_BARE_TEXT: Final = r"[A-Za-z_][A-Za-z0-9_.+-]*"


def parse_call(text: str) -> tuple[str, dict[str, Any]]:
    """``cpu(threads=2)`` as ``("cpu", {"threads": 2})``; without parentheses, a name alone.

    A value is what JSON takes for one, where keys and single words need no quotes: ``values={B: 4}``, ``to=f16``. A
    colon does for the equals sign, as in the established engine. Raises InputError, saying what cannot be read.
    """
    if text.isascii() and text.isidentifier():  # as nearly always
        return text, {}
    call = re.fullmatch(_CALL, text)
    if call is None:
        missing = "the closing parenthesis is missing" if "(" in text and ")" not in text else "it is no call"
        raise InputError(f"{text!r} cannot be read: {missing}", hint=_FORM)
    given: dict[str, Any] = {}
    for part in _parts(call[2] or ""):
        pair = re.fullmatch(_PAIR, part)
        if pair is None:
            raise InputError(f"{text!r} cannot be read: {part.strip()!r} gives no parameter a value", hint=_FORM)
        if pair[1] in given:
            raise InputError(f"{text!r} cannot be read: {pair[1]!r} is given twice")
        given[pair[1]] = _value(text, pair[2].strip())
    return call[1], given


_FORM: Final = 'write it as in name(count=2, values={"S": 12})'


def _parts(text: str) -> Iterator[str]:
    """The parts between commas that are in no brackets and no quotes."""
    depth, quoted, start = 0, False, 0
    for index, sign in enumerate(text):
        if sign == '"' and text[index - 1 : index] != "\\":
            quoted = not quoted
        elif not quoted:
            depth += (sign in "([{") - (sign in ")]}")
            if sign == "," and depth == 0:
                yield text[start:index]
                start = index + 1
    if text[start:].strip():
        yield text[start:]


def _value(text: str, value: str) -> Any:
    if re.fullmatch(_BARE_TEXT, value) and value not in ("true", "false", "null", "NaN", "Infinity"):
        return value
    try:
        import json

        return json.loads(re.sub(_BARE_KEY, r'\1"\2":', value))
    except ValueError as error:
        raise InputError(f"{text!r} cannot be read: {value!r} is no value: {error}", hint=_FORM) from None
