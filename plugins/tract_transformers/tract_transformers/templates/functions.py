"""Functions and filters that templates call, in forms that cannot make more than a budget allows."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from datetime import datetime
from functools import wraps
from typing import Any, Final, NoReturn

from jinja2 import TemplateError

from tract_transformers.templates.budget import MOST_NUMBER, RenderBudget, fits, refuse, weight

FILTERS: Final = frozenset(
    {
        "abs", "attr", "batch", "capitalize", "count", "d", "default", "dictsort", "e", "escape", "first", "float",
        "groupby", "indent", "int", "items", "join", "last", "length", "list", "lower", "map", "max", "min", "reject",
        "rejectattr", "replace", "reverse", "round", "safe", "select", "selectattr", "slice", "sort", "string", "sum",
        "title", "tojson", "trim", "truncate", "unique", "upper", "wordcount",
    }
)  # fmt: skip
"""Those of Jinja's filters that templates of conversations use; the others make texts of any length of little."""

_WIDTH: Final = re.compile(r"\d{4,}|\*")
"""A number in a format that makes texts long."""


class RaisedByTemplateError(TemplateError):
    """What a template refuses with ``raise_exception``."""


def raise_exception(message: object) -> NoReturn:
    """Refuse the conversation."""
    raise RaisedByTemplateError(str(message))


def strftime_now(form: str) -> str:
    """The time of now, in the format of Python's ``strftime``."""
    checked_format(form, 0)
    return datetime.now().strftime(form)


def bounded_range(*bounds: int) -> range:
    """The numbers of ``range``, of which there are not too many."""
    found = range(*bounds)
    if len(found) > MOST_NUMBER:
        refuse(f"asks for a range of {len(found):,} numbers")
    return found


def to_json(value: Any, indent: int | None = None, **options: Any) -> str:
    """JSON as the ``transformers`` package writes it: letters are not escaped."""
    weight(value)
    if isinstance(indent, int) and indent > 16:
        refuse(f"indents by {indent}")
    known: dict[str, Any] = {"ensure_ascii": False}
    known |= {name: options[name] for name in ("ensure_ascii", "separators", "sort_keys") if name in options}
    return json.dumps(value, indent=indent, **known)


def checked_format(form: object, values: object) -> None:
    """Refuse a format, of any of Python's languages for it, that makes a text too long of ``values``."""
    if isinstance(form, str):
        if _WIDTH.search(form):
            refuse("formats something too wide")
        fits("makes a text", len(form) + (form.count("%") + form.count("{")) * (weight(values) + 100))


def checked_replace(text: object, values: list[object]) -> None:
    """Refuse to replace a part of a text so often that it becomes too long."""
    if isinstance(text, str) and len(values) > 1 and isinstance(values[0], str) and isinstance(values[1], str):
        fits("makes a text", len(text) + text.count(values[0]) * len(values[1]))


def bounded_filter(name: str, function: Callable[..., Any], budget: Callable[[], RenderBudget]) -> Callable[..., Any]:
    """A filter that asks the budget before it is called, and shows it what it made."""

    @wraps(function)  # also the mark that says what else Jinja calls it with
    def bounded(*args: Any, **kwargs: Any) -> Any:
        found = budget()
        given = [*args, *kwargs.values()]
        found.called(given)
        own = args[1:] if hasattr(function, "jinja_pass_arg") else args
        if name == "replace" and own:
            checked_replace(str(own[0]), list(own[1:3]))
        if name == "indent" and own:
            widths = [one for one in given if isinstance(one, int)] or [4]
            fits("makes a text", len(str(own[0])) + str(own[0]).count("\n") * max(widths))
        return found.made(function(*args, **kwargs))

    return bounded


def joining(budget: Callable[[], RenderBudget]) -> Callable[..., str]:
    """The filter ``join``."""

    def join(values: Iterable[Any], d: str = "", attribute: Any = None) -> str:
        if attribute is not None:
            values = [value[attribute] if isinstance(value, dict) else getattr(value, attribute) for value in values]
        return budget().joined(values, str(d))

    return join
